#include "points/runner.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "catch.h"

namespace llmperf::runner_test {

namespace {

points::Worker<std::size_t> square_slowly() {
  return [](std::size_t piece) {
    if (piece % 7 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // out of order
    return piece * piece;
  };
}

}  // namespace

TEST_CASE("results are handed on in order, whatever the number of threads") {
  const std::size_t threads = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{5});
  std::size_t next = 0;
  points::run_in_order<std::size_t>(200, threads, square_slowly, [&](std::size_t piece, std::size_t& result) {
    CHECK(piece == next++);
    CHECK(result == piece * piece);
    return true;
  });
  CHECK(next == 200);
}

TEST_CASE("the caller can stop") {
  std::size_t handed = 0;
  points::run_in_order<std::size_t>(1000, 3, square_slowly, [&](std::size_t, std::size_t&) { return ++handed < 10; });
  CHECK(handed == 10);
}

TEST_CASE("workers do not run far ahead of what is handed on") {
  std::atomic<std::size_t> computed = 0;
  points::run_in_order<std::size_t>(
      1000, 2, [&]() -> points::Worker<std::size_t> { return [&](std::size_t piece) { return ++computed, piece; }; },
      [&](std::size_t piece, std::size_t&) {
        CHECK(computed <= piece + 1 + 16);
        return true;
      });
}

TEST_CASE("what a worker or the caller throws ends the run and arrives") {
  const auto failing = []() -> points::Worker<std::size_t> {
    return [](std::size_t piece) {
      if (piece == 20) throw std::runtime_error("piece 20");
      return piece;
    };
  };
  CHECK_THROWS_WITH(points::run_in_order<std::size_t>(100, 2, failing, [](std::size_t, std::size_t&) { return true; }),
                    "piece 20");
  CHECK_THROWS_WITH(points::run_in_order<std::size_t>(100, 2, square_slowly,
                                                      [](std::size_t piece, std::size_t&) -> bool {
                                                        if (piece == 5) throw std::runtime_error("full disk");
                                                        return true;
                                                      }),
                    "full disk");
}

TEST_CASE("no pieces, no results") {
  points::run_in_order<std::size_t>(
      0, 2, square_slowly, [](std::size_t, std::size_t&) -> bool { throw std::logic_error("there are none"); });
}

}  // namespace llmperf::runner_test
