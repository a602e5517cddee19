// What `llmperf map model` answers: the ops of one step on an array of tiles, and what stays there between them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimate/estimate.h"
#include "mapper/tile/residency.h"
#include "result/field.h"

namespace llmperf::result {

struct StepMapping {
  const estimate::Setup* setup = nullptr;
  graph::SequenceGroup group;
  const estimate::Phase* phase = nullptr;
  double sram = 0;  // bytes of a tile
  mapper::tile::PlacedStep step;
};
Type fields_of(Fields<StepMapping> f);

// An op of it in a flat row.
struct PlacedRow {
  const StepMapping* of;
  std::size_t index;
  const graph::Op& op() const { return of->phase->ops[index].op; }
  const mapper::OpTime& apart() const { return of->phase->ops[index].time; }
  const mapper::tile::PlacedOp& placed() const { return of->step.ops[index]; }
  // "attention, up_proj": ops whose results it finds in the tiles' memory.
  std::string from() const;
};
Type fields_of(Fields<PlacedRow> f);
std::vector<PlacedRow> placed_rows(const StepMapping& step);

}  // namespace llmperf::result
