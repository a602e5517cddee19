#include "points/runner.h"

#include <fmt/format.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"

namespace llmperf::points::detail {
namespace {

// Piece p lies in slot p % slots from when a thread takes it until it is handed on.
struct State {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t next = 0;    // piece to be taken
  std::size_t handed = 0;  // pieces handed on
  std::vector<bool> ready;
  std::exception_ptr error;
  bool stop = false;
};

// As many as there can be: fewer take longer for the same.
void start(std::vector<std::jthread>& pool, std::size_t threads, const std::function<void(std::size_t)>& work) {
  try {
    for (std::size_t i = 0; i < threads; ++i) pool.emplace_back(work, i);
  } catch (const std::system_error& error) {
    if (pool.empty()) throw Error::failed(fmt::format("cannot start a thread: {}", error.code().message()));
  }
}

}  // namespace

void run_in_order(std::size_t pieces, std::size_t threads,
                  const std::function<void(std::size_t, std::size_t, std::size_t)>& compute,
                  const std::function<bool(std::size_t, std::size_t)>& hand_on, std::size_t slots) {
  State state;
  state.ready.assign(slots, false);
  const auto fail = [&] {
    const std::lock_guard lock(state.mutex);
    if (!state.error) state.error = std::current_exception();
    state.stop = true;
    state.changed.notify_all();
  };
  const auto work = [&](std::size_t worker) {
    for (;;) {
      std::size_t piece = 0;
      {
        std::unique_lock lock(state.mutex);
        state.changed.wait(lock,
                           [&] { return state.stop || state.next == pieces || state.next < state.handed + slots; });
        if (state.stop || state.next == pieces) return;
        piece = state.next++;
      }
      try {
        compute(worker, piece % slots, piece);
      } catch (...) {
        fail();
        return;
      }
      const std::lock_guard lock(state.mutex);
      state.ready[piece % slots] = true;
      state.changed.notify_all();
    }
  };
  std::vector<std::jthread> pool;
  try {
    start(pool, threads, work);
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      {
        std::unique_lock lock(state.mutex);
        state.changed.wait(lock, [&] { return state.stop || state.ready[piece % slots]; });
        if (state.stop) break;
      }
      const bool go_on = hand_on(piece % slots, piece);
      const std::lock_guard lock(state.mutex);
      state.ready[piece % slots] = false;
      state.handed = piece + 1;
      state.stop = state.stop || !go_on;
      state.changed.notify_all();
      if (state.stop) break;
    }
  } catch (...) {
    fail();
  }
  pool.clear();  // joins
  if (state.error) std::rethrow_exception(state.error);
}

}  // namespace llmperf::points::detail
