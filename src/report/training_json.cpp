#include "report/op_json.h"
#include "report/plan_json.h"
#include "report/training_report.h"

namespace llmperf::report {
namespace {

using estimate::TrainingEstimate;
using estimate::TrainingEstimator;

Json inputs(const estimate::Setup& setup, const TrainingEstimate& e) {
  const model::Decoder& m = *setup.execution.model;
  Json json = {
      {"model", {{"name", m.name}, {"source", m.source}}},
      {"hardware", hardware_json(setup)},
      {"global_batch", e.scenario.global_batch},
      {"micro_batch", e.scenario.micro_batch},
      {"sequence_tokens", e.scenario.sequence},
      {"weights", setup.execution.weights.name},
      {"activations", std::string(name(setup.execution.activations))},
      {"gradient_bits", number(e.options.gradient_bits)},
      {"optimizer_bits", number(e.options.optimizer_bits)},
      {"recompute", std::string(graph::name(e.options.recompute))},
      {"zero", e.options.zero},
      {"interleave", e.options.chunks},
      {"options", hardware::format_runtime_options(setup.execution.runtime)},
      {"devices", e.plan.devices()},
      {"plan", plan_json(e.plan)},
      {"devices_per_node", setup.cluster.devices_per_node},
  };
  if (setup.profile) json["runtime"] = setup.profile->name;
  if (!e.options.fused_gradients) json["separate_gradients"] = true;
  if (!e.options.overlapped_sums) json["exposed_sums"] = true;
  return json;
}

Json stages(const graph::StageSplit& split) {
  Json json = Json::array();
  for (std::int64_t stage = 0; stage < split.stages; ++stage) {
    Json runs = Json::array();
    for (std::int64_t run = stage; run < split.runs(); run += split.stages) {
      runs.push_back(
          {{"first_layer", split.first[static_cast<std::size_t>(run)]}, {"layers", split.layers_of_run(run)}});
    }
    json.push_back({{"layers", split.layers(stage)}, {"runs", std::move(runs)}});
  }
  return json;
}

Json memory(const TrainingEstimate& e) {
  const estimate::TrainingMemory& m = e.memory;
  return {{"stage", m.stage + 1},
          {"weight_bytes", number(m.weights)},
          {"gradient_bytes", number(m.gradients)},
          {"optimizer_bytes", number(m.optimizer)},
          {"activation_bytes", number(m.activations)},
          {"layer_activation_bytes", number(m.layer_activations)},
          {"workspace_bytes", number(m.workspace)},
          {"reserve_bytes", number(m.reserve)},
          {"total_bytes", number(m.total())},
          {"capacity_bytes", number(e.capacity)}};
}

Json phase(const estimate::TrainingPhase& p, const cost::Cluster& cluster) {
  Json json = {{"name", std::string(p.name)},
               {"steps", p.steps},
               {"time_s", number(p.time)},
               {"total_s", number(p.time * static_cast<double>(p.steps))},
               {"roof_s", number(p.roof)},
               {"ops_time_s", number(p.ops_time)},
               {"overlapped_s", number(p.overlapped)}};
  json.update(work_json(p.work, 1));
  json["intensity_flop_per_byte"] = number(p.intensity());
  json["bound"] = std::string(mapper::name(p.bound));
  json["ops"] = Json::array();
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    Json op = op_json(p.ops[i], cluster);
    op["hidden_s"] = number(p.hidden[i]);
    json["ops"].push_back(std::move(op));
  }
  return json;
}

}  // namespace

std::string training_json(const TrainingEstimator& estimator, const TrainingEstimate& e) {
  Json json = json_header("llmperf.training");
  json["label"] = training_label(estimator.setup());
  json["inputs"] = inputs(estimator.setup(), e);
  json["fits"] = e.fits;
  const auto timed = [&](auto value) { return e.fits ? number(value) : Json(nullptr); };
  json["step_s"] = timed(e.time);
  json["compute_s"] = timed(e.compute);
  json["bubble_s"] = timed(e.bubble);
  json["gradient_exposed_s"] = timed(e.gradient_exposed);
  json["optimizer_s"] = timed(e.optimizer);
  json["overlapped_s"] = timed(e.overlapped);
  json["tokens_per_second"] = timed(e.tokens_per_second);
  json["tokens_per_second_per_device"] = timed(e.tokens_per_second / static_cast<double>(e.plan.devices()));
  json["mfu"] = timed(e.mfu);
  json["hfu"] = timed(e.hfu);
  json["model_flops"] = number(e.model_flops);
  json["hardware_flops"] = number(e.hardware_flops);
  json["micro_batches"] = e.micro_batches;
  json["busiest_stage"] = e.busiest_stage + 1;
  json["stages"] = stages(e.split);
  json["memory"] = memory(e);
  json["roofs"] = roofs_json(*estimator.setup().device);
  json["phases"] = Json::array();
  if (e.fits) {
    for (const estimate::TrainingPhase& p : e.phases) {
      json["phases"].push_back(phase(p, estimator.setup().charged_cluster()));
    }
  }
  const std::vector<std::string> beyond = training_extrapolations(estimator.setup(), e);
  json["extrapolated"] = !beyond.empty();
  json["extrapolations"] = beyond;
  json["notes"] = estimator.setup().notes;
  return dump(json);
}

}  // namespace llmperf::report
