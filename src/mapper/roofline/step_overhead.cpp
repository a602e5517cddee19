#include "mapper/roofline/step_overhead.h"

#include <algorithm>

namespace llmperf::mapper {

using hardware::Dispatch;
using hardware::FormatParameter;
using hardware::Parameter;

Seconds StepOverhead::each(const graph::Op& op) const {
  if (op.place == graph::Place::host || op.place == graph::Place::link || launched_whole()) return {};
  const hardware::ParameterValues& v = *values_;
  const auto launches = static_cast<double>(op.launches);
  if (dispatch_ == Dispatch::dynamic_graph) {
    return Seconds{launches * get(v, Parameter::host_dispatch) + op.reshaped * get(v, Parameter::host_reshape)};
  }
  // A collective is several calls of its library.
  constexpr double kCollectiveCalls = 5;
  const bool network = op.place == graph::Place::network && !op.overlaps;
  double each = (network ? kCollectiveCalls : launches) * get(v, Parameter::host_launch) +
                op.views * get(v, Parameter::host_view) + op.reshaped * get(v, Parameter::host_reshape);
  if (const auto* gemm = std::get_if<graph::Gemm>(&op.body); gemm && gemm->weights && gemm->weights->kernel) {
    each += v[index(*gemm->weights->kernel, FormatParameter::host)];
  }
  // Once per layer.
  if (op.tag == graph::Tag::router) {
    const auto* router = std::get_if<graph::Gemm>(&op.body);
    each += get(v, Parameter::host_experts) +
            (router ? static_cast<double>(router->n) : 0) * get(v, Parameter::host_expert);
  }
  const auto* scan = std::get_if<graph::Scan>(&op.body);
  if (scan != nullptr && scan->tokens > 1) each += get(v, Parameter::host_scan);  // a new token is one kernel
  return Seconds{each};
}

void StepOverhead::add(const graph::Op& op, double count) {
  if (op.place == graph::Place::host || op.place == graph::Place::link) return;
  launched_.kernels += count * op.launches;
  launched_.host += count * each(op).value;
}

Seconds StepOverhead::host(double layers) const {
  if (dispatch_ == Dispatch::dynamic_graph) return Seconds{launched_.host};
  const Parameter layer = dispatch_ == Dispatch::graph    ? Parameter::host_graph_layer
                          : dispatch_ == Dispatch::pieces ? Parameter::host_piece
                                                          : Parameter::host_layer;
  return Seconds{launched_.host + layers * get(*values_, layer)};
}

Seconds StepOverhead::time(Seconds device, double layers, double sequences, double steps) const {
  const hardware::ParameterValues& v = *values_;
  const double fixed =
      get(v, prompts_ && dispatch_ != Dispatch::pieces ? Parameter::step_prefill : Parameter::step_decode);
  const double gaps = launched_.kernels * get(v, Parameter::launch_gap);
  const double ahead = dispatch_ == Dispatch::serial ? 0 : device.value + gaps;
  const double waiting = std::max(0.0, host(layers).value - ahead);
  const double each = sequences * get(v, Parameter::step_sequence);
  // A scheduler that is a step ahead does that beside the device, which waits for what is longer.
  const double added = overlapped_ ? std::max(gaps + waiting, each - device.value) : gaps + waiting + each;
  return Seconds{steps * fixed + added};
}

}  // namespace llmperf::mapper
