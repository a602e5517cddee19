#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "base/number.h"

namespace llmperf::cli {
namespace {

volatile std::sig_atomic_t signalled = 0;
std::atomic<bool> ending = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // or a handler could not set it

}  // namespace

// A shell starts jobs in the background with SIGINT ignored, and people end them with it all the same.
InterruptGuard::InterruptGuard() {
  for (std::size_t i = 0; i < before_.size(); ++i) {
    const int signal = kEndingSignals[i];
    before_[i] = std::signal(signal, [](int number) {
      signalled = number;
      ending = true;
    });
    if (before_[i] == SIG_IGN && signal != SIGINT) std::signal(signal, SIG_IGN);
  }
}
InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < before_.size(); ++i) std::signal(kEndingSignals[i], before_[i]);
}

int interrupting_signal() { return signalled; }
const std::atomic<bool>& interruption() { return ending; }

Progress::~Progress() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

bool Progress::operator()(std::size_t done, std::size_t all, const std::string& what) {
  if (done == 0) start_ = std::chrono::steady_clock::now();
  if (isatty(STDERR_FILENO) == 1) {
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    std::string left;
    if (done > 0 && done < all) {
      const double seconds = spent / static_cast<double>(done) * static_cast<double>(all - done);
      left = fmt::format(", {} left", format_seconds(Seconds{seconds}));
    }
    const std::string line = done < all ? fmt::format("{}/{} {}{}", done + 1, all, what, left) : what;
    fmt::print(stderr, "\r\x1b[K{}\r", line);
    std::fflush(stderr);
    shown_ = true;
  }
  return !interrupted();
}

}  // namespace llmperf::cli
