// A file that one process writes: under a name of its own beside the one it will have, and locked. Whoever else would
// write it meanwhile is told so; the system gives up the lock of a process that ends, however it ends.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "cli/unfinished_files.h"

namespace llmperf::cli {

// Where a link ends, though nothing be there yet; one spelling for one file.
std::string followed_link(const std::string& path);

class PartialFile {
 public:
  // What becomes of what a process that was killed left under the partial file's name.
  enum class Left : bool { removed, kept };

  // The partial file is where `path` leads, with `ending` behind it; its permissions are those of the file it replaces.
  // What is no regular file (a device, a pipe) is written in place. Throws Error(failed) for a path that cannot be
  // written, Error(bad_input) where something else is writing it.
  PartialFile(std::string path, const char* ending, Left left);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  const std::string& path() const { return path_; }
  // Of the file that grows; empty: written in place.
  const std::string& partial() const { return partial_; }
  // Bytes that were left in it. It is kept while they are.
  std::int64_t left_bytes() const { return left_bytes_; }
  // Goes on behind the first `bytes` of what was left. Throws Error(failed), as all that follows.
  void go_on_behind(std::int64_t bytes);
  // Whether it stays when the program ends before it is committed.
  void keep(bool kept);

  void write(const std::string& text);
  void flush();
  // Once: what was written is complete, and now under the name it should have.
  void commit();

 private:
  explicit PartialFile(std::string path);
  void open_beside(Left left, std::optional<unsigned> mode);
  bool try_lock(bool fresh) const;
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::string target_;  // what path_ is a link to, mostly itself
  std::string partial_;
  int lock_ = -1;
  std::FILE* stream_ = nullptr;
  std::int64_t left_bytes_ = 0;
  std::optional<UnfinishedFile> removed_at_end_;  // nothing: it is kept, or not ours
};

}  // namespace llmperf::cli
