#include "model/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/number.h"
#include "model/parameters.h"
#include "model/reading.h"
#include "model/video/video_dit.h"

namespace llmperf::model {

void Decoder::add_layer(const Layer& layer) {
  const auto kind = static_cast<std::size_t>(std::ranges::find(kinds, layer) - kinds.begin());
  if (kind == kinds.size()) {
    kinds.push_back(layer);
    kind_counts.push_back(0);
  }
  layer_kinds.push_back(static_cast<unsigned char>(kind));
  ++kind_counts[kind];
}

const Layer* Decoder::first_routed() const {
  const auto routed =
      std::ranges::find_if(kinds, [](const Layer& layer) { return layer.feed_forward.experts.has_value(); });
  return routed == kinds.end() ? nullptr : &*routed;
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

bool Decoder::has_backward() const {
  const bool layers = std::ranges::all_of(kinds, [](const Layer& l) {
    const Attention& a = l.attention;
    const Experts* x = l.feed_forward.experts ? &*l.feed_forward.experts : nullptr;
    return (!x || x->identity == 0) && !l.scaled && l.low_rank_branch == 0 && !a.indexer && !a.compression &&
           !a.low_rank && !a.shares_cache && !a.one_vector;
  });
  return layers && !encoder && streams.mix == StreamMix::none && layer_embedding_width == 0 && !embedding_norm &&
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
                                        "leave out `assume`: a descriptor says what the model is"}});
  }
  descriptor::Problems problems(document.file);
  return is_hf_config(document) ? parse_hf_config(document, problems, hf_quant_config, assume)
                                : parse_model_descriptor(document, problems);
}

// ---- For the readers of model files

namespace {

double elements(const std::vector<Tensor>& tensors) {
  double sum = 0;
  for (const Tensor& tensor : tensors) {
    sum += static_cast<double>(tensor.n) * static_cast<double>(tensor.k) * static_cast<double>(tensor.count);
  }
  return sum;
}

}  // namespace

bool is_sound(descriptor::Reader& reader, std::string_view key, descriptor::IntRange range) {
  const descriptor::Node* node = reader.find(key);
  if (node == nullptr || node->kind != descriptor::Node::Kind::scalar || node->quoted) return false;
  const std::optional<std::int64_t> value = parse_int(node->scalar);
  return value && *value >= range.min && *value <= range.max;
}

bool check_divisible(descriptor::Reader& reader, std::string_view key, std::int64_t value, std::string_view divisor_key,
                     std::int64_t divisor, std::string_view remedy) {
  if (value % divisor == 0) return true;
  const bool given = is_sound(reader, key, kHiddenRange);
  // A divisor that is absent is a default of the architecture, which is sound.
  if (!given || (reader.has(divisor_key) && !is_sound(reader, divisor_key, kHiddenRange))) return true;
  reader.problem(key, fmt::format("{} ({}) is not divisible by {} ({})", key, value, divisor_key, divisor),
                 std::string(remedy));
  return false;
}

void check_experts(descriptor::Reader& reader, std::string_view key, const Experts& experts) {
  if (experts.per_token <= experts.count || !is_sound(reader, key, kExpertRange)) return;
  reader.problem(key,
                 fmt::format("{} ({}) is more than the number of experts ({})", key, experts.per_token, experts.count));
}

std::string groups_problem(const Experts& experts) {
  if (experts.groups < 1 || experts.per_token > experts.count) return {};  // reported as such
  const std::int64_t size = experts.count / experts.groups;
  if (experts.count % experts.groups == 0 && experts.groups_per_token <= experts.groups &&
      experts.per_token <= experts.groups_per_token * size) {
    return {};
  }
  return fmt::format("{} of {} groups of {} experts cannot give a token its {}", experts.groups_per_token,
                     experts.groups, experts.count, experts.per_token);
}

std::string size_problem(const Decoder& model) {
  constexpr double kMostParameters = 1e15;
  double total = elements(outer_tensors(model));
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    total += static_cast<double>(model.count_of_kind(kind)) * elements(layer_tensors(model, model.kinds[kind]));
  }
  if (model.vision) total += static_cast<double>(count_parameters(*model.vision).total());
  if (total <= kMostParameters) return {};
  return fmt::format("the model has {:.1e} parameters, more than the {:.0e} supported", total, kMostParameters);
}

void check_size(const Decoder& model, descriptor::Reader& reader) {
  std::string problem = size_problem(model);
  if (!problem.empty()) reader.problems().add(reader.node(), std::move(problem));
}

// ---- Models that draft

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
