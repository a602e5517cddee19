#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "base/number.h"

namespace llmperf::cli {
namespace {

volatile std::sig_atomic_t signalled = 0;

}  // namespace

InterruptGuard::InterruptGuard() : before_(std::signal(SIGINT, [](int) { signalled = 1; })) {}
InterruptGuard::~InterruptGuard() { std::signal(SIGINT, before_); }

bool interrupted() { return signalled != 0; }

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
