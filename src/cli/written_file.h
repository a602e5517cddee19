// A file that a command writes: complete or not at all.
#pragma once

#include <string>
#include <utility>

#include "cli/partial_file.h"

namespace llmperf::cli {

// Opened before the work, so that a path that cannot be written costs none; it has its name only when it is complete,
// and nothing is left of it when it never is, whatever ends the program.
class WrittenFile {
 public:
  // Throws as PartialFile does.
  explicit WrittenFile(std::string path) : file_(std::move(path), ".new.partial", PartialFile::Left::removed) {}

  const std::string& path() const { return file_.path(); }
  // Once. Throws Error(failed).
  void commit(const std::string& text) {
    file_.write(text);
    file_.commit();
  }

 private:
  PartialFile file_;  // not the name of an interrupted sweep's rows, which stay
};

}  // namespace llmperf::cli
