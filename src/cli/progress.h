// Long work: how far it is, and that it ends early when the user wants it to.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace llmperf::cli {

// While one lives, Ctrl-C does not end the program but is remembered, so that what was done can be kept.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  void (*before_)(int);
};
bool interrupted();

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
