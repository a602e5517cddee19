// TensorRT-LLM's in-flight batching (cpp/tensorrt_llm/batch_manager/{capacity,microBatch}Scheduler.cpp at 02a10fe and
// 0a949d3, whose rules the PyTorch executor follows): a capacity scheduler says who may hold blocks, a micro-batch
// scheduler who of these is in the step.
//
//  * GUARANTEED_NO_EVICT: a request is admitted when the blocks that it and all that run lack to their last token are
//    free, so that nothing is ever paused. MAX_UTILIZATION: when those of its prompt are; where blocks run out, the one
//    that was admitted last is paused and begins anew. All of a prompt's blocks are taken with its first chunk.
//  * In a step come first those that generate, then prompts while tokens are left: whole, or with chunking cut to a
//    multiple of the block size.
#include <algorithm>

#include "serving/scheduler.h"

namespace llmperf::serving {

void Trtllm::plan(Scheduler& s, Step& step) {
  const EngineSettings& o = s.settings_;
  const bool guaranteed = o.admission == Admission::guaranteed_no_evict;
  std::int64_t budget = o.max_batched_tokens;
  for (std::size_t i = 0; i < s.running_.size(); ++i) {
    Sequence& q = *s.running_[i];
    if (q.flying || !q.decodes() || budget < 1 + s.drafts_) continue;
    const std::int64_t tokens = std::min(q.computed + 1 + s.drafts_, q.input + q.output);
    if (!s.allocate_or_preempt(q, tokens, step)) break;
    s.add_decode(step, q);
    budget -= 1 + s.drafts_;
  }
  const auto part = [&](std::int64_t rest) {
    if (rest <= budget) return rest;
    return o.chunked_prefill ? budget / o.block_size * o.block_size : 0;
  };
  for (Sequence* q : s.running_) {
    if (q->flying || q->decodes()) continue;
    const std::int64_t tokens = part(q->known() - q->computed);
    if (tokens == 0) continue;
    s.add_prompt(step, *q, tokens);
    budget -= tokens;
  }
  if (step.preempted > 0) {
    s.blocked_ = Cause::kv;
    return;
  }
  std::int64_t promised = 0;  // blocks that those that run still lack
  for (const Sequence* q : s.running_) promised += s.lacks(*q, q->input + q->output);
  while (Sequence* first = s.next()) {
    Sequence& q = *first;
    const KvCache::Hit hit = s.find(q);
    const std::int64_t lacks = s.cache_.blocks_of(guaranteed ? q.input + q.output : q.known()) - hit.blocks;
    s.blocked_ = Cause::kv;
    if (lacks + hit.queued + (guaranteed ? promised : 0) > s.cache_.free()) return;
    s.blocked_ = Cause::budget;
    const std::int64_t tokens = part(q.known() - hit.blocks * o.block_size);
    if (tokens == 0) return;
    s.waiting_.pop_front();
    s.admit(q, hit);
    s.allocate(q, q.known());
    promised += s.lacks(q, q.input + q.output);
    s.add_prompt(step, q, tokens);
    budget -= tokens;
  }
}

}  // namespace llmperf::serving
