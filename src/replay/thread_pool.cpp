#include "replay/thread_pool.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <system_error>

#include "base/error.h"

namespace llmperf::replay {
namespace {

// About ten times what waking a thread costs.
constexpr auto kSpinTime = std::chrono::microseconds(100);
constexpr int kPausesPerLook = 64;  // at the clock

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Until value differs from `old`.
template <class T>
void await_change(const std::atomic<T>& value, T old) {
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      pause();
    }
  } while (std::chrono::steady_clock::now() - start < kSpinTime);
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

// Where this is refused (a sandbox) the thread runs wherever it is let.
void pin_this_thread(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(processor), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// Gives the calling thread the processors back that it had.
class Pinned {
 public:
  explicit Pinned(int processor) : known_(pthread_getaffinity_np(pthread_self(), sizeof before_, &before_) == 0) {
    pin_this_thread(processor);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() {
    if (known_) pthread_setaffinity_np(pthread_self(), sizeof before_, &before_);
  }

 private:
  cpu_set_t before_ = {};
  bool known_;
};

// Threads that start while this lives get no signals: a handler would run in the middle of an op that is timed.
class Undisturbed {
 public:
  Undisturbed() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;
  ~Undisturbed() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_ = {};
};

}  // namespace

void Barrier::wait() {
  const std::uint32_t round = round_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);  // before the others are let go, so before they come again
    round_.store(round + 1, std::memory_order_release);
    round_.notify_all();
  } else {
    await_change(round_, round);
  }
}

ThreadPool::ThreadPool(int threads) : ThreadPool(threads, {}) {}

ThreadPool::ThreadPool(std::span<const int> processors) : ThreadPool(static_cast<int>(processors.size()), processors) {}

ThreadPool::ThreadPool(int threads, std::span<const int> processors)
    : threads_(threads), processors_(processors.begin(), processors.end()), barrier_(threads) {
  const Undisturbed undisturbed;
  try {
    for (int thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { serve(thread); });
  } catch (const std::system_error& error) {
    stop();
    throw Error::failed(fmt::format("cannot start {} threads: {}", threads, error.code().message()));
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  started_.fetch_add(1, std::memory_order_release);
  started_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(const std::function<void(const Team&)>& work) {
  std::optional<Pinned> pinned;
  if (!processors_.empty()) pinned.emplace(processors_.front());
  work_ = &work;
  busy_.store(threads() - 1, std::memory_order_relaxed);
  started_.fetch_add(1, std::memory_order_release);
  started_.notify_all();
  work({.thread = 0, .threads = threads(), .barrier = &barrier_});
  while (const int busy = busy_.load(std::memory_order_acquire)) await_change(busy_, busy);
}

void ThreadPool::serve(int thread) {
  if (!processors_.empty()) pin_this_thread(processors_[static_cast<std::size_t>(thread)]);
  for (std::uint32_t served = 0;; ++served) {
    await_change(started_, served);
    if (stopping_.load(std::memory_order_relaxed)) return;
    (*work_)({.thread = thread, .threads = threads(), .barrier = &barrier_});
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
  }
}

Range part_of(std::int64_t total, std::int64_t grain, int index, int parts) {
  const std::int64_t grains = (total + grain - 1) / grain;
  const std::int64_t each = grains / parts;
  const std::int64_t more = grains % parts;  // parts that have one more, the first ones
  const auto start = [&](std::int64_t i) { return std::min(total, (i * each + std::min(i, more)) * grain); };
  return {start(index), start(index + 1)};
}

}  // namespace llmperf::replay
