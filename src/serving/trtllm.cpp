// TensorRT-LLM's in-flight batching (tensorrt_llm/_torch/pyexecutor/scheduler.py, SchedulerConfig of 1.x): a capacity
// scheduler says who may hold blocks, a micro-batch scheduler who of these is in the step.
//
//  * GUARANTEED_NO_EVICT: a request is admitted when the blocks that it and all that run lack to their last token are
//    free, so that nothing is ever paused. MAX_UTILIZATION: when those of its prompt are; where blocks run out, the one
//    that was admitted last is paused and begins anew.
//  * In a step come first those that generate, then prompts while tokens are left: whole, or without end cut where
//    chunking is on.
#include <algorithm>

#include "serving/engines.h"

namespace llmperf::serving {

void Trtllm::plan(Scheduler& s, Step& step) {
  const EngineSettings& o = s.settings_;
  const bool guaranteed = o.admission == Admission::guaranteed_no_evict;
  std::int64_t budget = o.max_batched_tokens;
  for (std::size_t i = 0; i < s.running_.size() && budget > 0; ++i) {
    Sequence& q = *s.running_[i];
    if (q.flying || !q.decodes()) continue;
    while (!s.allocate(q, q.computed + 1 + s.drafts_)) {
      Sequence& last = *s.running_.back();
      s.preempt(last, true, step);
      if (&last == &q) break;
    }
    if (i >= s.running_.size()) break;
    s.add_decode(step, q);
    budget -= 1 + s.drafts_;
  }
  for (Sequence* q : s.running_) {
    if (q->flying || q->decodes() || budget <= 0) continue;
    const std::int64_t tokens = std::min(q->known() - q->computed, budget);
    if (!s.allocate(*q, q->computed + tokens)) break;
    s.add_prompt(step, *q, tokens);
    budget -= tokens;
  }
  std::int64_t promised = 0;  // blocks that those that run still lack
  for (const Sequence* q : s.running_) promised += s.lacks(*q, q->input + q->output);
  while (!s.waiting_.empty() && step.preempted == 0) {
    s.blocked_ = Cause::queue;
    if (static_cast<std::int64_t>(s.running_.size()) >= o.max_sequences) return;
    s.blocked_ = Cause::budget;
    Sequence& q = *s.waiting_.front();
    const KvCache::Hit hit = s.find(q);
    std::int64_t tokens = q.known() - hit.blocks * o.block_size;
    if (budget <= 0 || (tokens > budget && !o.chunked_prefill && budget < o.max_batched_tokens)) return;
    tokens = std::min(tokens, budget);
    s.blocked_ = Cause::kv;
    const std::int64_t lacks = s.cache_.blocks_of(guaranteed ? q.input + q.output : q.known() + 1) - hit.blocks;
    if (lacks + hit.queued + (guaranteed ? promised : 0) > s.cache_.free()) return;
    s.waiting_.pop_front();
    s.admit(q, hit);
    s.allocate(q, q.computed + tokens);
    promised += s.lacks(q, q.input + q.output);
    s.add_prompt(step, q, tokens);
    budget -= tokens;
  }
}

}  // namespace llmperf::serving
