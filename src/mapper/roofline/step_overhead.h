// What a step costs beside its kernels: fixed work of the runtime, sampling, and the part of the host's launching that
// the device waits for.
//
//   gaps     = kernels x launch_gap
//   host     = layers x host_layer (of a graph: host_graph_layer)
//              + sum over kernels launched one by one of (host_launch + what views, new shapes and wrappers add)
//              + layers of experts x (host_experts + experts x host_expert) + recurrences x host_scan, likewise
//   overhead = steps x step + sequences x step_sequence + gaps + max(0, host - device - gaps)
//   overlapped: steps x step + max(gaps + max(0, host - device - gaps), sequences x step_sequence - device)
//
// Launching runs ahead of the device, so that the slower of the two decides; not so where a stack is serial, of which
// the device waits for all that the host does. A captured graph is launched as a whole;
// where its attention takes lengths from the host, that writes them layer by layer while the graph runs. Of a graph in
// pieces the host replays one piece and calls one attention per layer (host_piece), and the loop around it is decode's.
#pragma once

#include "graph/op.h"
#include "hardware/runtime_profile.h"

namespace llmperf::mapper {

// Collects what the host does in one step.
class StepOverhead {
 public:
  // `prompts`: whether the step processes prompts; `overlapped`: KernelChoices::overlapped.
  StepOverhead(const hardware::ParameterValues& values, hardware::Dispatch dispatch, bool prompts,
               bool overlapped = false)
      : values_(&values), dispatch_(dispatch), prompts_(prompts), overlapped_(overlapped) {}

  // Sums over ops.
  struct Launched {
    double host = 0;  // s, of those that it launches one by one
    double kernels = 0;
  };
  void add(const Launched& ops) {
    launched_.host += ops.host;
    launched_.kernels += ops.kernels;
  }
  const Launched& launched() const { return launched_; }

  void add(const graph::Op& op) { add(op, static_cast<double>(op.count)); }
  void add(const graph::Op& op, double count);
  // Of the host, to launch one execution.
  Seconds each(const graph::Op& op) const;
  // `device`: what the kernels of the step take; `layers`: of the model; `steps`: that a runtime begins with it.
  Seconds time(Seconds device, double layers, double sequences, double steps = 1) const;
  // Of the host, whether the device waits for it or not.
  Seconds host(double layers) const;

 private:
  bool launched_whole() const {
    return dispatch_ == hardware::Dispatch::graph || dispatch_ == hardware::Dispatch::pieces;
  }

  const hardware::ParameterValues* values_;
  hardware::Dispatch dispatch_;
  bool prompts_;
  bool overlapped_;
  Launched launched_;
};

}  // namespace llmperf::mapper
