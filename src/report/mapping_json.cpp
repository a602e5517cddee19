#include "report/mapping_json.h"

#include <string>

#include "report/mapping_text.h"

namespace llmperf::report {
namespace {

using mapper::tile::Description;
using mapper::tile::Dimension;
using mapper::tile::Operand;
using mapper::tile::Phase;

std::string text(std::string_view view) { return std::string(view); }

Json op_json(const MappingStudy& study) {
  const graph::Op& op = *study.op;
  Json json{{"kind", text(kind_name(op))}, {"dtype", text(name(study.dtype))}};
  if (const auto* g = std::get_if<graph::Gemm>(&op.body)) {
    json["batch"] = g->batch;
    json["m"] = g->m;
    json["n"] = g->n;
    json["k"] = g->k;
    json["then"] = study.name.empty() ? Json(nullptr) : Json(text(study.name));
  } else if (const auto* a = std::get_if<graph::Attention>(&op.body)) {
    json["batch"] = a->sequences;
    json["queries"] = a->q_tokens;
    json["keys"] = a->keys > 0 ? a->keys : a->context + a->q_tokens;
    json["causal"] = a->keys == 0;
    json["heads"] = a->heads;
    json["kv_heads"] = a->kv_heads;
    json["head_dim"] = a->qk_dim;
  } else {
    const auto& v = std::get<graph::Vector>(op.body);
    json["vector_kind"] = text(study.name);
    json["rows"] = v.rows;
    json["width"] = v.width;
  }
  return json;
}

Json dimension_json(const Dimension& d) {
  return {{"name", text(d.name)}, {"extent", d.extent}, {"tiles", d.tiles},
          {"per_tile", d.part},   {"block", d.block},   {"blocks_per_tile", d.blocks}};
}

Json operand_json(const Operand& o, const Description& mapping) {
  return {{"name", text(o.name)},
          {"feed", o.result ? Json(nullptr) : Json(text(name(o.feed)))},
          {"sharing_tiles", o.sharers},
          {"path_links", o.hops},
          {"buffers", buffers_text(o, mapping.results)},
          {"sram_bytes", number(o.sram)},
          {"dram_bytes", number(o.moved.dram)},
          {"least_dram_bytes", number(o.least)},
          {"noc_bytes", number(o.moved.passed)},
          {"noc_link_bytes", number(o.moved.hops)}};
}

Json phase_json(const Phase& p) {
  return {{"name", text(p.name)},        {"time_s", number(p.seconds)},       {"dram_busy_s", number(p.dram)},
          {"noc_busy_s", number(p.noc)}, {"matrix_busy_s", number(p.matrix)}, {"vector_busy_s", number(p.vector)},
          {"bound", text(p.binds)}};
}

Json detail_json(const MappingStudy& study) {
  const Description& best = study.study->mappings().front().description;
  Json json{{"stationary", text(best.stays.slices > 0 ? best.stays.operand : "results")},
            {"stationary_slices", best.stays.slices},
            {"slices", best.stays.of},
            {"loop", text(best.loop)},
            {"last_block_pieces", best.tail},
            {"overlapped_units", best.overlapped}};
  json["dimensions"] = Json::array();
  for (const Dimension& d : best.dimensions) json["dimensions"].push_back(dimension_json(d));
  json["operands"] = Json::array();
  for (const Operand& o : best.operands) json["operands"].push_back(operand_json(o, best));
  json["scores_sram_bytes"] = number(best.working);
  json["sram_bytes"] = number(best.sram);
  json["sram_capacity_bytes"] = number(study.study->machine().sram);
  json["phases"] = Json::array();
  for (const Phase& p : best.phases) json["phases"].push_back(phase_json(p));
  return json;
}

Json drawing_json(const Drawing& drawing) {
  Json json{{"time_s", drawing.whole ? number(drawing.seconds) : Json(nullptr)},
            {"windows", Json::array()},
            {"lanes", Json::array()}};
  for (const auto& w : drawing.windows)
    json["windows"].push_back({{"begin_s", number(w.begin)}, {"end_s", number(w.end)}});
  for (const auto& lane : drawing.lanes) {
    Json bars = Json::array();
    for (const auto& bar : lane.bars) {
      bars.push_back({{"step", bar.step}, {"begin_s", number(bar.begin)}, {"end_s", number(bar.end)}});
    }
    json["lanes"].push_back({{"name", lane.name}, {"bars", std::move(bars)}});
  }
  return json;
}

Json published_json(const MappingStudy& study) {
  if (!study.published) return nullptr;
  const auto& p = *study.published;
  Json json{{"time_s", p.feasible() ? number(p.seconds) : Json(nullptr)},
            {"compute_s", p.feasible() ? number(p.compute) : Json(nullptr)},
            {"utilisation", number(p.utilisation())},
            {"below_bound", p.feasible() && p.seconds < study.study->bound().seconds()},
            {"splits", Json::array()}};
  for (const std::int64_t split : p.splits) {
    if (split > 0) json["splits"].push_back(split);
  }
  json["weights_stay"] = p.transposed;
  const auto& r = study.recost;
  json["mapped_here"] = r ? Json{{"sram_bytes", number(r->sram)},
                                 {"fits", r->closed_form.has_value()},
                                 {"closed_form_s", number(r->closed_form)},
                                 {"simulated_s", number(r->simulated)},
                                 {"spilled_s", number(r->spilled)}}
                          : Json(nullptr);
  return json;
}

}  // namespace

Json mapping_row(const MappingStudy& study, std::size_t rank) {
  const auto& mapping = study.study->mappings()[rank];
  const Description& d = mapping.description;
  const bool whole = study.whole && rank == 0;
  Json row{{"rank", rank + 1},
           {"time_s", number(mapping.simulated)},
           {"closed_form_s", number(d.closed_form)},
           {"simulation", whole ? "whole" : "brief"},
           {"of_bound", number(study.study->bound().seconds() / mapping.simulated)},
           {"split", split_text(d)},
           {"block", block_text(d)},
           {"stays", stays_text(d)},
           {"feeds", feeds_text(d)},
           {"results", text(name(d.results))},
           {"sram_bytes", number(d.sram)},
           {"dram_bytes", number(d.traffic.dram())},
           {"noc_bytes", number(d.traffic.passed())},
           {"noc_link_bytes", number(d.traffic.hops())},
           {"dram_busy_s", number(d.traffic.dram() / study.study->machine().dram)},
           {"noc_busy_s", number(d.traffic.link)},
           {"matrix_busy_s", number(d.traffic.matrix)},
           {"vector_busy_s", number(d.traffic.vector)},
           {"slower_by_s", number(mapping.simulated - study.study->mappings().front().simulated)}};
  row["why"] = rank == 0 ? Json(nullptr) : Json(slower_text(study.study->mappings().front().description, d));
  return row;
}

Json mapping_json(const MappingStudy& study, const Json& rows, const Drawing& drawing) {
  const auto& bound = study.study->bound();
  const auto& best = study.study->mappings().front();
  Json json = json_header("llmperf.mapping");
  json["label"] = "mapped, uncalibrated";
  json["hardware"] = study.device->name;
  json["op"] = op_json(study);
  json["time_s"] = number(best.simulated);
  json["simulated_s"] = number(best.simulated);
  json["closed_form_s"] = number(best.description.closed_form);
  json["simulation"] = study.whole ? "whole" : "brief";
  json["bound_s"] = number(bound.seconds());
  json["bound"] = {{"resource", text(bound.resource())},
                   {"matrix_s", number(bound.matrix)},
                   {"vector_s", number(bound.vector)},
                   {"dram_s", number(bound.dram)}};
  json["of_bound"] = number(bound.seconds() / best.simulated);
  json["mapping"] = detail_json(study);
  json["mappings"] = rows;
  json["published"] = published_json(study);
  json["schedule"] = drawing_json(drawing);
  return json;
}

}  // namespace llmperf::report
