// The order in which every tile goes through the blocks and steps of a schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "mapper/tile/schedule.h"

namespace llmperf::mapper::tile {

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

class Program {
 public:
  struct At {
    std::int64_t block = 0;
    std::int64_t step = 0;    // of the block
    std::int64_t number = 0;  // of the step, over all blocks
  };

  explicit Program(const Schedule& schedule);

  std::int64_t blocks() const { return static_cast<std::int64_t>(blocks_.size()); }
  std::int64_t steps() const { return steps_; }
  // Steps from one use of a slice's slot to the next, at most.
  std::int64_t longest() const { return longest_; }

  const Block& block(std::int64_t i) const { return *blocks_[at(i)].block; }
  bool opens_row(std::int64_t i) const { return blocks_[at(i)].row == i; }
  std::int64_t row(std::int64_t i) const { return blocks_[at(i)].row; }  // its first block
  std::int64_t first_step(std::int64_t i) const { return blocks_[at(i)].first_step; }
  std::int64_t last_step(std::int64_t i) const { return first_step(i) + block(i).steps - 1; }

  bool over(const At& a) const { return a.block >= blocks(); }
  const Step& step(const At& a) const {
    const Block& b = block(a.block);
    return a.step + 1 == b.steps ? b.last : b.full;
  }
  void move(At& a) const {
    ++a.number;
    if (++a.step < block(a.block).steps) return;
    a.step = 0;
    ++a.block;
  }

 private:
  struct Placed {
    const Block* block;
    std::int64_t first_step;
    std::int64_t row;
  };
  std::vector<Placed> blocks_;
  std::int64_t steps_ = 0;
  std::int64_t longest_ = 1;
};

}  // namespace llmperf::mapper::tile
