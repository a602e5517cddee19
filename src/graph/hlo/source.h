// The text of a program. A file is mapped, not read: what the parser has passed (constants of hundreds of megabytes) is
// given back, so that memory follows the number of ops. Names and attributes are views into the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace llmperf::graph::hlo {

inline constexpr std::int64_t kMaxProgramBytes = std::int64_t{64} << 30;

class Source {
 public:
  // Of a file. Throws Error(bad_input) for what cannot be opened or is no regular file.
  explicit Source(const std::string& path);
  // Of text that is at hand.
  Source(std::string name, std::string text);
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }
  // 1-based line and column of an offset. Cheap when offsets do not decrease.
  SourcePosition position(std::size_t offset) const;
  // Gives back the memory of what lies before `offset` (it is read again from the file when looked at).
  void release_before(std::size_t offset);

 private:
  std::string name_;
  std::string owned_;
  std::string_view text_;
  bool mapped_ = false;
  std::size_t released_ = 0;
  mutable std::size_t counted_ = 0;  // up to where lines were counted
  mutable std::size_t line_start_ = 0;
  mutable int line_ = 1;
};

}  // namespace llmperf::graph::hlo
