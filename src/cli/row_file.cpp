#include "cli/row_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/written_file.h"

namespace llmperf::cli {
namespace {

std::string partial_of(const std::string& path) { return followed_link(path) + ".partial"; }

// By the end of a line: `error` is the last column, and empty where a point has a result.
bool is_failure(const std::string& line, const std::string& header) {
  if (header.empty()) return line.find("\"error\":") != std::string::npos && !line.ends_with("\"error\":null}\n");
  return header.ends_with(",error\n") && !line.ends_with(",\n");
}

}  // namespace

RowFile::Left RowFile::left(const std::string& path, const std::string& header) {
  std::error_code ignored;
  Left left;
  std::string found = partial_of(path);
  if (!std::filesystem::exists(found, ignored)) {
    found = path;
    if (!std::filesystem::exists(found, ignored)) return left;
    left.complete = true;
  }
  std::ifstream file(found, std::ios::binary);
  std::string line;
  bool first = true;
  while (std::getline(file, line)) {
    if (file.eof()) break;  // half a line: the run was killed in the middle of it
    line += '\n';
    left.bytes += static_cast<std::int64_t>(line.size());
    if (first && !header.empty()) {
      first = false;
      if (line == header) continue;
      throw Error::bad_input(fmt::format("{} has other columns than this sweep", quote(found)),
                             "remove it to start anew");
    }
    ++left.rows;
    left.failed += is_failure(line, header) ? 1 : 0;
    left.last_line = line;
  }
  if (file.bad()) throw Error::failed(fmt::format("cannot read {}: {}", found, std::strerror(errno)));
  return left;
}

RowFile::RowFile(std::string path, const std::string& header, const std::optional<Left>& left)
    : path_(std::move(path)), target_(followed_link(path_)), partial_(partial_of(path_)) {
  std::error_code ignored;
  if (std::filesystem::is_directory(target_, ignored)) {
    throw Error::failed(fmt::format("cannot write {}: {}", path_, std::strerror(EISDIR)));
  }
  if (std::filesystem::exists(target_, ignored) && access(target_.c_str(), W_OK) != 0) fail();
  const bool exists = std::filesystem::exists(partial_, ignored);
  if (exists && !left && std::filesystem::file_size(partial_, ignored) > header.size()) {
    throw Error::bad_input(fmt::format("{} has rows of an interrupted sweep", quote(partial_)),
                           "--resume goes on with it; remove it to start anew");
  }
  const bool goes_on = exists && left && left->bytes > 0;
  keep_ = goes_on;
  stream_ = std::fopen(partial_.c_str(), goes_on ? "r+b" : "wb");
  if (stream_ == nullptr) fail();
  if (goes_on) {
    if (ftruncate(fileno(stream_), left->bytes) != 0 || std::fseek(stream_, 0, SEEK_END) != 0) fail();
  } else {
    write(header);
  }
}

RowFile::~RowFile() {
  if (stream_ == nullptr) return;
  std::fclose(stream_);
  if (!keep_) std::remove(partial_.c_str());
}

void RowFile::fail() const { throw Error::failed(fmt::format("cannot write {}: {}", path_, std::strerror(errno))); }

void RowFile::write(const std::string& lines) {
  if (std::fwrite(lines.data(), 1, lines.size(), stream_) != lines.size()) fail();
}

void RowFile::flush() {
  if (std::fflush(stream_) != 0) fail();
}

void RowFile::commit() {
  flush();
  if (std::fclose(std::exchange(stream_, nullptr)) != 0 || std::rename(partial_.c_str(), target_.c_str()) != 0) fail();
}

}  // namespace llmperf::cli
