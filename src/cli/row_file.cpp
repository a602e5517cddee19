#include "cli/row_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/text.h"

namespace llmperf::cli {
namespace {

constexpr const char* kPartial = ".partial";

// By the end of a line: `error` is the last column, and empty where a point has a result.
bool is_failure(const std::string& line, const std::string& header) {
  if (header.empty()) return line.find("\"error\":") != std::string::npos && !line.ends_with("\"error\":null}\n");
  return header.ends_with(",error\n") && !line.ends_with(",\n");
}

RowFile::Left rows_left_in(const std::string& path, const std::string& header) {
  RowFile::Left left;
  left.file = path;
  std::ifstream file(path, std::ios::binary);
  std::string line;
  bool first = true;
  while (std::getline(file, line)) {
    if (file.eof()) break;  // half a line: the run was killed in the middle of it
    line += '\n';
    left.bytes += static_cast<std::int64_t>(line.size());
    if (first && !header.empty()) {
      first = false;
      if (line == header) continue;
      throw Error::bad_input(fmt::format("{} has other columns than this sweep", quote(path)),
                             "remove it to start anew");
    }
    ++left.rows;
    left.failed += is_failure(line, header) ? 1 : 0;
    left.last_line = line;
  }
  if (file.bad()) throw Error::failed(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  return left;
}

}  // namespace

RowFile::RowFile(const std::string& path, const std::string& header, Resume resume) {
  // The unfinished file is looked for before the finished one, which it may become in between.
  const std::string target = followed_link(path);
  std::error_code ignored;
  if (resume == Resume::yes && !std::filesystem::exists(target + kPartial, ignored) &&
      std::filesystem::is_regular_file(target, ignored)) {
    left_ = rows_left_in(target, header);
    left_.complete = true;
    return;
  }
  file_.emplace(path, kPartial, PartialFile::Left::kept);
  if (resume == Resume::yes && !partial().empty()) {
    left_ = rows_left_in(partial(), header);
  } else if (file_->left_bytes() > static_cast<std::int64_t>(header.size())) {
    throw Error::bad_input(fmt::format("{} has rows of an interrupted sweep", quote(partial())),
                           "--resume goes on with it; remove it to start anew");
  }
  file_->go_on_behind(left_.bytes);
  if (left_.bytes > 0) return;
  file_->keep(false);
  write(header);
}

}  // namespace llmperf::cli
