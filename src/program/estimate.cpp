#include "program/estimate.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/integer.h"
#include "estimate/schedule.h"

namespace llmperf::program {
namespace {

// The op's name is behind the last '/', the rest is where it comes from; JAX of 2022 and before puts parameters in
// brackets behind the name. Of a place in a file ("model.py:12"), all of it.
std::string scope_of(const Program& program, const LoweredOp& op) {
  std::string scope = program::scope_of(*program.module, *program.node(op.nodes.back()).instruction);
  scope = scope.substr(0, scope.find('['));
  const std::size_t colon = scope.rfind(':');
  const bool place = colon != std::string::npos && colon + 1 < scope.size() &&
                     scope.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  const std::size_t slash = scope.rfind('/');
  return place || slash == std::string::npos ? scope : scope.substr(0, slash);
}

// The type that most products are in.
void utilisation(const mapper::Machine& machine, ProgramEstimate& e) {
  std::map<Dtype, double> products;
  for (const estimate::OpEstimate& op : e.phase().ops)
    products[op.work.matrix_dtype] += op.work.matrix.value * d(op.op.count);
  const auto most =
      std::ranges::max_element(products, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == products.end() || most->second == 0 || e.time().value == 0) return;
  e.products = most->first;
  e.peak = machine.roofline().matrix_rate(most->first);
  Seconds least;
  for (const auto& [dtype, flops] : products) least += Flops{flops} / machine.roofline().matrix_rate(dtype);
  e.utilisation = least / e.time();
}

}  // namespace

std::function<Dtype(Dtype)> compute_types(const hardware::Device& device) {
  return [&device](Dtype dtype) {
    if (dtype == Dtype::tf32) {
      return device.find_peak(hardware::Engine::matrix, Dtype::tf32) ? Dtype::tf32 : Dtype::fp32;
    }
    return bits(dtype) < 16 && !estimate::multiplies(device, dtype) ? estimate::activation_dtype(device) : dtype;
  };
}

ProgramEstimate run_program(const Program& program, const ProgramSetup& setup) {
  ProgramEstimate e;
  e.lowered = lower(program, {.fusion = setup.fusion,
                              .devices = setup.devices,
                              .devices_per_node = setup.cluster.devices_per_node,
                              .compute = compute_types(*setup.device)});
  const mapper::Machine machine(*setup.device, setup.cluster, nullptr, {}, setup.profile, setup.tiles);
  estimate::Phase& phase = e.phases.emplace_back();
  phase.name = "program";
  phase.launches.dispatch = setup.dispatch;
  graph::Graph graph;
  for (const LoweredOp& lowered : e.lowered.ops) graph.push_back(lowered.op);
  std::vector<double> scratch;
  time_phase(setup, machine, graph, estimate::kWhole, estimate::Prefetch::no, phase, scratch);
  const auto ops = std::span(phase.ops).first(graph.size());
  for (const estimate::OpEstimate& op : ops) {
    const Seconds least = op.work.matrix / machine.roofline().matrix_rate(op.work.matrix_dtype);
    e.of_peak.push_back(op.time.total.value > 0 ? least / op.time.total : 0);
  }

  e.memory = {.weights = e.lowered.arguments + e.lowered.constants,
              .activation = e.lowered.intermediate,
              .reserve = setup.reserve};
  e.capacity = *setup.device->dram().capacity;
  e.fits = e.memory.total() <= e.capacity;
  e.kinds = grouped(ops, [&](std::size_t n) { return std::string(e.lowered.ops[n].op.name); });
  e.scopes = grouped(ops, [&](std::size_t n) { return scope_of(program, e.lowered.ops[n]); });
  if (e.scopes.size() == 1 && e.scopes[0].name.empty()) e.scopes.clear();
  utilisation(machine, e);
  return e;
}

}  // namespace llmperf::program
