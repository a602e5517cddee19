// `llmperf map`.
#include <fmt/format.h>

#include "base/integer.h"
#include "base/number.h"
#include "report/pages/mapping_drawing.h"
#include "report/reports.h"
#include "report/rows.h"
#include "result/document.h"
#include "result/mapping.h"

namespace llmperf::report {
namespace {

using mapper::tile::Description;
using mapper::tile::Dimension;
using mapper::tile::Operand;
using mapper::tile::StudiedMapping;

constexpr double kAlike = 0.0005;  // share by which a mapping is slower that is as fast

std::string time_text(double seconds) { return format_seconds(Seconds{seconds}); }
std::string bytes_text(double bytes) { return format_bytes(Bytes{bytes}); }

std::string bound_text(const mapper::tile::Bound& b) {
  std::string text = fmt::format("{} ({}): ", time_text(b.seconds()), b.resource());
  if (b.matrix > 0) text += fmt::format("matrix {}, ", time_text(b.matrix));
  if (b.vector > 0) text += fmt::format("vector {}, ", time_text(b.vector));
  return text + fmt::format("DRAM {}, all at once and every tensor moved once", time_text(b.dram));
}

double least_dram(const Description& d) {
  double bytes = 0;
  for (const Operand& o : d.operands) bytes += o.least;
  return bytes;
}

Fields mapping_headline(const MappingStudy& study) {
  const StudiedMapping& best = study.study->mappings().front();
  const Description& d = best.description;
  const auto& machine = study.study->machine();
  Fields f;
  if (std::holds_alternative<graph::Gemm>(study.op->body)) {
    const Dtype a = study.dtype;
    const auto& [b, c, local] = study.product;
    const std::string in_tiles = local.empty() ? "" : fmt::format("; {} in the tiles' memory", local);
    if (a != b || a != c || !local.empty()) {
      f.add("operands", fmt::format("a {}, b {}, c {}{}", name(a), name(b), name(c), in_tiles));
    }
  }
  f.add("time", fmt::format("{} simulated{}; closed form {}", time_text(best.simulated),
                            study.whole ? " step by step" : " in brief", time_text(d.closed_form)));
  f.add("lower bound", bound_text(study.study->bound()));
  f.add("bound / time", format_share(study.study->bound().seconds() / best.simulated));
  const std::string tail = d.tail > 1 ? fmt::format(", the last one in {} pieces", d.tail) : "";
  f.add("stays on the tiles", fmt::format("{}; blocks follow each other along {}{}", stays_text(d), d.loop, tail));
  f.add("SRAM of a tile", fmt::format("{} of {} ({})", format_bytes_binary(Bytes{d.sram}),
                                      format_bytes_binary(Bytes{machine.sram}), format_share(d.sram / machine.sram)));
  f.add("DRAM traffic", least_dram(d) > 0 ? fmt::format("{}, {} times the least ({})", bytes_text(d.traffic.dram()),
                                                        format_significant(d.traffic.dram() / least_dram(d), 3),
                                                        bytes_text(least_dram(d)))
                                          : "none");
  f.add("NoC traffic",
        d.traffic.passed() > 0
            ? fmt::format("{} from tile to tile, {} links each on average", bytes_text(d.traffic.passed()),
                          format_significant(d.traffic.hops() / d.traffic.passed(), 3))
            : "none");
  if (study.study->bound().matrix > 0) {
    f.add("matrix units", fmt::format("at work {}, {} of the bound's rate", time_text(d.traffic.matrix),
                                      format_share(study.study->bound().matrix / d.traffic.matrix)));
  }
  return f;
}

Table dimension_table(const Description& mapping) {
  Table t{"Split and blocks", {{"dimension", true}, {"extent"}, {"tiles"}, {"per tile"}, {"block"}, {"blocks"}}, {}};
  for (const Dimension& dim : mapping.dimensions) {
    t.rows.push_back({std::string(dim.name), format_count(d(dim.extent)), fmt::format("{}", dim.tiles),
                      format_count(d(dim.part)), fmt::format("{}", dim.block), format_count(d(dim.blocks))});
  }
  return t;
}

std::string feed_text(const Operand& o) {
  if (o.result) {
    return o.sharers > 1 ? fmt::format("summed over {}", o.sharers) : o.local ? "in the tiles" : "stored";
  }
  if (o.sharers == 1) return o.local ? "in the tiles" : "direct";
  if (o.feed == mapper::tile::Feed::direct) return fmt::format("direct, by each of {}", o.sharers);
  return fmt::format("{} to {}", name(o.feed), o.sharers);
}

Table operand_table(const Description& d, std::string_view of = "Operands") {
  Table t{fmt::format("{} (least: every element once; links: that a byte goes over; SRAM of a tile)", of),
          {{"operand", true},
           {"feed", true},
           {"buffers", true},
           {"SRAM"},
           {"DRAM"},
           {"least"},
           {"times"},
           {"NoC"},
           {"links"}},
          {}};
  for (const Operand& o : d.operands) {
    t.rows.push_back({std::string(o.name), feed_text(o), buffers_text(o, d.results), format_bytes_binary(Bytes{o.sram}),
                      bytes_text(o.moved.dram), bytes_text(o.least),
                      o.least > 0 ? format_significant(o.moved.dram / o.least, 3) : "", bytes_text(o.moved.passed),
                      o.moved.passed > 0 ? format_significant(o.moved.hops / o.moved.passed, 3) : ""});
  }
  if (d.working > 0) {
    t.rows.push_back({"scores", "", d.overlapped ? "double" : "single", format_bytes_binary(Bytes{d.working})});
  }
  return t;
}

Table phase_table(const Description& d, std::string_view of = "Phases") {
  Table t{fmt::format("{} (closed form; how long each resource is busy of that time)", of),
          {{"phase", true}, {"time"}, {"share"}, {"DRAM"}, {"NoC"}, {"matrix"}, {"vector"}, {"bound by", true}},
          {}};
  for (const mapper::tile::Phase& p : d.phases) {
    const auto share = [&](double busy) { return p.seconds > 0 ? format_share(busy / p.seconds) : ""; };
    t.rows.push_back({std::string(p.name), time_text(p.seconds), format_share(p.seconds / d.closed_form), share(p.dram),
                      share(p.noc), share(p.matrix), share(p.vector), std::string(p.binds)});
  }
  return t;
}

Table ranking(const MappingStudy& study) {
  const auto& all = study.study->mappings();
  Table t{"Mappings (simulated; why slower: what grew most in the closed form)",
          {{""},
           {"time"},
           {"slower"},
           {"split", true},
           {"block", true},
           {"stays", true},
           {"feeds", true},
           {"why slower", true}},
          {}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Description& d = all[i].description;
    const double slower = all[i].simulated / all.front().simulated - 1;
    t.rows.push_back({fmt::format("{}", i + 1), time_text(all[i].simulated), i == 0 ? "" : format_share(slower),
                      split_text(d), block_text(d), stays_text(d), feeds_text(d),
                      i == 0            ? ""
                      : slower < kAlike ? "as fast"
                                        : slower_text(all.front().description, d)});
  }
  return t;
}

// The mapping that was asked about, beside the best.
Table comparison(const MappingStudy& study) {
  const result::MappingRow rows[] = {{&study, 0, &*study.given()}, {&study, 0, &study.best()}};
  const auto& machine = study.study->machine();
  const double times = study.given()->simulated / study.best().simulated;
  const bool best = times <= 1;
  Table t{best ? "Given mapping (none that was found is faster)"
               : fmt::format("Given mapping ({} times the best: {})", format_significant(times, 3),
                             times < 1 + kAlike ? "as fast"
                                                : slower_text(study.best().description, study.given()->description)),
          {{"", true}, {"given", true}, {"best", true}},
          {}};
  const auto line = [&](const char* what, auto&& text) { t.rows.push_back({what, text(rows[0]), text(rows[1])}); };
  const auto busy = [&](const char* what, auto&& seconds) {
    line(what, [&](const result::MappingRow& r) {
      return fmt::format("{} ({})", time_text(seconds(r)), format_share(seconds(r) / r.mapping().simulated));
    });
  };
  using Row = const result::MappingRow&;
  line("time", [](Row r) { return time_text(r.mapping().simulated); });
  line("closed form", [](Row r) { return time_text(r.description().closed_form); });
  line("bound by", [&](Row r) { return std::string(busiest(machine, r.description())); });
  busy("DRAM busy", [&](Row r) { return r.description().traffic.dram() / machine.dram; });
  busy("busiest link", [](Row r) { return r.description().traffic.link; });
  busy("matrix units", [](Row r) { return r.description().traffic.matrix; });
  line("DRAM traffic", [](Row r) { return bytes_text(r.description().traffic.dram()); });
  line("from tile to tile", [](Row r) { return bytes_text(r.description().traffic.passed()); });
  line("SRAM of a tile", [](Row r) { return format_bytes_binary(Bytes{r.description().sram}); });
  line("split", [](Row r) { return split_text(r.description()); });
  line("block", [](Row r) { return block_text(r.description()); });
  line("stays", [](Row r) { return stays_text(r.description()); });
  line("feeds", [](Row r) { return feeds_text(r.description()); });
  line("results", [](Row r) { return std::string(name(r.description().results)); });
  return t;
}

std::string published_splits(const MappingStudy& study) {
  const auto& p = *study.published;
  if (std::holds_alternative<graph::Gemm>(study.op->body)) {
    return fmt::format("n1 {}, n2 {}, nk {}, {} stay", p.splits[0], p.splits[1], p.splits[2],
                       p.transposed ? "weights" : "inputs");
  }
  if (std::holds_alternative<graph::Attention>(study.op->body)) {
    return fmt::format("Tx {}, Ty {}", p.splits[0], p.splits[1]);
  }
  return fmt::format("{} chunks", p.splits[0]);
}

std::string recost_text(const MappingStudy& study) {
  const auto& r = *study.recost;
  if (r.simulated) {
    return fmt::format("{} simulated, {} times the best", time_text(*r.simulated),
                       format_significant(*r.simulated / study.study->mappings().front().simulated, 3));
  }
  const std::string spilled =
      r.spilled ? fmt::format("; with sums that go to DRAM at least {}", time_text(*r.spilled)) : "";
  return fmt::format("does not fit: {} of a tile{}", format_bytes_binary(Bytes{r.sram}), spilled);
}

Fields published_fields(const MappingStudy& study) {
  const auto& p = *study.published;
  const double bound = study.study->bound().seconds();
  Fields f{"Published mapper (its formulas, for comparison)", {}};
  if (!p.feasible()) {
    f.add("time", "none: it has no formula for this op, or nothing that fits");
    return f;
  }
  f.add("time", fmt::format("{}, {} of the time found here", time_text(p.seconds),
                            format_share(p.seconds / study.study->mappings().front().simulated)));
  f.add("splits", published_splits(study));
  f.add("utilisation", format_share(p.utilisation()));
  if (study.recost) f.add("the same, mapped here", recost_text(study));
  if (p.seconds < bound) {
    f.add("note", fmt::format("below the lower bound of {}: its machine cannot do that", time_text(bound)));
  }
  return f;
}

Fields machine_fields(const MappingStudy& study) {
  const auto& m = study.study->machine();
  const auto& array = *study.device->tile_array;
  const auto& dram = study.device->dram();
  Fields f{"Rests on", {}};
  const auto from = [](hardware::Provenance p) { return hardware::name(p); };
  f.add("tiles", fmt::format("{} in a mesh of {}x{}, links {} ({})", m.tiles, m.mesh_x, m.mesh_y,
                             format_bandwidth(BytesPerSecond{m.link}), from(array.provenance)));
  if (!study.runtime.empty()) f.add("software", fmt::format("rates that {} reaches", study.runtime));
  if (m.launch > 0) f.add("launch", time_text(m.launch));
  f.add("matrix, vector", fmt::format("{}, {} per tile", format_flops_rate(FlopsPerSecond{m.matrix}),
                                      format_flops_rate(FlopsPerSecond{m.vector})));
  f.add("DRAM", fmt::format("{} for all tiles ({})", format_bandwidth(BytesPerSecond{m.dram}),
                            from(dram.bandwidth_provenance)));
  f.add("latencies", fmt::format("DRAM {}, link {}", time_text(m.dram_latency), time_text(m.hop_latency)));
  return f;
}

}  // namespace

Report mapping_report(MappingStudy& study) {
  const StudiedMapping& best = study.best();
  const Drawing drawing = drawing_of(timeline_of(study.study->machine(), best.schedule), best.description);
  const std::string title = fmt::format("{} on {}", op_text(study), study.device->name);
  Document doc{Heading{title, study.label()},
               mapping_headline(study),
               dimension_table(best.description),
               operand_table(best.description),
               phase_table(best.description),
               drawing_table(drawing),
               ranking(study)};
  if (study.given()) {
    doc.emplace_back(comparison(study));
    doc.emplace_back(operand_table(study.given()->description, "Operands of the given mapping"));
    doc.emplace_back(phase_table(study.given()->description, "Phases of the given mapping"));
  }
  if (study.published) doc.emplace_back(published_fields(study));
  doc.emplace_back(machine_fields(study));
  study.svg = drawing_svg(drawing, title);
  if (drawing.whole) study.schedule.seconds = drawing.seconds;
  for (const auto& w : drawing.windows) study.schedule.windows.push_back({w.begin, w.end});
  for (const auto& lane : drawing.lanes) study.schedule.lanes.push_back({lane.name, lane.bars});
  return {std::move(doc), csv_of(rows_of(study)), result::document("llmperf.mapping", study)};
}

}  // namespace llmperf::report
