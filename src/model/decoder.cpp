#include "model/decoder.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "model/reading.h"
#include "model/video_dit.h"

namespace llmperf::model {

void Decoder::add_layer(const Layer& layer) {
  const auto kind = static_cast<std::size_t>(std::find(kinds.begin(), kinds.end(), layer) - kinds.begin());
  if (kind == kinds.size()) {
    kinds.push_back(layer);
    kind_counts.push_back(0);
  }
  layer_kinds.push_back(static_cast<unsigned char>(kind));
  ++kind_counts[kind];
}

bool Decoder::has_experts() const {
  return std::ranges::any_of(kinds, [](const Layer& layer) { return layer.feed_forward.experts.has_value(); });
}
bool Decoder::has_recurrent() const {
  return std::ranges::any_of(kinds, [](const Layer& layer) { return layer.recurrent.has_value(); });
}

bool Decoder::is_plain_transformer() const {
  const bool plain_layers = std::ranges::all_of(kinds, [](const Layer& l) {
    const Attention& a = l.attention;
    const Experts* x = l.feed_forward.experts ? &*l.feed_forward.experts : nullptr;
    const bool plain_experts = !x || (x->identity == 0 && x->latent == 0 && l.feed_forward.intermediate == 0);
    return l.attends() && !l.recurrent && l.has_feed_forward() && plain_experts && !l.norms_after && !l.scaled &&
           (!l.parallel_blocks || l.norms == 1) && l.low_rank_branch == 0 && !a.indexer && !a.compression &&
           !a.low_rank && !a.shares_cache && !a.no_v_proj && !a.one_vector && a.gate == OutputGate::none &&
           a.qk_norm != QkNorm::whole;
  });
  return plain_layers && !encoder && streams.mix == StreamMix::none && layer_embedding_width == 0 && !embedding_norm &&
         type_embeddings == 0;
}

std::int64_t Recurrent::conv_channels() const {
  // Mamba's B and C come after the convolution.
  const bool values_alone = kind == RecurrentKind::mamba || kind == RecurrentKind::short_conv;
  return values() + (values_alone ? 0 : 2 * keys());
}
std::int64_t Recurrent::state_elements() const {
  return kind == RecurrentKind::short_conv ? 0 : heads * key_dim * value_dim;
}

Decoder parse_decoder(const descriptor::Document& document, const descriptor::Document* hf_quant_config,
                      const std::string& assume) {
  if (is_video_dit(document)) reject_video_dit(document.file);
  if (!assume.empty() && !is_hf_config(document)) {
    throw Error(ErrorKind::bad_input, {{{document.file, 0, 0},
                                        "only a Hugging Face config can be read as another family",
                                        "leave out --assume: a descriptor says what the model is"}});
  }
  descriptor::Problems problems(document.file);
  return is_hf_config(document) ? parse_hf_config(document, problems, hf_quant_config, assume)
                                : parse_model_descriptor(document, problems);
}

}  // namespace llmperf::model
