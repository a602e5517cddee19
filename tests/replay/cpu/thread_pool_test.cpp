#include "replay/thread_pool.h"

#include <sched.h>

#include <atomic>
#include <chrono>

#include "catch.h"
#include "replay/cpu/machine.h"

namespace llmperf::replay::cpu::thread_pool_test {

TEST_CASE("parts cover everything once, in whole grains, and are about equal") {
  for (const std::int64_t total : {0, 1, 47, 48, 49, 1000, 4096}) {
    for (const std::int64_t grain : {1, 16, 48}) {
      for (const int parts : {1, 2, 3, 7}) {
        std::int64_t next = 0;
        std::int64_t most = 0;
        std::int64_t least = total;
        for (int i = 0; i < parts; ++i) {
          const Range part = part_of(total, grain, i, parts);
          REQUIRE(part.first == next);
          REQUIRE(part.last >= part.first);
          if (part.last < total) REQUIRE(part.last % grain == 0);
          next = part.last;
          most = std::max(most, part.size());
          least = std::min(least, part.size());
        }
        CHECK(next == total);
        CHECK(most - least < 2 * grain);
      }
    }
  }
}

TEST_CASE("every thread works exactly once per call, and each part of the work is done exactly once") {
  // More threads than processors are never made by the backend, and are here to be interrupted anywhere.
  for (const std::size_t threads : {1U, 2U, 4U}) {
    ThreadPool pool(std::vector<int>(threads, read_machine().processors.front()));
    REQUIRE(pool.threads() == static_cast<int>(threads));
    std::vector<int> done(1000);
    std::atomic<int> calls = 0;
    for (int round = 0; round < 20; ++round) {
      pool.run([&](const Team& team) {
        calls.fetch_add(1, std::memory_order_relaxed);
        const Range part = part_of(1000, 1, team.thread, team.threads);
        for (std::int64_t i = part.first; i < part.last; ++i) done[static_cast<std::size_t>(i)] += 1;
      });
    }
    CHECK(calls == 20 * static_cast<int>(threads));
    CHECK(done == std::vector<int>(1000, 20));
  }
}

TEST_CASE("after a barrier every thread sees what all wrote before it") {
  const std::vector<int> processors = read_machine().processors;
  ThreadPool pool(processors);
  const std::size_t threads = processors.size();
  std::vector<std::int64_t> written(threads);
  std::vector<std::int64_t> sums(threads);
  constexpr std::int64_t kRounds = 200;
  pool.run([&](const Team& team) {
    const auto self = static_cast<std::size_t>(team.thread);
    for (std::int64_t round = 0; round < kRounds; ++round) {
      written[self] = round;
      team.wait();
      for (const std::int64_t value : written) sums[self] += value;
      team.wait();
    }
  });
  const auto expected = static_cast<std::int64_t>(threads) * kRounds * (kRounds - 1) / 2;
  CHECK(sums == std::vector<std::int64_t>(threads, expected));
}

TEST_CASE("threads that sleep wake up for the next call, and for a barrier that one comes late to") {
  ThreadPool pool(read_machine().processors);
  std::atomic<int> calls = 0;
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than they spin
    pool.run([&](const Team& team) {
      if (team.thread == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      team.wait();
      calls.fetch_add(1, std::memory_order_relaxed);
    });
  }
  CHECK(calls == 3 * pool.threads());
}

TEST_CASE("threads run where they are pinned") {
  const std::vector<int> processors = read_machine().processors;
  ThreadPool pool(processors);
  std::vector<int> seen(processors.size());
  pool.run([&](const Team& team) { seen[static_cast<std::size_t>(team.thread)] = sched_getcpu(); });
  CHECK(seen == processors);
}

}  // namespace llmperf::replay::cpu::thread_pool_test
