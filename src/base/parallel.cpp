#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace llmperf {
namespace {

thread_local bool within = false;

}  // namespace

void in_parallel(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex throwing;
  std::exception_ptr thrown;
  const auto loop = [&] {
    const bool before = within;
    within = true;
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      const std::lock_guard lock(throwing);
      thrown = std::current_exception();
      next = count;
    }
    within = before;
  };
  const std::size_t most = within ? 1 : threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  try {
    for (std::size_t t = 1; t < std::min(most, count); ++t) others.emplace_back(loop);
  } catch (const std::system_error&) {  // there can be no more, in a page not even one: fewer take longer for the same
  }
  loop();
  for (std::thread& t : others) t.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace llmperf
