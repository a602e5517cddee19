// Long work: how far it is, and that it ends early when the user wants it to.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

#include "cli/files.h"

namespace llmperf::cli {

// While one lives, a signal that ends programs (Ctrl-C, SIGTERM, SIGHUP) does not end this one but is remembered, so
// that what was done can be kept. nohup's SIGHUP stays ignored.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  using Handler = void (*)(int);
  std::array<Handler, kEndingSignals.size()> before_;
};
// The last of these signals; 0: there was none.
int interrupting_signal();
// What is true from then on, for work that looks whether it should end.
const std::atomic<bool>& interruption();
inline bool interrupted() { return interrupting_signal() != 0; }

// A line on the terminal, where stderr is one: what is done next, and how long all will still take at this pace.
// Returns whether to go on.
class Progress {
 public:
  Progress() = default;
  Progress(const Progress&) = default;
  Progress& operator=(const Progress&) = default;
  ~Progress();  // the line goes with it
  bool operator()(std::size_t done, std::size_t all, const std::string& what);

 private:
  std::chrono::steady_clock::time_point start_;
  bool shown_ = false;
};

}  // namespace llmperf::cli
