// The points of a sweep: the cross product of its axes, in one order whatever runs them, and the chunks that threads
// and shards take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace llmperf::points {

// One flag and its values, or several flags that change together (the rows of a table of points).
struct Axis {
  std::vector<std::string> flags;                // "--batch"
  std::vector<std::vector<std::string>> values;  // [value][flag]; at least one
};

inline constexpr std::int64_t kMaxPoints = 1'000'000'000'000;

// Points start, …, end - 1.
struct Chunk {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Part `index` of `count`, from 1.
struct Shard {
  std::int64_t index = 1;
  std::int64_t count = 1;
};

class Grid {
 public:
  // The first axis changes slowest. Throws Error(bad_input) for more than kMaxPoints.
  explicit Grid(std::vector<Axis> axes);

  const std::vector<Axis>& axes() const { return axes_; }
  std::int64_t points() const { return points_; }
  // Which value each axis has at a point.
  void at(std::int64_t point, std::vector<std::size_t>& value_of_axis) const;

  // The shard's points from `from` on in order. Chunks are dealt to shards in turn, so that each has its share of what
  // is slow; where they end depends on the grid and the number of shards alone.
  std::vector<Chunk> chunks(Shard shard, std::int64_t from = 0) const;

 private:
  std::vector<Axis> axes_;
  std::int64_t points_ = 1;
};

}  // namespace llmperf::points
