#include "report/plan_report.h"

#include <fmt/format.h>

#include "base/number.h"
#include "estimate/schedule.h"

namespace llmperf::report {

using estimate::Estimate;
using estimate::Estimator;
using estimate::OpEstimate;
using estimate::Phase;

std::string plan_text(const estimate::Setup& setup) {
  const graph::Plan& plan = setup.execution.plan;
  const std::int64_t nodes = (plan.devices() + setup.cluster.devices_per_node - 1) / setup.cluster.devices_per_node;
  return fmt::format("{} devices on {} {}: {}{}", plan.devices(), nodes, nodes == 1 ? "node" : "nodes",
                     graph::to_text(plan),
                     plan.tensor == 1       ? ""
                     : plan.shard_embedding ? "; embedding sharded"
                                            : "; embedding replicated");
}

std::string network_text(const Phase& p) {
  const Seconds network = p.bound_time[static_cast<std::size_t>(mapper::Bound::network)];
  std::string text = fmt::format("{} sent, {} ({} of the ops' time)", format_bytes(p.work.network),
                                 format_seconds(network), format_share(network / p.ops_time));
  if (p.overlapped.value > 0) text += fmt::format("; {} of it beside other work", format_seconds(p.overlapped));
  if (p.micro_batches > 1 || p.pipelined.value > 0 || p.bubble.value > 0) {
    text += fmt::format("; {} micro-batches, {} bubble", p.micro_batches, format_share(p.bubble / p.time));
  }
  return text;
}

Table communication_table(const Estimator& estimator, const Phase& p) {
  const bool pipeline = estimator.stages().size() > 1;
  Table t{
      fmt::format("Communication of {} (one step, one device{})", p.name, pipeline ? " of every stage" : ""),
      {{"op", true}, {"exchange", true}, {"count"}, {"payload"}, {"sent"}, {"time"}, {"shows"}, {"algorithm", true}},
      {}};
  std::vector<double> seconds;
  for (const OpEstimate& o : p.ops) seconds.push_back(o.step_time().value);
  Bytes sent;
  Seconds time;
  Seconds shows;
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    const OpEstimate& o = p.ops[i];
    const auto* c = std::get_if<graph::Collective>(&o.op.body);
    if (c == nullptr) continue;
    const Bytes volume = o.work.network * static_cast<double>(o.op.count);
    const Seconds exposed = o.step_time() - Seconds{estimate::hidden_seconds(p.ops, seconds, i)};
    t.rows.push_back({std::string(o.op.name), fmt::format("{}, {} {}", name(c->kind), name(c->axis), c->ranks),
                      std::to_string(o.op.count), format_bytes(c->bytes()), format_bytes(volume),
                      format_seconds(o.step_time()), format_seconds(exposed),
                      std::string(cost::name(collective_of(estimator, o).algorithm))});
    sent += volume;
    time += o.step_time();
    shows += exposed;
  }
  t.rows.push_back({"total", "", "", "", format_bytes(sent), format_seconds(time), format_seconds(shows), ""});
  return t;
}

Table stage_table(const Estimator& estimator, const Estimate& e) {
  Table t{"Pipeline stages (one device of each)", {{"stage"}, {"layers"}, {"weights"}, {"KV cache"}}, {}};
  const auto& stages = estimator.stages();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    std::int64_t layers = 0;
    for (const std::int64_t n : stages[i].layers) layers += n;
    t.rows.push_back({std::to_string(i + 1), std::to_string(layers), format_bytes_binary(stages[i].weights),
                      format_bytes_binary(stage_kv_cache(estimator, e.scenario, stages[i]))});
  }
  return t;
}

cost::CollectiveCost collective_of(const Estimator& estimator, const OpEstimate& op) {
  return cost::collective_cost(estimator.machine().cluster(), std::get<graph::Collective>(op.op.body));
}

Bytes stage_kv_cache(const Estimator& estimator, const estimate::Scenario& s, const estimate::Stage& stage) {
  return cost::stage_kv_bytes(estimator.setup().execution, stage.layers, s.prompt + s.generate) *
         static_cast<double>(estimator.replica_batch(s));
}

}  // namespace llmperf::report
