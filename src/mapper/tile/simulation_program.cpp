#include "mapper/tile/simulation_program.h"

#include <algorithm>

namespace llmperf::mapper::tile {

Program::Program(const Schedule& s) {
  bool grows = false;  // slices of a row still come when those of the row before are long over
  for (std::int64_t repeat = 0; repeat < s.repeats; ++repeat) {
    for (const RowRun& rows : s.sequence) {
      for (std::int64_t i = 0; i < rows.count; ++i) {
        const std::int64_t first = blocks();
        for (std::size_t run = s.rows[rows.row].begin; run < s.rows[rows.row].end; ++run) {
          for (std::int64_t j = 0; j < s.runs[run].count; ++j) {
            const Block& block = s.blocks[s.runs[run].block];
            blocks_.push_back({&block, steps_, first});
            steps_ += block.steps;
            longest_ = std::max(longest_, block.steps);
            grows = grows || (s.panel > 0 && block.found < block.steps);
          }
        }
        if (grows) longest_ = std::max(longest_, steps_ - first_step(first));
      }
    }
  }
}

}  // namespace llmperf::mapper::tile
