// llama.cpp's server (tools/server/server.cpp): a number of slots, each with a cache of its own. A request without a
// free slot is deferred; it gets the one whose cache has most of its prompt, else the one that was idle longest, and
// what is there of the prompt is not computed again. In every tick each slot that generates adds a token, and the slots
// with prompts fill the batch up to n_batch.
#include <algorithm>

#include "base/integer.h"
#include "serving/scheduler.h"

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

// Slots that are idle keep what they have in a cache that all share until its room is needed: the first of them first.
void LlamaCpp::clear_idle_slots(Scheduler& s, std::int64_t blocks) {
  if (!s.settings_.unified_kv) return;
  std::int64_t kept = 0;
  const auto idle = [&](const Scheduler::Slot& slot) { return slot.busy ? 0 : s.cache_.blocks_of(slot.tokens); };
  for (const Scheduler::Slot& slot : s.slots_) kept += idle(slot);
  for (Scheduler::Slot& slot : s.slots_) {
    if (s.cache_.free() - kept >= blocks) return;
    kept -= idle(slot);
    if (!slot.busy) slot.tokens = 0;
  }
}

void LlamaCpp::plan(Scheduler& s, Step& step) {
  const EngineSettings& o = s.settings_;
  std::int64_t promised = 0;  // cells of prompts that are not computed yet
  for (const Sequence* q : s.running_) promised += s.lacks(*q, q->known() + 1);
  while (Sequence* first = s.next()) {
    Sequence& q = *first;
    const auto there = [&](const Scheduler::Slot& slot) {
      return o.prefix_caching ? std::min(common(slot.content, q.content), slot.tokens) : 0;
    };
    const auto similar = [&](const Scheduler::Slot& slot) { return d(there(slot)) > kSimilar * d(q.input); };
    Scheduler::Slot* best = nullptr;
    for (Scheduler::Slot& slot : s.slots_) {
      if (slot.busy) continue;
      if (best == nullptr || (similar(slot) ? there(slot) > there(*best) : !similar(*best) && slot.used < best->used)) {
        best = &slot;
      }
    }
    s.blocked_ = Cause::kv;
    // What other requests hold, and their prompts will, of a cache that all slots share. (The server would fail.)
    if (best == nullptr || (o.unified_kv && s.cache_.blocks_of(q.known() + 1) + promised > s.cache_.free())) break;
    s.waiting_.pop_front();
    q.slot = static_cast<std::int32_t>(best - s.slots_.data());
    q.computed = std::min(there(*best), q.known() - 1);
    if (!q.admitted) q.reused = q.computed;
    q.admitted = true;
    best->busy = true;
    best->content = q.content;
    s.allocate(q, q.computed);
    s.running_.push_back(&q);
    promised += s.lacks(q, q.known() + 1);
  }
  std::int64_t budget = o.max_batched_tokens;
  for (std::size_t i = 0; i < s.running_.size(); ++i) {
    Sequence& q = *s.running_[i];
    if (q.flying || !q.decodes() || budget <= 0) continue;
    // No free cells: the slot that was filled last is given up and computed again. (The server would fail.)
    if (!s.allocate_or_preempt(q, q.computed + 1 + s.drafts_, step)) break;
    s.add_decode(step, q);
    budget -= 1 + s.drafts_;
  }
  for (std::size_t i = 0; i < s.running_.size(); ++i) {
    Sequence& q = *s.running_[i];
    if (q.flying || q.decodes() || budget <= 0) continue;
    // As much as there are cells for; where nothing else goes on, those of the slot that was filled last.
    const std::int64_t cells = (s.cache_.free() + q.held.blocks) * o.block_size - q.computed;
    const std::int64_t tokens =
        std::min({q.known() - q.computed, budget, std::max<std::int64_t>(cells, step.empty() ? 1 : 0)});
    if (tokens == 0) continue;
    if (!s.allocate_or_preempt(q, q.computed + tokens, step)) break;
    s.add_prompt(step, q, tokens);
    budget -= tokens;
  }
}

}  // namespace llmperf::serving
