// Files that are being written. What ends the program early removes them first, so that none is ever left behind.
#pragma once

#include <array>
#include <csignal>
#include <string>

namespace llmperf::cli {

// Those that end a program unless it says otherwise: Ctrl-C, kill, a terminal that is closed.
inline constexpr std::array kEndingSignals = {SIGINT, SIGTERM, SIGHUP};

// Whether there is one of that path.
bool is_being_written(const std::string& path);

// Callable in a signal handler, and where there is no memory.
void remove_unfinished_files();

// While one lives, kEndingSignals remove the file before they end the program as ever. A signal that is ignored (nohup)
// or handled (InterruptGuard) stays so.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(const std::string& path);
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

 private:
  struct Entry* entry_;
};

}  // namespace llmperf::cli
