// A file that a command writes: complete or not at all.
#pragma once

#include <cstdio>
#include <string>

namespace llmperf::cli {

// Opens a temporary file next to `path`, so that an unwritable path costs no work; it is renamed when it is complete,
// and removed when it never is.
class WrittenFile {
 public:
  // Throws Error(failed) for a path that cannot be written.
  explicit WrittenFile(std::string path);
  ~WrittenFile();
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;

  const std::string& path() const { return path_; }
  // Once. Throws Error(failed).
  void commit(const std::string& text);

 private:
  std::string path_;
  std::string temporary_;
  std::FILE* stream_ = nullptr;
};

}  // namespace llmperf::cli
