#include <map>

#include "report/json.h"
#include "report/op_json.h"
#include "report/op_text.h"
#include "report/program_text.h"
#include "report/runtime_text.h"

namespace llmperf::report {
namespace {

using estimate::OpEstimate;
using estimate::ProgramEstimate;
using estimate::ProgramSetup;
using graph::hlo::LoweredOp;
using graph::hlo::Node;
using graph::hlo::Program;

double d(std::int64_t x) { return static_cast<double>(x); }

Json types_json(const Program& program, const std::vector<graph::hlo::TensorId>& tensors) {
  Json json = Json::array();
  for (const auto tensor : tensors) json.push_back(text_of(program.type(tensor)));
  return json;
}

Json inputs(const ProgramStudy& study) {
  const ProgramSetup& setup = *study.setup;
  const auto& module = *study.program->module;
  return {{"program", {{"file", module.source->name()}, {"instructions", module.instructions}}},
          {"hardware", hardware_json(setup, figures_used(setup, study.estimate->products))},
          {"devices", setup.devices},
          {"devices_per_node", setup.cluster.devices_per_node},
          {"fuse", setup.fusion == graph::hlo::Fusion::none ? "none" : "elementwise"},
          {"runtime", runtime_json(setup, {{"dispatch", std::string(hardware::name(setup.dispatch))}})}};
}

Json memory(const ProgramEstimate& e) {
  return {{"weight_bytes", number(e.memory.weights)},        {"argument_bytes", number(e.lowered.arguments)},
          {"constant_bytes", number(e.lowered.constants)},   {"kv_cache_bytes", number(e.memory.kv_cache)},
          {"activation_bytes", number(e.memory.activation)}, {"reserve_bytes", number(e.memory.reserve)},
          {"total_bytes", number(e.memory.total())},         {"capacity_bytes", number(e.capacity)}};
}

Json groups_json(const std::vector<estimate::ProgramGroup>& groups) {
  Json json = Json::array();
  for (const auto& group : groups) {
    Json one = {{"name", group.name}, {"count", group.kernels}, {"time_s", number(group.time)}};
    one.update(work_json(group.work, 1));
    one["roof_s"] = number(group.roof);
    one["bound"] = std::string(mapper::name(group.bound()));
    json.push_back(std::move(one));
  }
  return json;
}

Json program_op_json(const ProgramStudy& study, std::size_t n) {
  const ProgramEstimate& e = *study.estimate;
  const Program& program = *study.program;
  const LoweredOp& lowered = e.lowered.ops[n];
  const OpEstimate& op = e.phase.ops[n];
  const Node& last = program.node(lowered.nodes.back());
  Json json = {{"name", op_name(program, lowered)},
               {"kind", std::string(kind_text(op.op))},
               {"class", std::string(graph::hlo::name(lowered.op_class))},
               {"line", line_of(program, lowered)},
               {"scope", graph::hlo::scope_of(*program.module, *last.instruction)},
               {"shape", shape_text(op.op)},
               {"operands", types_json(program, last.operands)},
               {"results", types_json(program, last.results)},
               {"count", op.op.count}};
  json.update(work_json(op.work, d(op.op.count)));
  json["matrix_dtype"] = std::string(name(op.work.matrix_dtype));
  json["time_s"] = number(op.step_time());
  json["roof_s"] = number(op.time.roof * d(op.op.count));
  json["bound"] = std::string(mapper::name(op.time.bound));
  json["utilisation"] = number(e.of_peak[n]);
  const std::string role = role_text(study, lowered);
  json["role"] = role.empty() ? Json(nullptr) : Json(role);
  Json fused = Json::array();
  if (lowered.nodes.size() > 1) {
    for (const auto node : lowered.nodes) {
      const auto& instruction = *program.node(node).instruction;
      fused.push_back({{"name", std::string(instruction.name)}, {"line", instruction.line}});
    }
  }
  json["fused"] = std::move(fused);
  return json;
}

Json collectives_json(const ProgramStudy& study) {
  Json json = Json::array();
  const ProgramEstimate& e = *study.estimate;
  const cost::Cluster charged = study.setup->charged_cluster();
  for (std::size_t n = 0; n < e.lowered.ops.size(); ++n) {
    const OpEstimate& op = e.phase.ops[n];
    if (op.op.place != graph::Place::network) continue;
    Json one = {{"name", op_name(*study.program, e.lowered.ops[n])},
                {"line", line_of(*study.program, e.lowered.ops[n])},
                {"count", op.op.count},
                {"groups", e.lowered.ops[n].groups}};
    one.update(collective_json(op, charged));
    one.erase("axis");  // of a plan
    one["inserted"] = study.program->node(e.lowered.ops[n].nodes.back()).inserted.has_value();
    one["time_s"] = number(op.step_time());
    json.push_back(std::move(one));
  }
  return json;
}

Json blocks_json(const ProgramStudy& study) {
  Json json = Json::array();
  for (const auto& block : study.blocks->blocks) {
    Json attentions = Json::array();
    for (const auto& a : block.attentions) {
      attentions.push_back({{"kind", std::string(graph::hlo::name(a.kind))},
                            {"batch", a.batch},
                            {"queries", a.queries},
                            {"keys", a.keys},
                            {"heads", a.heads},
                            {"kv_heads", a.kv_heads},
                            {"head_dim", a.head_dim},
                            {"v_head_dim", a.v_head_dim},
                            {"masked", a.masked},
                            {"rotary", a.rotary}});
    }
    Json feed_forward = nullptr;
    if (block.feed_forward) {
      const auto& f = *block.feed_forward;
      feed_forward = {{"intermediate", f.intermediate}, {"gated", f.gated}, {"experts", f.experts}};
    }
    Json products = Json::array();
    for (const auto& product : block.products) {
      Json lines = Json::array();
      for (const auto node : product.nodes) lines.push_back(study.program->node(node).instruction->line);
      products.push_back({{"role", std::string(graph::hlo::name(product.role))}, {"lines", std::move(lines)}});
    }
    json.push_back({{"name", block.name},
                    {"layers", block.layers},
                    {"again", block.again},
                    {"hidden", block.hidden},
                    {"attentions", std::move(attentions)},
                    {"feed_forward", std::move(feed_forward)},
                    {"products", std::move(products)}});
  }
  return json;
}

// Ops that do no work, by name and how many there are.
Json idle_json(const Program& program) {
  std::map<std::string_view, std::int64_t> idle;
  for (const Node& node : program.nodes) {
    const auto c = node.traits.op_class;
    if (c == graph::hlo::OpClass::free || c == graph::hlo::OpClass::transfer) {
      ++idle[node.instruction->name];
    }
  }
  Json json = Json::array();
  for (const auto& [name, count] : idle) json.push_back({{"name", std::string(name)}, {"count", count}});
  return json;
}

}  // namespace

std::string program_json(const ProgramStudy& study) {
  const ProgramSetup& setup = *study.setup;
  const ProgramEstimate& e = *study.estimate;
  Json json = json_header("llmperf.graph");
  json["label"] = label(setup);
  json["inputs"] = inputs(study);
  json["fits"] = e.fits;
  json["memory"] = memory(e);
  json["time_s"] = number(e.phase.time);
  json["roof_s"] = number(e.phase.roof);
  json["bound"] = std::string(mapper::name(e.phase.bound));
  json["flops"] = {{"matrix", number(e.phase.work.matrix)},
                   {"vector", number(e.phase.work.vector)},
                   {"total", number(e.phase.work.matrix + e.phase.work.vector)}};
  json["bytes"] = number(e.phase.work.bytes());
  json["network_bytes"] = number(e.phase.work.network);
  json["network_time_s"] = number(e.phase.bound_time[static_cast<std::size_t>(mapper::Bound::network)]);
  json["matrix_peak_flops_per_s"] = number(e.peak);
  json["utilisation"] = number(e.utilisation);
  json["kinds"] = groups_json(e.kinds);
  json["scopes"] = groups_json(e.scopes);
  json["blocks"] = blocks_json(study);
  json["collectives"] = collectives_json(study);
  Json loops = Json::array();
  for (const auto& loop : study.program->loops) {
    loops.push_back({{"name", loop.name},
                     {"line", loop.instruction->line},
                     {"trips", loop.trips},
                     {"known", loop.known},
                     {"most", loop.most}});
  }
  json["loops"] = std::move(loops);
  Json unknown = Json::array();
  for (const auto& u : study.program->unknown) {
    unknown.push_back({{"name", u.name}, {"line", u.line}, {"count", u.count}});
  }
  json["unknown"] = std::move(unknown);
  json["without_work"] = idle_json(*study.program);
  json["notes"] = all_notes(study);
  json["ops"] = Json::array();
  for (std::size_t n = 0; n < e.lowered.ops.size(); ++n) json["ops"].push_back(program_op_json(study, n));
  return dump(json);
}

}  // namespace llmperf::report
