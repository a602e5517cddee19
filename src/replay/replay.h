// Ops replayed on a device: what a graph's ops are as rows, how long they take, what a profile predicts of them, and
// whether a backend computes what it should.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/units.h"
#include "graph/op.h"
#include "hardware/device.h"
#include "hardware/runtime_profile.h"
#include "measure/calibrate.h"
#include "measure/measurements.h"
#include "measure/op_row.h"
#include "replay/backend.h"

namespace llmperf::replay {

// ---- The ops of a graph as what a backend can be asked to run: the inverse of measure::ops_of.

// One op of a step, or of a list: what is timed once however often the step executes it.
struct DistinctOp {
  std::vector<std::string> names;  // of the graph's ops that are this one: "qkv_proj"
  std::int64_t count = 0;          // executions per step; 0: not of a step
  // What to run, or why no backend can: "is the chain of 4 kernels of an eager framework".
  std::variant<measure::OpRow, std::string> what;
};

// Where an op of a step stands. A step executes its places in order; those of equal layers follow each other as often
// as there are layers.
struct StepPlace {
  std::size_t op = 0;       // into Step::ops
  std::int64_t repeat = 1;  // executions in a row
};
struct StepBlock {
  std::vector<StepPlace> places;
  std::int64_t times = 1;  // layers
};

struct Step {
  std::vector<DistinctOp> ops;  // in order of first execution
  std::vector<StepBlock> blocks;
};

// The row that names the op, or why there is none. `attention`: of its layer, which says how a rotated tensor and a
// cache divide into heads; null: there is none. A product's bias is left out of its row, as is its reading by several
// experts: these are as many products of equal size.
std::variant<measure::OpRow, std::string> row_of(const graph::Op& op, const graph::Attention* attention);
// Of the ops of a step, the attention in the layer of one of them, null without; but for that of an indexer, which has
// scores alone.
const graph::Attention* attention_beside(const graph::Op& op, const auto& ops, const auto& op_of) {
  for (const auto& each : ops) {
    const graph::Op& other = op_of(each);
    const auto* attention = std::get_if<graph::Attention>(&other.body);
    if (attention && attention->v_dim > 0 && other.layer_kind == op.layer_kind) return attention;
  }
  return nullptr;
}
inline const graph::Attention* attention_beside(const graph::Op& op, const graph::Graph& graph) {
  return attention_beside(op, graph, [](const graph::Op& same) -> const graph::Op& { return same; });
}

// Ops, each once however many steps have it, in order of first appearance.
class DistinctOps {
 public:
  // Finds or adds the op, with its names and executions; returns its number.
  std::size_t add(const DistinctOp& op);
  std::vector<DistinctOp> ops;

 private:
  std::map<std::string, std::size_t> known_;
};

// Runtime overhead is no op and is left out. Sums::joint: a product and the sum over ranks that runs beside it are one
// row, for backends that have a kernel of both.
enum class Sums : bool { apart, joint };
Step step_of(const graph::Graph& graph, Sums sums = Sums::apart);
// Every row once, in order of first appearance.
Step list_of(const std::vector<measure::OpRow>& rows);

// ---- How long something takes on a device that is also disturbed: samples of many executions each, until they agree.

struct TimingOptions {
  Seconds sample{5e-3};  // a sample is as many passes as take that long
  Seconds budget{0.4};   // no more samples after that, once there are `fewest`
  std::int64_t fewest = 5;
  std::int64_t most = 31;
  std::function<bool()> go_on = {};  // asked between samples; false: one is enough
};

// Of one pass.
struct Timing {
  Seconds median;
  Seconds minimum;
  Seconds spread;  // between the quartiles: half of the samples lie in a range that wide
  std::int64_t samples = 0;
  std::int64_t passes = 0;  // in all samples together
};

// `run(passes)` executes so many passes and returns the seconds of all.
Timing time_passes(const std::function<Seconds(std::int64_t passes)>& run, const TimingOptions& options = {});

// ---- Ops of a step, or of a list, executed on a device: what each took, and what the step took as a whole.

struct TimedOp {
  DistinctOp op;
  std::optional<Timing> timing;
  std::string unavailable;  // why there is no timing
  // The one figure that stands for the op: the median, of collectives the minimum, because theirs includes waiting for
  // peers.
  Seconds time() const;
};

struct StepTime {
  Timing timing;
  Seconds ops;                        // what its ops took one by one, added up
  std::vector<std::string> left_out;  // ops that are not in it
};

struct Replay {
  Description device;
  std::vector<TimedOp> ops;
  std::optional<StepTime> whole;
  bool complete = true;               // false: ended early, by the caller's wish or by `failure`
  std::optional<Error> failure = {};  // of the device, in what comes after what is there
};

struct ReplayOptions {
  bool whole_step = false;
  TimingOptions timing;
  // Called before each op is timed, with the number of those done and of all; empty: nobody wants to know. The replay
  // ends early, with what is done, when it returns false.
  std::function<bool(std::size_t done, std::size_t all, const std::string& what)> progress;
};

// Times steps on one device, every op once however many steps have it.
class Replayer {
 public:
  // The backend must outlive it.
  explicit Replayer(Backend& backend, ReplayOptions options = {});

  // Times every distinct op by itself, and with whole_step also all of them in the order of the step, as often as it
  // executes them, where every layer has weights of its own. A step of which an op cannot run is timed without it.
  // After a failure of the device nothing more can be run.
  Replay run(const Step& step);

 private:
  struct Outcome {
    std::optional<Timing> timing;
    std::string unavailable;
  };
  void run_into(const Step& step, Replay& result);
  const Outcome& time_op(const measure::OpRow& row);
  std::optional<StepTime> time_step(const Step& step, const std::vector<TimedOp>& timed);

  Backend& backend_;
  ReplayOptions options_;
  std::map<std::string, Outcome> known_;  // by describe(row)
};

// ---- Sets of ops that identify a profile's parameters: shapes spread so that each parameter decides some of the
// times.

const std::vector<std::string>& sweep_names();
// The ops of the sweep of that name, products in `dtype`. Throws Error(bad_input) with the nearest names.
std::vector<measure::OpRow> sweep(std::string_view name, Dtype dtype);

// ---- A replay and what a profile predicts of it: the result of `llmperf replay`.

// One step of a model, or a list of ops.
struct PhaseStudy {
  std::string name;  // "prefill", "decode"; "ops" for a list
  Replay replay;
  std::vector<std::optional<Seconds>> predicted;  // of one execution of each op that was timed
  std::optional<Seconds> predicted_step;          // of all its ops and the runtime's overhead
};

struct Study {
  std::string what = {};  // "qwen1.5-0.5b, batch 1, prompt 128", or a file or sweep
  Description device = {};
  std::string hardware = {};  // name of the device that predictions are for
  std::string profile = {};   // that predicts; empty: none does
  std::vector<PhaseStudy> phases = {};
  std::optional<measure::Calibration> calibration = {};  // how the profile was fitted to this replay's ops
};

// The ops of all phases, each once, as measurements of `hardware`.
measure::Measurements measurements_of(const Study& study);

// Fills in `predicted` of every phase. `measured`: measurements_of(study).
void predict_ops(Study& study, const measure::Measurements& measured, const hardware::Device& device,
                 const hardware::RuntimeProfile& profile);

// ---- Whether a backend computes what it should: small ops of every kind, whose results are compared with another
// backend's.

struct SelfTestResult {
  enum class Outcome : unsigned char { passed, failed, unavailable };
  std::string op;  // describe(row)
  Outcome outcome = Outcome::unavailable;
  // Norm of the difference over the norm of the reference's result, and what its type's rounding allows; nothing where
  // nothing was compared.
  std::optional<double> error = {};
  std::optional<double> tolerance = {};
  std::string reason = {};  // why not available, or what failed
};
std::string_view name(SelfTestResult::Outcome outcome);

// A fixed list of small ops of every kind that operands.h lists. Types that the reference does not have it computes in
// fp32. What goes wrong on a device fails the op, and those after it are not run.
std::vector<SelfTestResult> self_test(Backend& tested, Backend& reference);

// Whether any op failed.
bool failed(const std::vector<SelfTestResult>& results);

}  // namespace llmperf::replay
