// Threads that work in step, each on a processor of its own where one is named.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <thread>
#include <vector>

namespace llmperf::replay {

// Lets `threads` threads go on when all of them have arrived; what one wrote before, all see after. Waiting spins at
// first, because an op may take 2 us and waking a thread takes as long, and sleeps when that was in vain.
class Barrier {
 public:
  explicit Barrier(int threads) : threads_(threads) {}
  void wait();

 private:
  const int threads_;
  alignas(64) std::atomic<int> arrived_ = 0;
  alignas(64) std::atomic<std::uint32_t> round_ = 0;
};

// What a thread knows while it works: which of how many it is, and where to meet the others.
struct Team {
  int thread = 0;
  int threads = 1;
  Barrier* barrier = nullptr;
  void wait() const {
    if (threads > 1) barrier->wait();
  }
};

class ThreadPool {
 public:
  // The first thread is the caller of run(). Throws Error(failed) where they are too many.
  explicit ThreadPool(int threads);
  // A thread for each of `processors`.
  explicit ThreadPool(std::span<const int> processors);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int threads() const { return threads_; }
  // Calls work on every thread at once and returns when all are done. The caller runs on the first of the processors
  // meanwhile and wherever it was allowed to before afterwards. `work` must not throw.
  void run(const std::function<void(const Team&)>& work);

 private:
  ThreadPool(int threads, std::span<const int> processors);
  void serve(int thread);
  void stop();

  const int threads_;
  std::vector<int> processors_;
  Barrier barrier_;  // of the threads inside work
  const std::function<void(const Team&)>* work_ = nullptr;
  std::atomic<bool> stopping_ = false;
  alignas(64) std::atomic<std::uint32_t> started_ = 0;  // calls of run() so far
  alignas(64) std::atomic<int> busy_ = 0;  // threads other than the caller that have not finished this call
  std::vector<std::thread> workers_;       // all but the first thread
};

struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t size() const { return last - first; }
  bool operator==(const Range&) const = default;
};

// Part `index` of `parts` of [0, total), of whole multiples of `grain` but for the end; the others differ by one
// grain at most.
Range part_of(std::int64_t total, std::int64_t grain, int index, int parts);

}  // namespace llmperf::replay
