#include "graph/hlo/source.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/file.h"

namespace llmperf::graph::hlo {

Source::Source(const std::string& path) : name_(path) {
  const RegularFile file(path, kMaxProgramBytes);
  const auto size = static_cast<std::size_t>(file.size());
  if (size == 0) return;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (address == MAP_FAILED) file.fail("cannot be mapped into memory");
  ::madvise(address, size, MADV_SEQUENTIAL);
  text_ = {static_cast<const char*>(address), size};
  mapped_ = true;
}

Source::Source(std::string name, std::string text) : name_(std::move(name)), owned_(std::move(text)), text_(owned_) {}

Source::~Source() {
  if (mapped_) ::munmap(const_cast<char*>(text_.data()), text_.size());
}

SourcePosition Source::position(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  if (offset < counted_) {
    counted_ = line_start_ = 0;
    line_ = 1;
  }
  while (counted_ < offset) {
    const void* found = std::memchr(text_.data() + counted_, '\n', offset - counted_);
    if (found == nullptr) break;
    counted_ = line_start_ = static_cast<std::size_t>(static_cast<const char*>(found) - text_.data()) + 1;
    ++line_;
  }
  counted_ = offset;
  return {name_, line_, static_cast<int>(offset - line_start_) + 1};
}

void Source::release_before(std::size_t offset) {
  constexpr std::size_t kLeast = std::size_t{8} << 20;
  if (!mapped_ || offset < released_ + kLeast) return;
  position(offset);  // lines are counted while the pages are at hand
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t end = offset / page * page;
  ::madvise(const_cast<char*>(text_.data()) + released_, end - released_, MADV_DONTNEED);
  released_ = end;
}

}  // namespace llmperf::graph::hlo
