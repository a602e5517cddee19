#include "report/op_json.h"

#include "report/op_text.h"

namespace llmperf::report {

Json hardware_json(const estimate::Platform& platform, const std::vector<Figure>& figures) {
  Json json = Json::object();
  for (const Figure& f : figures) {
    json[f.key] = {{"value", number(f.value)}, {"provenance", std::string(hardware::name(f.provenance))}};
  }
  return {{"name", platform.device->name}, {"source", platform.device->source}, {"figures", json}};
}

Json hardware_json(const estimate::Setup& setup) { return hardware_json(setup, figures_used(setup)); }

Json roofs_json(const hardware::Device& device) {
  Json memory = Json::array();
  for (const hardware::MemoryLevel& level : device.memory) {
    if (!level.bandwidth) continue;
    const double parts = level.per_tile && device.tile_array ? static_cast<double>(device.tile_array->tiles) : 1;
    memory.push_back({{"name", level.name},
                      {"bytes_per_s", number(*level.bandwidth * parts)},
                      {"provenance", std::string(hardware::name(level.bandwidth_provenance))}});
  }
  Json compute = Json::array();
  for (const hardware::Peak& p : device.peaks) {
    if (device.find_peak(p.engine, p.dtype) != &p) continue;  // another accumulation of the same type
    compute.push_back({{"dtype", std::string(name(p.dtype))},
                       {"unit", std::string(hardware::name(p.engine))},
                       {"flops_per_s", number(p.rate * device.clock_ratio())},
                       {"provenance", std::string(hardware::name(p.provenance))}});
  }
  return {{"memory", memory}, {"compute", compute}};
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

Json collective_json(const estimate::OpEstimate& o, const cost::Cluster& cluster) {
  const auto* c = std::get_if<graph::Collective>(&o.op.body);
  if (c == nullptr) return nullptr;
  const cost::CollectiveCost cost = cost::collective_cost(cluster, *c);
  return {{"kind", std::string(name(c->kind))},
          {"axis", std::string(name(c->axis))},
          {"ranks", c->ranks},
          {"stride", c->stride},
          {"payload_bytes", number(c->bytes())},
          {"sent_bytes", number(o.work.network * static_cast<double>(o.op.count))},
          {"algorithm", std::string(cost::name(cost.algorithm))},
          {"steps", number(cost.steps)},
          {"busiest_link_bytes", number(cost.busiest_link)},
          {"latency_s", number(cost.latency)},
          {"transfer_s", number(cost.transfer)},
          {"overlaps", o.op.overlaps}};
}

Json phase_json(const estimate::Phase& p) {
  Json json = {{"name", std::string(p.name)},
               {"steps", p.steps},
               {"time_s", number(p.time)},
               {"total_s", number(p.time * static_cast<double>(p.steps))},
               {"roof_s", number(p.roof)},
               {"ops_time_s", number(p.ops_time)},
               {"overlapped_s", number(p.overlapped)},
               {"pipelined_s", number(p.pipelined)},
               {"bubble_s", number(p.bubble)},
               {"micro_batches", p.batches()}};
  json.update(work_json(p.work, 1));
  json["intensity_flop_per_byte"] = number(p.intensity());
  json["bound"] = std::string(mapper::name(p.bound));
  return json;
}

Json op_json(const estimate::OpEstimate& o, const cost::Cluster& cluster) {
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
  json["collective"] = collective_json(o, cluster);
  return json;
}

}  // namespace llmperf::report
