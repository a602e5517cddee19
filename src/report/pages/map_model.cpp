// `llmperf map model`.
#include <fmt/format.h>

#include "base/integer.h"
#include "base/number.h"
#include "report/reports.h"
#include "report/rows.h"
#include "result/basis.h"
#include "result/document.h"
#include "result/mapping.h"
#include "result/parts.h"

namespace llmperf::report {
namespace {

using result::placed_rows;
using result::PlacedRow;
using result::StepMapping;

std::string seconds_text(double seconds) { return format_seconds(Seconds{seconds}); }

Fields headline(const StepMapping& study) {
  const auto& step = study.step;
  Fields f;
  f.add("time of the step",
        fmt::format("{}, results kept in the tiles' memory where that pays", seconds_text(step.seconds)));
  f.add("everything in DRAM", seconds_text(step.apart));
  f.add("gain",
        fmt::format("{} ({})", seconds_text(step.apart - step.seconds), format_share(1 - step.seconds / step.apart)));
  f.add("DRAM traffic", fmt::format("{} of {}", format_bytes(Bytes{step.dram}), format_bytes(Bytes{step.dram_apart})));
  f.add("options", result::options_text(*study.setup));
  f.add("memory of a tile", format_bytes_binary(Bytes{study.sram}));
  return f;
}

Table mappings_table(const StepMapping& study) {
  Table t{"Ops (of one execution; split and block as in llmperf map)",
          {{"op", true},
           {"count"},
           {"time"},
           {"in DRAM"},
           {"bound", true},
           {"split", true},
           {"block", true},
           {"stays", true}},
          {}};
  for (const PlacedRow& row : placed_rows(study)) {
    const auto& mapping = row.placed().mapping;
    t.rows.push_back({std::string(row.op().name), format_count(d(row.op().count)), seconds_text(row.placed().seconds),
                      format_seconds(row.apart().total), std::string(row.placed().bound),
                      mapping ? split_text(*mapping) : "", mapping ? block_text(*mapping) : "",
                      mapping ? stays_text(*mapping) : ""});
  }
  return t;
}

Table places_table(const StepMapping& study) {
  Table t{"Where operands come from and results go (SRAM of a tile: the mapping's, and what stays beside it)",
          {{"op", true},
           {"in the tiles", true},
           {"results", true},
           {"slices"},
           {"SRAM"},
           {"beside it"},
           {"DRAM"},
           {"before"}},
          {}};
  for (const PlacedRow& row : placed_rows(study)) {
    const auto& placed = row.placed();
    t.rows.push_back({std::string(row.op().name), row.from(), std::string(name(placed.to)),
                      fmt::format("{}", placed.slices),
                      placed.mapping ? format_bytes_binary(Bytes{placed.mapping->sram}) : "",
                      placed.resident > 0 ? format_bytes_binary(Bytes{placed.resident}) : "",
                      format_bytes(Bytes{placed.dram}), format_bytes(Bytes{placed.dram_apart})});
  }
  return t;
}

}  // namespace

Report step_mapping_report(const StepMapping& study) {
  const graph::SequenceGroup& group = study.group;
  const std::string context = group.context > 0 ? fmt::format(", {} cached", format_count(d(group.context))) : "";
  Document doc{Heading{fmt::format("{} on {}", study.setup->execution.model->name, study.setup->device->title),
                       result::label(*study.setup)},
               Paragraph{fmt::format("{}: batch {}, {} new token{} each{}", study.phase->name, group.count,
                                     format_count(d(group.new_tokens)), group.new_tokens == 1 ? "" : "s", context)},
               headline(study), mappings_table(study), places_table(study)};
  return {std::move(doc), csv_of(placed_rows(study)), result::document("llmperf.step_mapping", study)};
}

}  // namespace llmperf::report
