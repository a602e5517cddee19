// `llmperf show hardware`, `list hardware`, `show runtime`, `list runtimes` and `list measurements`.

#include "base/number.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "estimate/price.h"
#include "report/quantity.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/catalog.h"
#include "result/document.h"

namespace llmperf::report {
namespace {

using hardware::Device;
using hardware::Provenance;
using hardware::RuntimeProfile;

// One row per figure: what, value, provenance. The same rows serve people and CSV.
struct DeviceFigure {
  std::string what;
  std::string text;
  double value;
  const char* unit;
  Provenance provenance;
  std::string note = {};
};

std::vector<DeviceFigure> figures_of(const Device& d) {
  std::vector<DeviceFigure> out;
  const auto rate = [&](std::string what, BytesPerSecond r, Provenance from) {
    out.push_back({std::move(what), format_bandwidth(r), r.value, "B/s", from});
  };
  const auto size = [&](std::string what, Bytes b, Provenance from, std::string note = {}) {
    out.push_back({std::move(what), format_bytes_binary(b), b.value, "B", from, std::move(note)});
  };
  const auto latency = [&](std::string what, Seconds s, Provenance from) {
    out.push_back({std::move(what), format_seconds(s), s.value, "s", from});
  };
  for (const hardware::Peak& p : d.peaks) {
    std::string what = fmt::format("{} {}", p.engine, name(p.dtype));
    if (p.accumulate) what += fmt::format(", {} accumulate", name(*p.accumulate));
    out.push_back({std::move(what), format_flops_rate(p.rate), p.rate.value, "op/s", p.provenance});
  }
  for (const hardware::MemoryLevel& m : d.memory) {
    const std::string per = m.per_tile ? " (per tile)" : "";
    if (m.capacity) size(m.name + " capacity" + per, *m.capacity, m.provenance, m.capacity_note);
    if (m.board) size(m.name + " on the board" + per, *m.board, Provenance::datasheet);
    const std::string ecc = m.ecc_traffic > 0 ? fmt::format(", less {:.3g} % for ECC", m.ecc_traffic * 100) : "";
    if (m.bandwidth) rate(m.name + " bandwidth" + per + ecc, *m.bandwidth, m.bandwidth_provenance);
  }
  for (const auto& net : {d.package, d.interconnect, d.supernode}) {
    if (!net) continue;
    std::string label = fmt::format("{} ({})", net->name, net->topology);
    if (net->devices > 1) label += fmt::format(" of {}", net->devices);
    if (net->per_direction) rate(label + " per direction", *net->per_direction, net->provenance);
    if (net->per_link) rate(label + " per link", *net->per_link, net->provenance);
    if (net->latency) latency(label + " latency", *net->latency, net->latency_provenance);
  }
  if (d.network) {
    rate(d.network->name + " between nodes, per direction", d.network->per_direction, d.network->provenance);
    if (d.network->latency) latency(d.network->name + " latency", *d.network->latency, d.network->latency_provenance);
  }
  if (d.host_link) {
    rate(d.host_link->name + " to host, per direction", d.host_link->per_direction, d.host_link->provenance);
  }
  if (d.tile_array) rate("tile-to-tile link", d.tile_array->noc_link, d.tile_array->provenance);
  return out;
}

Fields about_device(const Device& d) {
  Fields f = facts_of(
      "", d,
      "vendor, kind, family, cores, clock_hz: clock, tile_array.tiles: tiles, tile_array.mesh_x: columns of the "
      "mesh, tile_array.mesh_y: rows of the mesh, power_w: power");
  if (d.devices_per_node > 1) f.add("node", "{} devices; figures are of one", d.devices_per_node);
  if (d.measured_clock_hz) {
    f.add("measured clock", "{}: peaks are taken at that clock",
          readable("clock_hz", result::plain(*d.measured_clock_hz)));
  }
  if (const auto& s = d.power_shares) {
    f.add("power shares", "{} idle, {} at full bandwidth, {} at the full matrix rate ({}: {})", s->idle, s->memory,
          s->matrix, s->provenance, s->source);
  }
  if (const auto price = estimate::hour_price(d)) {
    f.add("price", "{} {} an hour ({})", Rounded{price->amount}, price->currency, price->text());
  }
  f.add("source", d.source);
  if (!d.notes.empty()) f.add("notes", d.notes);
  return f;
}

std::string rate_text(const Device& d, hardware::Engine engine, Dtype dtype) {
  const hardware::Peak* peak = d.find_peak(engine, dtype);
  return peak ? format_flops_rate(peak->rate) : "";
}

std::string covers(const RuntimeProfile& p) {
  if (p.hardware.empty()) return p.families.empty() ? "any device" : "class " + join(p.families, ", ");
  return p.hardware;
}

std::string error_cell(const RuntimeProfile& p, std::string_view group) {
  const hardware::FittedError* error = p.error_of(group);
  return error ? format_share(error->mean) : "";
}

}  // namespace

Report hardware_report(const Device& d) {
  Table people = titled("Figures", "<what, value, <from");
  Table csv = titled("", "hardware, figure, value, unit, provenance");
  Fields about = about_device(d);
  for (const DeviceFigure& f : figures_of(d)) {
    const std::string from(hardware::name(f.provenance));
    add_row(people, f.what, f.text, from);
    if (!f.note.empty()) about.add(f.what, f.note);
    add_row(csv, d.name, f.what, plain(f.value), f.unit, from);
  }
  Document page{Heading{d.name, d.title}, about, people};
  if (!d.prices.empty())
    page.push_back(
        table_of("Prices of one device, or of an hour of it", d.prices, "kind, amount, currency, date, source"));
  return {std::move(page), csv, result::document("llmperf.hardware", d)};
}

Report hardware_list_report(const DeviceList& list) {
  Table people = titled("", "<hardware, <kind, fp16 matrix, fp32 vector, memory, bandwidth");
  for (const auto& [d] : list.hardware) {
    add_row(people, d.name, d.kind, rate_text(d, hardware::Engine::matrix, Dtype::fp16),
            rate_text(d, hardware::Engine::vector, Dtype::fp32), Held{*d.dram().capacity}, *d.dram().bandwidth);
  }
  Document page{people};
  for (const auto& [d] : list.hardware) add_file(page, d.name, descriptor::replacing(d.source));
  return {std::move(page), csv_of(list.hardware), result::document("llmperf.hardware_list", list)};
}

Report runtime_report(const RuntimeProfile& p) {
  Fields about{"", {{"hardware", covers(p)}, {"source", p.source}}};
  if (!p.notes.empty()) about.add("notes", p.notes);
  about.add("runs", fmt::format("prefill {}, decode {}", name(p.prefill_dispatch), name(p.dispatch)));
  if (!p.engine.empty()) about.add("engine", p.engine);
  if (!p.host_class.empty()) about.add("host", p.host_class);
  about.add("options", hardware::format_runtime_options(p.options, p.workload));
  std::vector<RuntimeParameter> told = parameters_of(p);
  // Formats that the profile says nothing of would be pages of defaults.
  std::erase_if(told, [&](const RuntimeParameter& one) {
    return one.index >= hardware::kParameters && !one.fitted() && p.values[one.index] == one.info().initial;
  });
  return {{Heading{p.title, p.name}, about,
           table_of("Numbers", told, "name: parameter, value, unit, provenance: from, uncertainty: +-, meaning: what"),
           table_of("Errors, cross-validated", p.errors, "group: of, rows, mean, p90, bias")},
          csv_of(parameters_of(p)),
          result::document("llmperf.runtime", p)};
}

Report runtime_list_report(const RuntimeList& list) {
  Table people = titled("", "<runtime, <hardware, <engine, <host, measurements, prefill, decode, matrix products");
  for (const auto& [p] : list.runtimes) {
    add_row(people, p.name, covers(p), p.engine, p.host_class, p.range.rows > 0 ? std::to_string(p.range.rows) : "none",
            error_cell(p, "prefill"), error_cell(p, "decode"), error_cell(p, "gemm"));
  }
  Document page{
      people,
      Paragraph{"Errors are means, cross-validated; those of classes are assumptions. Another name of llama.cpp "
                "under the tool ollama: ollama."}};
  for (const auto& [p] : list.runtimes) add_file(page, p.name, descriptor::replacing(p.source));
  page.push_back(table_of("Engines and their eras", list.engines,
                          "name: era, engine, since: from version, families: for, host, measured_on: steps of"));
  return {std::move(page), csv_of(list.runtimes), result::document("llmperf.runtime_list", list)};
}

Report measurement_list_report(const MeasurementList& list) {
  return {{table_of("", list.measurements, "name: measurements, rows, about")},
          csv_of(list.measurements),
          result::document("llmperf.measurement_list", list)};
}

}  // namespace llmperf::report
