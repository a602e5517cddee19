// vLLM V1 (vllm/v1/core/sched/scheduler.py at b4622cf). There is no prefill or decode: a request has computed tokens
// and wants those that it knows beyond them.
//
//  1. Those that run, in the order in which they were admitted, get what they want of the step's tokens. Where no block
//     is free, the last of them all is preempted: it loses its blocks, goes to the front of the queue and is computed
//     again, prompt and generated tokens.
//  2. Unless one was preempted, those that wait, first come first served: what the cache has of the prompt is taken
//     and as much of the rest as the step still has tokens for. What does not fit ends the loop.
#include <algorithm>

#include "base/integer.h"
#include "serving/scheduler.h"

namespace llmperf::serving {

void Vllm::plan(Scheduler& s, Step& step) {
  const EngineSettings& o = s.settings_;
  std::int64_t budget = o.max_batched_tokens;
  for (std::size_t i = 0; i < s.running_.size() && budget > 0; ++i) {
    Sequence& q = *s.running_[i];
    if (q.flying) continue;
    const bool decodes = q.decodes();
    std::int64_t tokens = decodes ? 1 + s.drafts_ : q.known() - q.computed;
    if (!decodes && o.long_prefill_threshold > 0) tokens = std::min(tokens, o.long_prefill_threshold);
    tokens = std::min(tokens, budget);
    if (!s.allocate_or_preempt(q, q.computed + tokens, step)) break;
    if (decodes) {
      s.add_decode(step, q);
    } else {
      s.add_prompt(step, q, tokens);
    }
    budget -= tokens;
  }
  if (step.preempted > 0) {
    s.blocked_ = Cause::kv;
    return;
  }
  while (Sequence* first = s.next()) {
    Sequence& q = *first;
    s.blocked_ = Cause::budget;
    if (budget <= 0) return;
    const KvCache::Hit hit = s.find(q);
    const std::int64_t cached = hit.blocks * o.block_size;
    std::int64_t tokens = q.known() - cached;
    if (o.long_prefill_threshold > 0) tokens = std::min(tokens, o.long_prefill_threshold);
    if (!o.chunked_prefill && tokens > budget) return;
    tokens = std::min(tokens, budget);
    s.blocked_ = Cause::kv;
    const std::int64_t blocks =
        s.cache_.blocks_of(o.reserves_full_input ? q.known() : cached + tokens) - hit.blocks + hit.queued;
    const double reserve = s.running_.empty() ? 0 : o.watermark * d(s.cache_.blocks());
    if (d(s.cache_.free() - blocks) < reserve) return;
    s.waiting_.pop_front();
    s.admit(q, hit);
    s.allocate(q, q.computed + tokens);
    s.add_prompt(step, q, tokens);
    budget -= tokens;
  }
}

}  // namespace llmperf::serving
