#include "serving/scheduler.h"

#include <algorithm>
#include <limits>

#include "base/integer.h"

namespace llmperf::serving {
namespace {

constexpr std::uint64_t kOwnIds = std::uint64_t{3} << 61;
constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

}  // namespace

Scheduler::Scheduler(const EngineSettings& settings, const Workload& workload, std::int64_t blocks, std::int64_t drafts)
    : settings_(settings),
      workload_(&workload),
      cache_(blocks, settings.block_size, settings.prefix_caching && settings.kind != EngineKind::llama_cpp),
      drafts_(drafts),
      token_ratio_(Sglang::first_ratio(settings)) {
  if (settings.kind == EngineKind::llama_cpp) slots_.resize(static_cast<std::size_t>(settings.max_sequences));
}

Sequence Scheduler::make(std::int32_t request, Seconds arrived) const {
  const Request& r = workload_->requests[static_cast<std::size_t>(request)];
  Sequence s{.request = request, .input = r.input, .output = r.output, .priority = r.priority, .arrived = arrived};
  const std::span<const Segment> shared = workload_->content(r);
  s.content.assign(shared.begin(), shared.end());
  if (r.session) {
    s.content.back().end = kEndless;
  } else {
    s.content.push_back({kOwnIds + static_cast<std::uint64_t>(request), kEndless});
  }
  s.shares = !shared.empty();
  return s;
}

void Scheduler::queue(Sequence& sequence, bool to_front) {
  const auto at = to_front ? std::ranges::find_if(waiting_, [&](auto* q) { return q->priority >= sequence.priority; })
                           : std::find_if(waiting_.rbegin(), waiting_.rend(), [&](auto* q) {
                               return q->priority <= sequence.priority;
                             }).base();
  waiting_.insert(at, &sequence);
}

void Scheduler::plan(Step& step) {
  step.clear();
  ++steps_;
  receive();
  fetch();
  switch (settings_.kind) {
    case EngineKind::vllm: Vllm::plan(*this, step); break;
    case EngineKind::sglang: Sglang::plan(*this, step); break;
    case EngineKind::trtllm: Trtllm::plan(*this, step); break;
    case EngineKind::llama_cpp: LlamaCpp::plan(*this, step); break;
  }
}

// Blocks for all of a prompt are there before it is sent for.
void Scheduler::receive() {
  while (!waiting_.empty() && waiting_.front()->remote) {
    Sequence& s = *waiting_.front();
    blocked_ = Cause::queue;
    if (seats() <= 0) return;
    blocked_ = Cause::kv;
    if (!allocate(s, s.known())) return;
    waiting_.pop_front();
    s.computed = s.known() - 1;
    s.admitted = true;
    s.remote = false;
    incoming_.push_back(&s);
  }
}

// The first of those that wait, if a tier has more of its prompt than the cache, and there are blocks for it; one after
// the other, as the link has them.
void Scheduler::fetch() {
  if (tiers_.empty() || !incoming_.empty()) return;
  if (waiting_.empty() || waiting_.front()->remote || waiting_.front()->looked || seats() <= 0) return;
  Sequence& s = *waiting_.front();
  std::int64_t most = 0;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    const std::int64_t tokens = s.shares ? tiers_[i]->find(s.content, s.known() - 1) : 0;
    if (tokens > most) s.tier = i;
    most = std::max(most, tokens);
  }
  const std::int64_t there = most / settings_.block_size;
  const KvCache::Hit hit = find(s);
  if (there > hit.blocks && there - hit.blocks + hit.queued > cache_.free()) return;
  s.looked = true;
  if (there <= hit.blocks) return;
  waiting_.pop_front();
  if (hit.blocks > 0) cache_.hold(s.content, hit.blocks, s.held);
  cache_.take(there - hit.blocks, s.held);
  s.fetched = (there - hit.blocks) * settings_.block_size;
  incoming_.push_back(&s);
}

Sequence* Scheduler::next() {
  if (waiting_.empty() || waiting_.front()->remote) return nullptr;
  blocked_ = Cause::queue;
  return seats() > 0 ? waiting_.front() : nullptr;
}

void Scheduler::join(Sequence& sequence) {
  std::erase(incoming_, &sequence);
  if (!sequence.remote && !sequence.admitted && sequence.fetched > 0) {
    cache_.publish(sequence.content, sequence.held.blocks * settings_.block_size, sequence.held);
    cache_.release(sequence.held);
    queue(sequence, true);
    return;
  }
  running_.push_back(&sequence);
}

void Scheduler::leave(const std::vector<Sequence*>& ended) {
  for (Sequence* s : ended) {
    const bool session = workload_->requests[static_cast<std::size_t>(s->request)].session;
    if (session) cache_.publish(s->content, s->computed, s->held);
    for (KvStore* tier : tiers_) tier->keep(s->content, s->computed);
    cache_.release(s->held);
    if (s->slot >= 0) {
      Slot& slot = slots_[static_cast<std::size_t>(s->slot)];
      slot.busy = false;
      slot.tokens = s->computed;
      slot.used = steps_;
    }
  }
  std::erase_if(running_, [&](const Sequence* s) { return s->generated >= s->output; });
  full_ = false;
}

bool Scheduler::allocate(Sequence& s, std::int64_t tokens) {
  const std::int64_t blocks = lacks(s, tokens);
  if (blocks > cache_.free()) return false;
  if (blocks == 0) return true;
  if (settings_.kind == EngineKind::llama_cpp) LlamaCpp::clear_idle_slots(*this, blocks);
  cache_.take(blocks, s.held);
  return true;
}

bool Scheduler::allocate_or_preempt(Sequence& s, std::int64_t tokens, Step& step) {
  while (!allocate(s, tokens)) {
    Sequence* last = nullptr;
    for (Sequence* q : running_) {
      if (q->under_way == 0 && (last == nullptr || q->priority >= last->priority)) last = q;
    }
    if (last == nullptr) return false;
    Sequence& victim = *last;
    preempt(victim, true, step);
    if (&victim == &s) return false;
  }
  return true;
}

// vLLM counts tokens as computed once they are in a step: the next step of a pipeline goes on with the prompt, and
// others in the same step have its blocks. The other engines wait for the step's end with both.
void Scheduler::add_prompt(Step& step, Sequence& s, std::int64_t tokens) {
  const bool at_once = settings_.kind == EngineKind::vllm;
  step.prompts.push_back({&s, tokens, s.computed});
  s.computed += tokens;
  ++s.under_way;
  s.flying = !at_once || s.computed >= s.known();
  if (s.shares && at_once) cache_.publish(s.content, std::min(s.computed, s.input), s.held);
}

void Scheduler::land(const Piece& piece) {
  Sequence& s = *piece.sequence;
  --s.under_way;
  s.flying = s.under_way > 0 && s.computed >= s.known();
  if (s.shares && settings_.kind != EngineKind::vllm) {
    cache_.publish(s.content, std::min(piece.context + piece.tokens, s.input), s.held);
  }
}

void Scheduler::add_decode(Step& step, Sequence& s) {
  s.flying = true;
  s.under_way = 1;
  step.decodes.push_back(&s);
  step.context_sum += s.computed;
  step.context_max = std::max(step.context_max, s.computed);
}

// The last token is computed in any case: what comes after it is asked for.
KvCache::Hit Scheduler::find(const Sequence& s) const {
  return s.shares ? cache_.find(s.content, s.known() - 1) : KvCache::Hit{};
}

void Scheduler::admit(Sequence& s, const KvCache::Hit& hit) {
  if (hit.blocks > 0) cache_.hold(s.content, hit.blocks, s.held);
  s.computed = hit.blocks * settings_.block_size;
  if (!s.admitted) s.reused = s.computed;
  if (!s.admitted) s.fetched = std::min(s.fetched, s.reused);  // of what was read some may be gone
  s.admitted = true;
  running_.push_back(&s);
}

void Scheduler::preempt(Sequence& s, bool to_front, Step& step) {
  s.shares = true;  // its blocks may still be there when it comes back; SGLang keeps those of the prompt alone
  const bool prompt_alone = settings_.kind == EngineKind::sglang;
  cache_.publish(s.content, prompt_alone ? std::min(s.computed, s.input) : s.computed, s.held);
  cache_.release(s.held);
  s.computed = 0;
  if (s.slot >= 0) slots_[static_cast<std::size_t>(s.slot)] = {};
  s.slot = -1;
  ++s.preemptions;
  s.seen = false;
  std::erase(running_, &s);
  queue(s, to_front);
  ++step.preempted;
}

// In step j of a run that begins with the planned one, of which j is 1, a sequence puts a token behind `computed` + j -
// 1 others; where these fill whole blocks it needs another.
std::int64_t Scheduler::steps_with_room(std::int64_t limit) const {
  const std::int64_t size = settings_.block_size;
  std::vector<std::int64_t> sequences(static_cast<std::size_t>(size), 0);  // by tokens in their last block
  for (const Sequence* s : running_) ++sequences[static_cast<std::size_t>(s->computed % size)];
  std::int64_t free = cache_.free();
  for (std::int64_t step = 2; step <= limit; ++step) {
    free -= sequences[static_cast<std::size_t>((size - (step - 1) % size) % size)];
    if (free < 0) return step - 1;
  }
  return limit;
}

void Scheduler::advance(std::int64_t steps) {
  if (steps == 0) return;
  for (Sequence* s : running_) {
    s->computed += steps;
    s->generated += steps;
    allocate(*s, s->computed + 1);
  }
  if (settings_.kind == EngineKind::sglang) token_ratio_ = Sglang::decayed(settings_, token_ratio_, steps);
}

}  // namespace llmperf::serving
