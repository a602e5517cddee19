// Work on several threads: all of it once, errors, and none within another.
#include "base/parallel.h"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.h"

namespace llmperf::parallel_test {

TEST_CASE("every piece of work is done once, however many threads there are") {
  for (const unsigned threads : {0U, 1U, 3U, 100U}) {
    std::vector<std::atomic<int>> done(50);
    in_parallel(done.size(), threads, [&](std::size_t i) { ++done[i]; });
    for (const auto& times : done) CHECK(times == 1);
  }
  in_parallel(0, 4, [](std::size_t) { FAIL("nothing is asked for"); });
}

TEST_CASE("what a piece of work throws ends the rest and comes out") {
  std::atomic<int> done = 0;
  const auto work = [&](std::size_t i) {
    if (i == 3) throw std::runtime_error("three");
    ++done;
  };
  CHECK_THROWS_AS(in_parallel(1000, 1, work), std::runtime_error);
  CHECK(done == 3);
  CHECK_THROWS_AS(in_parallel(1000, 4, work), std::runtime_error);
}

TEST_CASE("within work there are no further threads") {
  std::atomic<int> elsewhere = 0;
  in_parallel(4, 4, [&](std::size_t) {
    const std::thread::id here = std::this_thread::get_id();
    in_parallel(8, 4, [&](std::size_t) { elsewhere += std::this_thread::get_id() == here ? 0 : 1; });
  });
  CHECK(elsewhere == 0);
}

}  // namespace llmperf::parallel_test
