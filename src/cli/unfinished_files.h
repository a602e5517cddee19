// Files that are being written. A signal that ends the program removes them first, so that none is ever left behind.
#pragma once

#include <string>

namespace llmperf::cli {

// Whether there is one of that path.
bool is_being_written(const std::string& path);

// While one lives, SIGINT, SIGTERM and SIGHUP remove the file before they end the program as ever. A signal that is
// ignored (nohup) or handled (InterruptGuard) stays so.
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
