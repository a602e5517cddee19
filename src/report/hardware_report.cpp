#include <fmt/format.h>

#include "base/number.h"
#include "report/catalog_report.h"
#include "report/json.h"

namespace llmperf::report {
namespace {

using hardware::Device;

std::string peak_name(const hardware::Peak& p) {
  std::string text = fmt::format("{} {}", hardware::name(p.engine), name(p.dtype));
  if (p.accumulate) text += fmt::format(", {} accumulate", name(*p.accumulate));
  return text;
}

// One row per figure: what, value, provenance. The same rows serve people and CSV.
struct Row {
  std::string key;
  std::string text;
  double value;
  const char* unit;
  hardware::Provenance provenance;
  std::string note = {};
};

std::vector<Row> rows(const Device& d) {
  std::vector<Row> out;
  for (const hardware::Peak& p : d.peaks)
    out.push_back({peak_name(p), format_flops_rate(p.rate), p.rate.value, "op/s", p.provenance});
  for (const hardware::MemoryLevel& m : d.memory) {
    const std::string per = m.per_tile ? " (per tile)" : "";
    if (m.capacity)
      out.push_back({m.name + " capacity" + per, format_bytes_binary(*m.capacity), m.capacity->value, "B", m.provenance,
                     m.capacity_note});
    if (m.board) {
      out.push_back({m.name + " on the board" + per, format_bytes_binary(*m.board), m.board->value, "B",
                     hardware::Provenance::datasheet});
    }
    if (m.bandwidth) {
      out.push_back({m.name + " bandwidth" + per, format_bandwidth(*m.bandwidth), m.bandwidth->value, "B/s",
                     m.bandwidth_provenance});
    }
  }
  if (d.interconnect) {
    const hardware::Interconnect& i = *d.interconnect;
    const std::string label = fmt::format("{} ({})", i.name, hardware::name(i.topology));
    if (i.per_direction)
      out.push_back(
          {label + " per direction", format_bandwidth(*i.per_direction), i.per_direction->value, "B/s", i.provenance});
    if (i.per_link)
      out.push_back({label + " per link", format_bandwidth(*i.per_link), i.per_link->value, "B/s", i.provenance});
    if (i.latency) {
      out.push_back({label + " latency", format_seconds(*i.latency), i.latency->value, "s", i.latency_provenance});
    }
  }
  if (d.network) {
    const hardware::Network& n = *d.network;
    out.push_back({n.name + " between nodes, per direction", format_bandwidth(n.per_direction), n.per_direction.value,
                   "B/s", n.provenance});
    if (n.latency) {
      out.push_back({n.name + " latency", format_seconds(*n.latency), n.latency->value, "s", n.latency_provenance});
    }
  }
  if (d.host_link) {
    out.push_back({d.host_link->name + " to host, per direction", format_bandwidth(d.host_link->per_direction),
                   d.host_link->per_direction.value, "B/s", d.host_link->provenance});
  }
  if (d.tile_array) {
    out.push_back({"tile-to-tile link", format_bandwidth(d.tile_array->noc_link), d.tile_array->noc_link.value, "B/s",
                   d.tile_array->provenance});
  }
  return out;
}

Fields general(const Device& d) {
  Fields f{"", {{"vendor", d.vendor}, {"kind", std::string(hardware::name(d.kind))}, {"family", d.family}}};
  if (d.devices_per_node > 1)
    f.rows.emplace_back("node", fmt::format("{} devices; figures are of one", d.devices_per_node));
  if (d.cores) f.rows.emplace_back("cores", std::to_string(*d.cores));
  if (d.clock_hz) f.rows.emplace_back("clock", fmt::format("{} MHz", format_significant(*d.clock_hz / 1e6)));
  if (d.measured_clock_hz) {
    f.rows.emplace_back("measured clock", fmt::format("{} MHz: peaks are taken at that clock",
                                                      format_significant(*d.measured_clock_hz / 1e6)));
  }
  if (d.tile_array)
    f.rows.emplace_back(
        "tiles", fmt::format("{} ({} x {} mesh)", d.tile_array->tiles, d.tile_array->mesh_x, d.tile_array->mesh_y));
  if (d.power_w) f.rows.emplace_back("power", fmt::format("{} W", format_significant(*d.power_w)));
  if (d.price_usd) f.rows.emplace_back("list price", fmt::format("{} USD", format_count(*d.price_usd)));
  if (!d.cloud_price.empty()) f.rows.emplace_back("cloud price", d.cloud_price);
  f.rows.emplace_back("source", d.source);
  if (!d.notes.empty()) f.rows.emplace_back("notes", d.notes);
  return f;
}

// Latency and its provenance at the end of `json`; null where the file gives none.
template <class Links>
void add_latency(Json& json, const Links& links) {
  json["latency_s"] = number(links.latency);
  json["latency_provenance"] =
      links.latency ? Json(std::string(hardware::name(links.latency_provenance))) : Json(nullptr);
}

Json optional_number(const std::optional<double>& v) { return v ? number(*v) : Json(nullptr); }

std::string json_text(const Device& d) {
  Json json = json_header("llmperf.hardware");
  json["name"] = d.name;
  json["title"] = d.title;
  json["vendor"] = d.vendor;
  json["kind"] = std::string(hardware::name(d.kind));
  json["family"] = d.family;
  json["source"] = d.source;
  json["notes"] = d.notes;
  json["devices_per_node"] = d.devices_per_node;
  json["cores"] = d.cores ? Json(*d.cores) : Json(nullptr);
  json["clock_hz"] = optional_number(d.clock_hz);
  json["measured_clock_hz"] = optional_number(d.measured_clock_hz);
  json["power_w"] = optional_number(d.power_w);
  json["price_usd"] = optional_number(d.price_usd);
  json["cloud_price"] = d.cloud_price;
  json["peaks"] = Json::array();
  for (const hardware::Peak& p : d.peaks) {
    json["peaks"].push_back({{"engine", std::string(hardware::name(p.engine))},
                             {"dtype", std::string(name(p.dtype))},
                             {"accumulate", p.accumulate ? Json(std::string(name(*p.accumulate))) : Json(nullptr)},
                             {"flops_per_s", number(p.rate)},
                             {"provenance", std::string(hardware::name(p.provenance))}});
  }
  json["memory"] = Json::array();
  for (const hardware::MemoryLevel& m : d.memory) {
    json["memory"].push_back({{"name", m.name},
                              {"per_tile", m.per_tile},
                              {"capacity_bytes", number(m.capacity)},
                              {"board_bytes", number(m.board)},
                              {"capacity_note", m.capacity_note},
                              {"bandwidth_bytes_per_s", number(m.bandwidth)},
                              {"provenance", std::string(hardware::name(m.provenance))},
                              {"bandwidth_provenance", std::string(hardware::name(m.bandwidth_provenance))}});
  }
  if (d.interconnect) {
    const hardware::Interconnect& i = *d.interconnect;
    json["interconnect"] = {{"name", i.name},
                            {"topology", std::string(hardware::name(i.topology))},
                            {"per_direction_bytes_per_s", number(i.per_direction)},
                            {"per_link_bytes_per_s", number(i.per_link)},
                            {"links", i.links ? Json(*i.links) : Json(nullptr)},
                            {"provenance", std::string(hardware::name(i.provenance))}};
    add_latency(json["interconnect"], i);
  }
  if (d.network) {
    json["network"] = {{"name", d.network->name},
                       {"per_direction_bytes_per_s", number(d.network->per_direction)},
                       {"provenance", std::string(hardware::name(d.network->provenance))}};
    add_latency(json["network"], *d.network);
  }
  if (d.tile_array) {
    const hardware::TileArray& t = *d.tile_array;
    json["tile_array"] = {{"tiles", t.tiles},
                          {"mesh_x", t.mesh_x},
                          {"mesh_y", t.mesh_y},
                          {"noc_link_bytes_per_s", number(t.noc_link)},
                          {"hop_latency_s", number(t.hop_latency)},
                          {"dram_latency_s", number(t.dram_latency)},
                          {"provenance", std::string(hardware::name(t.provenance))}};
  }
  if (d.host_link) {
    json["host_link"] = {{"name", d.host_link->name},
                         {"per_direction_bytes_per_s", number(d.host_link->per_direction)},
                         {"provenance", std::string(hardware::name(d.host_link->provenance))}};
  }
  return dump(json);
}

std::string rate_or_blank(const Device& d, Dtype dtype) {
  const hardware::Peak* p = d.find_peak(hardware::Engine::matrix, dtype);
  return p ? format_flops_rate(p->rate) : "";
}

}  // namespace

Report hardware_report(const Device& d) {
  Table people{"Figures", {{"what", true}, {"value"}, {"from", true}}, {}};
  Table csv{"", {{"hardware"}, {"figure"}, {"value"}, {"unit"}, {"provenance"}}, {}};
  Fields header = general(d);
  for (const Row& r : rows(d)) {
    people.rows.push_back({r.key, r.text, std::string(hardware::name(r.provenance))});
    if (!r.note.empty()) header.rows.emplace_back(r.key, r.note);
    csv.rows.push_back({d.name, r.key, plain(r.value), r.unit, std::string(hardware::name(r.provenance))});
  }
  return {{Heading{d.name, d.title}, header, people}, csv, json_text(d)};
}

Report hardware_list_report(const std::vector<Device>& devices) {
  Table people{
      "", {{"hardware", true}, {"kind", true}, {"fp16 matrix"}, {"fp32 vector"}, {"memory"}, {"bandwidth"}}, {}};
  Table csv{"",
            {{"hardware"},
             {"title"},
             {"vendor"},
             {"kind"},
             {"fp16_matrix_flops_per_s"},
             {"memory_bytes"},
             {"memory_bandwidth_bytes_per_s"}},
            {}};
  Json json = json_header("llmperf.hardware_list");
  json["hardware"] = Json::array();
  for (const Device& d : devices) {
    const hardware::Peak* fp16 = d.find_peak(hardware::Engine::matrix, Dtype::fp16);
    const hardware::Peak* vector = d.find_peak(hardware::Engine::vector, Dtype::fp32);
    people.rows.push_back({d.name, std::string(hardware::name(d.kind)), rate_or_blank(d, Dtype::fp16),
                           vector ? format_flops_rate(vector->rate) : "", format_bytes_binary(*d.dram().capacity),
                           format_bandwidth(*d.dram().bandwidth)});
    csv.rows.push_back({d.name, d.title, d.vendor, std::string(hardware::name(d.kind)),
                        fp16 ? plain(fp16->rate.value) : "", plain(d.dram().capacity->value),
                        plain(d.dram().bandwidth->value)});
    json["hardware"].push_back({{"name", d.name},
                                {"title", d.title},
                                {"vendor", d.vendor},
                                {"kind", std::string(hardware::name(d.kind))},
                                {"memory_bytes", number(*d.dram().capacity)},
                                {"memory_bandwidth_bytes_per_s", number(*d.dram().bandwidth)}});
  }
  return {{people}, csv, dump(json)};
}

}  // namespace llmperf::report
