// A file that a command writes: complete or not at all.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "cli/unfinished_files.h"

namespace llmperf::cli {

// Where a link ends, though nothing be there yet; one spelling for one file.
std::string followed_link(const std::string& path);

// Opens a temporary file next to `path`, so that an unwritable path costs no work; it is renamed when it is complete,
// and removed when it never is, whatever ends the program. A link is followed, and a file that is replaced leaves its
// permissions. What is no regular file (a device, a pipe) is written in place.
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
  void open_in_place();
  void open_beside(std::optional<unsigned> mode);
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::string target_;     // what path_ is a link to, mostly itself
  std::string temporary_;  // empty: written in place
  std::optional<UnfinishedFile> unfinished_;
  std::FILE* stream_ = nullptr;
};

}  // namespace llmperf::cli
