#include "points/grid.h"

#include <algorithm>

#include "base/error.h"
#include "catch.h"

namespace llmperf::grid_test {

namespace {

points::Axis axis(const char* flag, int count) {
  points::Axis a{{flag}, {}};
  for (int i = 0; i < count; ++i) a.values.push_back({std::to_string(i)});
  return a;
}

}  // namespace

TEST_CASE("the last axis changes fastest") {
  const points::Grid study({axis("--model", 2), axis("--batch", 3)});
  REQUIRE(study.points() == 6);
  std::vector<std::size_t> at;
  study.at(0, at);
  CHECK(at == std::vector<std::size_t>{0, 0});
  study.at(2, at);
  CHECK(at == std::vector<std::size_t>{0, 2});
  study.at(3, at);
  CHECK(at == std::vector<std::size_t>{1, 0});
}

TEST_CASE("shards together are every point once, and no shard has much more than its share") {
  const std::int64_t count = GENERATE(1, 3, 16, 700);
  const points::Grid study({axis("--model", 7), axis("--batch", 1000)});
  std::vector<int> seen(static_cast<std::size_t>(study.points()));
  for (std::int64_t i = 1; i <= count; ++i) {
    std::int64_t size = 0;
    std::int64_t last = -1;
    for (const points::Chunk& c : study.chunks({i, count})) {
      CHECK(c.begin > last);  // in order
      last = c.end - 1;
      size += c.end - c.begin;
      for (std::int64_t p = c.begin; p < c.end; ++p) ++seen[static_cast<std::size_t>(p)];
    }
    CHECK(static_cast<double>(size) <= 1.1 * 7000 / static_cast<double>(count) + 1);
  }
  CHECK(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
}

TEST_CASE("a shard that goes on has the points from there") {
  const points::Grid study({axis("--batch", 100)});
  const std::vector<points::Chunk> rest = study.chunks({1, 1}, 42);
  REQUIRE(!rest.empty());
  CHECK(rest.front().begin == 42);
  CHECK(rest.back().end == 100);
}

TEST_CASE("more points than anybody waits for are an error") {
  std::vector<points::Axis> axes(5, axis("--batch", 1000));
  CHECK_THROWS_AS(points::Grid(std::move(axes)), llmperf::Error);
}

}  // namespace llmperf::grid_test
