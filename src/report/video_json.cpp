#include "report/json.h"
#include "report/op_json.h"
#include "report/plan_json.h"
#include "report/runtime_text.h"
#include "report/video_report.h"

namespace llmperf::report {
namespace {

using estimate::VideoEstimate;
using estimate::VideoEstimator;
using estimate::VideoSetup;

Json shape_json(const model::VideoShape& s) {
  return {{"height", s.size.height},
          {"width", s.size.width},
          {"frames", s.frames},
          {"latent", {s.latent_frames, s.latent_height, s.latent_width}},
          {"patches", {s.patch_frames, s.patch_rows, s.patch_columns}},
          {"spatial_tokens", s.spatial_tokens()},
          {"temporal_tokens", s.temporal_tokens()},
          {"tokens", s.tokens()}};
}

Json stages_json(const VideoEstimator& estimator) {
  Json json = Json::array();
  const auto& stages = estimator.setup().stages;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const cost::VideoMemory m = estimator.stage_memory(i);
    json.push_back({{"first", stages[i].first},
                    {"last", stages[i].last},
                    {"devices", stages[i].plan.stage()},
                    {"plan", plan_json(stages[i].plan)},
                    {"weight_bytes", number(m.weights())},
                    {"kv_cache_bytes", number(m.kept)}});
  }
  return json;
}

Json inputs(const VideoSetup& setup) {
  const graph::VideoExecution& e = setup.execution;
  return {{"model", {{"name", e.model->name}, {"source", e.model->source}}},
          {"hardware", hardware_json(setup, figures_used(setup))},
          {"shape", shape_json(e.shape)},
          {"videos", e.videos},
          {"steps", setup.scenario.steps},
          {"guidance", e.guidance},
          {"text_tokens", e.text_tokens},
          {"weights", setup.weights_name},
          {"activations", std::string(name(e.activations))},
          {"text_encoder", std::string(name(e.text_activations))},
          {"options", options_text(setup)},
          {"runtime", runtime_json(setup, {{"dispatch", std::string(hardware::name(setup.dispatch))}})},
          {"devices", setup.devices()},
          {"plan", plan_json(e.plan)},
          {"patches", e.patches},
          {"devices_per_node", setup.cluster.devices_per_node}};
}

Json memory(const VideoEstimate& e) {
  return {{"weight_bytes", number(e.memory.weights)},
          {"transformer_bytes", number(e.parts.transformer)},
          {"text_encoder_bytes", number(e.parts.text_encoder)},
          {"autoencoder_bytes", number(e.parts.autoencoder)},
          {"kv_cache_bytes", number(e.memory.kv_cache)},
          {"activation_bytes", number(e.memory.activation)},
          {"text_activation_bytes", number(e.parts.text_activation)},
          {"step_activation_bytes", number(e.parts.step_activation)},
          {"decode_activation_bytes", number(e.parts.decode_activation)},
          {"reserve_bytes", number(e.memory.reserve)},
          {"total_bytes", number(e.memory.total())},
          {"capacity_bytes", number(e.capacity)}};
}

Json classes_json(const VideoEstimate& e) {
  Json json = Json::array();
  for (const estimate::VideoClass& c : e.classes) {
    Json one = {{"name", std::string(name(c.purpose))}, {"kernels", c.launches}, {"time_s", number(c.time)}};
    one.update(work_json(c.work, 1));
    json.push_back(std::move(one));
  }
  return json;
}

}  // namespace

std::string video_json(const VideoEstimator& estimator, const VideoEstimate& e) {
  const VideoSetup& setup = estimator.setup();
  Json json = json_header("llmperf.estimate");
  json["label"] = label(setup);
  const std::vector<std::string> beyond = extrapolations(setup);
  json["extrapolated"] = !beyond.empty();
  json["extrapolations"] = beyond;
  json["error_band"] = {{"generation", e.fits ? band_json(band(setup), e.generation) : Json(nullptr)}};
  json["inputs"] = inputs(setup);
  json["fits"] = e.fits;
  const auto timed = [&](auto value) { return e.fits ? number(value) : Json(nullptr); };
  json["step_s"] = timed(e.step);
  json["generation_s"] = timed(e.generation);
  json["matrix_peak_flops_per_s"] = timed(e.peak);
  json["step_utilisation"] = timed(e.step_utilisation);
  json["generation_utilisation"] = timed(e.generation_utilisation);
  json["memory"] = memory(e);
  json["stages"] = stages_json(estimator);
  json["classes"] = classes_json(e);
  json["roofs"] = roofs_json(*setup.device);
  json["phases"] = Json::array();
  const cost::Cluster charged = estimator.setup().charged_cluster();
  for (const estimate::Phase& p : e.phases) {
    Json phase = phase_json(p);
    phase["ops"] = Json::array();
    for (const estimate::OpEstimate& o : p.ops) {
      Json op = op_json(o, charged);
      const bool step = p.name == estimate::kVideoPhases[1];
      op["class"] = step ? Json(std::string(name(graph::purpose_of(o.op)))) : Json(nullptr);
      phase["ops"].push_back(std::move(op));
    }
    json["phases"].push_back(std::move(phase));
  }
  json["notes"] = setup.notes;
  return dump(json);
}

}  // namespace llmperf::report
