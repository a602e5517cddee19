// A scheduler that is taken step by step, each of which is written down in a line:
//
//   "A B C12@4 | 7 | D E"   A and B decode, C gets 12 tokens of its prompt behind 4 that are computed; blocks that are
//                           held while it runs, and who waits
//
// Requests are called A, B, C … in the order of the workload.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <string>
#include <vector>

#include "serving/scheduler.h"

namespace llmperf::serving::steps {

// A request of which the first tokens are others' as well: up to `shared` the segment `id`.
struct Ask {
  std::int64_t input = 1;
  std::int64_t output = 1;
  std::int64_t shared = 0;
  std::uint64_t id = 1;
};

inline Workload workload_of(const std::vector<Ask>& asks) {
  Workload w;
  for (const Ask& a : asks) {
    Request r;
    r.input = a.input;
    r.output = a.output;
    r.first_segment = static_cast<std::int32_t>(w.segments.size());
    if (a.shared > 0) {
      w.segments.push_back({a.id, a.shared});
      r.segments = 1;
    }
    w.requests.push_back(r);
  }
  return w;
}

class StepLog {
 public:
  StepLog(const EngineSettings& settings, const std::vector<Ask>& asks, std::int64_t blocks, std::int64_t drafts = 0)
      : workload_(workload_of(asks)), scheduler_(settings, workload_, blocks, drafts) {}

  // The next requests arrive.
  void arrive(int count = 1) {
    for (int i = 0; i < count; ++i) {
      sequences_.push_back(scheduler_.make(static_cast<std::int32_t>(sequences_.size()), Seconds{}));
      scheduler_.add(sequences_.back());
    }
  }
  std::string step() {
    scheduler_.plan(step_);
    std::string line;
    for (const Sequence* s : step_.decodes) line += fmt::format("{} ", name(*s));
    for (const Piece& p : step_.prompts) {
      line += fmt::format("{}{}", name(*p.sequence), p.tokens);
      if (p.context > 0) line += fmt::format("@{}", p.context);
      line += ' ';
    }
    line += fmt::format("| {} |", scheduler_.cache().used());
    for (const Sequence* s : scheduler_.waiting()) line += fmt::format(" {}", name(*s));
    std::vector<Sequence*> ended;
    scheduler_.complete(
        step_, nullptr, [](Sequence&, std::int64_t) {}, ended);
    return line;
  }
  void skip(int steps) {
    for (int i = 0; i < steps; ++i) step();
  }
  const Sequence& of(char who) const { return sequences_[static_cast<std::size_t>(who - 'A')]; }
  const Scheduler& scheduler() const { return scheduler_; }

 private:
  static char name(const Sequence& s) { return static_cast<char>('A' + s.request); }

  Workload workload_;
  Scheduler scheduler_;
  std::deque<Sequence> sequences_;
  Step step_;
};

inline EngineSettings engine(EngineKind kind, std::int64_t budget, std::int64_t block_size) {
  EngineSettings s;
  s.kind = kind;
  s.max_batched_tokens = budget;
  s.block_size = block_size;
  s.max_sequences = kind == EngineKind::llama_cpp ? 2 : 100;
  return s;
}

}  // namespace llmperf::serving::steps
