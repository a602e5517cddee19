// What lies between two results of `llmperf estimate`: in their inputs, in their headline, and per phase and op. A
// change is the value after less the value before: negative times are gains. Changes of the ops of a phase add up to
// the change of the phase, because what runs beside something else is a row of its own (kOverlapped, kPipelined).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/saved_result.h"

namespace llmperf::report {

inline constexpr std::string_view kOverlapped = "overlapped";  // takes the negative of the time it saves
inline constexpr std::string_view kPipelined = "pipelined";

struct InputChange {
  std::string name;
  SavedValue before;
  SavedValue after;
};

struct FigureChange {
  std::string key;
  std::optional<double> before;
  std::optional<double> after;
  // Whether the two times are nearer to each other than the errors of their predictions; nothing without a band.
  std::optional<bool> inside_band;
};

// All executions of the ops of one name and place in a step.
struct OpState {
  bool present = false;
  std::string shape;  // of the longest, as are weights and bound
  std::string weights;
  std::string bound;
  double longest = 0;  // s, of one op
  double count = 0;
  double time = 0;  // s
  double flops = 0;
  double bytes = 0;
  double network = 0;  // bytes
};
struct OpChange {
  std::string name;
  std::string place;
  OpState before;
  OpState after;
  double change() const { return after.time - before.time; }
  bool changes() const;
};
struct PhaseState {
  bool present = false;
  std::string bound;
  double time = 0;  // s, of one step
};
struct PhaseChange {
  std::string name;
  PhaseState before;
  PhaseState after;
  std::vector<OpChange> ops;  // the largest change first
  double change() const { return after.time - before.time; }
  bool changes() const;
};

struct Difference {
  SavedResult before;
  SavedResult after;
  std::vector<InputChange> inputs;    // those that differ
  std::vector<FigureChange> figures;  // all
  std::vector<PhaseChange> phases;    // none unless both fit
  const FigureChange* figure(std::string_view key) const;
};

// Whether a change is more than what sums are rounded to.
bool differs(double before, double after);
// Throws Error(bad_input) for results of different kinds.
Difference difference(SavedResult before, SavedResult after);

// The times that a slowdown is judged by: TTFT and TPOT, a video's generation, a training step.
struct JudgedTime {
  std::string_view key;
  std::string_view title;
};
std::vector<JudgedTime> judged_times(ResultKind kind);

}  // namespace llmperf::report
