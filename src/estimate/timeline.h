// When every execution of the ops of a step runs, and where: what an estimate sums up, laid out again. Ops of a device
// follow one another; what a collective has hidden beside the op before it, it runs beside it; pipeline stages take
// micro-batches as schedule.h says. The last execution ends when the phase does.
//
// Of a runtime's overhead (step_overhead.h) three parts are told apart: its fixed part runs first, the gaps stand
// before the kernels, and the time the device waits for launches stands where a kernel would begin before the host has
// launched it. What is waited is known for the whole step, so that the host may have to run ahead: it then launches
// before the step begins, as it does while the device still works on the step before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "estimate/training.h"
#include "estimate/video.h"

namespace llmperf::estimate {

// An op as a timeline needs it; of one execution, in seconds.
struct TimelineOp {
  std::int64_t count = 1;  // executions in the step, of all micro-batches and stages
  int layer_kind = -1;
  graph::Place place = graph::Place::device;
  double seconds = 0;
  double hidden = 0;        // of them, beside the op before
  bool prefetched = false;  // `hidden` is of weights that came early
  bool overhead = false;    // of the runtime: no kernel
  bool sends = false;       // to the next stage
  double host = 0;          // of the host, to launch it
  double kernels = 1;
};

// Consecutive ops that are the body of layers: run once for each of `layers`, which are numbered through the model.
struct LayerRun {
  std::size_t first = 0;
  std::size_t size = 0;
  std::vector<std::int64_t> layers;
};

// Of a runtime profile.
struct Launching {
  double gap = 0;           // s before every kernel
  double host_layers = 0;   // s of the host for all layers, beside launches
  double graph_launch = 0;  // s of the fixed part that launches a captured graph; 0: kernels are launched one by one
};

// Points to nothing: outlives what it was made from.
struct TimelineStep {
  std::string name;
  std::int64_t steps = 1;
  double time = 0;  // s, of one step
  std::vector<TimelineOp> ops;
  std::vector<LayerRun> runs;                           // ascending, apart from one another
  std::vector<std::vector<std::int64_t>> stage_layers;  // of each kind, by stage; at least one stage
  std::int64_t micro_batches = 1;
  Steady steady = Steady::no;
  double period = 0;         // s, at least, from one micro-batch to the next
  std::vector<double> pace;  // of each stage's layers (Stage)
  std::optional<Launching> launching;
};

enum class SpanKind : unsigned char {
  op,
  launch,        // by the host, of the op
  layer_host,    // what the host does for a layer beside launches, before the first of them
  graph_launch,  // of all ops
  runtime,       // overhead, in one piece
  prefetch,      // of the op's weights, beside the op before
  layer,
  micro_batch  // in one piece: too many to draw their ops
};
struct Span {
  SpanKind kind = SpanKind::op;
  std::int32_t op = -1;
  std::int32_t stage = 0;
  std::int64_t layer = -1;
  std::int64_t micro_batch = 0;
  double start = 0;  // s from the beginning of the step; of launches negative where the host runs ahead
  double end = 0;
};
struct Timeline {
  std::vector<Span> spans;
  double end = 0;          // s
  double lead = 0;         // s before the step that the first launch begins
  std::int64_t drawn = 0;  // micro-batches with all their ops
};

// Draws the ops of as many micro-batches as `max_spans` allows, at least those of one.
Timeline lay_out(const TimelineStep& step, std::size_t max_spans);

// Phases as steps: one for each, in their order; none where there are no phases.
std::vector<TimelineStep> timeline_steps(const Estimator& estimator, const Estimate& estimate);
std::vector<TimelineStep> timeline_steps(const VideoEstimator& estimator, const VideoEstimate& estimate);
// Of the busiest stage: both passes of one micro-batch, and the update.
std::vector<TimelineStep> timeline_steps(const TrainingEstimate& estimate);
// Of phases whose ops of one count are the bodies of loops, run as often.
std::vector<TimelineStep> timeline_steps(const Outcome& estimate, const hardware::RuntimeProfile* profile);

}  // namespace llmperf::estimate
