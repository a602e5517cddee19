// Measured latencies: rows of CSV files in one of four schemas, told apart by their header.
//
//  * steps of whole models (latency_ms). One forward step of `batch` sequences that each process new_tokens and have
//    context cached; phase verify is decode that checks several new tokens of each (speculative decoding), and
//    of a model with layers for further tokens has what these take to propose all of them but the first. With
//    `loaded`, the time per output token of a server that `concurrency` requests of `prompt` and `generated` tokens
//    keep busy: others' prompts lengthen its steps. Of llama.cpp and its like a row with depth or gen_tokens need not
//    say its context. In place of phase, new_tokens, context and latency_ms a line may have what a benchmark prints of
//    `batch` equal requests: prompt, gen and one or both of ttft_ms and tpot_ms, which are a step of prefill and the
//    mean one of decode.
//  * kernels (latency_us); a row fills in what its op has (op_row.h). With runtime,engine_version the kernels are that
//    engine's.
//  * training steps (training_row.h), by their tokens per second and device (tok_s_gpu).
//  * servers under load (serving_row.h), and at least one of the figures METRIC_STATISTIC_ms (ttft, tpot, itl, e2e;
//    mean, p50, p90, p95, p99), output_tokens_per_second and requests_per_second. Each figure is a row of its own.
//
// Which columns these have is said once, in the table of measurements.cpp.
// What all rows have alike may be told beside the file (Beside) in place of a column. A line that cannot be read is
// refused, and the others are read. Columns come in any order; those that the schema does not name are kept as they are
// and change no prediction (unused_columns). Lines that start with '#' say where the rows are from. What a name means
// (hardware, runtime, model, weights, options) is for the caller to find out.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "measure/op_row.h"
#include "measure/serving_row.h"
#include "measure/training_row.h"

namespace llmperf::measure {

// The extra column whose text says why a row is listed and not scored.
inline constexpr std::string_view kUntrustedColumn = "untrusted";

struct StepRow : ModelRow {
  std::int64_t batch = 1;  // of all replicas together
  Phase phase = Phase::prefill;
  std::int64_t new_tokens = 1;  // per sequence
  std::int64_t context = 0;     // cached tokens per sequence
  // Of the requests that a server was loaded with; 0: not said.
  std::int64_t concurrency = 0;
  std::int64_t prompt = 0;     // tokens of one
  std::int64_t generated = 0;  // tokens of one
  bool loaded = false;         // the latency has others' prompts in it
  std::string measured = {};   // when, as written
  // Of llama.cpp and its like, as its tools call them; what a row does not say is as without the column.
  std::int64_t n_gpu = 1;  // cards, where the plan above is of one device
  std::string split =
      {};  // how they share the model: "layer" (also when empty), "tensor", "row", or "none": one has it
  std::optional<std::int64_t> gpu_layers = {};  // the others are on the host; of no meaning without memory of its own
  std::string host = {};                        // device name of its CPU
  std::string backend = {};                     // "cuda", "metal"; a question mark behind it: likely
  std::string build = {};                       // "b4000", or a date
  std::string era = {};                         // of the kernels: "cublas"
  std::optional<bool> flash_attention = {};     // on or off over the profile's own options
  std::int64_t ubatch = 0;                      // tokens of a prompt that are computed at once
  std::string tool = {};                        // that measured: "llama-bench"
  std::int64_t threads = 0;                     // of a CPU
  std::optional<std::int64_t> depth = {};       // cached before the test
  std::int64_t gen_tokens = 0;                  // of the test: the context is its mean
  // Of others' prompts, how many a step of a loaded server processes on the mean.
  double prompts_per_step() const {
    return loaded ? static_cast<double>(concurrency - 1) / static_cast<double>(generated) : 0;
  }
  std::int64_t replica_batch() const { return (batch + dp - 1) / dp; }
  bool operator==(const StepRow&) const = default;
};

struct Row {
  std::string hardware;
  std::variant<StepRow, OpRow, ServingRow, TrainingRow> of;
  Seconds latency;       // of a figure that is a rate its inverse
  std::size_t file = 0;  // in Measurements::files
  int line = 0;
  std::vector<std::string> extra;  // of Measurements::extra_columns, or shorter: the rest is empty
};

struct Measurements {
  struct File {
    std::string path;
    std::vector<std::string> notes;  // comment lines
  };
  std::vector<File> files;
  std::vector<std::string> extra_columns;  // of all files
  std::vector<Row> rows;
  std::vector<Diagnostic> refused;  // what is wrong with lines that are no rows, in the order of files
  bool timed_here = false;          // by this program, which knows the unit of its latencies

  // Extra columns that nothing reads: all but kUntrustedColumn.
  std::vector<std::string> unused_columns() const;
  SourcePosition where(const Row& row) const { return {files[row.file].path, row.line}; }
};

// ---- The columns that say which measurement a row is, named as in the input: what files and reports are written from.

// Nothing where the row has no such column. Text refers to the row.
using Cell = std::variant<std::monostate, std::int64_t, double, bool, std::string_view>;
// All but the latency, in the order in which they are written; and the cells of a row, one for each.
std::vector<std::string_view> row_columns();
std::vector<Cell> row_cells(const Row& row);
// Those that say something, with their columns.
std::vector<std::pair<std::string_view, Cell>> filled_cells(const Row& row);
// As a file has it.
std::string cell_text(const Cell& cell);
// Whether the row's numbers are within the bounds that a file of measurements is read with.
bool writable(const Row& row);
// What numbers within their bounds say against each other, and the column to say it of; files with it are not read.
struct Contradiction {
  std::string_view column;
  std::string message;
  std::string hint;
};
std::optional<Contradiction> contradiction(const OpShape& shape);

// Everything that says what was measured, on one line: "rtx4090 vllm qwen1.5-7b bf16 batch 8 decode 1+512". Equal texts
// are measurements of the same thing.
std::string configuration(const Row& row);
// The same in parts that mean something by themselves: "rtx4090", "vllm", …, "batch 8", "decode 1+512".
std::vector<std::string> configuration_parts(const Row& row);

// What a step ran under: "llama.cpp-cuda", and the version, build or else era.
std::string runtime_name(const StepRow& row);
std::string runtime_version(const StepRow& row);
// The same of any row, as far as it says so, and as hardware::load_runtime_profile reads it: "vllm@0.6.3",
// "llama.cpp-cuda@2024-05+llama-bench".
struct Software {
  std::string name, version, tool;
};
Software software_of(const Row& row);
std::string runtime_text(const Row& row);

inline constexpr std::size_t kMaxMeasurementBytes = std::size_t{64} << 20;

// What rows say nothing of.
struct Beside {
  std::string hardware, model, weights, runtime;
};

// Reads files of any schema, by path or by built-in name; what is wrong with single lines stands in `refused`: bad
// numbers, latencies that are not positive, unknown phases, ops, schemes and element types. Throws Error(bad_input)
// with every problem of all files (not readable, missing columns, no rows), and where no row is left.
Measurements read_measurements(std::span<const std::string> names_or_paths, const Beside& beside = {});
// The same of a text that is called `file` in messages, of which no line may be refused.
Measurements parse_measurements(std::string_view text, const std::string& file, const Beside& beside = {});

// Rows to leave out, and why.
class Refusals {
 public:
  // Everything that is wrong with a row, at its line.
  void add(const Measurements& measurements, std::size_t row, const Error& error);
  void throw_if_any() const;
  // Moves them to `refused` and returns which rows stay. Throws Error(bad_input) where none does.
  std::vector<std::size_t> apply(Measurements& measurements) const;

 private:
  std::set<std::size_t> rows_;
  std::vector<Diagnostic> why_;
};
// Throws Error(bad_input) where a line is refused, with all of them as far as anybody reads.
void refuse_none(const std::vector<Diagnostic>& refused);

// The file that parse_measurements reads back: the files' notes as comments, the columns that some row fills in, then
// the extra columns. The rows are of one schema; figures of one run stand on one line where their rows follow each
// other and came from one.
// Without latencies: what is to be measured, which nobody reads back.
enum class Latencies : bool { left_out, written };
std::string format_measurements(const Measurements& measurements, Latencies latencies = Latencies::written);

}  // namespace llmperf::measure
