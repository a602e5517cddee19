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
#include "descriptor/writer.h"
#include "model/decoder.h"
#include "model/hf_quantization.h"
#include "model/quantization.h"
#include "model/reading.h"
#include "model/vision_descriptor.h"

namespace llmperf::model {

namespace {

using descriptor::Reader;

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
Enum choose(Reader& reader, std::string_view key, const std::array<std::string_view, N>& names, Enum absent) {
  return static_cast<Enum>(reader.choice(key, names, static_cast<std::size_t>(absent)));
}
template <class Enum, std::size_t N>
std::string_view word(const std::array<std::string_view, N>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

enum class WindowPattern : unsigned char { all, even, odd };
constexpr std::array<std::string_view, 3> kWindowLayerNames = {"all", "even", "odd"};

struct AttentionPattern {
  Attention attention;
  WindowPattern window_layers = WindowPattern::all;
};

struct FeedForwardPattern {
  FeedForward feed_forward;
  std::int64_t first_dense_layers = 0;
  std::int64_t dense_intermediate = 0;
};

void reject(Reader& reader, std::string_view key, std::string_view reason) {
  if (reader.find(key) != nullptr) reader.problem(key, fmt::format("{} {}", key, reason));
}

// Latent attention: the cache holds one latent per token, so there are no key and value heads to speak of.
void read_latent(Reader& reader, Attention& attention) {
  LatentAttention latent;
  latent.q_lora_rank = reader.optional_int("q_lora_rank", kWidthRange);
  latent.kv_lora_rank = reader.require_int("kv_lora_rank", kWidthRange);
  latent.rope_dim = reader.require_int("rope_dim", kHeadDimRange);
  latent.nope_dim = reader.require_int("nope_dim", kHeadDimRange);
  for (const std::string_view key : {"kv_heads", "head_dim", "qkv_bias", "qk_norm", "fused_qkv", "low_rank",
                                     "compression", "no_v_proj", "one_vector", "shares_cache"}) {
    reject(reader, key, "does not apply to latent attention (kv_lora_rank is given)");
  }
  attention.kv_heads = attention.heads;
  attention.head_dim = latent.rope_dim + latent.nope_dim;
  attention.v_head_dim = reader.require_int("v_head_dim", kHeadDimRange);
  attention.rotary_dim = reader.int_or("rotary_dim", latent.rope_dim, {0, latent.rope_dim});  // 0: no position at all
  attention.latent = latent;
}

void read_heads(Reader& reader, Reader& model, const Decoder& decoder, Attention& attention) {
  attention.kv_heads = reader.int_or("kv_heads", attention.heads, kHeadRange);
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
  attention.v_head_dim = reader.int_or("v_head_dim", attention.head_dim, kHeadDimRange);
  // Learned positions replace the rotation unless the file says otherwise.
  attention.rotary_dim = reader.int_or("rotary_dim", decoder.position_embeddings > 0 ? 0 : attention.head_dim,
                                       {0, std::max<std::int64_t>(attention.head_dim, 1)});
  attention.qkv_bias = reader.bool_or("qkv_bias", false);
  // `true` is older than the choice.
  const descriptor::Node* norm = reader.find("qk_norm");
  attention.qk_norm =
      norm != nullptr && norm->scalar == "true" ? QkNorm::head : choose(reader, "qk_norm", kQkNormNames, QkNorm::none);
  attention.no_v_proj = reader.bool_or("no_v_proj", false);
  attention.one_vector = reader.bool_or("one_vector", false);
  attention.shares_cache = reader.bool_or("shares_cache", false);
  attention.unused_kv = reader.bool_or("unused_kv", false);
  if (attention.unused_kv && !attention.shares_cache) reader.problem("unused_kv", "unused_kv needs shares_cache");
  if (auto part = reader.optional_mapping("low_rank")) {
    attention.low_rank = LowRankProjections{.query_rank = part->require_int("query_rank", kWidthRange),
                                            .output_rank = part->require_int("output_rank", kWidthRange),
                                            .output_groups = part->int_or("output_groups", 1, kHeadRange)};
    check_divisible(reader, "heads", attention.heads, "output_groups", attention.low_rank->output_groups);
    part->finish();
  }
  if (auto part = reader.optional_mapping("compression")) {
    attention.compression =
        Compression{.ratio = part->require_int("ratio", kPositionRange), .overlaps = part->bool_or("overlaps", false)};
    part->finish();
  }
  attention.fused_qkv = reader.bool_or("fused_qkv", false);
  for (const std::string_view key : {"q_lora_rank", "rope_dim", "nope_dim"}) {
    reject(reader, key, "applies to latent attention only (kv_lora_rank is not given)");
  }
}

Indexer read_indexer(Reader& reader) {
  Indexer x;
  x.heads = reader.require_int("heads", kHeadRange);
  x.head_dim = reader.require_int("head_dim", kHeadDimRange);
  x.top_k = reader.require_int("top_k", kPositionRange);
  x.pool = reader.int_or("pool", 1, kPositionRange);
  x.from_hidden = reader.bool_or("from_hidden", false);
  x.weighted = reader.bool_or("weighted", true);
  x.reused = reader.bool_or("reused", false);
  x.cached_bits = reader.optional_double("cached_bits", 1, 64).value_or(x.cached_bits);
  reader.finish();
  return x;
}

AttentionPattern read_attention(Reader& reader, Reader& model, const Decoder& decoder) {
  AttentionPattern pattern;
  Attention& attention = pattern.attention;
  attention.heads = reader.require_int("heads", kHeadRange);
  if (reader.find("kv_lora_rank") != nullptr) {
    read_latent(reader, attention);
  } else {
    read_heads(reader, model, decoder, attention);
  }
  attention.window = reader.optional_int("window", kPositionRange);
  pattern.window_layers = static_cast<WindowPattern>(reader.choice("window_layers", kWindowLayerNames, 0));
  attention.chunked = reader.bool_or("chunked", false);
  if (!attention.window) {
    for (const std::string_view key : {"window_layers", "chunked"}) reject(reader, key, "needs a window");
  }
  if (auto part = reader.optional_mapping("indexer")) attention.indexer = read_indexer(*part);
  attention.gate = choose(reader, "gate", kGateNames, OutputGate::none);
  attention.o_bias = reader.bool_or("o_bias", false);
  attention.sinks = reader.bool_or("sinks", false);
  attention.softcap = reader.bool_or("softcap", false);
  reader.finish();
  return pattern;
}

Recurrent read_recurrent(Reader& reader) {
  Recurrent r;
  r.kind = static_cast<RecurrentKind>(reader.choice("kind", kRecurrentNames));
  r.heads = reader.require_int("heads", kWidthRange);
  r.key_heads = reader.int_or("key_heads", r.heads, kWidthRange);
  check_divisible(reader, "heads", r.heads, "key_heads", r.key_heads);
  r.key_dim = reader.int_or("key_dim", 1, kHeadDimRange);
  r.value_dim = reader.int_or("value_dim", 1, kHeadDimRange);
  r.conv = reader.int_or("conv", 0, {0, 64});
  r.conv_bias = reader.bool_or("conv_bias", false);
  r.gate_rank = reader.int_or("gate_rank", 0, {0, kWidthRange.max});
  r.norms = reader.bool_or("norms", true);
  r.head_norms = reader.bool_or("head_norms", false);
  r.chunk = reader.int_or("chunk", r.chunk, {1, 65'536});
  const bool plain = r.kind == RecurrentKind::short_conv;
  if (r.conv == 0 && (plain || r.conv_bias)) reader.problem("conv", "the convolution needs its number of taps, conv");
  if (r.kind == RecurrentKind::mamba && r.gate_rank == 0) reader.problem("gate_rank", "mamba needs gate_rank");
  if (r.kind != RecurrentKind::mamba && r.kind != RecurrentKind::kimi_delta) {
    reject(reader, "gate_rank", "is of mamba and kimi_delta");
  }
  reader.finish();
  return r;
}

Experts read_experts(Reader& reader) {
  Experts experts;
  experts.count = reader.require_int("count", kExpertRange);
  experts.per_token = reader.require_int("per_token", kExpertRange);
  check_experts(reader, "per_token", experts);
  experts.groups = reader.int_or("groups", 1, kGroupRange);
  experts.groups_per_token = reader.int_or("groups_per_token", experts.groups, kGroupRange);
  if (std::string wrong = groups_problem(experts); !wrong.empty()) reader.problem("groups", std::move(wrong));
  experts.intermediate = reader.require_int("intermediate", kWidthRange);
  experts.shared_intermediate = reader.int_or("shared_intermediate", 0, {0, kWidthRange.max});
  experts.shared_gate = reader.bool_or("shared_gate", false);
  if (experts.shared_gate && experts.shared_intermediate == 0) {
    reader.problem("shared_gate", "shared_gate needs shared_intermediate");
  }
  experts.router_bias = reader.bool_or("router_bias", false);
  experts.score_correction = reader.bool_or("score_correction", false);
  experts.router_scales = reader.bool_or("router_scales", false);
  experts.identity = reader.int_or("identity", 0, {0, kExpertRange.max});
  experts.latent = reader.int_or("latent", 0, {0, kWidthRange.max});
  experts.latent_norm = reader.bool_or("latent_norm", false);
  if (experts.latent_norm && experts.latent == 0) reader.problem("latent_norm", "latent_norm needs latent");
  reader.finish();
  return experts;
}

FeedForwardPattern read_feed_forward(Reader& reader, std::int64_t layers) {
  FeedForwardPattern pattern;
  FeedForward& ff = pattern.feed_forward;
  ff.activation = static_cast<Activation>(reader.choice("activation", kActivationNames));
  ff.gated = reader.bool_or("gated", true);
  ff.bias = reader.bool_or("bias", false);
  ff.fused_gate_up = reader.bool_or("fused_gate_up", false);
  if (ff.fused_gate_up && !ff.gated) reader.problem("fused_gate_up", "fused_gate_up needs a gated MLP");
  if (auto experts = reader.optional_mapping("experts")) {
    ff.experts = read_experts(*experts);
    pattern.first_dense_layers = reader.int_or("first_dense_layers", 0, {0, layers});
    if (pattern.first_dense_layers > 0) {
      pattern.dense_intermediate = reader.require_int("dense_intermediate", kWidthRange);
    } else if (!reader.has("first_dense_layers")) {
      reject(reader, "dense_intermediate", "needs first_dense_layers");
    } else {
      reader.find("dense_intermediate");  // zero dense layers: accepted, and without effect
    }
    reject(reader, "intermediate", "is not used with experts, which have their own; see dense_intermediate and beside");
    ff.intermediate = reader.int_or("beside", 0, {0, kWidthRange.max});
  } else {
    ff.intermediate = reader.require_int("intermediate", kWidthRange);
    for (const std::string_view key : {"first_dense_layers", "dense_intermediate", "beside"}) {
      reject(reader, key, "needs experts");
    }
  }
  reader.finish();
  return pattern;
}

// The texts and the dimensions outside the layers.
void read_model(Reader& reader, Decoder& decoder) {
  decoder.name = reader.require_string("name");
  decoder.hf_id = reader.string_or("hf_id", "");
  decoder.architecture = reader.string_or("architecture", "");
  decoder.source = reader.string_or("source", "");
  decoder.notes = reader.string_or("notes", "");
  reader.string_or("aliases", "");  // for those who look for the file (src/descriptor/catalog.cpp)
  decoder.default_weights = reader.string_or("default_weights", "");
  const auto check_scheme = [&](std::string_view key, const std::string& scheme) {
    if (scheme.empty()) return;
    try {
      parse_weight_scheme(scheme);
    } catch (const Error& error) {
      for (const Diagnostic& d : error.diagnostics()) reader.problem(key, d.message, d.hint);
    }
  };
  check_scheme("default_weights", decoder.default_weights);
  const std::string experts = reader.string_or("default_experts", "");
  check_scheme("default_experts", experts);
  if (!experts.empty()) {
    if (decoder.default_weights.empty()) reader.problem("default_experts", "default_experts needs default_weights");
    decoder.mixture = {expert_mixture(experts, decoder.default_weights)};
  }
  decoder.hidden = reader.require_int("hidden_size", kHiddenRange);
  decoder.vocab = reader.require_int("vocab_size", kVocabRange);
  decoder.max_position = reader.optional_int("max_position", kPositionRange);
  decoder.norm = static_cast<Norm>(reader.choice("norm", kNormNames));
  decoder.tied_embeddings = reader.bool_or("tied_embeddings", false);
  decoder.checkpoint_repeats_lm_head = reader.bool_or("checkpoint_repeats_lm_head", false);
  if (decoder.checkpoint_repeats_lm_head && !decoder.tied_embeddings) {
    reader.problem("checkpoint_repeats_lm_head", "checkpoint_repeats_lm_head needs tied_embeddings");
  }
  decoder.next_token_layers = reader.int_or("next_token_layers", 0, kNextTokenRange);
  decoder.next_token_copies = reader.bool_or("next_token_copies", true);
  decoder.attention_residuals = reader.bool_or("attention_residuals", false);
  decoder.lm_head_bias = reader.bool_or("lm_head_bias", false);
  decoder.position_embeddings = reader.int_or("position_embeddings", 0, {0, kPositionRange.max});
  decoder.dropout = reader.bool_or("dropout", false);
  decoder.type_embeddings = reader.int_or("type_embeddings", 0, {0, kVocabRange.max});
  decoder.embedding_norm = reader.bool_or("embedding_norm", false);
  decoder.final_norm = reader.bool_or("final_norm", true);
  decoder.encoder = reader.bool_or("encoder", false);
  decoder.pooler = reader.bool_or("pooler", false);
  decoder.causal = reader.bool_or("causal", false);
  decoder.labels = reader.int_or("labels", 0, {0, kVocabRange.max});
  for (const auto& [key, given] :
       {std::pair{"pooler", decoder.pooler}, {"causal", decoder.causal}, {"labels", decoder.labels > 0}}) {
    if (given && !decoder.encoder) reader.problem(key, fmt::format("{} needs encoder: true", key));
  }
  if (auto part = reader.optional_mapping("layer_embedding")) {
    decoder.layer_embedding_width = part->require_int("width", kWidthRange);
    decoder.layer_embedding_vocab = part->require_int("vocab", kVocabRange);
    part->finish();
  }
  if (auto part = reader.optional_mapping("vision")) decoder.vision = read_vision(*part, decoder.hidden);
  if (auto part = reader.optional_mapping("streams")) {
    decoder.streams.mix = static_cast<StreamMix>(part->choice("mix", kStreamMixNames));
    decoder.streams.count = part->require_int("count", {1, 64});
    part->finish();
  }
}

bool says_none(Reader& reader, std::string_view key) {
  const descriptor::Node* node = reader.find(key);
  return node != nullptr && node->kind == descriptor::Node::Kind::scalar && node->scalar == "none";
}

// What a layer has, as the top of the file or a kind says it: what is not said is that of `usual`.
struct LayerParts {
  Layer layer;
  AttentionPattern attention;
  FeedForwardPattern feed_forward;
};

void read_norms(Reader& reader, Layer& layer) {
  layer.parallel_blocks = reader.bool_or("parallel_blocks", layer.parallel_blocks);
  layer.norms_after = reader.bool_or("norms_after", layer.norms_after);
  layer.scaled = reader.bool_or("scaled", layer.scaled);
  layer.low_rank_branch = reader.int_or("low_rank_branch", layer.low_rank_branch, {0, kWidthRange.max});
  const bool both = layer.mixes() && layer.has_feed_forward();
  const std::int64_t parts = (layer.mixes() ? 1 : 0) + (layer.has_feed_forward() ? 1 : 0);
  const bool usual = layer.norms == 4 || (layer.norms == 1 && layer.parallel_blocks && both);
  const std::int64_t norms = reader.int_or("norms_per_layer", usual ? layer.norms : parts, {0, 4});
  layer.norms = static_cast<int>(norms);
  if (norms == 3) reader.problem("norms_per_layer", "norms_per_layer must be 1, 2 or 4, not 3");
  if (norms == 1 && both && !layer.parallel_blocks) {
    reader.problem("norms_per_layer", "one norm per layer needs parallel_blocks: true, where it serves both blocks");
  }
  if (norms == 4 && layer.parallel_blocks) {
    reader.problem("norms_per_layer", "four norms per layer do not go with parallel_blocks");
  }
  if (layer.norms_after && (norms == 4 || layer.parallel_blocks)) {
    reader.problem("norms_after", "norms_after goes with one norm per block, one block after the other");
  }
}

void read_parts(Reader& reader, Reader& model, const Decoder& decoder, std::int64_t layers, LayerParts& parts) {
  if (says_none(reader, "attention")) {
    parts.attention = {};
  } else if (auto part = reader.optional_mapping("attention")) {
    parts.attention = read_attention(*part, model, decoder);
  }
  if (says_none(reader, "recurrent")) {
    parts.layer.recurrent.reset();
  } else if (auto recurrent = reader.optional_mapping("recurrent")) {
    parts.layer.recurrent = read_recurrent(*recurrent);
  }
  if (says_none(reader, "feed_forward")) {
    parts.feed_forward = {};
  } else if (auto feed_forward = reader.optional_mapping("feed_forward")) {
    parts.feed_forward = read_feed_forward(*feed_forward, layers);
  }
  parts.layer.attention = parts.attention.attention;
  parts.layer.feed_forward = parts.feed_forward.feed_forward;
  read_norms(reader, parts.layer);
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
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
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

void add_kinds(Reader& reader, Reader& kinds, const Decoder& shape, std::int64_t layers, const LayerParts& usual,
               Decoder& decoder) {
  std::map<std::string, Layer> known;
  std::vector<std::string> names;
  for (const descriptor::Node::Entry& entry : kinds.node().entries) {
    names.push_back(entry.key);
    LayerParts parts = usual;
    if (auto kind = kinds.optional_mapping(entry.key)) {
      read_parts(*kind, reader, shape, layers, parts);
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

Decoder parse_model_descriptor(const descriptor::Document& document, descriptor::Problems& problems) {
  Reader reader(document.root, problems, "the model");
  Decoder decoder;
  read_model(reader, decoder);
  const std::int64_t layers = reader.require_int("num_layers", kLayerRange);
  const bool known = is_sound(reader, "num_layers", kLayerRange);
  LayerParts usual;
  read_parts(reader, reader, decoder, known ? layers : kLayerRange.max, usual);
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
    if (usual.attention.window_layers == WindowPattern::even && odd) layer.attention.window.reset();
    if (usual.attention.window_layers == WindowPattern::odd && !odd) layer.attention.window.reset();
    if (i < usual.feed_forward.first_dense_layers) {
      layer.feed_forward.experts.reset();
      layer.feed_forward.intermediate = usual.feed_forward.dense_intermediate;
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

using descriptor::Writer;

std::string written(const Indexer& x) {
  Writer w;
  w.put("heads", x.heads);
  w.put("head_dim", x.head_dim);
  w.put("top_k", x.top_k);
  w.unless(1, "pool", x.pool);
  w.unless(false, "from_hidden", x.from_hidden);
  w.unless(true, "weighted", x.weighted);
  w.unless(false, "reused", x.reused);
  w.unless(Indexer().cached_bits, "cached_bits", x.cached_bits);
  return w.in_braces();
}

std::string written(const Attention& a, const Decoder& m) {
  if (a.heads == 0) return "none";
  Writer w;
  w.put("heads", a.heads);
  if (a.latent) {
    if (a.latent->q_lora_rank) w.put("q_lora_rank", *a.latent->q_lora_rank);
    w.put("kv_lora_rank", a.latent->kv_lora_rank);
    w.put("rope_dim", a.latent->rope_dim);
    w.put("nope_dim", a.latent->nope_dim);
    w.put("v_head_dim", a.v_head_dim);
    w.unless(a.latent->rope_dim, "rotary_dim", a.rotary_dim);
  } else {
    w.unless(a.heads, "kv_heads", a.kv_heads);
    w.put("head_dim", a.head_dim);
    w.unless(a.head_dim, "v_head_dim", a.v_head_dim);
    w.unless(m.position_embeddings > 0 ? 0 : a.head_dim, "rotary_dim", a.rotary_dim);
    w.unless(false, "qkv_bias", a.qkv_bias);
    w.unless(std::string_view("false"), "qk_norm", word(kQkNormNames, a.qk_norm));
    w.unless(false, "fused_qkv", a.fused_qkv);
    w.unless(false, "no_v_proj", a.no_v_proj);
    w.unless(false, "one_vector", a.one_vector);
    w.unless(false, "shares_cache", a.shares_cache);
    w.unless(false, "unused_kv", a.unused_kv);
    if (a.low_rank) {
      Writer rank;
      rank.put("query_rank", a.low_rank->query_rank);
      rank.put("output_rank", a.low_rank->output_rank);
      rank.unless(1, "output_groups", a.low_rank->output_groups);
      w.put("low_rank", rank.in_braces());
    }
    if (a.compression) {
      Writer of;
      of.put("ratio", a.compression->ratio);
      of.unless(false, "overlaps", a.compression->overlaps);
      w.put("compression", of.in_braces());
    }
  }
  if (a.window) w.put("window", *a.window);
  w.unless(false, "chunked", a.chunked);
  if (a.indexer) w.put("indexer", written(*a.indexer));
  w.unless(std::string_view("none"), "gate", word(kGateNames, a.gate));
  w.unless(false, "o_bias", a.o_bias);
  w.unless(false, "sinks", a.sinks);
  w.unless(false, "softcap", a.softcap);
  return w.in_braces();
}

std::string written(const std::optional<Recurrent>& recurrent) {
  if (!recurrent) return "none";
  const Recurrent& r = *recurrent;
  Writer w;
  w.put("kind", word(kRecurrentNames, r.kind));
  w.put("heads", r.heads);
  w.unless(r.heads, "key_heads", r.key_heads);
  w.unless(1, "key_dim", r.key_dim);
  w.unless(1, "value_dim", r.value_dim);
  w.unless(0, "conv", r.conv);
  w.unless(false, "conv_bias", r.conv_bias);
  w.unless(0, "gate_rank", r.gate_rank);
  w.unless(true, "norms", r.norms);
  w.unless(false, "head_norms", r.head_norms);
  w.unless(Recurrent().chunk, "chunk", r.chunk);
  return w.in_braces();
}

std::string written(const FeedForward& f) {
  if (!f.experts && f.intermediate == 0) return "none";
  Writer w;
  w.unless(0, f.experts ? "beside" : "intermediate", f.intermediate);
  w.put("activation", word(kActivationNames, f.activation));
  w.put("gated", f.gated);
  w.unless(false, "bias", f.bias);
  w.unless(false, "fused_gate_up", f.fused_gate_up);
  if (!f.experts) return w.in_braces();
  const Experts& e = *f.experts;
  Writer x;
  x.put("count", e.count);
  x.put("per_token", e.per_token);
  x.unless(1, "groups", e.groups);
  x.unless(e.groups, "groups_per_token", e.groups_per_token);
  x.put("intermediate", e.intermediate);
  x.unless(0, "shared_intermediate", e.shared_intermediate);
  x.unless(false, "shared_gate", e.shared_gate);
  x.unless(false, "router_bias", e.router_bias);
  x.unless(false, "score_correction", e.score_correction);
  x.unless(false, "router_scales", e.router_scales);
  x.unless(0, "identity", e.identity);
  x.unless(0, "latent", e.latent);
  x.unless(false, "latent_norm", e.latent_norm);
  w.put("experts", x.in_braces());
  return w.in_braces();
}

// What a layer says of its parts; what `usual` says as well is left out.
void write_layer(const Layer& layer, const Layer* usual, const Decoder& m, Writer& w) {
  const auto part = [&](std::string_view key, const std::string& text, const std::string& other) {
    if (usual == nullptr ? text != "none" : text != other) w.put(key, text);
  };
  const Layer& base = usual == nullptr ? layer : *usual;
  part("attention", written(layer.attention, m), written(base.attention, m));
  part("recurrent", written(layer.recurrent), written(base.recurrent));
  part("feed_forward", written(layer.feed_forward), written(base.feed_forward));
  const Layer none;
  const Layer& said = usual == nullptr ? none : *usual;
  w.unless(said.parallel_blocks, "parallel_blocks", layer.parallel_blocks);
  w.unless(said.norms_after, "norms_after", layer.norms_after);
  w.unless(said.scaled, "scaled", layer.scaled);
  w.unless(said.low_rank_branch, "low_rank_branch", layer.low_rank_branch);
  const int parts = (layer.mixes() ? 1 : 0) + (layer.has_feed_forward() ? 1 : 0);
  const bool kept =
      usual != nullptr && (usual->norms == 4 || (usual->norms == 1 && usual->parallel_blocks && parts == 2));
  w.unless(kept ? usual->norms : parts, "norms_per_layer", layer.norms);
}

// What a person would call a layer.
std::string kind_name(const Decoder& m, const Layer& layer) {
  const auto differs = [&](auto&& of) {
    return std::any_of(m.kinds.begin(), m.kinds.end(), [&](const Layer& other) { return of(other) != of(layer); });
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

void write_kinds(const Decoder& m, Writer& top) {
  // The most frequent layer is the usual one.
  const auto most = std::max_element(m.kind_counts.begin(), m.kind_counts.end()) - m.kind_counts.begin();
  const Layer& usual = m.kinds[static_cast<std::size_t>(most)];
  write_layer(usual, nullptr, m, top);
  if (m.kinds.size() == 1) return;
  std::vector<std::string> names;
  Writer kinds;
  for (const Layer& layer : m.kinds) {
    std::string name = kind_name(m, layer);
    for (int n = 2; std::find(names.begin(), names.end(), name) != names.end(); ++n) {
      name = fmt::format("{}_{}", kind_name(m, layer), n);
    }
    names.push_back(name);
    Writer kind;
    write_layer(layer, &usual, m, kind);
    kinds.put(name, kind.in_braces());
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

std::string to_descriptor(const Decoder& m) {
  Writer w;
  // Of mixtures those of two schemes can be said.
  std::string experts;
  std::string others = m.mixture.empty() ? m.default_weights : "";
  if (!m.mixture.empty()) {
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
      others = output;
    }
  }
  w.words("name", m.name);
  for (const auto& [key, text] : {std::pair<std::string_view, std::string_view>{"hf_id", m.hf_id},
                                  {"architecture", m.architecture},
                                  {"source", m.source},
                                  {"notes", m.notes},
                                  {"default_weights", others},
                                  {"default_experts", experts}}) {
    if (!text.empty()) w.words(key, text);
  }
  w.put("hidden_size", m.hidden);
  w.put("num_layers", m.num_layers());
  w.put("vocab_size", m.vocab);
  if (m.max_position) w.put("max_position", *m.max_position);
  w.unless(0, "next_token_layers", m.next_token_layers);
  w.unless(true, "next_token_copies", m.next_token_copies);
  w.unless(false, "attention_residuals", m.attention_residuals);
  w.put("norm", word(kNormNames, m.norm));
  w.unless(false, "tied_embeddings", m.tied_embeddings);
  w.unless(false, "checkpoint_repeats_lm_head", m.checkpoint_repeats_lm_head);
  w.unless(false, "lm_head_bias", m.lm_head_bias);
  w.unless(0, "position_embeddings", m.position_embeddings);
  w.unless(0, "type_embeddings", m.type_embeddings);
  w.unless(false, "embedding_norm", m.embedding_norm);
  w.unless(true, "final_norm", m.final_norm);
  w.unless(false, "encoder", m.encoder);
  w.unless(false, "pooler", m.pooler);
  w.unless(false, "causal", m.causal);
  w.unless(0, "labels", m.labels);
  w.unless(false, "dropout", m.dropout);
  if (m.layer_embedding_width > 0) {
    Writer of;
    of.put("width", m.layer_embedding_width);
    of.put("vocab", m.layer_embedding_vocab);
    w.put("layer_embedding", of.in_braces());
  }
  if (m.streams.mix != StreamMix::none) {
    Writer of;
    of.put("mix", word(kStreamMixNames, m.streams.mix));
    of.put("count", m.streams.count);
    w.put("streams", of.in_braces());
  }
  write_kinds(m, w);
  if (m.vision) w.put("vision", written(*m.vision));
  return w.lines();
}

}  // namespace llmperf::model
