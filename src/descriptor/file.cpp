#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/node.h"

namespace llmperf::descriptor {
namespace {

[[noreturn]] void fail(const std::string& path, std::string message, std::string hint = {}) {
  throw Error(ErrorKind::bad_input, {{{path, 0, 0}, std::move(message), std::move(hint)}});
}

[[noreturn]] void fail_system(const std::string& path, std::string_view what) {
  fail(path, fmt::format("{}: {}", what, std::strerror(errno)));
}

[[noreturn]] void fail_too_large(const std::string& path, std::size_t max_bytes) {
  fail(path, "too large: more than " + format_bytes_binary(Bytes{static_cast<double>(max_bytes)}));
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

std::string read_text_file(const std::string& path, std::size_t max_bytes) {
  // O_NONBLOCK: opening a FIFO nobody writes to must fail below instead of waiting for ever.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) fail_system(path, "cannot open");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail_system(path, "cannot read");
  if (S_ISDIR(status.st_mode)) fail(path, "is a directory, not a file");
  if (!S_ISREG(status.st_mode)) fail(path, "is not a regular file");
  if (static_cast<std::size_t>(status.st_size) > max_bytes) fail_too_large(path, max_bytes);

  // The size is only a forecast: the file may grow meanwhile, and those of /proc say 0.
  std::string text;
  char chunk[16 * 1024];
  for (;;) {
    const ssize_t got = ::read(file.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_system(path, "cannot read");
    if (got == 0) return text;
    text.append(chunk, static_cast<std::size_t>(got));
    if (text.size() > max_bytes) fail_too_large(path, max_bytes);
  }
}

Document parse_file(const std::string& path) {
  const bool json = path.ends_with(".json");
  if (!json && !path.ends_with(".yaml") && !path.ends_with(".yml")) {
    std::error_code ignored;
    const std::filesystem::file_status status = std::filesystem::status(path, ignored);
    if (std::filesystem::is_directory(status)) fail(path, "is a directory, not a file");
    if (std::filesystem::is_other(status)) fail(path, "is not a regular file");
    fail(path, "unknown kind of file", "accepted extensions: .yaml, .yml, .json; for models also .gguf");
  }
  const std::string text = read_text_file(path);
  return json ? parse_json(text, path) : parse_yaml(text, path);
}

}  // namespace llmperf::descriptor
