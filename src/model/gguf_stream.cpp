#include "model/gguf_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace llmperf::model {
namespace {

constexpr std::int64_t kMaxFile = std::int64_t{1} << 50;
constexpr std::int64_t kBuffer = std::int64_t{64} << 10;
// The largest vocabularies take some 20 MB. Bounding where a header may end bounds the time a hostile one takes: all of
// a sparse file of 100 GB could be an array of empty strings.
constexpr std::int64_t kMaxHeader = std::int64_t{64} << 20;

}  // namespace

ByteSource::ByteSource(const std::string& path) : name_(path) {
  file_.emplace(path, kMaxFile);
  size_ = file_->size();
}

ByteSource::ByteSource(std::string_view bytes, std::string name)
    : name_(std::move(name)), memory_(bytes), size_(static_cast<std::int64_t>(bytes.size())) {}

void ByteSource::read(std::int64_t offset, std::span<char> into) const {
  if (!file_) {
    memory_.copy(into.data(), into.size(), static_cast<std::size_t>(offset));
    return;
  }
  while (!into.empty()) {
    const std::int64_t got = file_->read_some(offset, into);
    if (got == 0) file_->fail("became shorter while it was read");
    offset += got;
    into = into.subspan(static_cast<std::size_t>(got));
  }
}

GgufStream::GgufStream(const ByteSource& source) : source_(source) {
  buffer_.resize(static_cast<std::size_t>(std::min(kBuffer, source.size())));
}

void GgufStream::fail(std::int64_t offset, std::string message, std::string hint) const {
  throw Error(ErrorKind::bad_input, {{{source_.name(), 0, 0, offset}, std::move(message), std::move(hint)}});
}

void GgufStream::check_room(std::int64_t length, std::string_view what) const {
  if (length > left()) {
    fail(position_, fmt::format("the file ends within {}: {} bytes are needed, {} are left", what, length, left()),
         "the file may be incomplete");
  }
  if (length > kMaxHeader - position_) {
    fail(position_, fmt::format("{} would make the header longer than 64 MiB", what));
  }
}

// At least one and at most `most` bytes from the position on, without moving it; there must be one.
std::string_view GgufStream::buffered(std::int64_t most) {
  if (position_ < buffer_begin_ || position_ >= buffer_end_) {
    const auto length = std::min(static_cast<std::int64_t>(buffer_.size()), left());
    source_.read(position_, std::span(buffer_).first(static_cast<std::size_t>(length)));
    buffer_begin_ = position_;
    buffer_end_ = position_ + length;
  }
  const std::int64_t length = std::min(most, buffer_end_ - position_);
  return {buffer_.data() + (position_ - buffer_begin_), static_cast<std::size_t>(length)};
}

std::uint64_t GgufStream::integer(int bytes, std::string_view what) {
  check_room(bytes, what);
  std::uint64_t value = 0;
  for (int done = 0; done < bytes;) {
    const std::string_view part = buffered(bytes - done);
    for (const char c : part) {
      const auto byte = static_cast<std::uint64_t>(static_cast<unsigned char>(c));
      value = big_endian_ ? value << 8 | byte : value | byte << 8 * done;
      ++done;
    }
    position_ += static_cast<std::int64_t>(part.size());
  }
  return value;
}

std::string GgufStream::text(std::int64_t length, std::string_view what) {
  check_room(length, what);
  std::string result;
  result.reserve(static_cast<std::size_t>(length));
  for (std::int64_t rest = length; rest > 0;) {
    const std::string_view part = buffered(rest);
    result += part;
    position_ += static_cast<std::int64_t>(part.size());
    rest -= static_cast<std::int64_t>(part.size());
  }
  return result;
}

void GgufStream::skip(std::int64_t length, std::string_view what) {
  check_room(length, what);
  position_ += length;
}

void GgufStream::require(std::uint64_t count, std::int64_t item_bytes, std::string_view items,
                         std::int64_t offset) const {
  if (count <= static_cast<std::uint64_t>(left() / item_bytes)) return;
  fail(offset,
       fmt::format("{} {} take at least {} bytes each, but only {} bytes are left", count, items, item_bytes, left()));
}

}  // namespace llmperf::model
