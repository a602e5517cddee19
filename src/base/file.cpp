#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/number.h"

namespace llmperf {

RegularFile::RegularFile(std::string path, std::int64_t max_bytes) : path_(std::move(path)) {
  // O_NONBLOCK: opening a FIFO nobody writes to must fail below instead of waiting for ever.
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) fail(fmt::format("cannot open: {}", std::strerror(errno)));
  struct stat status {};
  const int error = ::fstat(descriptor, &status) == 0 ? 0 : errno;
  if (error == 0 && S_ISREG(status.st_mode) && status.st_size <= max_bytes) {
    descriptor_ = descriptor;
    size_ = status.st_size;
    return;
  }
  ::close(descriptor);
  if (error != 0) fail(fmt::format("cannot read: {}", std::strerror(error)));
  if (S_ISDIR(status.st_mode)) fail("is a directory, not a file");
  if (!S_ISREG(status.st_mode)) fail("is not a regular file");
  fail_too_large(max_bytes);
}

RegularFile::~RegularFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::int64_t RegularFile::read_some(std::int64_t offset, std::span<char> into) const {
  for (;;) {
    const ssize_t got = ::pread(descriptor_, into.data(), into.size(), offset);
    if (got >= 0) return got;
    if (errno != EINTR) fail(fmt::format("cannot read: {}", std::strerror(errno)));
  }
}

void RegularFile::fail(std::string message) const {
  throw Error(ErrorKind::bad_input, {{{path_, 0, 0}, std::move(message), {}}});
}

void RegularFile::fail_too_large(std::int64_t max_bytes) const {
  fail("too large: more than " + format_bytes_binary(Bytes{static_cast<double>(max_bytes)}));
}

}  // namespace llmperf
