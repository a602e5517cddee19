#include "cli/written_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace llmperf::cli {
namespace {

constexpr unsigned kPermissions = 07777;

}  // namespace

std::string followed_link(const std::string& path) {
  std::filesystem::path at = path;
  std::error_code error;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(at, error); ++links) {
    const std::filesystem::path next = std::filesystem::read_symlink(at, error);
    if (error) break;
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  const std::filesystem::path folder = std::filesystem::canonical(at.has_parent_path() ? at.parent_path() : ".", error);
  return error || !at.has_filename() ? at.string() : (folder / at.filename()).string();
}

WrittenFile::WrittenFile(std::string path) : path_(std::move(path)), target_(followed_link(path_)) {
  struct stat there = {};
  const bool exists = stat(target_.c_str(), &there) == 0;
  if (!exists && errno != ENOENT) fail(errno);
  if (exists && S_ISDIR(there.st_mode)) fail(EISDIR);
  if (exists && access(target_.c_str(), W_OK) != 0) fail(errno);
  if (exists && !S_ISREG(there.st_mode)) {
    open_in_place();
  } else {
    open_beside(exists ? std::optional(there.st_mode & kPermissions) : std::nullopt);
  }
}

void WrittenFile::open_in_place() {
  stream_ = std::fopen(target_.c_str(), "wb");
  if (stream_ == nullptr) fail(errno);
}

void WrittenFile::open_beside(std::optional<unsigned> mode) {
  temporary_ = fmt::format("{}.{}.partial", target_, getpid());
  if (is_being_written(temporary_)) {
    throw Error::bad_input("two results are to be written to " + quote(path_), "give each a file of its own");
  }
  unfinished_.emplace(temporary_);
  stream_ = std::fopen(temporary_.c_str(), "wb");
  if (stream_ == nullptr) fail(errno);
  if (mode) fchmod(fileno(stream_), *mode);
}

void WrittenFile::fail(int error) const {
  throw Error::failed(fmt::format("cannot write {}: {}", path_, std::strerror(error)));
}

WrittenFile::~WrittenFile() {
  if (stream_ == nullptr) return;
  std::fclose(stream_);
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

void WrittenFile::commit(const std::string& text) {
  bool good = std::fwrite(text.data(), 1, text.size(), stream_) == text.size() && std::fflush(stream_) == 0;
  if (good) good = std::fclose(std::exchange(stream_, nullptr)) == 0;
  if (good && !temporary_.empty()) good = std::rename(temporary_.c_str(), target_.c_str()) == 0;
  const int error = errno;
  if (!good && stream_ == nullptr && !temporary_.empty()) std::remove(temporary_.c_str());
  if (!good) fail(error);
  unfinished_.reset();
}

}  // namespace llmperf::cli
