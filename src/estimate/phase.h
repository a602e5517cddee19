// What every workload is estimated as: phases of ops. A workload (text, video, a training step, a program) says which
// ops a phase has and how its steps follow one another; time_phase() of schedule.h does the rest, and all that is said
// of phases (sums, bounds, timelines, reports) is the same for all.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost/memory.h"
#include "cost/work.h"
#include "graph/decoder_graph.h"
#include "hardware/runtime_profile.h"
#include "mapper/machine.h"

namespace llmperf::estimate {

struct OpEstimate {
  graph::Op op;         // decode: as at the first generated token
  cost::Work work;      // of one execution; decode: mean over the generation
  mapper::OpTime time;  // likewise
  // Of all executions, what a step does not wait for: weights that the op before had loaded (schedule.h), exchanges
  // that a training step runs beside its passes. What follows from the times of an op and the one before it alone is
  // not kept: hidden_seconds().
  Seconds hidden;
  // Of an exchange that runs beside the ops of the other of two micro-batches (beside_seconds() in schedule.h): the
  // layers of its kind, 1 outside of them, and how often a step goes through each. 0: it runs alone.
  std::int32_t layers = 0;
  std::int32_t passes = 0;
  Seconds step_time() const { return time.total * static_cast<double>(op.count); }
};

enum class Steady : bool { no, yes };  // whether steps follow one another without draining the pipeline

// How the kernels of a step are launched. Counts only under a runtime profile.
struct Launches {
  hardware::Dispatch dispatch = hardware::Dispatch::graph;
  bool prompts = true;   // whether the step processes prompts
  double layers = 0;     // that a step launches, of all micro-batches
  double sequences = 0;  // likewise
  double steps = 1;      // that the runtime begins
};

// The sums over ops count every execution; they are of one step (decode: the mean step), all its micro-batches, and of
// a device of every pipeline stage, or one of attention and one of experts; in training of one of the busiest stage.
// The times of the ops add up to
//
//   time + overlapped + pipelined
//
// where `overlapped` is what collectives take beside other ops (of the same micro-batch, or of the other of two) and
// what weights that come early save, and `pipelined` what stages do at the same time. With M micro-batches and stages
// that are busy for b_i (all micro-batches together) a prefill takes sum(b_i) / M + (M - 1) / M max(b_i); decode steps
// follow one another in a full pipeline: max(sum(b_i) / M, max(b_i)).
struct Phase {
  std::string_view name;  // "prefill", "decode", "denoising step", "backward", "program" …
  std::int64_t steps = 1;
  graph::SequenceGroup first;  // of the first step
  graph::SequenceGroup last;
  std::int64_t stride =
      1;  // tokens that a step has cached more than the one before: of a prompt in pieces their length
  std::vector<graph::SequenceGroup> groups;  // of a mixed step; `first` has their sequences, and means of the rest
  std::vector<OpEstimate> ops;
  cost::Work work;
  Seconds time;  // of one step
  Seconds roof;
  Seconds ops_time;
  Seconds overlapped;
  Seconds pipelined;
  // What the runtime takes beside the ops at these steps, of one micro-batch; the ops end with that of the mean step.
  Seconds first_overhead;
  Seconds last_overhead;
  Launches launches;
  Seconds bubble;  // of the busiest stage: time in which it has nothing to do
  std::int64_t micro_batches = 1;
  std::int64_t overlap_batches = 1;  // parts of each of them whose exchanges run beside the other's ops
  std::int64_t token_batches = 1;    // GGUF on several stages: micro-batches of tokens, which ops count already
  double in_flight = std::numeric_limits<double>::infinity();  // of them, those that are worked on at the same time
  std::vector<double> pace;                                    // of each stage (Stage), where devices are unlike
  Steady steady = Steady::no;
  Seconds bound_time[mapper::kBounds];  // of `ops_time` less `overlapped`, in ops bound by each mapper::Bound
  mapper::Bound bound = mapper::Bound::memory;
  FlopsPerByte intensity() const { return (work.matrix + work.vector) / work.bytes(); }
  std::int64_t batches() const { return micro_batches * token_batches; }  // that stages can work on at the same time
  Seconds total() const { return time * static_cast<double>(steps); }     // of all steps
};

// What one device of a pipeline stage holds.
struct Stage {
  std::vector<std::int64_t> layers;  // of each kind
  Bytes weights;
  double pace = 1;  // time that a layer takes here, over the mean of all stages: of unlike devices
};

// What an estimate of any workload says; each adds the figures that follow from its phases.
struct Outcome {
  cost::Memory memory;  // of the device; with a pipeline of one of the fullest stage
  Bytes capacity;
  bool fits = false;
  std::vector<Phase> phases;  // empty where it does not fit
};

// Ops of a phase that have something in common: what they are for, their kind, where they come from.
struct OpGroup {
  std::string name;
  std::int64_t count = 0;    // executions
  std::int64_t kernels = 0;  // launches
  cost::Work work;
  Seconds time;
  Seconds roof;
  Seconds bound_time[mapper::kBounds];  // by mapper::Bound
  mapper::Bound bound() const;
  OpGroup& operator+=(const OpGroup& other);
};
// Ops of a phase by a name, name(i) of op i; the longest group first.
std::vector<OpGroup> grouped(std::span<const OpEstimate> ops, const std::function<std::string(std::size_t)>& name);

}  // namespace llmperf::estimate
