#include "estimate/schedule.h"

#include <algorithm>
#include <array>

namespace llmperf::estimate {
namespace {

double d(std::int64_t x) { return static_cast<double>(x); }

// Seconds that the busiest stage is busy: ops before the layers belong to the first stage, those after them to the
// last.
double busiest(std::span<const OpEstimate> ops, std::span<const double> seconds, std::span<const Stage> stages) {
  std::array<double, 256> kinds{};  // of the layers of each kind; a model has at most 255 kinds
  double first = 0;
  double last = 0;
  double sends = 0;
  bool layers_seen = false;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const graph::Op& op = ops[i].op;
    const double exposed = seconds[i] - hidden_seconds(ops, seconds, i);
    if (op.layer_kind >= 0) {
      layers_seen = true;
      kinds[static_cast<std::size_t>(op.layer_kind)] += exposed;
    } else if (is_stage_send(op)) {
      sends += exposed;
    } else {
      (layers_seen ? last : first) += exposed;
    }
  }
  for (std::size_t kind = 0; kind < stages.front().layers.size(); ++kind) {
    double all = 0;
    for (const Stage& stage : stages) all += d(stage.layers[kind]);
    if (all > 0) kinds[kind] /= all;
  }
  double longest = 0;
  const std::size_t end = stages.size() - 1;
  for (std::size_t i = 0; i <= end; ++i) {
    double busy = (i == 0 ? first : 0) + (i == end ? last : sends / d(static_cast<std::int64_t>(end)));
    for (std::size_t kind = 0; kind < stages[i].layers.size(); ++kind) busy += kinds[kind] * d(stages[i].layers[kind]);
    longest = std::max(longest, busy);
  }
  return longest;
}

}  // namespace

double hidden_seconds(std::span<const OpEstimate> ops, std::span<const double> seconds, std::size_t i) {
  return ops[i].op.overlaps && i > 0 ? std::min(seconds[i], seconds[i - 1]) : 0;
}

bool is_stage_send(const graph::Op& op) {
  const auto* c = std::get_if<graph::Collective>(&op.body);
  return c && c->kind == graph::CollectiveKind::send;
}

Schedule schedule_step(std::span<const OpEstimate> ops, std::span<const double> seconds, std::span<const Stage> stages,
                       std::int64_t micro_batches, Steady steady) {
  Schedule s;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    s.ops += Seconds{seconds[i]};
    if (ops[i].op.overlaps) s.overlapped += Seconds{hidden_seconds(ops, seconds, i)};
  }
  const Seconds chain = s.ops - s.overlapped;
  if (stages.size() == 1) {
    s.time = chain;
    return s;
  }
  const Seconds longest{busiest(ops, seconds, stages)};
  const double m = d(micro_batches);
  s.time = steady == Steady::yes ? std::max(chain / m, longest) : chain / m + (m - 1) / m * longest;
  s.pipelined = chain - s.time;
  s.bubble = s.time - longest;
  return s;
}

}  // namespace llmperf::estimate
