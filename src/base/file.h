// Opening and reading regular files, with the errors a user reads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace llmperf {

// A regular file that is open for reading. Every failure is an Error(bad_input) that names the file.
class RegularFile {
 public:
  // Refuses directories, FIFOs and devices without waiting for them, and files of more than `max_bytes`.
  RegularFile(std::string path, std::int64_t max_bytes);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }  // when it was opened: only a forecast
  int descriptor() const { return descriptor_; }
  // Reads at most into.size() bytes from `offset` on; 0 at the end of the file.
  std::int64_t read_some(std::int64_t offset, std::span<char> into) const;
  [[noreturn]] void fail(std::string message) const;
  [[noreturn]] void fail_too_large(std::int64_t max_bytes) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace llmperf
