#include "result/step_mapping.h"

#include <algorithm>
#include <utility>

#include "result/basis.h"
#include "result/mapping.h"
#include "result/op_text.h"

namespace llmperf::result {

std::string PlacedRow::from() const {
  std::string text;
  for (const std::string_view op : placed().from) text.append(text.empty() ? "" : ", ").append(op);
  return text;
}

Type fields_of(Fields<PlacedRow> f) {
  using R = PlacedRow;
  constexpr auto mapped = [](const R& r) { return r.placed().mapping.has_value(); };
  return f.of("name", "\"qkv_proj\"", [](const R& r) { return r.op().name; })
      .of("kind", "of op", [](const R& r) { return kind_text(r.op()); })
      .of("shape", "as text", [](const R& r) { return shape_text(r.op()); })
      .of("count", "executions in the step", [](const R& r) { return r.op().count; })
      .of("time_s", "of one execution, simulated", [](const R& r) { return r.placed().seconds; })
      .of("apart_s", "with everything in DRAM, as `estimate` has it", [](const R& r) { return r.apart().total; })
      .of("dealt_s", "of `time_s`: operands go over links to the tiles that need them",
          [](const R& r) { return r.placed().dealt; })
      .of("slices", "of its rows, one after the other together with the ops beside it",
          [](const R& r) { return r.placed().slices; })
      .of("from", "ops whose results it finds in the tiles' memory, as text; everything else is in DRAM",
          [](const R& r) { return r.from(); })
      .of("to", "where its results go: \"DRAM\", \"tiles\" or \"DRAM and tiles\"",
          [](const R& r) { return r.placed().to; })
      .of("dram_bytes", "of one execution", [](const R& r) { return r.placed().dram; })
      .of("apart_dram_bytes", "with everything in DRAM", [](const R& r) { return r.placed().dram_apart; })
      .of("resident_sram_bytes", "of a tile's memory: taken by what stays, beside the op's mapping",
          [](const R& r) { return r.placed().resident; })
      .where(mapped)
      .of("sram_bytes", "of a tile's memory: taken by the mapping; null: the tiles have no part in the op",
          [](const R& r) { return r.placed().mapping->sram; })
      .of("bound", "the resource that is busy for longest", [](const R& r) { return r.placed().bound; })
      .of("split", "as in `llmperf map`", [](const R& r) { return split_text(*r.placed().mapping); })
      .of("block", "likewise", [](const R& r) { return block_text(*r.placed().mapping); })
      .of("stays", "likewise", [](const R& r) { return stays_text(*r.placed().mapping); })
      .of("feeds", "likewise", [](const R& r) { return feeds_text(*r.placed().mapping); });
}

std::vector<PlacedRow> placed_rows(const StepMapping& step) {
  std::vector<PlacedRow> rows;
  for (std::size_t i = 0; i < step.step.ops.size(); ++i) rows.push_back({&step, i});
  return rows;
}

Type fields_of(Fields<StepMapping> f) {
  using S = StepMapping;
  return f
      .of("label", "what the times are: \"best mapping found, uncalibrated\"",
          [](const S& s) { return label(*s.setup); })
      .of("model", "its name", [](const S& s) { return s.setup->execution.model->name; })
      .of("hardware", "its name", [](const S& s) { return s.setup->device->name; })
      .of("weights", "the scheme", [](const S& s) { return s.setup->execution.weights.name; })
      .of("options", "what the runtime fuses", [](const S& s) { return options_text(*s.setup); })
      .of("phase", "\"prefill\" or \"decode\"", [](const S& s) { return s.phase->name; })
      .of<&S::group, &graph::SequenceGroup::count>("batch", "sequences")
      .of<&S::group, &graph::SequenceGroup::new_tokens>("new_tokens", "of each")
      .of<&S::group, &graph::SequenceGroup::context>("context", "tokens of each that are cached")
      .of("time_s", "of the ops of the step, simulated, one after the other", [](const S& s) { return s.step.seconds; })
      .of("apart_s", "with everything in DRAM between ops", [](const S& s) { return s.step.apart; })
      .of("gain", "the share of `apart_s` that is saved", [](const S& s) { return 1 - s.step.seconds / s.step.apart; })
      .of("dram_bytes", "that the mappings move", [](const S& s) { return s.step.dram; })
      .of("apart_dram_bytes", "with everything in DRAM", [](const S& s) { return s.step.dram_apart; })
      .of("sram_capacity_bytes", "of a tile", [](const S& s) { return s.sram; })
      .of<&placed_rows>("ops", "of the step, those of a layer of each kind once; also the CSV");
}

}  // namespace llmperf::result
