// Model descriptors: plain dimensions under names of their own, so that the files do not depend on how any one tool
// spells them. What all layers have stands at the top: attention, recurrent, feed_forward and what is said of norms.
// Two patterns are short: a window on every second layer, and dense layers before the experts. Layers of several kinds
// are named under `kinds`, where each says what it has of its own, and listed under `layers`, or under `pattern`, which
// is repeated as often as there are layers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "descriptor/fields.h"
#include "model/decoder.h"
#include "model/hf/config.h"
#include "model/quantization.h"
#include "model/reading.h"

namespace llmperf::model {

namespace {

using descriptor::Reader;
using descriptor::Reading;
using descriptor::Writer;
using descriptor::Writing;

// In the order of their enumerations.
constexpr std::array<std::string_view, 3> kNormNames = {"rms", "layer", "layer_no_bias"};
constexpr std::array<std::string_view, 6> kActivationNames = {"silu", "gelu",           "gelu_tanh",
                                                              "relu", "swiglu_clamped", "relu2"};
constexpr std::array<std::string_view, 3> kQkNormNames = {"false", "head", "whole"};
constexpr std::array<std::string_view, 4> kGateNames = {"none", "with_queries", "element", "head"};
constexpr std::array<std::string_view, 3> kStreamMixNames = {"none", "hyper_connections", "altup"};
constexpr std::array<std::string_view, 6> kRecurrentNames = {"gated_delta_net", "kimi_delta", "mamba",
                                                             "mamba2",          "lightning",  "short_conv"};

template <class Enum, std::size_t N>
std::string_view word(const std::array<std::string_view, N>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

enum class WindowPattern : unsigned char { all, even, odd };
constexpr std::array<std::string_view, 3> kWindowLayerNames = {"all", "even", "odd"};

// A layer, and which of the layers that are not of named kinds have what it has.
struct LayerPattern {
  Layer layer;
  WindowPattern window_layers = WindowPattern::all;
  std::int64_t first_dense_layers = 0;
  std::int64_t dense_intermediate = 0;
};

void reject(Reader& reader, std::string_view key, std::string_view reason) {
  if (reader.find(key) != nullptr) reader.problem(key, fmt::format("{} {}", key, reason));
}

// Latent attention: the cache holds one latent per token, so there are no key and value heads to speak of.
template <class Visit>
void describe_latent(Visit& v, Attention& a) {
  LatentAttention& latent = a.latent ? *a.latent : a.latent.emplace();
  v.number("q_lora_rank", latent.q_lora_rank, kWidthRange);
  v.number("kv_lora_rank", latent.kv_lora_rank, kWidthRange);
  v.number("rope_dim", latent.rope_dim, kHeadDimRange);
  v.number("nope_dim", latent.nope_dim, kHeadDimRange);
  v.number("v_head_dim", a.v_head_dim, kHeadDimRange);
  v.number("rotary_dim", a.rotary_dim, {0, latent.rope_dim}, latent.rope_dim);  // 0: no position at all
  if (v.reader() == nullptr) return;
  for (const std::string_view key : {"kv_heads", "head_dim", "qkv_bias", "qk_norm", "fused_qkv", "low_rank",
                                     "compression", "no_v_proj", "one_vector", "shares_cache"}) {
    reject(*v.reader(), key, "does not apply to latent attention (kv_lora_rank is given)");
  }
  a.kv_heads = a.heads;
  a.head_dim = latent.rope_dim + latent.nope_dim;
}

void read_head_dim(Reader& reader, Reader& model, const Decoder& decoder, Attention& attention) {
  check_divisible(reader, "heads", attention.heads, "kv_heads", attention.kv_heads);
  const auto head_dim = reader.optional_int("head_dim", kHeadDimRange);
  if (head_dim) {
    attention.head_dim = *head_dim;
  } else if (decoder.hidden % attention.heads == 0) {
    attention.head_dim = decoder.hidden / attention.heads;
  } else if (is_sound(reader, "heads", kHeadRange) && is_sound(model, "hidden_size", kHiddenRange)) {
    reader.problem("heads", fmt::format("hidden_size ({}) is not divisible by heads ({}): give head_dim",
                                        decoder.hidden, attention.heads));
  }
}

template <class Visit>
void describe_heads(Visit& v, Reader* model, const Decoder& decoder, Attention& a) {
  Reader* reader = v.reader();
  v.number("kv_heads", a.kv_heads, kHeadRange, a.heads);
  if (reader != nullptr) read_head_dim(*reader, *model, decoder, a);
  v.said("head_dim", a.head_dim);
  v.number("v_head_dim", a.v_head_dim, kHeadDimRange, a.head_dim);
  // Learned positions replace the rotation unless the file says otherwise.
  v.number("rotary_dim", a.rotary_dim, {0, std::max<std::int64_t>(a.head_dim, 1)},
           decoder.position_embeddings > 0 ? 0 : a.head_dim);
  v.flag("qkv_bias", a.qkv_bias);
  // `true` is older than the choice.
  const descriptor::Node* norm = reader == nullptr ? nullptr : reader->find("qk_norm");
  if (norm != nullptr && norm->scalar == "true") {
    a.qk_norm = QkNorm::head;
  } else {
    v.choice("qk_norm", a.qk_norm, kQkNormNames, QkNorm::none);
  }
  v.flag("fused_qkv", a.fused_qkv);
  v.flag("no_v_proj", a.no_v_proj);
  v.flag("one_vector", a.one_vector);
  v.flag("shares_cache", a.shares_cache);
  v.flag("unused_kv", a.unused_kv);
  if (reader != nullptr && a.unused_kv && !a.shares_cache) reader->problem("unused_kv", "unused_kv needs shares_cache");
  v.part("low_rank", a.low_rank, [&](auto& of, LowRankProjections& rank) {
    of.number("query_rank", rank.query_rank, kWidthRange);
    of.number("output_rank", rank.output_rank, kWidthRange);
    of.number("output_groups", rank.output_groups, kHeadRange, 1);
    if (reader != nullptr) check_divisible(*reader, "heads", a.heads, "output_groups", rank.output_groups);
  });
  v.part("compression", a.compression, [](auto& of, Compression& compression) {
    of.number("ratio", compression.ratio, kPositionRange);
    of.flag("overlaps", compression.overlaps);
  });
  if (reader == nullptr) return;
  for (const std::string_view key : {"q_lora_rank", "rope_dim", "nope_dim"}) {
    reject(*reader, key, "applies to latent attention only (kv_lora_rank is not given)");
  }
}

template <class Visit>
void describe_indexer(Visit& v, Indexer& x) {
  v.number("heads", x.heads, kHeadRange);
  v.number("head_dim", x.head_dim, kHeadDimRange);
  v.number("top_k", x.top_k, kPositionRange);
  v.number("pool", x.pool, kPositionRange, 1);
  v.flag("from_hidden", x.from_hidden);
  v.flag("weighted", x.weighted, true);
  v.flag("reused", x.reused);
  v.real("cached_bits", x.cached_bits, 1, 64, Indexer().cached_bits);
}

// `model`: what a reader finds the width of the model in.
template <class Visit>
void describe_attention(Visit& v, Reader* model, const Decoder& decoder, LayerPattern& pattern) {
  Attention& a = pattern.layer.attention;
  Reader* reader = v.reader();
  v.number("heads", a.heads, kHeadRange);
  if (reader != nullptr ? reader->find("kv_lora_rank") != nullptr : a.latent.has_value()) {
    describe_latent(v, a);
  } else {
    describe_heads(v, model, decoder, a);
  }
  v.number("window", a.window, kPositionRange);
  v.choice("window_layers", pattern.window_layers, kWindowLayerNames, WindowPattern::all);
  v.flag("chunked", a.chunked);
  if (reader != nullptr && !a.window) {
    for (const std::string_view key : {"window_layers", "chunked"}) reject(*reader, key, "needs a window");
  }
  v.part("indexer", a.indexer, [](auto& of, Indexer& x) { describe_indexer(of, x); });
  v.choice("gate", a.gate, kGateNames, OutputGate::none);
  v.flag("o_bias", a.o_bias);
  v.flag("sinks", a.sinks);
  v.flag("softcap", a.softcap);
}

template <class Visit>
void describe(Visit& v, Recurrent& r) {
  v.choice("kind", r.kind, kRecurrentNames);
  v.number("heads", r.heads, kWidthRange);
  v.number("key_heads", r.key_heads, kWidthRange, r.heads);
  v.number("key_dim", r.key_dim, kHeadDimRange, 1);
  v.number("value_dim", r.value_dim, kHeadDimRange, 1);
  v.number("conv", r.conv, {0, 64}, 0);
  v.flag("conv_bias", r.conv_bias);
  v.number("gate_rank", r.gate_rank, {0, kWidthRange.max}, 0);
  v.flag("norms", r.norms, true);
  v.flag("head_norms", r.head_norms);
  v.number("chunk", r.chunk, {1, 65'536}, Recurrent().chunk);
}

void check_recurrent(Reader& reader, const Recurrent& r) {
  check_divisible(reader, "heads", r.heads, "key_heads", r.key_heads);
  const bool plain = r.kind == RecurrentKind::short_conv;
  if (r.conv == 0 && (plain || r.conv_bias)) reader.problem("conv", "the convolution needs its number of taps, conv");
  if (r.kind == RecurrentKind::mamba && r.gate_rank == 0) reader.problem("gate_rank", "mamba needs gate_rank");
  if (r.kind != RecurrentKind::mamba && r.kind != RecurrentKind::kimi_delta) {
    reject(reader, "gate_rank", "is of mamba and kimi_delta");
  }
}

template <class Visit>
void describe(Visit& v, Experts& e) {
  v.number("count", e.count, kExpertRange);
  v.number("per_token", e.per_token, kExpertRange);
  v.number("groups", e.groups, kGroupRange, 1);
  v.number("groups_per_token", e.groups_per_token, kGroupRange, e.groups);
  v.number("intermediate", e.intermediate, kWidthRange);
  v.number("shared_intermediate", e.shared_intermediate, {0, kWidthRange.max}, 0);
  v.flag("shared_gate", e.shared_gate);
  v.flag("router_bias", e.router_bias);
  v.flag("score_correction", e.score_correction);
  v.flag("router_scales", e.router_scales);
  v.number("identity", e.identity, {0, kExpertRange.max}, 0);
  v.number("latent", e.latent, {0, kWidthRange.max}, 0);
  v.flag("latent_norm", e.latent_norm);
}

void check_read(Reader& reader, const Experts& experts) {
  check_experts(reader, "per_token", experts);
  if (std::string wrong = groups_problem(experts); !wrong.empty()) reader.problem("groups", std::move(wrong));
  if (experts.shared_gate && experts.shared_intermediate == 0) {
    reader.problem("shared_gate", "shared_gate needs shared_intermediate");
  }
  if (experts.latent_norm && experts.latent == 0) reader.problem("latent_norm", "latent_norm needs latent");
}

void check_read(Reader& reader, const FeedForward& f, LayerPattern& pattern, std::int64_t layers) {
  if (f.fused_gate_up && !f.gated) reader.problem("fused_gate_up", "fused_gate_up needs a gated MLP");
  if (!f.experts) {
    for (const std::string_view key : {"first_dense_layers", "dense_intermediate", "beside"}) {
      reject(reader, key, "needs experts");
    }
    return;
  }
  reject(reader, "intermediate", "is not used with experts, which have their own; see dense_intermediate and beside");
  pattern.first_dense_layers = reader.int_or("first_dense_layers", 0, {0, layers});
  if (pattern.first_dense_layers > 0) {
    pattern.dense_intermediate = reader.require_int("dense_intermediate", kWidthRange);
  } else if (!reader.has("first_dense_layers")) {
    reject(reader, "dense_intermediate", "needs first_dense_layers");
  } else {
    reader.find("dense_intermediate");  // zero dense layers: accepted, and without effect
  }
}

template <class Visit>
void describe(Visit& v, std::int64_t layers, LayerPattern& pattern) {
  FeedForward& f = pattern.layer.feed_forward;
  Reader* reader = v.reader();
  if (reader != nullptr) f.gated = reader->bool_or("gated", true);
  if (reader != nullptr ? reader->has("experts") : f.experts.has_value()) {
    v.number("beside", f.intermediate, {0, kWidthRange.max}, 0);
  } else {
    v.number("intermediate", f.intermediate, kWidthRange);
  }
  v.choice("activation", f.activation, kActivationNames);
  v.said("gated", f.gated);
  v.flag("bias", f.bias);
  v.flag("fused_gate_up", f.fused_gate_up);
  v.part("experts", f.experts, [](auto& of, Experts& experts) {
    describe(of, experts);
    if (of.reader() != nullptr) check_read(*of.reader(), experts);
  });
  if (reader != nullptr) check_read(*reader, f, pattern, layers);
}

// In the order of their enumeration.
constexpr std::array<std::string_view, 6> kRuleNames = {"nearest",      "square", "budget",
                                                        "longest_side", "tiles",  "shrink"};

template <class Visit>
void describe(Visit& visit, ImageScaling& s) {
  visit.choice("rule", s.rule, kRuleNames);
  visit.number("side", s.side, {0, kImageSideRange.max}, 0);
  visit.number("least_pixels", s.least_pixels, {0, kPositionRange.max}, 0);
  visit.number("most_pixels", s.most_pixels, {0, kPositionRange.max}, 0);
  visit.number("most", s.most, {0, kImageSideRange.max}, 0);
  visit.number("wrapper", s.wrapper, {0, 64}, 0);
}

template <class Visit>
void describe(Visit& visit, VisionTower& t) {
  visit.number("layers", t.layers, kLayerRange);
  visit.number("hidden_size", t.hidden, kTowerHidden);
  visit.number("intermediate", t.intermediate, kTowerWidth);
  visit.number("heads", t.heads, kTowerHeads);
  visit.number("kv_heads", t.kv_heads, kTowerHeads, t.heads);
  visit.number("head_dim", t.head_dim, kTowerHeads, t.hidden / std::max<std::int64_t>(t.heads, 1));
  visit.flag("gated", t.gated);
  visit.flag("layer_norm", t.layer_norm, true);
  bool around = t.norms == 4;
  visit.flag("norms_around", around);
  t.norms = around ? 4 : 2;
  visit.flag("rotary", t.rotary, true);
  visit.flag("qk_norm", t.qk_norm);
  visit.flag("attention_bias", t.attention_bias, true);
  visit.flag("mlp_bias", t.mlp_bias, true);
  visit.number("patch", t.patch, kPatchRange);
  visit.number("temporal_patch", t.temporal_patch, kMergeRange, 1);
  visit.number("merge", t.merge, kMergeRange, 1);
  visit.flag("patch_bias", t.patch_bias);
  visit.number("positions", t.positions, {0, kPositionRange.max}, 0);
  visit.flag("class_token", t.class_token);
  visit.flag("norm_before", t.norm_before);
  visit.flag("norm_after", t.norm_after);
  visit.number("window", t.window, {0, kImageSideRange.max}, 0);
  visit.number("full_layers", t.full_layers, {0, kLayerRange.max}, 0);
  visit.flag("standardized", t.standardized);
  visit.numbers("projector", t.projector, {1, 16'777'216});
  visit.flag("projector_norm", t.projector_norm);
  visit.flag("projector_rms", t.projector_rms);
  visit.flag("projector_bias", t.projector_bias);
  visit.number("deepstack", t.deepstack, {0, 64}, 0);
  visit.part("image", true, [&](auto& of) { describe(of, t.image); });
}

VisionTower read_vision(Reader& reader, std::int64_t text_hidden) {
  VisionTower tower;
  Reading reading{reader};
  describe(reading, tower);
  if (!reader.has("image")) reader.problem("image", "missing image: what an image is scaled to");
  check_vision(reader, tower, text_hidden);
  reader.finish();
  return tower;
}

// What a person is told, and schemes: of the checkpoint, and of its routed experts if another.
template <class Visit>
void describe_texts(Visit& v, Decoder& m, std::string& experts) {
  v.words("hf_id", m.hf_id);
  v.words("architecture", m.architecture);
  v.words("source", m.source);
  v.words("notes", m.notes);
  if (v.reader() != nullptr) v.reader()->string_or("aliases", "");  // for those who look for the file
  v.words("default_weights", m.default_weights);
  v.words("default_experts", experts);
}

// The dimensions outside of the layers and the tower.
template <class Visit>
void describe(Visit& v, Decoder& m) {
  v.number("hidden_size", m.hidden, kHiddenRange);
  v.said("num_layers", m.num_layers());
  v.number("vocab_size", m.vocab, kVocabRange);
  v.number("max_position", m.max_position, kPositionRange);
  v.number("next_token_layers", m.next_token_layers, kNextTokenRange, 0);
  v.flag("next_token_copies", m.next_token_copies, true);
  v.flag("attention_residuals", m.attention_residuals);
  v.choice("norm", m.norm, kNormNames);
  v.flag("tied_embeddings", m.tied_embeddings);
  v.flag("checkpoint_repeats_lm_head", m.checkpoint_repeats_lm_head);
  v.flag("lm_head_bias", m.lm_head_bias);
  v.number("position_embeddings", m.position_embeddings, {0, kPositionRange.max}, 0);
  v.number("type_embeddings", m.type_embeddings, {0, kVocabRange.max}, 0);
  v.flag("embedding_norm", m.embedding_norm);
  v.flag("final_norm", m.final_norm, true);
  v.flag("encoder", m.encoder);
  v.flag("pooler", m.pooler);
  v.flag("causal", m.causal);
  v.number("labels", m.labels, {0, kVocabRange.max}, 0);
  v.flag("dropout", m.dropout);
  v.part("layer_embedding", m.layer_embedding_width > 0, [&](auto& of) {
    of.number("width", m.layer_embedding_width, kWidthRange);
    of.number("vocab", m.layer_embedding_vocab, kVocabRange);
  });
  v.part("streams", m.streams.mix != StreamMix::none, [&](auto& of) {
    of.choice("mix", m.streams.mix, kStreamMixNames);
    of.number("count", m.streams.count, {1, 64});
  });
}

// And the texts.
void read_model(Reader& reader, Decoder& decoder) {
  decoder.name = reader.require_string("name");
  std::string experts;
  Reading reading{reader};
  describe_texts(reading, decoder, experts);
  const auto check_scheme = [&](std::string_view key, const std::string& scheme) {
    if (scheme.empty()) return;
    try {
      parse_weight_scheme(scheme);
    } catch (const Error& error) {
      for (const Diagnostic& d : error.diagnostics()) reader.problem(key, d.message, d.hint);
    }
  };
  check_scheme("default_weights", decoder.default_weights);
  check_scheme("default_experts", experts);
  if (!experts.empty()) {
    if (decoder.default_weights.empty()) reader.problem("default_experts", "default_experts needs default_weights");
    decoder.mixture = {expert_mixture(experts, decoder.default_weights)};
  }
  describe(reading, decoder);
  if (decoder.checkpoint_repeats_lm_head && !decoder.tied_embeddings) {
    reader.problem("checkpoint_repeats_lm_head", "checkpoint_repeats_lm_head needs tied_embeddings");
  }
  for (const auto& [key, given] :
       {std::pair{"pooler", decoder.pooler}, {"causal", decoder.causal}, {"labels", decoder.labels > 0}}) {
    if (given && !decoder.encoder) reader.problem(key, fmt::format("{} needs encoder: true", key));
  }
  if (auto part = reader.optional_mapping("vision")) decoder.vision = read_vision(*part, decoder.hidden);
}

bool says_none(Reader& reader, std::string_view key) {
  const descriptor::Node* node = reader.find(key);
  return node != nullptr && node->kind == descriptor::Node::Kind::scalar && node->scalar == "none";
}

void check_norms(Reader& reader, const Layer& layer) {
  const bool both = layer.mixes() && layer.has_feed_forward();
  if (layer.norms == 3) reader.problem("norms_per_layer", "norms_per_layer must be 1, 2 or 4, not 3");
  if (layer.norms == 1 && both && !layer.parallel_blocks) {
    reader.problem("norms_per_layer", "one norm per layer needs parallel_blocks: true, where it serves both blocks");
  }
  if (layer.norms == 4 && layer.parallel_blocks) {
    reader.problem("norms_per_layer", "four norms per layer do not go with parallel_blocks");
  }
  if (layer.norms_after && (layer.norms == 4 || layer.parallel_blocks)) {
    reader.problem("norms_after", "norms_after goes with one norm per block, one block after the other");
  }
}

// What a layer has, as the top of the file or a kind says it: what is not said is that of `usual`, which a reader finds
// in `p`.
template <class Visit>
void describe(Visit& v, Reader* model, const Decoder& decoder, std::int64_t layers, LayerPattern& p,
              const LayerPattern& usual) {
  using P = LayerPattern;
  v.whole(
      "attention", p, usual, +[](const P& of) { return of.layer.attends(); },
      [](P& of) {
        of.layer.attention = {};
        of.window_layers = WindowPattern::all;
      },
      [&](auto& inner, P& of) { describe_attention(inner, model, decoder, of); });
  v.whole(
      "recurrent", p, usual, +[](const P& of) { return of.layer.recurrent.has_value(); },
      [](P& of) { of.layer.recurrent.reset(); },
      [&](auto& inner, P& of) {
        describe(inner, of.layer.recurrent ? *of.layer.recurrent : of.layer.recurrent.emplace());
        if (inner.reader() != nullptr) check_recurrent(*inner.reader(), *of.layer.recurrent);
      });
  v.whole(
      "feed_forward", p, usual, +[](const P& of) { return of.layer.has_feed_forward(); },
      [](P& of) {
        of.layer.feed_forward = {};
        of.first_dense_layers = 0;
      },
      [&](auto& inner, P& of) { describe(inner, layers, of); });
  Layer& layer = p.layer;
  v.flag("parallel_blocks", layer.parallel_blocks, usual.layer.parallel_blocks);
  v.flag("norms_after", layer.norms_after, usual.layer.norms_after);
  v.flag("scaled", layer.scaled, usual.layer.scaled);
  v.number("low_rank_branch", layer.low_rank_branch, {0, kWidthRange.max}, usual.layer.low_rank_branch);
  const int parts = (layer.mixes() ? 1 : 0) + (layer.has_feed_forward() ? 1 : 0);
  const int same = usual.layer.norms;
  std::int64_t norms = layer.norms;
  v.number("norms_per_layer", norms, {0, 4},
           same == 4 || (same == 1 && layer.parallel_blocks && parts == 2) ? same : parts);
  layer.norms = static_cast<int>(norms);
  if (v.reader() != nullptr) check_norms(*v.reader(), layer);
}

// "linear x3": a name and how often it stands there.
std::pair<std::string, std::int64_t> times(const std::string& text) {
  const std::size_t at = text.rfind(" x");
  if (at == std::string::npos) return {text, 1};
  const auto count = parse_int(std::string_view(text).substr(at + 2));
  return count && *count > 0 && *count <= kLayerRange.max ? std::pair{text.substr(0, at), *count}
                                                          : std::pair{text, std::int64_t{1}};
}

// The kind of every layer, in order, from `layers` or `pattern`.
std::vector<std::string> read_order(Reader& reader, std::int64_t layers, const std::vector<std::string>& kinds) {
  const bool whole = reader.has("layers");
  const std::string_view key = whole ? "layers" : "pattern";
  if (whole) reject(reader, "pattern", "and layers say the same: keep one of them");
  if (!whole && !reader.has("pattern")) {
    reader.problem("kinds", "kinds need layers, which lists the kind of each, or pattern, which is repeated");
    return {};
  }
  std::vector<std::string> order;
  for (const std::string& text : reader.optional_strings(key)) {
    const auto [kind, count] = times(text);
    if (std::ranges::find(kinds, kind) == kinds.end()) {
      reader.problem(key, fmt::format("{}: unknown kind {}", key, quote(kind)), name_hint(kind, kinds));
      return {};
    }
    order.insert(order.end(), static_cast<std::size_t>(count), kind);
    if (std::ssize(order) > kLayerRange.max) break;
  }
  if (order.empty() || !is_sound(reader, "num_layers", kLayerRange)) return {};
  const auto given = std::ssize(order);
  if (whole ? given != layers : given > layers) {
    reader.problem(key, fmt::format("{} lists {} layers, num_layers is {}", key, given, layers),
                   whole ? "pattern repeats a list as often as there are layers" : "");
    return {};
  }
  for (std::size_t i = 0; std::ssize(order) < layers; ++i) order.push_back(std::string(order[i]));
  return order;
}

void add_kinds(Reader& reader, Reader& kinds, const Decoder& shape, std::int64_t layers, const LayerPattern& usual,
               Decoder& decoder) {
  std::map<std::string, Layer> known;
  std::vector<std::string> names;
  for (const descriptor::Node::Entry& entry : kinds.node().entries) {
    names.push_back(entry.key);
    LayerPattern parts = usual;
    if (auto kind = kinds.optional_mapping(entry.key)) {
      Reading reading{*kind};
      describe(reading, &reader, shape, layers, parts, usual);
      for (const std::string_view pattern : {"window_layers", "first_dense_layers"}) {
        for (const std::string_view part : {"attention", "feed_forward"}) {
          auto mapping = says_none(*kind, part) ? std::nullopt : kind->optional_mapping(part);
          if (mapping) reject(*mapping, pattern, "is for layers of one kind: kinds say which layer has what");
        }
      }
      kind->finish();
    }
    known[entry.key] = parts.layer;
  }
  kinds.finish();
  if (names.size() > Decoder::kMostKinds) {
    reader.problem("kinds", fmt::format("more than {} kinds of layers", Decoder::kMostKinds));
    return;
  }
  for (const std::string& name : read_order(reader, layers, names)) decoder.add_layer(known[name]);
}

}  // namespace

void check_vision(Reader& reader, const VisionTower& t, std::int64_t text_hidden) {
  const auto problem = [&](std::string_view key, std::string message, std::string hint = {}) {
    reader.problem(key, std::move(message), std::move(hint));
  };
  if (t.heads % std::max<std::int64_t>(t.kv_heads, 1) != 0) {
    problem("kv_heads", fmt::format("heads ({}) are not divisible by kv_heads ({})", t.heads, t.kv_heads));
  }
  if (t.full_layers > t.layers || (t.full_layers > 0 && t.window == 0)) {
    problem("full_layers",
            fmt::format("full_layers ({}) are those of {} layers that have no window", t.full_layers, t.layers));
  }
  const std::size_t widths = t.projector.size();
  if (widths < 2 || widths > 8 || t.projector.back() != text_hidden) {
    problem("projector", "projector must be the widths from a token's row to the language model's",
            fmt::format("[{}, {}]", t.hidden, text_hidden));
  } else if (t.projector.front() != t.hidden && t.projector.front() != t.merge * t.merge * t.hidden) {
    problem("projector",
            fmt::format("projector begins with {}, and a token's row is {} wide, or {} of its patches side "
                        "by side",
                        t.projector.front(), t.hidden, t.merge * t.merge * t.hidden));
  }
  const ImageScaling& s = t.image;
  const bool sides = s.rule == ImageRule::square || s.rule == ImageRule::longest_side || s.rule == ImageRule::tiles ||
                     s.rule == ImageRule::shrink;
  const bool counts = s.rule == ImageRule::budget || s.rule == ImageRule::tiles || s.rule == ImageRule::shrink;
  if (sides && s.side < t.pixels_of_token()) {
    problem("image",
            fmt::format("an image of this rule needs a side of at least a token's, {} pixels", t.pixels_of_token()));
  }
  if (counts && s.most == 0) problem("image", "an image of this rule needs `most`");
  if (s.rule == ImageRule::tiles && s.most > 1024) problem("image", "an image has at most 1024 tiles");
  if (s.rule == ImageRule::nearest &&
      (s.most_pixels < t.pixels_of_token() * t.pixels_of_token() || s.least_pixels > s.most_pixels)) {
    problem("image", "least_pixels and most_pixels must hold a token, the first at most the second");
  }
}

Decoder parse_model_descriptor(const descriptor::Document& document, descriptor::Problems& problems) {
  Reader reader(document.root, problems, "the model");
  Decoder decoder;
  read_model(reader, decoder);
  const std::int64_t layers = reader.require_int("num_layers", kLayerRange);
  const bool known = is_sound(reader, "num_layers", kLayerRange);
  LayerPattern usual;
  Reading reading{reader};
  describe(reading, &reader, decoder, known ? layers : kLayerRange.max, usual, {});
  auto kinds = reader.optional_mapping("kinds");
  if (!kinds) {
    if (!reader.has("recurrent") && !reader.has("attention")) {
      problems.add(document.root, "missing key 'attention' in the model");
    }
    if (!reader.has("feed_forward")) problems.add(document.root, "missing key 'feed_forward' in the model");
    for (const std::string_view key : {"layers", "pattern"}) reject(reader, key, "needs kinds");
  } else {
    add_kinds(reader, *kinds, decoder, layers, usual, decoder);
  }
  reader.finish();
  problems.throw_if_any();

  for (std::int64_t i = 0; i < layers && !kinds; ++i) {
    Layer layer = usual.layer;
    const bool odd = i % 2 == 1;
    if (usual.window_layers == WindowPattern::even && odd) layer.attention.window.reset();
    if (usual.window_layers == WindowPattern::odd && !odd) layer.attention.window.reset();
    if (i < usual.first_dense_layers) {
      layer.feed_forward.experts.reset();
      layer.feed_forward.intermediate = usual.dense_intermediate;
    }
    decoder.add_layer(layer);
  }
  check_size(decoder, reader);
  problems.throw_if_any();
  return decoder;
}

std::string_view name(RecurrentKind kind) { return word(kRecurrentNames, kind); }

// ---- Written

namespace {

// What a person would call a layer.
std::string kind_name(const Decoder& m, const Layer& layer) {
  const auto differs = [&](auto&& of) {
    return std::ranges::any_of(m.kinds, [&](const Layer& other) { return of(other) != of(layer); });
  };
  std::string text;
  const auto add = [&](std::string_view part) { text += (text.empty() ? "" : "_") + std::string(part); };
  if (layer.recurrent) add(word(kRecurrentNames, layer.recurrent->kind));
  if (layer.attends()) {
    const Attention& a = layer.attention;
    add(a.compression                                                            ? "compressed"
        : a.window                                                               ? (a.chunked ? "chunked" : "window")
        : a.shares_cache                                                         ? "sharing"
        : differs([](const Layer& l) { return l.attention.window.has_value(); }) ? "full"
                                                                                 : "attention");
  }
  if (layer.has_feed_forward() &&
      (!layer.mixes() || differs([](const Layer& l) { return l.feed_forward.experts.has_value(); }))) {
    add(layer.feed_forward.experts ? "experts" : "dense");
  }
  return text.empty() ? "empty" : text;
}

void write_kinds(const Decoder& m, Writing& writing) {
  Writer& top = writing.w;
  // The most frequent layer is the usual one.
  const auto most = std::ranges::max_element(m.kind_counts) - m.kind_counts.begin();
  LayerPattern usual{m.kinds[static_cast<std::size_t>(most)]};
  describe(writing, nullptr, m, m.num_layers(), usual, {});
  if (m.kinds.size() == 1) return;
  std::vector<std::string> names;
  Writer kinds;
  for (const Layer& layer : m.kinds) {
    std::string name = kind_name(m, layer);
    for (int n = 2; std::ranges::find(names, name) != names.end(); ++n) {
      name = fmt::format("{}_{}", kind_name(m, layer), n);
    }
    names.push_back(name);
    Writing kind;
    LayerPattern own{layer};
    describe(kind, nullptr, m, m.num_layers(), own, usual);
    kinds.put(name, kind.w.in_braces());
  }
  top.block("kinds", kinds);
  // The shortest pattern that gives the layers, else all of them; runs are counted.
  const std::vector<unsigned char>& order = m.layer_kinds;
  std::size_t period = 1;
  while (period < order.size() &&
         !std::equal(order.begin() + static_cast<std::ptrdiff_t>(period), order.end(), order.begin()))
    ++period;
  const bool repeats = 2 * period <= order.size();
  std::vector<std::string> list;
  const std::size_t end = repeats ? period : order.size();
  for (std::size_t i = 0; i < end;) {
    std::size_t run = i;
    while (run < end && order[run] == order[i]) ++run;
    list.push_back(run - i > 1 ? fmt::format("{} x{}", names[order[i]], run - i) : names[order[i]]);
    i = run;
  }
  top.put(repeats ? "pattern" : "layers", "[" + join(list, ", ") + "]");
}

}  // namespace

std::string to_descriptor(const Decoder& model) {
  Decoder m = model;  // visited as a reader visits it
  Writing writing;
  Writer& w = writing.w;
  // Of mixtures those of two schemes can be said.
  std::string experts;
  if (!m.mixture.empty()) {
    m.default_weights.clear();
    const RoleSchemes& first = m.mixture.front();
    const auto of = [&](Role role) { return first.contains(role) ? first.at(role) : std::string(); };
    const std::string output = of(Role::o_b).empty() ? of(Role::o) : of(Role::o_b);
    const RoleSchemes two = expert_mixture(of(Role::expert_up), output);
    const auto is_said = [&](const auto& entry) {
      const auto other = two.find(entry.first);
      return other != two.end() && other->second == entry.second;
    };
    if (m.mixture.size() == 1 && !output.empty() && std::ranges::all_of(first, is_said)) {
      experts = of(Role::expert_up);
      m.default_weights = output;
    }
  }
  w.words("name", m.name);
  describe_texts(writing, m, experts);
  describe(writing, m);
  write_kinds(m, writing);
  writing.part("vision", m.vision, [](Writing& of, VisionTower& tower) { describe(of, tower); });
  return w.lines();
}

}  // namespace llmperf::model
