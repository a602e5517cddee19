#include "mapper/tile/search.h"

#include "base/integer.h"

namespace llmperf::mapper::tile {

std::int64_t block_side(std::int64_t extent, std::int64_t blocks, int granule) {
  return divide_up(divide_up(extent, blocks), granule) * granule;
}

std::vector<std::int64_t> block_sides(std::int64_t extent, int granule, Growth growth) {
  std::vector<std::int64_t> sides;
  const std::int64_t most = divide_up(extent, granule);
  for (std::int64_t blocks = 1; blocks <= most;) {
    const std::int64_t side = block_side(extent, blocks, granule);
    if (sides.empty() || side < sides.back()) sides.push_back(side);
    blocks += blocks < growth.exact ? 1 : std::max<std::int64_t>(1, blocks / growth.part);
  }
  return sides;
}

std::vector<std::int64_t> other_sides(std::int64_t extent, std::int64_t blocks, int granule) {
  std::vector<std::int64_t> sides;
  const std::int64_t most = divide_up(extent, granule);
  for (const std::int64_t other : {blocks - 1, blocks + 1, blocks / 2, blocks * 2}) {
    if (other < 1 || other > most) continue;
    const std::int64_t side = block_side(extent, other, granule);
    if (!contains(sides, side)) sides.push_back(side);
  }
  return sides;
}

}  // namespace llmperf::mapper::tile
