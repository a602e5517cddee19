#include "model/draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace llmperf::model {
namespace {

constexpr std::int64_t kEagleVocab = 32'000;
constexpr std::int64_t kEagleHead = 128;
constexpr std::int64_t kEagleKvHeads = 8;
constexpr std::int64_t kEagleExpansion = 6;
constexpr double kPadding = 0.01;  // of a table, at most

// One layer over the target's hidden vectors, without the target's own layers.
Decoder one_layer(const Decoder& target, const char* what, const Layer& layer) {
  Decoder draft = target;
  draft.name = fmt::format("{} of {}", what, target.name);
  draft.hf_id.clear();
  draft.kinds.clear();
  draft.layer_kinds.clear();
  draft.kind_counts.clear();
  draft.next_token_layers = 0;
  draft.borrows_embedding = true;
  draft.mixture.clear();
  draft.position_embeddings = draft.type_embeddings = 0;
  draft.layer_embedding_width = draft.layer_embedding_vocab = 0;
  draft.embedding_norm = draft.checkpoint_repeats_lm_head = draft.lm_head_bias = false;
  draft.final_norm = true;
  draft.streams = {};
  draft.add_layer(layer);
  return draft;
}

}  // namespace

Decoder next_token_draft(const Decoder& target) {
  if (target.next_token_layers == 0) {
    throw Error::bad_input(fmt::format("{} has no layers that predict further tokens", target.name),
                           "another model or eagle drafts for it");
  }
  Layer layer = target.kinds[target.layer_kinds.back()];
  layer.joined_inputs = 2;
  layer.stored_as = 0;
  Decoder draft = one_layer(target, "MTP", layer);
  draft.tied_embeddings = true;  // nothing of its own
  return draft;
}

Decoder eagle_draft(const Decoder& target) {
  const auto attends = std::ranges::find_if(target.kinds, &Layer::attends);
  if (target.encoder || attends == target.kinds.end()) {
    throw Error::bad_input(fmt::format("{} has no attention whose heads a draft could have", target.name));
  }
  Attention a{.heads = attends->attention.heads,
              .kv_heads = attends->attention.kv_heads,
              .head_dim = attends->attention.head_dim,
              .v_head_dim = attends->attention.v_head_dim};
  if (attends->attention.latent) {
    const std::int64_t heads = std::max<std::int64_t>(1, target.hidden / kEagleHead);
    a = {.heads = heads,
         .kv_heads = heads % kEagleKvHeads == 0 ? kEagleKvHeads : heads,
         .head_dim = kEagleHead,
         .v_head_dim = kEagleHead};
  }
  a.rotary_dim = a.head_dim;
  std::int64_t width = 0;
  for (const Layer& kind : target.kinds) {
    if (!kind.feed_forward.experts) width = std::max(width, kind.feed_forward.intermediate);
  }
  const Layer layer{.attention = a,
                    .feed_forward = {.intermediate = width > 0 ? width : kEagleExpansion * target.hidden},
                    .joined_inputs = 3,
                    .reads_token = true};
  Decoder draft = one_layer(target, "EAGLE-3", layer);
  draft.norm = Norm::rms;
  draft.architecture = "llama";
  draft.default_weights.clear();
  draft.default_kv.clear();
  draft.tied_embeddings = false;
  draft.vocab = std::min(target.vocab, kEagleVocab);
  return draft;
}

bool shares_vocabulary(const Decoder& a, const Decoder& b) {
  return static_cast<double>(std::abs(a.vocab - b.vocab)) <= kPadding * static_cast<double>(std::max(a.vocab, b.vocab));
}

}  // namespace llmperf::model
