// Bytes of a stored matrix, as a formula (base/term.h).
#pragma once

#include "base/term.h"
#include "model/quantization.h"

namespace llmperf::model {

// Of an [n, k] matrix: its elements, and scales and zeros of rows, groups and blocks, the last two rounded up.
template <class N>
N stored_bytes(const StoredFormat& format, const N& n, const N& k) {
  using std::ceil;
  const Let<N> let;
  N total = n * k * let("bits", format.bits, "bits stored per weight{}", [&] {
              return format.name.empty() ? std::string() : " in " + std::string(format.name) + ", scales included";
            });
  if (format.bits_per_row > 0)
    total = total + n * let("row_bits", format.bits_per_row, "bits of the scale of each row");
  if (format.bits_per_tensor > 0) {
    total = total + let("tensor_bits", format.bits_per_tensor, "bits of the scale of the whole matrix");
  }
  if (format.group > 0) {
    const N group = let("group", format.group, "weights that share a scale and a zero point");
    total = total + n * ceil(k / group) *
                        let("group_bits", format.bits_per_group, "bits of the scale and zero point of a group");
  }
  if (format.block > 0) {
    const N block = let("block", format.block, "side of a square of weights that share a scale");
    total = total + ceil(n / block) * ceil(k / block) *
                        let("block_bits", format.bits_per_block, "bits of the scale of a block");
  }
  return total / 8;
}

}  // namespace llmperf::model
