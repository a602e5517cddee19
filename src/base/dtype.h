// Element types: what is stored, what is moved and at which of a device's peak rates it is computed.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace llmperf {

// bfp8, bfp4: blocks of 16 elements that share an exponent of 8 bits.
enum class Dtype : unsigned char { fp64, fp32, tf32, fp16, bf16, fp8, int8, fp4, int4, bfp8, bfp4, int32, boolean };

// Bits one element occupies in memory (tf32 is stored as 32 bits; an exponent that a block shares counts).
constexpr double bits(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp64: return 64;
    case Dtype::fp32:
    case Dtype::tf32:
    case Dtype::int32: return 32;
    case Dtype::fp16:
    case Dtype::bf16: return 16;
    case Dtype::fp8:
    case Dtype::int8:
    case Dtype::boolean: return 8;
    case Dtype::fp4:
    case Dtype::int4: return 4;
    case Dtype::bfp8: return 8.5;
    case Dtype::bfp4: return 4.5;
  }
  return 0;
}
constexpr double bytes_per_element(Dtype dtype) { return bits(dtype) / 8; }

std::string_view name(Dtype dtype);
// The type of that name ("bf16", "fp8", …), or nothing.
std::optional<Dtype> parse_dtype(std::string_view text);
// Every name parse_dtype accepts, for hints and completion.
std::span<const std::string_view> dtype_names();

}  // namespace llmperf
