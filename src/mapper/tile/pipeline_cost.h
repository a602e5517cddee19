// What a block takes the tiles and the channel on its own; the derivation is in pipeline_cost.cpp.
#pragma once

#include <array>

#include "mapper/tile/schedule.h"

namespace llmperf::mapper::tile {

// Of a block that opens a row, or of one that finds slices that stay.
struct Cost {
  double work = 0;      // of the tiles, s
  double units = 0;     // the same when the slices of the first step are there
  double streamed = 0;  // by the channel, s
  double panel = 0;
  double store = 0;
  double noc = 0;
  double next = 0;  // by the channel for one step
};

struct BlockCost {
  std::array<Cost, 2> of = {};  // [opens the row]
  double first = 0;             // the first step
  double last = 0;              // the last step
  double lead = 0;              // from the operands of the last step to the block's end
  // What the units lose where a block's first step does not begin in the last of the block before; the same where only
  // the first block of a row does not.
  double apart_units = 0;
  double row_units = 0;
  double hidden = 0;  // of the vector unit, beside the matrix unit
  double reduce = 0;  // of partial sums; of that the busiest link
  double summing = 0;
  double join = 0;    // load of an operand for the results
  double start = 0;   // own load of an operand with one buffer
  bool tied = false;  // tiles wait for each other
  double apart = 0;   // that these can be
};

class CostModel {
 public:
  static constexpr int kManySlots = 8;

  CostModel(const Machine& machine, const Schedule& schedule);

  // `opens`, `follows`: whether the block is ever the first of a row; whether it is another.
  BlockCost cost(const Block& block, bool opens, bool follows) const;

  // Loads of one step by the channel, s.
  double a_load(const Step& step) const { return a_requests_ * step.a / m_.dram; }
  double b_load(const Step& step) const { return b_requests_ * step.b / m_.dram; }
  int a_requests() const { return a_requests_; }
  int b_requests() const { return b_requests_; }
  double a_latency() const { return a_latency_; }
  double b_latency() const { return b_latency_; }
  double sets() const { return sharing_.sets; }  // of tiles with an operand in common
  int slots() const { return slots_; }           // of the streams that run through slots, the fewest
  // Whether the first product of a step begins before the second of the one before it, in the same block.
  bool ahead() const { return !(s_.a.used && s_.a.slots == 1) && !(s_.b.used && s_.b.slots == 1); }

 private:
  // Tiles that wait for each other.
  struct Sharing {
    double sets = 1;         // of tiles with an operand in common
    double loose = 1;        // the same of operands with one slot: within such a set tiles are never a step apart
    int slots = kManySlots;  // of operands in common
  };
  Sharing sharing(int a, int b) const;
  double latency(const Stream& stream, const Paths& paths) const;
  double compute_of(const Step& step) const;
  bool chained(const Step& step) const;
  double noc_of(const Step& step, bool loads_a) const;
  double period(const Step& step, double apart, double noc, const Sharing& sharing) const;
  double uneven(const Block& block) const;
  Cost cost_of(const Block& block, bool opens) const;

  const Machine& m_;
  const Schedule& s_;
  const Grid& g_;
  int a_requests_ = 0;
  int b_requests_ = 0;
  Sharing sharing_;
  Sharing staying_;  // where slices of A stay
  double a_latency_ = 0;
  double b_latency_ = 0;
  int slots_ = 1;
};

}  // namespace llmperf::mapper::tile
