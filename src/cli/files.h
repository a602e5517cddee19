// Files that are being written. Each grows under a name of its own beside the one it will have, and locked: whoever
// else would write it meanwhile is told so, and the system gives up the lock of a process that ends, however it ends.
// What ends the program early removes unfinished files first, so that none is left behind.
#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "descriptor/node.h"

namespace llmperf::cli {

// Those that end a program unless it says otherwise: Ctrl-C, kill, a terminal that is closed.
inline constexpr std::array kEndingSignals = {SIGINT, SIGTERM, SIGHUP};

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

// A file that a command writes: opened before the work, so that a path that cannot be written costs none; it has its
// name only when it is complete, and nothing is left of it when it never is, whatever ends the program.
class WrittenFile {
 public:
  // Of an empty path there is no file, and nothing is written. Throws as PartialFile does.
  explicit WrittenFile(const std::string& path) {
    // Not the name of an interrupted sweep's rows, which stay.
    if (!path.empty()) file_.emplace(path, ".new.partial", PartialFile::Left::removed);
  }

  explicit operator bool() const { return file_.has_value(); }
  const std::string& path() const { return file_->path(); }
  // Once. Throws Error(failed).
  void commit(const std::string& text) {
    if (!file_) return;
    file_->write(text);
    file_->commit();
  }

 private:
  std::optional<PartialFile> file_;
};

// ---- A file that is read, or stdin, which - stands for.

struct GivenText {
  std::string text;
  std::string name;  // for messages
};
// Throws Error(bad_input) for what cannot be read or is longer.
GivenText read_given(const std::string& path, std::size_t most = descriptor::kMaxDescriptorBytes);

}  // namespace llmperf::cli
