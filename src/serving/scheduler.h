// The state of one replica of an engine, and what it computes next. Each engine's rules are a file of their own
// (vllm.cpp, sglang.cpp, trtllm.cpp, llama_cpp.cpp); what they share is here: requests that wait and run, the KV cache,
// and what becomes of a step that has ended.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "serving/engine.h"
#include "serving/kv_cache.h"
#include "serving/kv_tier.h"
#include "serving/workload.h"

namespace llmperf::serving {

// What a request waits for before its first token: a seat, blocks of the KV cache, a share of the step's tokens; and
// what passes while it is computed: its own prompt, and what else is in the same steps.
enum class Cause : std::uint8_t { queue, kv, budget, prefill, interference };
inline constexpr std::array<std::string_view, 5> kCauses = {"queue", "kv", "budget", "prefill", "interference"};
using Causes = std::array<double, kCauses.size()>;

// A request on its way through a replica.
struct Sequence {
  std::int32_t request = 0;  // index in the workload
  std::int64_t input = 0;
  std::int64_t output = 0;     // tokens that it generates here
  std::int32_t priority = 0;   // the lowest number first
  std::int64_t computed = 0;   // tokens whose keys and values are cached, or will be once the steps that run end
  std::int64_t generated = 0;  // tokens that came out
  std::int64_t reused = 0;     // tokens of the prompt that were cached when it was admitted first
  std::int32_t preemptions = 0;
  std::int32_t under_way = 0;  // steps that run with some of it: of a pipeline several may have pieces of its prompt
  bool flying = false;         // nothing of it may be computed until one of these ends
  bool admitted = false;
  bool remote = false;       // its prompt was computed elsewhere, and has to be sent here
  bool looked = false;       // for its prompt in the tiers
  std::int64_t fetched = 0;  // tokens of its prompt that are read from one; they are the last of those that it holds
  std::size_t tier = 0;      // … which it is
  std::int32_t slot = -1;    // llama.cpp
  KvCache::Held held = {};
  std::vector<Segment> content = {};  // of all of its tokens; the last one has no end
  bool shares = false;                // some of it is, or may become, others'
  Seconds arrived{}, first{}, last{};
  Seconds told{};      // until when the causes are known
  Causes causes = {};  // seconds
  Causes waited = {};  // the replica's clocks when it began to wait
  bool seen = false;   // … which is set

  std::int64_t known() const { return input + generated; }
  bool decodes() const { return computed == known() - 1 && generated > 0; }
};

struct Piece {
  Sequence* sequence = nullptr;
  std::int64_t tokens = 0;
  std::int64_t context = 0;
};

// What a replica computes at once.
struct Step {
  std::vector<Piece> prompts = {};
  std::vector<Sequence*> decodes = {};
  std::int64_t context_sum = 0;  // of the decodes
  std::int64_t context_max = 0;
  std::int32_t preempted = 0;  // sequences that lost their blocks to it
  bool empty() const { return prompts.empty() && decodes.empty(); }
  void clear() {
    *this = {.prompts = std::move(prompts), .decodes = std::move(decodes)}, prompts.clear(), decodes.clear();
  }
};

class Scheduler {
 public:
  // `drafts`: tokens that are guessed for each decode. The workload must outlive it.
  Scheduler(const EngineSettings& settings, const Workload& workload, std::int64_t blocks, std::int64_t drafts = 0);

  const EngineSettings& settings() const { return settings_; }
  const KvCache& cache() const { return cache_; }
  const std::vector<Sequence*>& running() const { return running_; }
  const std::deque<Sequence*>& waiting() const { return waiting_; }
  // What the cache lets go of stays in these, which must outlive it.
  void set_tiers(std::vector<KvStore*> tiers) { tiers_ = std::move(tiers); }

  // Fills in what a request's sequence begins with.
  Sequence make(std::int32_t request, Seconds arrived) const;
  // It arrives.
  void add(Sequence& sequence) { queue(sequence, false); }
  // Chooses the next step; an empty one where there is nothing to do until something arrives or ends.
  void plan(Step& step);
  // What keeps the first of those that wait from being admitted, after a plan.
  Cause blocked() const { return blocked_; }
  // The step has ended: `kept` says of each decode how many tokens came out (null: one). Sequences that end are let go
  // of and listed in `ended`, those that got tokens were told so by `emit`.
  template <class Emit>
  void complete(Step& step, const std::vector<std::int64_t>* kept, Emit emit, std::vector<Sequence*>& ended) {
    for (const Piece& p : step.prompts) {
      land(p);
      if (p.context + p.tokens >= p.sequence->known()) put_out(*p.sequence, 1, emit, ended);
    }
    for (std::size_t i = 0; i < step.decodes.size(); ++i) {
      Sequence& s = *step.decodes[i];
      s.under_way = 0;
      s.flying = false;
      const std::int64_t tokens = std::min(kept ? (*kept)[i] : 1, s.output - s.generated);
      s.computed += tokens;
      put_out(s, tokens, emit, ended);
    }
    if (!ended.empty()) leave(ended);
  }
  // Where a planned step decodes all that runs: how often it may be taken, at most `limit`, before blocks are missing;
  // and that it was taken so many times before the one that is planned. None of the sequences may end by then.
  std::int64_t steps_with_room(std::int64_t limit) const;
  void advance(std::int64_t steps);
  // Sequences that a plan has taken blocks for, and whose keys and values are to be sent, or read from a tier; they
  // join once these are there, or wait again with what the cache then has of them.
  const std::vector<Sequence*>& incoming() const { return incoming_; }
  void join(Sequence& sequence);

 private:
  friend struct Vllm;
  friend struct Sglang;
  friend struct Trtllm;
  friend struct LlamaCpp;

  template <class Emit>
  void put_out(Sequence& s, std::int64_t tokens, Emit emit, std::vector<Sequence*>& ended) {
    s.generated += tokens;
    emit(s, tokens);
    if (s.generated >= s.output) ended.push_back(&s);
  }
  void land(const Piece& piece);
  void receive();
  void fetch();
  // To the front or the end of those of its priority.
  void queue(Sequence& sequence, bool to_front);
  // The first of those that wait, if there is a seat for it and its prompt is computed here.
  Sequence* next();
  std::int64_t seats() const {
    return settings_.max_sequences - static_cast<std::int64_t>(running_.size() + incoming_.size());
  }
  void leave(const std::vector<Sequence*>& ended);
  // Whether the sequence has blocks for so many tokens, after taking what is missing if there is as much.
  bool allocate(Sequence& s, std::int64_t tokens);
  // … after preempting, of those that no running step has a part of, the one of the last priority that was admitted
  // last, and again; false where that was the sequence itself, or none is left.
  bool allocate_or_preempt(Sequence& s, std::int64_t tokens, Step& step);
  // Blocks that it lacks for so many tokens.
  std::int64_t lacks(const Sequence& s, std::int64_t tokens) const {
    return std::max<std::int64_t>(0, cache_.blocks_of(tokens) - s.held.blocks);
  }
  void add_prompt(Step& step, Sequence& s, std::int64_t tokens);
  void add_decode(Step& step, Sequence& s);
  KvCache::Hit find(const Sequence& s) const;
  // From the queue into the batch, holding what is cached of it.
  void admit(Sequence& s, const KvCache::Hit& hit);
  // Out of the batch and to the front or the end of the queue; all of it is computed again.
  void preempt(Sequence& s, bool to_front, Step& step);

  EngineSettings settings_;
  const Workload* workload_;
  KvCache cache_;
  std::int64_t drafts_;
  std::vector<Sequence*> running_;  // in the order in which they were admitted
  std::deque<Sequence*> waiting_;
  std::vector<Sequence*> incoming_;
  std::vector<KvStore*> tiers_;
  Cause blocked_ = Cause::queue;
  // SGLang.
  double token_ratio_;       // of max_tokens, that is reserved for those that run
  Sequence* cut_ = nullptr;  // the prompt of which a part is computed
  bool full_ = false;        // nothing is admitted until something ends
  // llama.cpp: what each slot's cache holds.
  struct Slot {
    std::vector<Segment> content;
    std::int64_t tokens = 0;  // that stay there while it is idle
    std::int64_t used = 0;    // when it was, in steps
    bool busy = false;
  };
  std::vector<Slot> slots_;
  std::int64_t steps_ = 0;
};

// The rules of each engine: what it does first, second, third when it makes up a step.
struct Vllm {
  static void plan(Scheduler& s, Step& step);
};

struct Sglang {
  static void plan(Scheduler& s, Step& step);
  // The share of max_tokens that is reserved for sequences that run: at first, and after more steps of decode.
  static double first_ratio(const EngineSettings& settings);
  static double decayed(const EngineSettings& settings, double ratio, std::int64_t steps);

 private:
  static bool extend(Scheduler& s, Step& step);
  static bool retract(Scheduler& s, Step& step);
};

struct Trtllm {
  static void plan(Scheduler& s, Step& step);
};

struct LlamaCpp {
  static void plan(Scheduler& s, Step& step);
  // So that blocks are free of what idle slots keep.
  static void clear_idle_slots(Scheduler& s, std::int64_t blocks);
};

}  // namespace llmperf::serving
