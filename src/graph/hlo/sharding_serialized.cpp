// mhlo.sharding = "\08\03\1A\02\02\01\22\02\00\01": the OpSharding message of XLA (xla_data.proto) in the wire format
// of protocol buffers, with what is no printable character escaped. Fields: 1 type, 3 dimensions and 4 devices of the
// tile assignment, 5 members of a tuple, 6 whether the last dimension is replicated, 8 kinds of the last dimensions, 9
// extents of counted devices, 10 their transposition.
#include <fmt/format.h>

#include <cstdint>

#include "graph/hlo/sharding_text.h"

namespace llmperf::graph::hlo {
namespace {

enum WireType : unsigned char { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
// OpSharding.Type
enum ShardingType : std::int64_t {
  kReplicated = 0,
  kMaximal = 1,
  kTuple = 2,
  kOther = 3,
  kManual = 4,
  kUnknown = 5,
  kUnreduced = 6
};
constexpr int kMaxNested = 32;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::string unescaped(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      bytes += text[i];
      continue;
    }
    const char c = text[++i];
    const int high = hex_digit(c);
    const int low = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
    if (high >= 0 && low >= 0) {
      bytes += static_cast<char>(high * 16 + low);
      ++i;
    } else {
      bytes += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
  }
  return bytes;
}

class Message {
 public:
  Message(const Module& module, std::string_view place, std::string_view bytes)
      : module_(module), place_(place), bytes_(bytes) {}

  void append_to(std::vector<Sharding>& found, int depth) {
    if (depth > kMaxNested) fail();
    TileAssignment tiles;
    std::int64_t type = kReplicated;
    bool last_replicated = false;
    std::vector<std::int64_t> last;
    while (at_ < bytes_.size()) {
      const std::int64_t tag = varint();
      const std::int64_t number = tag >> 3;
      wire_ = static_cast<WireType>(tag & 7);
      if (number == 1) {
        type = varint();
      } else if (number == 3) {
        integers(tiles.dims);
      } else if (number == 4) {
        integers(tiles.devices);
      } else if (number == 5 && wire_ == kBytes) {
        Message(module_, place_, bytes()).append_to(found, depth + 1);
      } else if (number == 6) {
        last_replicated = varint() != 0;
      } else if (number == 8) {
        integers(last);
      } else if (number == 9) {
        integers(tiles.reshape);
      } else if (number == 10) {
        integers(tiles.transpose);
      } else {
        skip();
      }
    }
    if (type == kTuple) return;
    if (last_replicated) last = {kReplicated};
    for (const std::int64_t kind : last) {
      tiles.last.push_back(kind == kManual      ? TileAssignment::Last::manual
                           : kind == kUnreduced ? TileAssignment::Last::unreduced
                                                : TileAssignment::Last::replicated);
    }
    found.push_back(sharding(type, tiles));
  }

 private:
  Sharding sharding(std::int64_t type, const TileAssignment& tiles) const {
    Sharding result;
    if (type == kMaximal) {
      result.form = Sharding::Form::maximal;
      result.device = tiles.devices.empty() ? 0 : tiles.devices[0];
    } else if (type == kManual) {
      result.form = Sharding::Form::manual;
    } else if (type == kUnknown) {
      result.form = Sharding::Form::unknown;
    } else if (type == kOther) {
      std::string problem;
      result = sharding_of(tiles, problem);
      if (!problem.empty()) fail_at(module_, place_, "sharding: " + problem);
    } else if (type != kReplicated) {
      fail();
    }
    return result;
  }

  [[noreturn]] void fail() const {
    fail_at(module_, place_, "sharding: neither a text in braces nor an OpSharding message");
  }

  std::int64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) fail();
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if ((byte & 0x80U) == 0) {
        if (value > static_cast<std::uint64_t>(kMaxDevices)) fail();
        return static_cast<std::int64_t>(value);
      }
    }
    fail();
  }

  std::string_view bytes() {
    const auto size = static_cast<std::size_t>(varint());
    if (size > bytes_.size() - at_) fail();
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

  // One, or several in a row.
  void integers(std::vector<std::int64_t>& into) {
    if (wire_ == kVarint) {
      into.push_back(varint());
      return;
    }
    if (wire_ != kBytes) fail();
    Message inside(module_, place_, bytes());
    while (inside.at_ < inside.bytes_.size()) into.push_back(inside.varint());
  }

  void skip() {
    const std::size_t fixed = wire_ == kFixed64 ? 8 : wire_ == kFixed32 ? 4 : 0;
    if (wire_ == kVarint) {
      varint();
    } else if (wire_ == kBytes) {
      bytes();
    } else if (fixed == 0 || fixed > bytes_.size() - at_) {
      fail();
    }
    at_ += fixed;
  }

  const Module& module_;
  std::string_view place_;
  std::string_view bytes_;
  std::size_t at_ = 0;
  WireType wire_ = kVarint;
};

}  // namespace

std::vector<Sharding> parse_serialized(const Module& module, std::string_view text) {
  const std::string bytes = unescaped(text);
  std::vector<Sharding> found;
  if (bytes.empty()) return {{.form = Sharding::Form::unknown}};
  Message(module, text, bytes).append_to(found, 0);
  return found;
}

}  // namespace llmperf::graph::hlo
