// A result of `llmperf estimate` as it was saved: the JSON document read back, as far as a comparison has a use for it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"

namespace llmperf::report {

enum class ResultKind : unsigned char { generation, video, training };
std::string_view name(ResultKind kind);

// Nothing (null, or absent), true or false, a number, text.
using SavedValue = std::variant<std::monostate, bool, double, std::string>;

struct SavedInput {
  std::string name;  // path below `inputs`, without a last ".name", ".value" or ".text": "runtime", "plan"
  SavedValue value;
  bool operator==(const SavedInput&) const = default;
};

// A number of the top level or of `memory`, by its key.
struct SavedFigure {
  std::string key;              // "ttft_s", "memory.total_bytes"
  std::optional<double> value;  // nothing: null
};

// The time within the mean error of the predictions that the profile was judged by.
struct SavedBand {
  std::string phase;  // "prefill", "decode", "generation"
  double low = 0;     // s
  double high = 0;
};

struct SavedOp {
  std::string name;
  std::string place;
  std::string shape;
  std::string weights;  // format; empty: plain, or none
  std::string bound;
  double count = 0;
  double time = 0;  // s, all executions of a step
  double flops = 0;
  double bytes = 0;    // through memory
  double network = 0;  // bytes
};

struct SavedPhase {
  std::string name;
  std::string bound;
  double steps = 1;
  double time = 0;        // s, of one step; the times of the ops add up to time + overlapped + pipelined
  double overlapped = 0;  // s
  double pipelined = 0;   // s
  double flops = 0;
  double bytes = 0;
  std::vector<SavedOp> ops;
};

struct SavedResult {
  std::string source;  // the file, or what stands for it in messages
  ResultKind kind = ResultKind::generation;
  std::string version;  // of the llmperf that made it
  std::string label;
  std::vector<SavedInput> inputs;
  bool fits = false;
  std::vector<SavedFigure> figures;
  std::vector<SavedBand> bands;
  std::vector<SavedPhase> phases;

  std::optional<double> figure(std::string_view key) const;
  const SavedBand* band(std::string_view phase) const;
};

inline constexpr std::size_t kMaxResultBytes = std::size_t{16} << 20;

// Throws Error(bad_input), with the position of what is wrong, for text that is no JSON, no result of `llmperf
// estimate`, or one of another schema version. Keys it does not know are left alone, as docs/json.md allows new ones.
SavedResult read_result(std::string_view text, const std::string& source);

}  // namespace llmperf::report
