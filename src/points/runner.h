// Work in order on several threads: pieces are computed side by side and handed on one by one in their order, so that
// what is written does not depend on the number of threads.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace llmperf::points {

// One thread's means to compute a piece: it keeps what the next piece can use again.
template <class Result>
using Worker = std::function<Result(std::size_t piece)>;

namespace detail {
// compute(worker, piece) runs on `threads` threads, hand_on(piece) on the caller's; both by index alone.
void run_in_order(std::size_t pieces, std::size_t threads,
                  const std::function<void(std::size_t worker, std::size_t slot, std::size_t piece)>& compute,
                  const std::function<bool(std::size_t slot, std::size_t piece)>& hand_on, std::size_t slots);
}  // namespace detail

// `make_worker` is called once for each thread, on the caller's; hand_on(piece, result) returns whether to go on. What
// a worker or hand_on throws is thrown here when all threads have stopped. Holds at most a few results a thread. Throws
// Error(failed) where not even one thread can be started.
template <class Result>
void run_in_order(std::size_t pieces, std::size_t threads, const std::function<Worker<Result>()>& make_worker,
                  const std::function<bool(std::size_t piece, Result& result)>& hand_on) {
  constexpr std::size_t kAhead = 8;  // results a thread may be ahead of the slowest
  if (threads == 1) {                // the caller's own
    const Worker<Result> worker = make_worker();
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      Result result = worker(piece);
      if (!hand_on(piece, result)) return;
    }
    return;
  }
  std::vector<Worker<Result>> workers;
  for (std::size_t i = 0; i < threads; ++i) workers.push_back(make_worker());
  std::vector<Result> results(threads * kAhead);
  detail::run_in_order(
      pieces, threads,
      [&](std::size_t worker, std::size_t slot, std::size_t piece) { results[slot] = workers[worker](piece); },
      [&](std::size_t slot, std::size_t piece) { return hand_on(piece, results[slot]); }, results.size());
}

}  // namespace llmperf::points
