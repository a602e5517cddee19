#include "report/estimate_json.h"

#include <algorithm>

#include "report/estimate_report.h"
#include "report/json.h"
#include "report/op_json.h"
#include "report/plan_json.h"
#include "report/plan_report.h"
#include "report/runtime_text.h"

namespace llmperf::report {
namespace {

using estimate::Estimate;
using estimate::Phase;

// Which layers run where; null when everything is on the device.
Json offload(const estimate::Setup& setup) {
  if (!setup.host) return nullptr;
  const model::WeightLayout& w = setup.execution.weights;
  Json on_host = Json::array();
  for (const model::LayerGroup& group : w.groups) {
    if (!group.on_host) continue;
    for (const std::int64_t layer : group.layers) on_host.push_back(layer);
  }
  std::sort(on_host.begin(), on_host.end());
  return {{"host", setup.host->name},
          {"host_source", setup.host->source},
          {"layers_on_host", on_host},
          {"head_on_host", w.head_on_host},
          {"token_embedding_on_host", w.embedding_on_host}};
}

Json stages(const estimate::Estimator& estimator, const estimate::Scenario& s) {
  Json json = Json::array();
  const graph::StageSplit& split = estimator.setup().execution.split;
  for (std::size_t i = 0; i < estimator.stages().size(); ++i) {
    const cost::Memory memory = estimator.stage_memory(s, i);
    json.push_back({{"first_layer", split.first[i]},
                    {"layers", split.layers(static_cast<std::int64_t>(i))},
                    {"weight_bytes", number(memory.weights)},
                    {"kv_cache_bytes", number(memory.kv_cache)},
                    {"activation_bytes", number(memory.activation)},
                    {"total_bytes", number(memory.total())}});
  }
  return json;
}

Json inputs(const estimate::Setup& setup, const estimate::Scenario& s) {
  const model::Decoder& m = *setup.execution.model;
  return {
      {"model", {{"name", m.name}, {"source", m.source}}},
      {"hardware", hardware_json(setup)},
      {"batch", s.batch},
      {"prompt_tokens", s.prompt},
      {"generate_tokens", s.generate},
      {"weights", setup.execution.weights.name},
      {"kv", setup.execution.kv.name()},
      {"activations", std::string(name(setup.execution.activations))},
      {"options", options_text(setup)},
      {"runtime", runtime_json(setup)},
      {"devices", setup.execution.plan.devices()},
      {"plan", plan_json(setup.execution.plan)},
      {"devices_per_node", setup.cluster.devices_per_node},
      {"offload", offload(setup)},
  };
}

Json memory(const cost::Memory& m, Bytes capacity) {
  return {{"weight_bytes", number(m.weights)},        {"kv_cache_bytes", number(m.kv_cache)},
          {"activation_bytes", number(m.activation)}, {"reserve_bytes", number(m.reserve)},
          {"total_bytes", number(m.total())},         {"capacity_bytes", number(capacity)}};
}

Json phase(const Phase& p, const cost::Cluster& cluster) {
  Json json = phase_json(p);
  json["new_tokens"] = p.first.new_tokens;
  json["first_context"] = p.first.context;
  json["last_context"] = p.last.context;
  json["ops"] = Json::array();
  for (const estimate::OpEstimate& o : p.ops) json["ops"].push_back(op_json(o, cluster));
  return json;
}

Json context_curve(std::span<const estimate::ContextPoint> curve) {
  Json json = Json::array();
  for (const estimate::ContextPoint& p : curve) {
    json.push_back({{"context_tokens", p.context},
                    {"kv_cache_bytes", number(p.kv_cache)},
                    {"decode_step_s", number(p.decode_step)},
                    {"fits", p.fits}});
  }
  return json;
}

}  // namespace

std::string estimate_json(const estimate::Estimator& estimator, const Estimate& e,
                          std::span<const estimate::ContextPoint> curve) {
  Json json = json_header("llmperf.estimate");
  json["label"] = label(estimator.setup());
  const std::vector<std::string> beyond = extrapolations(estimator, e.scenario);
  json["extrapolated"] = !beyond.empty();
  json["extrapolations"] = beyond;
  const auto band_of = [&](const char* phase, Seconds time) {
    return band_json(band(estimator, e.scenario, phase), time);
  };
  json["error_band"] = {{"prefill", e.fits ? band_of("prefill", e.ttft) : Json(nullptr)},
                        {"decode", e.fits && e.tpot ? band_of("decode", *e.tpot) : Json(nullptr)}};
  json["inputs"] = inputs(estimator.setup(), e.scenario);
  json["fits"] = e.fits;
  const auto timed = [&](auto value) { return e.fits ? number(value) : Json(nullptr); };
  json["ttft_s"] = timed(e.ttft);
  json["tpot_s"] = timed(e.tpot);
  json["tpot_first_s"] = timed(e.tpot_first);
  json["tpot_last_s"] = timed(e.tpot_last);
  json["total_s"] = timed(e.total);
  json["tokens_per_second"] = timed(e.tokens_per_second);
  json["tokens_per_second_per_request"] = timed(e.tokens_per_second_per_request);
  json["prefill_tokens_per_second"] = timed(e.prefill_tokens_per_second);
  json["decode_tokens_per_second"] = e.fits && e.tpot ? number(e.decode_tokens_per_second) : Json(nullptr);
  json["memory"] = memory(e.memory, e.capacity);
  json["host_memory"] = estimator.setup().host ? memory(e.host_memory, e.host_capacity) : Json(nullptr);
  json["stages"] = stages(estimator, e.scenario);
  json["largest_batch"] = e.largest_batch;
  json["longest_context_tokens"] = e.longest_context;
  json["context_curve"] = context_curve(curve);
  json["roofs"] = roofs_json(*estimator.setup().device);
  json["phases"] = Json::array();
  for (const Phase& p : e.phases) json["phases"].push_back(phase(p, estimator.setup().charged_cluster()));
  json["notes"] = estimator.setup().notes;
  return dump(json);
}

}  // namespace llmperf::report
