#include "cli/written_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"

namespace llmperf::cli {

WrittenFile::WrittenFile(std::string path)
    : path_(std::move(path)), temporary_(fmt::format("{}.{}.partial", path_, getpid())) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored)) {
    throw Error::failed(fmt::format("cannot write {}: {}", path_, std::strerror(EISDIR)));
  }
  stream_ = std::fopen(temporary_.c_str(), "wb");
  if (stream_ == nullptr) throw Error::failed(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
}

WrittenFile::~WrittenFile() {
  if (stream_ == nullptr) return;
  std::fclose(stream_);
  std::remove(temporary_.c_str());
}

void WrittenFile::commit(const std::string& text) {
  bool good = std::fwrite(text.data(), 1, text.size(), stream_) == text.size() && std::fflush(stream_) == 0;
  if (good) {
    good = std::fclose(std::exchange(stream_, nullptr)) == 0 && std::rename(temporary_.c_str(), path_.c_str()) == 0;
  }
  if (good) return;
  const std::string reason = std::strerror(errno);
  if (stream_ == nullptr) std::remove(temporary_.c_str());
  throw Error::failed(fmt::format("cannot write {}: {}", path_, reason));
}

}  // namespace llmperf::cli
