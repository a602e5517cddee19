#include "cli/row_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace llmperf::cli {
namespace {

std::string partial_of(const std::string& path) { return path + ".partial"; }

}  // namespace

RowFile::Left RowFile::left(const std::string& path, const std::string& header) {
  std::error_code ignored;
  if (!std::filesystem::exists(partial_of(path), ignored)) {
    return {.complete = std::filesystem::exists(path, ignored), .last_line = {}, .bytes = 0};
  }
  std::ifstream file(partial_of(path), std::ios::binary);
  Left left;
  std::string line;
  bool first = true;
  while (std::getline(file, line)) {
    if (file.eof()) break;  // half a line: the run was killed in the middle of it
    line += '\n';
    if (first && !header.empty()) {
      if (line != header) {
        throw Error::bad_input(fmt::format("{} has other columns than this sweep", quote(partial_of(path))),
                               "remove it to start anew");
      }
    } else {
      left.last_line = line;
    }
    left.bytes += static_cast<std::int64_t>(line.size());
    first = false;
  }
  if (file.bad()) throw Error::failed(fmt::format("cannot read {}: {}", partial_of(path), std::strerror(errno)));
  return left;
}

RowFile::RowFile(std::string path, const std::string& header, const std::optional<Left>& left)
    : path_(std::move(path)), partial_(partial_of(path_)) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored)) {
    throw Error::failed(fmt::format("cannot write {}: {}", path_, std::strerror(EISDIR)));
  }
  const bool exists = std::filesystem::exists(partial_, ignored);
  if (exists && !left && std::filesystem::file_size(partial_, ignored) > header.size()) {
    throw Error::bad_input(fmt::format("{} has rows of an interrupted sweep", quote(partial_)),
                           "--resume goes on with it; remove it to start anew");
  }
  const bool goes_on = exists && left && left->bytes > 0;
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
  if (std::fclose(std::exchange(stream_, nullptr)) != 0 || std::rename(partial_.c_str(), path_.c_str()) != 0) fail();
}

}  // namespace llmperf::cli
