// Models that propose the tokens which a step of a larger one verifies (speculative decoding), where they are made for
// it: both read hidden states of their target and look tokens up in its embedding.
#pragma once

#include "model/decoder.h"

namespace llmperf::model {

// The layer for further tokens of a model that has one (multi-token prediction, DeepSeek-V3, arXiv 2412.19437 section
// 2.2): norms of the last hidden state and of the next token's embedding, a product of the two side by side, a layer of
// the model's last kind, a norm; its lm_head is the model's. Throws Error(bad_input) for a model without.
Decoder next_token_draft(const Decoder& target);

// EAGLE-3 (arXiv 2503.01840): three hidden states of the target become one, once per verified token; a layer whose q, k
// and v read it beside the token's embedding, and a lm_head of its own over the 32,000 most frequent tokens. Heads are
// those of the target's attention (of latent attention: of 128, with 8 for keys and values), the MLP is as wide as the
// target's widest dense one, or six times the hidden width where it has none. Biases, windows and norms of heads that
// the target has are left out, as published heads do.
Decoder eagle_draft(const Decoder& target);

// Whether two models can have the same tokens: as many, but for what tables are padded with.
bool shares_vocabulary(const Decoder& a, const Decoder& b);

}  // namespace llmperf::model
