// llama.cpp's server (tools/server/server.cpp): a number of slots, each with a cache of its own. A request without a
// free slot is deferred; it gets the one whose cache has most of its prompt, else the one that was idle longest, and
// what is there of the prompt is not computed again. In every tick each slot that generates adds a token, and the slots
// with prompts fill the batch up to n_batch.
#include <algorithm>

#include "serving/engines.h"

namespace llmperf::serving {
namespace {

constexpr double kSimilar = 0.1;  // --slot-prompt-similarity: of the prompt, from where on a slot counts as having it

// Tokens that two contents have in common.
std::int64_t common(std::span<const Segment> a, std::span<const Segment> b) {
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()) && a[i].id == b[i].id; ++i) {
    tokens = std::min(a[i].end, b[i].end);
    if (a[i].end != b[i].end) break;
  }
  return tokens;
}

}  // namespace

void LlamaCpp::plan(Scheduler& s, Step& step) {
  const EngineSettings& o = s.settings_;
  while (!s.waiting_.empty()) {
    Sequence& q = *s.waiting_.front();
    const auto there = [&](const Scheduler::Slot& slot) {
      return std::min(common(slot.content, q.content), slot.tokens);
    };
    Scheduler::Slot* best = nullptr;
    for (Scheduler::Slot& slot : s.slots_) {
      if (slot.busy) continue;
      const bool similar = static_cast<double>(there(slot)) > kSimilar * static_cast<double>(q.input);
      if (best == nullptr || (similar && there(slot) > there(*best)) ||
          (!similar && slot.used < best->used &&
           static_cast<double>(there(*best)) <= kSimilar * static_cast<double>(q.input))) {
        best = &slot;
      }
    }
    s.blocked_ = Cause::queue;
    if (best == nullptr) break;
    s.blocked_ = Cause::kv;
    // What other requests hold, and may yet, of a cache that all slots share.
    if (o.unified_kv && s.cache_.blocks_of(q.input + 1) > s.cache_.free()) break;
    s.waiting_.pop_front();
    q.slot = static_cast<std::int32_t>(best - s.slots_.data());
    q.computed = o.prefix_caching ? std::min(there(*best), q.known() - 1) : 0;
    if (!q.admitted) q.reused = q.computed;
    q.admitted = true;
    s.allocate(q, q.computed);
    best->busy = true;
    best->content = q.content;
    s.running_.push_back(&q);
  }
  std::int64_t budget = o.max_batched_tokens;
  for (std::size_t i = 0; i < s.running_.size(); ++i) {
    Sequence& q = *s.running_[i];
    if (!q.decodes() || budget <= 0) continue;
    while (!s.allocate(q, q.computed + 1 + s.drafts_)) {
      // No free cells: the server gives up the slot that was filled last and computes it again.
      Sequence& last = *s.running_.back();
      s.slots_[static_cast<std::size_t>(last.slot)].busy = false;
      last.slot = -1;
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
    if (!s.allocate(*q, q->computed + tokens)) continue;
    s.add_prompt(step, *q, tokens);
    budget -= tokens;
  }
}

}  // namespace llmperf::serving
