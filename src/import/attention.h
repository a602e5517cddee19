// Fused attention from the shapes of queries, keys and values, whose layout profilers do not write.
#pragma once

#include "import/mapped.h"

namespace llmperf::import {

struct AttentionTensors {
  const Tensor& query;
  const Tensor& key;
  // Statistics of the softmax, [batch, heads, q_len, any]: they tell layouts apart and say how many heads there are.
  const Tensor* statistics = nullptr;
  const Tensor* mask = nullptr;  // null: none
  // Nothing: by the mask.
  std::optional<bool> causal = std::nullopt;
};

enum class HeadLayout : unsigned char {
  unknown,     // any of those below, or [batch, tokens, heads x head_dim], [tokens, batch, heads x head_dim]
  head_major,  // [batch, heads, tokens, head_dim]
  token_major  // [batch, tokens, heads, head_dim]
};

// op "attention_decode" for one query, else "attention_prefill". No row when more than one reading of the shapes is
// possible, or none: heads must share KV heads evenly, and a causal query sees at least itself.
Mapped attention_row(const AttentionTensors& tensors, HeadLayout layout = HeadLayout::unknown);

}  // namespace llmperf::import
