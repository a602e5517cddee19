// EXL2, the format of ExLlamaV2: matrices of the layers at any mean number of bits, lm_head apart.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/quantization.h"

namespace llmperf::model {

struct Exl2 {
  double bits = 4;  // per weight of the layers, scales included
  int head = 6;     // of lm_head
  std::string name() const;
  WeightScheme scheme(Dtype wide) const;
  StoredFormat head_format(Dtype wide) const;
};

// "exl2-4.0bpw", "exl2-2.4bpw-h8": 2 to 8 bits, of lm_head 2 to 8 (6 when not given); nothing when the text is no such
// name. Throws Error(bad_input) for other numbers of bits.
std::optional<Exl2> parse_exl2(std::string_view text);

}  // namespace llmperf::model
