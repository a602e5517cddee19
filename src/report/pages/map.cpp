// `llmperf map`.

#include "base/number.h"
#include "report/pages/mapping_drawing.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/document.h"
#include "result/mapping.h"

namespace llmperf::report {
namespace {

using mapper::tile::Description;
using mapper::tile::Operand;
using mapper::tile::StudiedMapping;

constexpr double kAlike = 0.0005;  // share by which a mapping is slower that is as fast

std::string bound_text(const mapper::tile::Bound& b) {
  std::string text = fmt::format("{} ({}): ", Seconds{b.seconds()}, b.resource());
  if (b.matrix > 0) text += fmt::format("matrix {}, ", Seconds{b.matrix});
  if (b.vector > 0) text += fmt::format("vector {}, ", Seconds{b.vector});
  return text + fmt::format("DRAM {}, all at once and every tensor moved once", Seconds{b.dram});
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
      f.add("operands", "a {}, b {}, c {}{}", name(a), name(b), name(c), in_tiles);
    }
  }
  f.add("time", "{} simulated{}; closed form {}", Seconds{best.simulated}, study.whole ? " step by step" : " in brief",
        Seconds{d.closed_form});
  f.add("lower bound", bound_text(study.study->bound()));
  f.add("bound / time", format_share(study.study->bound().seconds() / best.simulated));
  const std::string tail = d.tail > 1 ? fmt::format(", the last one in {} pieces", d.tail) : "";
  f.add("stays on the tiles", "{}; blocks follow each other along {}{}", stays_text(d), d.loop, tail);
  f.add("SRAM of a tile", "{} of {} ({})", Held{Bytes{d.sram}}, Held{Bytes{machine.sram}},
        Share{d.sram / machine.sram});
  f.add("DRAM traffic", least_dram(d) > 0
                            ? fmt::format("{}, {} times the least ({})", Bytes{d.traffic.dram()},
                                          Rounded{d.traffic.dram() / least_dram(d), 3}, Bytes{least_dram(d)})
                            : "none");
  f.add("NoC traffic", d.traffic.passed() > 0
                           ? fmt::format("{} from tile to tile, {} links each on average", Bytes{d.traffic.passed()},
                                         Rounded{d.traffic.hops() / d.traffic.passed(), 3})
                           : "none");
  if (study.study->bound().matrix > 0) {
    f.add("matrix units", "at work {}, {} of the bound's rate", Seconds{d.traffic.matrix},
          Share{study.study->bound().matrix / d.traffic.matrix});
  }
  return f;
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
  Table t = titled(fmt::format("{} (least: every element once; links: that a byte goes over; SRAM of a tile)", of),
                   "<operand, <feed, <buffers, SRAM, DRAM, least, times, NoC, links");
  for (const Operand& o : d.operands) {
    add_row(t, o.name, feed_text(o), buffers_text(o, d.results), Held{Bytes{o.sram}}, Bytes{o.moved.dram},
            Bytes{o.least}, o.least > 0 ? format_significant(o.moved.dram / o.least, 3) : "", Bytes{o.moved.passed},
            o.moved.passed > 0 ? format_significant(o.moved.hops / o.moved.passed, 3) : "");
  }
  if (d.working > 0) {
    add_row(t, "scores", "", d.overlapped ? "double" : "single", Held{Bytes{d.working}});
  }
  return t;
}

Table phase_table(const Description& d, std::string_view of = "Phases") {
  return table_of(fmt::format("{} (closed form; how long each resource is busy of that time)", of),
                  "<phase, time, share, DRAM, NoC, matrix, vector, <bound by", d.phases,
                  [&](const mapper::tile::Phase& p) {
                    const auto share = [&](double busy) { return p.seconds > 0 ? format_share(busy / p.seconds) : ""; };
                    return cells(p.name, Seconds{p.seconds}, Share{p.seconds / d.closed_form}, share(p.dram),
                                 share(p.noc), share(p.matrix), share(p.vector), p.binds);
                  });
}

Table ranking(const MappingStudy& study) {
  return table_of("Mappings (simulated; why slower: what grew most in the closed form)",
                  ", time, slower, <split, <block, <stays, <feeds, <why slower", rows_of(study),
                  [&](const MappingRow& r) {
                    const Description& d = r.description();
                    const double slower = r.mapping().simulated / study.best().simulated - 1;
                    const bool best = r.rank == 0;
                    return cells(r.rank + 1, Seconds{r.mapping().simulated}, best ? "" : format_share(slower),
                                 split_text(d), block_text(d), stays_text(d), feeds_text(d),
                                 best              ? ""
                                 : slower < kAlike ? "as fast"
                                                   : slower_text(study.best().description, d));
                  });
}

// The mapping that was asked about, beside the best.
Table comparison(const MappingStudy& study) {
  const MappingRow rows[] = {{&study, 1, &*study.given()}, {&study, 0, &study.best()}};
  const double times = study.given()->simulated / study.best().simulated;
  const std::string slower =
      times < 1 + kAlike ? "as fast" : slower_text(study.best().description, study.given()->description);
  Table t = transposed(
      table_of(times <= 1 ? "Given mapping (none that was found is faster)"
                          : fmt::format("Given mapping ({} times the best: {})", Rounded{times, 3}, slower),
               rows,
               "time_s, closed_form_s: closed form, bound: bound by, dram_busy_s: DRAM busy, noc_busy_s: busiest link, "
               "matrix_busy_s: matrix units, dram_bytes: DRAM traffic, noc_bytes: from tile to tile, sram_bytes: SRAM "
               "of a tile, split, block, stays, feeds, results"),
      "<, <given, <best");
  // How long each resource is busy, of the time: of the lines that say so, from the fourth on.
  const auto add_share = [&](std::size_t line, auto&& seconds) {
    for (std::size_t i = 0; i < std::size(rows); ++i) {
      const double share = seconds(rows[i].description().traffic) / rows[i].mapping().simulated;
      t.rows[line][i + 1] += fmt::format(" ({})", Share{share});
    }
  };
  add_share(3, [&](const auto& traffic) { return traffic.dram() / study.study->machine().dram; });
  add_share(4, [](const auto& traffic) { return traffic.link; });
  add_share(5, [](const auto& traffic) { return traffic.matrix; });
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
    return fmt::format("{} simulated, {} times the best", Seconds{*r.simulated},
                       Rounded{*r.simulated / study.study->mappings().front().simulated, 3});
  }
  const std::string spilled =
      r.spilled ? fmt::format("; with sums that go to DRAM at least {}", Seconds{*r.spilled}) : "";
  return fmt::format("does not fit: {} of a tile{}", Held{Bytes{r.sram}}, spilled);
}

Fields published_fields(const MappingStudy& study) {
  const auto& p = *study.published;
  const double bound = study.study->bound().seconds();
  Fields f{"Published mapper (its formulas, for comparison)", {}};
  if (!p.feasible()) {
    f.add("time", "none: it has no formula for this op, or nothing that fits");
    return f;
  }
  f.add("time", "{}, {} of the time found here", Seconds{p.seconds},
        Share{p.seconds / study.study->mappings().front().simulated});
  f.add("splits", published_splits(study));
  f.add("utilisation", format_share(p.utilisation()));
  if (study.recost) f.add("the same, mapped here", recost_text(study));
  if (p.seconds < bound) {
    f.add("note", "below the lower bound of {}: its machine cannot do that", Seconds{bound});
  }
  return f;
}

Fields machine_fields(const MappingStudy& study) {
  const auto& m = study.study->machine();
  const auto& array = *study.device->tile_array;
  const auto& dram = study.device->dram();
  Fields f{"Rests on", {}};
  const auto from = [](hardware::Provenance p) { return hardware::name(p); };
  f.add("tiles", "{} in a mesh of {}x{}, links {} ({})", m.tiles, m.mesh_x, m.mesh_y, BytesPerSecond{m.link},
        from(array.provenance));
  if (!study.runtime.empty()) f.add("software", "rates that {} reaches", study.runtime);
  if (m.launch > 0) f.add("launch", "{}", Seconds{m.launch});
  f.add("matrix, vector", "{}, {} per tile", FlopsPerSecond{m.matrix}, FlopsPerSecond{m.vector});
  f.add("DRAM", "{} for all tiles ({})", BytesPerSecond{m.dram}, from(dram.bandwidth_provenance));
  f.add("latencies", "DRAM {}, link {}", Seconds{m.dram_latency}, Seconds{m.hop_latency});
  return f;
}

}  // namespace

Report mapping_report(MappingStudy& study) {
  const StudiedMapping& best = study.best();
  study.schedule = drawing_of(timeline_of(study.study->machine(), best.schedule), best.description);
  const std::string title = fmt::format("{} on {}", op_text(study), study.device->name);
  Document doc{Heading{title, study.label()},
               mapping_headline(study),
               table_of("Split and blocks", best.description.dimensions,
                        "name: dimension, extent, tiles, per_tile, block, blocks_per_tile: blocks"),
               operand_table(best.description),
               phase_table(best.description),
               drawing_table(study.schedule),
               ranking(study)};
  if (study.given()) {
    doc.emplace_back(comparison(study));
    doc.emplace_back(operand_table(study.given()->description, "Operands of the given mapping"));
    doc.emplace_back(phase_table(study.given()->description, "Phases of the given mapping"));
  }
  if (study.published) doc.emplace_back(published_fields(study));
  doc.emplace_back(machine_fields(study));
  study.svg = drawing_svg(study.schedule, title);
  return {std::move(doc), csv_of(rows_of(study)), result::document("llmperf.mapping", study)};
}

}  // namespace llmperf::report
