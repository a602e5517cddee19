#include "points/grid.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace llmperf::points {
namespace {

// Large enough that passing a chunk on costs nothing beside its points, small enough that a thread's last one is short.
constexpr std::int64_t kMostPerChunk = 512;
constexpr std::int64_t kChunksPerShard = 64;

}  // namespace

Grid::Grid(std::vector<Axis> axes) : axes_(std::move(axes)) {
  for (const Axis& axis : axes_) {
    const auto count = static_cast<std::int64_t>(axis.values.size());
    if (points_ > kMaxPoints / count) {
      throw Error::bad_input(fmt::format("the sweep has more than {} points", kMaxPoints));
    }
    points_ *= count;
  }
}

void Grid::at(std::int64_t point, std::vector<std::size_t>& value_of_axis) const {
  value_of_axis.resize(axes_.size());
  for (std::size_t i = axes_.size(); i-- > 0;) {
    const auto count = static_cast<std::int64_t>(axes_[i].values.size());
    value_of_axis[i] = static_cast<std::size_t>(point % count);
    point /= count;
  }
}

std::vector<Chunk> Grid::chunks(Shard shard, std::int64_t from) const {
  const std::int64_t size = std::clamp<std::int64_t>(points_ / (kChunksPerShard * shard.count), 1, kMostPerChunk);
  std::vector<Chunk> chunks;
  for (std::int64_t begin = (shard.index - 1) * size; begin < points_; begin += shard.count * size) {
    const Chunk chunk{std::max(begin, from), std::min(begin + size, points_)};
    if (chunk.begin < chunk.end) chunks.push_back(chunk);
  }
  return chunks;
}

}  // namespace llmperf::points
