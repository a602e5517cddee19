// `llmperf map model`.

#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/basis.h"
#include "result/document.h"
#include "result/mapping.h"
#include "result/parts.h"

namespace llmperf::report {
namespace {

Fields headline(const StepMapping& study) {
  const auto& step = study.step;
  const Seconds time{step.seconds};
  const Seconds apart{step.apart};
  Fields f;
  f.add("time of the step", "{}, results kept in the tiles' memory where that pays", time);
  f.add("everything in DRAM", "{}", apart);
  f.add("gain", "{} ({})", apart - time, Share{1 - time / apart});
  f.add("DRAM traffic", "{} of {}", Bytes{step.dram}, Bytes{step.dram_apart});
  f.add("options", options_text(*study.setup));
  f.add("memory of a tile", "{}", Held{Bytes{study.sram}});
  return f;
}

}  // namespace

Report step_mapping_report(const StepMapping& study) {
  const graph::SequenceGroup& group = study.group;
  const std::string context = group.context > 0 ? fmt::format(", {} cached", Count(group.context)) : "";
  const std::vector<PlacedRow> rows = placed_rows(study);
  return {{Heading{fmt::format("{} on {}", study.setup->execution.model->name, study.setup->device->title),
                   result::label(*study.setup)},
           Paragraph{fmt::format("{}: batch {}, {} new token{} each{}", study.phase->name, group.count,
                                 Count(group.new_tokens), group.new_tokens == 1 ? "" : "s", context)},
           headline(study),
           table_of("Ops (of one execution; split and block as in llmperf map)", rows,
                    "name: op, count, time_s, apart_s: in DRAM, bound, split, block, stays"),
           table_of("Where operands come from and results go (SRAM of a tile: the mapping's, and what stays beside it)",
                    rows,
                    "name: op, from: in the tiles, to: results, slices, sram_bytes: SRAM, resident_sram_bytes: beside "
                    "it, dram_bytes: DRAM, apart_dram_bytes: before")},
          csv_of(rows),
          result::document("llmperf.step_mapping", study)};
}

}  // namespace llmperf::report
