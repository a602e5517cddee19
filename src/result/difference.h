// What lies between two results of `llmperf estimate`, `serve` or `capacity`, or between one and several others: in
// their inputs, in their headline, and per phase and op; of a server's run per cause of its times. A change is the
// value after less the value before: negative times are gains. Changes of the ops of a phase add up to the change of
// the phase, because what runs beside something else is a row of its own (kOverlapped, kPipelined).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor/node.h"
#include "result/field.h"

namespace llmperf::result {

// ---- A result as it was saved: the JSON document read back by what its declaration says.

// A time that a slowdown is judged by, and the error band that it has, if any.
struct JudgedTime {
  std::string_view key;
  std::string_view title;
  std::string_view band = {};  // its path
};
// What a command of one kind answers, as far as two of its results are compared.
struct SavedKind {
  std::string_view schema;
  std::string_view name;     // in messages
  std::string_view mark;     // a key that tells it from others of its schema; empty: the one without
  std::string_view figures;  // the numbers of a headline by their paths, separated by blanks
  std::string_view whole;    // the key of the time that everything takes; empty: there is none
  std::span<const JudgedTime> judged;
  const Type& (*type)();
  std::string_view inputs = {};    // by their paths, separated by blanks; empty: all of `inputs`
  std::string_view fits = "fits";  // the key that says whether there are times; empty: there are
  std::string_view unfit = "does not fit";
};
// The version of what was measured and not predicted.
inline constexpr std::string_view kMeasuredVersion = "measured";

struct SavedResult {
  std::string source;  // the file, or what stands for it in messages
  const SavedKind* kind = nullptr;
  std::string version;  // of the llmperf that made it
  std::string label;
  bool fits = false;
  descriptor::Document document;

  // By its path, "memory.total_bytes"; nothing where it is null or absent.
  std::optional<double> figure(std::string_view path) const;
};

// What stands at a path of keys, of a list of numbers from 0; null where there is nothing or null.
const descriptor::Node* find(const descriptor::Node& object, std::string_view path);

inline constexpr std::size_t kMaxResultBytes = std::size_t{16} << 20;

// Throws Error(bad_input), with the position of what is wrong, for text that is no JSON, no result that can be
// compared, one of another schema version, or one with a value of another kind than its key is declared as. Keys it
// does not know are left alone, as docs/json.md allows new ones; so are those that are absent.
SavedResult read_result(std::string_view text, const std::string& source);

// ---- What lies between two.

inline constexpr std::string_view kOverlapped = "overlapped";  // takes the negative of the time it saves
inline constexpr std::string_view kPipelined = "pipelined";

// Whether a change is more than what sums are rounded to.
bool differs(double before, double after);
// after / before - 1; nothing where there is nothing to relate.
std::optional<double> relative_change(const std::optional<double>& before, const std::optional<double>& after);

struct InputChange {
  std::string name;  // path below `inputs`, without a last ".name", ".value" or ".text": "runtime", "plan"
  Value before;
  Value after;
};

struct FigureChange {
  std::string key;
  std::optional<double> before;
  std::optional<double> after;
  // Whether the two times are nearer to each other than the errors of their predictions; nothing without a band.
  std::optional<bool> inside_band;
  std::optional<double> change() const;
};

// All executions of the ops of one name and place in a step.
struct OpState {
  bool present = false;
  std::string shape;  // of the longest, as are weights (empty: plain, or none) and bound
  std::string weights;
  std::string bound;
  double longest = 0;  // s, of one op
  double count = 0;
  double time = 0;  // s
  double flops = 0;
  double bytes = 0;    // through memory
  double network = 0;  // bytes
};
// Why something is that many times as fast: a factor of it. `what`: "bytes" or "flops", the work done; a figure of the
// device ("memory_bandwidth_bytes_per_s"); "kernels", the share of it that they reach, with all that is neither.
struct Factor {
  std::string_view what;
  double factor = 1;  // after over before: of work less than 1 is faster
};
// "memory bandwidth x 3.32, kernels x 0.87": what is neither less work nor nothing to speak of.
std::string speed_text(const std::vector<Factor>& factors);
struct OpChange {
  std::string phase;
  std::string name;
  std::string place;
  double whole = 0;  // s, the change of the phase; 0 where that is nothing
  OpState before;
  OpState after;
  std::vector<Factor> factors;  // of its speed; none unless both sides run it
  double change() const { return after.time - before.time; }
  bool changes() const;
  // "weights bf16 -> w4a16-g128, bytes x 0.266, bound memory -> matrix, kernels x 0.87"; empty where nothing changes.
  std::string why() const;
};
struct PhaseState {
  bool present = false;
  std::string bound;  // of a time of requests the cause that most of it passes with
  double time = 0;    // s, of one step
  double flops = 0;
  double bytes = 0;
};
struct PhaseChange {
  std::string name;
  bool of_requests = false;  // a mean time of theirs, not one step's; its ops are its causes
  PhaseState before;
  PhaseState after;
  std::vector<OpChange> ops;  // the largest change first
  double change() const { return after.time - before.time; }
  bool changes() const;
};

// Why one step of a phase is that many times as fast.
struct Reason {
  std::string phase;
  double times_as_fast = 1;
  std::vector<Factor> factors;
};

struct Difference {
  const SavedResult* before;
  const SavedResult* after;
  std::vector<InputChange> inputs;    // those that differ
  std::vector<FigureChange> figures;  // all
  std::vector<PhaseChange> phases;    // none unless both fit
  const FigureChange* figure(std::string_view key) const;
  bool any_change() const;
  std::vector<OpChange> ops() const;  // of all phases
  std::vector<Reason> reasons() const;
};
// Both must outlive it. Throws Error(bad_input) for results of different kinds.
Difference difference(const SavedResult& before, const SavedResult& after);

// Each of several results against the first, which is the first of them.
struct Differences {
  std::vector<Difference> results;
};

Type fields_of(Fields<OpChange> f);
Type fields_of(Fields<Difference> f);
Type fields_of(Fields<Differences> f);

}  // namespace llmperf::result
