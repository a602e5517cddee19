// Bytes of a GGUF file, read in order: nothing is taken before it is known to be there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace llmperf::model {

// A file, or memory in its place. Files are read, not mapped: one that shrinks meanwhile must give an error, not a
// signal.
class ByteSource {
 public:
  // Opens a regular file; Error(bad_input) when that fails.
  explicit ByteSource(const std::string& path);
  // `bytes` must outlive the source.
  ByteSource(std::string_view bytes, std::string name);

  const std::string& name() const { return name_; }
  std::int64_t size() const { return size_; }  // at most 1 PiB: sums of offsets in one file fit 64 bits
  // Fills `into` from `offset` on; both lie within size().
  void read(std::int64_t offset, std::span<char> into) const;

 private:
  std::string name_;
  std::optional<RegularFile> file_;  // none: memory_
  std::string_view memory_;
  std::int64_t size_ = 0;
};

// A position in a source that only moves forward. `what` names what is being read, for messages ("the file ends within
// the key of a metadata entry"); every failure is an Error(bad_input) at a byte offset.
class GgufStream {
 public:
  explicit GgufStream(const ByteSource& source);

  std::int64_t position() const { return position_; }
  std::int64_t left() const { return source_.size() - position_; }
  void set_big_endian(bool big_endian) { big_endian_ = big_endian; }

  // An unsigned integer of 1, 2, 4 or 8 bytes.
  std::uint64_t integer(int bytes, std::string_view what);
  // The caller bounds `length`.
  std::string text(std::int64_t length, std::string_view what);
  void skip(std::int64_t length, std::string_view what);

  // Checks that `count` items of at least `item_bytes` can follow. `offset` is where the count was read.
  void require(std::uint64_t count, std::int64_t item_bytes, std::string_view items, std::int64_t offset) const;

  [[noreturn]] void fail(std::int64_t offset, std::string message, std::string hint = {}) const;

 private:
  void check_room(std::int64_t length, std::string_view what) const;
  std::string_view buffered(std::int64_t most);

  const ByteSource& source_;
  std::int64_t position_ = 0;
  bool big_endian_ = false;
  std::vector<char> buffer_;  // bytes [buffer_begin_, buffer_end_) of the source
  std::int64_t buffer_begin_ = 0;
  std::int64_t buffer_end_ = 0;
};

}  // namespace llmperf::model
