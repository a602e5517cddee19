#include "report/estimate_json.h"

#include <algorithm>

#include "report/estimate_report.h"
#include "report/json.h"

namespace llmperf::report {
namespace {

using estimate::Estimate;
using estimate::OpEstimate;
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

Json inputs(const estimate::Setup& setup, const estimate::Scenario& s) {
  const model::Decoder& m = *setup.execution.model;
  Json figures = Json::object();
  for (const Figure& f : figures_used(setup)) {
    figures[f.key] = {{"value", number(f.value)}, {"provenance", std::string(hardware::name(f.provenance))}};
  }
  return {
      {"model", {{"name", m.name}, {"source", m.source}}},
      {"hardware", {{"name", setup.device->name}, {"source", setup.device->source}, {"figures", figures}}},
      {"batch", s.batch},
      {"prompt_tokens", s.prompt},
      {"generate_tokens", s.generate},
      {"weights", setup.execution.weights.name},
      {"kv", setup.execution.kv.name()},
      {"activations", std::string(name(setup.execution.activations))},
      {"options", hardware::format_runtime_options(setup.execution.runtime)},
      {"devices", 1},
      {"offload", offload(setup)},
  };
}

Json memory(const cost::Memory& m, Bytes capacity) {
  return {{"weight_bytes", number(m.weights)},        {"kv_cache_bytes", number(m.kv_cache)},
          {"activation_bytes", number(m.activation)}, {"reserve_bytes", number(m.reserve)},
          {"total_bytes", number(m.total())},         {"capacity_bytes", number(capacity)}};
}

Json work_json(const cost::Work& w, double count) {
  return {{"flops", number((w.matrix + w.vector) * count)},
          {"matrix_flops", number(w.matrix * count)},
          {"vector_flops", number(w.vector * count)},
          {"bytes", number(w.bytes() * count)},
          {"weight_bytes", number(w.weights * count)},
          {"activation_read_bytes", number(w.activations_read * count)},
          {"activation_written_bytes", number(w.activations_written * count)},
          {"kv_read_bytes", number(w.kv_read * count)},
          {"kv_written_bytes", number(w.kv_written * count)},
          {"network_bytes", number(w.network * count)}};
}

Json op(const OpEstimate& o) {
  const double count = static_cast<double>(o.op.count);
  Json json = {{"name", std::string(o.op.name)},
               {"kind", std::string(kind_text(o.op))},
               {"shape", shape_text(o.op)},
               {"count", o.op.count}};
  json.update(work_json(o.work, count));
  const model::StoredFormat* format = weight_format(o.op);
  json["weights"] = format && !format->name.empty() ? Json(std::string(format->name)) : Json(nullptr);
  json["place"] = std::string(graph::name(o.op.place));
  json["matrix_dtype"] = std::string(name(o.work.matrix_dtype));
  json["time_s"] = number(o.step_time());
  json["roof_s"] = number(o.time.roof * count);
  json["bound"] = std::string(mapper::name(o.time.bound));
  return json;
}

Json phase(const Phase& p) {
  Json json = {{"name", std::string(p.name)},
               {"steps", p.steps},
               {"time_s", number(p.time)},
               {"total_s", number(p.time * static_cast<double>(p.steps))},
               {"roof_s", number(p.roof)}};
  json.update(work_json(p.work, 1));
  json["intensity_flop_per_byte"] = number(p.intensity());
  json["bound"] = std::string(mapper::name(p.bound));
  json["new_tokens"] = p.first.new_tokens;
  json["first_context"] = p.first.context;
  json["last_context"] = p.last.context;
  json["ops"] = Json::array();
  for (const OpEstimate& o : p.ops) json["ops"].push_back(op(o));
  return json;
}

}  // namespace

std::string estimate_json(const estimate::Estimator& estimator, const Estimate& e) {
  Json json = json_header("llmperf.estimate");
  json["label"] = kUncalibrated;
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
  json["largest_batch"] = e.largest_batch;
  json["longest_context_tokens"] = e.longest_context;
  json["phases"] = Json::array();
  for (const Phase& p : e.phases) json["phases"].push_back(phase(p));
  json["notes"] = estimator.setup().notes;
  return dump(json);
}

}  // namespace llmperf::report
