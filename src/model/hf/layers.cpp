// Architectures whose layers differ in what a row of families.cpp cannot say: each function goes over the layers that
// the row gave, which are all alike but for windows and dense layers, and makes of each what the file says it is.
// Sources: the configuration and modelling code in transformers or beside the models' files; the parameters that this
// gives are checked against published totals (tests/model/published_models_test.cpp).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/number.h"
#include "base/text.h"
#include "model/hf/config.h"
#include "model/reading.h"

namespace llmperf::model {

using descriptor::IntRange;
using descriptor::Reader;

namespace {

constexpr IntRange kConvRange = {1, 64};

Experts read_counted_experts(Reader& reader, std::string_view count, std::string_view per_token,
                             std::string_view width) {
  Experts experts;
  experts.count = reader.require_int(count, kExpertRange);
  experts.per_token = reader.require_int(per_token, kExpertRange);
  check_experts(reader, per_token, experts);
  experts.intermediate = reader.require_int(width, kWidthRange);
  return experts;
}

FeedForward dense(FeedForward like, std::int64_t width) {
  like.experts.reset();
  like.intermediate = width;
  return like;
}

FeedForward routed(FeedForward like, const Experts& experts) {
  like.experts = experts;
  like.intermediate = 0;
  return like;
}

// Mamba-2 as most configs call its numbers.
Recurrent read_mamba2(Reader& reader) {
  Recurrent r;
  r.kind = RecurrentKind::mamba2;
  r.heads = reader.require_int("mamba_n_heads", kWidthRange);
  r.key_heads = reader.int_or("mamba_n_groups", 1, kWidthRange);
  check_divisible(reader, "mamba_n_heads", r.heads, "mamba_n_groups", r.key_heads);
  r.key_dim = reader.int_or("mamba_d_state", 256, kHeadDimRange);
  r.value_dim = reader.require_int("mamba_d_head", kHeadDimRange);
  r.conv = reader.int_or("mamba_d_conv", 4, kConvRange);
  r.conv_bias = reader.bool_or("mamba_conv_bias", true);
  r.chunk = reader.int_or("mamba_chunk_size", 256, {1, 65'536});
  return r;
}

// The first Mamba, by the keys that say it.
Recurrent read_mamba(ConfigReader& config, std::int64_t channels, std::string_view state, std::string_view conv,
                     std::string_view conv_bias, std::string_view rank) {
  Reader& reader = config.reader;
  Recurrent r;
  r.kind = RecurrentKind::mamba;
  r.heads = channels;
  r.key_heads = r.value_dim = 1;
  r.key_dim = reader.int_or(state, 16, kHeadDimRange);
  r.conv = reader.int_or(conv, 4, kConvRange);
  r.conv_bias = reader.bool_or(conv_bias, true);
  const std::int64_t usual_rank = (config.decoder.hidden + 15) / 16;
  const descriptor::Node* said = reader.find(rank);
  const bool automatic = said != nullptr && said->scalar == "auto";
  r.gate_rank = automatic ? usual_rank : reader.int_or(rank, usual_rank, kWidthRange);
  return r;
}

// Lightning attention in the place of `a`.
Recurrent lightning(const Attention& a) {
  Recurrent r;
  r.kind = RecurrentKind::lightning;
  r.heads = r.key_heads = a.heads;
  r.key_dim = r.value_dim = a.head_dim;
  return r;
}

// A layer without attention, whose tokens a recurrence mixes.
void recur(Layer& layer, const Recurrent& recurrent) {
  layer.attention = {};
  layer.recurrent = recurrent;
}

Indexer read_indexer(Reader& reader, std::int64_t top_k) {
  return {.heads = reader.int_or("index_n_heads", 64, kHeadRange),
          .head_dim = reader.int_or("index_head_dim", 128, kHeadDimRange),
          .top_k = reader.int_or("index_topk", top_k, kPositionRange)};
}

// Where no list says it.
bool none(std::int64_t) { return false; }
bool all(std::int64_t) { return true; }
// … every so many layers, the last of them.
auto last_of(std::int64_t interval) {
  return [interval](std::int64_t i) { return (i + 1) % interval == 0; };
}
auto not_last_of(std::int64_t interval) {
  return [interval](std::int64_t i) { return (i + 1) % interval != 0; };
}

}  // namespace

// ---- Attention to chosen keys

// index_types: layers that are "shared" take the choice of the layer before.
void make_indexed_layers(ConfigReader& config, Reader& reader) {
  reader.ignore("indexer_rope_interleave index_share_for_mtp_iteration mlp_layer_types");
  if (!config.layer.attention.latent->q_lora_rank) {
    reader.problem("q_lora_rank", "this architecture makes index queries of the query latent: q_lora_rank is needed");
  }
  Indexer indexer = read_indexer(reader, 2048);
  // Where no list says it a pattern of F and S does, else every so many layers behind the first ones.
  const std::string pattern = reader.string_or("index_topk_pattern", "");
  if (!pattern.empty() &&
      (pattern.size() < config.layers.size() || pattern.find_first_not_of("FS") != std::string::npos)) {
    reader.problem("index_topk_pattern", fmt::format("index_topk_pattern must have an F or an S for each of {} layers",
                                                     config.layers.size()));
    return;
  }
  const std::int64_t period = reader.int_or("index_topk_freq", 1, kLayerRange);
  const std::int64_t first = reader.int_or("index_skip_topk_offset", 2, {0, kLayerRange.max});
  const std::vector<bool> reused = config.second_of("indexer_types", "full shared", [&](std::int64_t i) {
    return pattern.empty() ? std::max<std::int64_t>(i - first + 1, 0) % period != 0
                           : pattern[static_cast<std::size_t>(i)] == 'S';
  });
  config.each([&](Layer& layer, std::size_t i) {
    indexer.reused = reused[i];
    layer.attention.indexer = indexer;
  });
}

// compress_ratios: of each layer the tokens of an entry behind its window; 0: the window alone.
void make_deepseek_v4_layers(ConfigReader& config, Reader& reader) {
  Decoder& decoder = config.decoder;
  decoder.streams = {StreamMix::hyper_connections, reader.int_or("hc_mult", 4, {1, 64})};
  const std::int64_t hashed = reader.int_or("num_hash_layers", 0, {0, kLayerRange.max});
  Attention attention = config.layer.attention;
  attention.window = config.layers.front().attention.window;
  attention.rotary_dim = reader.int_or("qk_rope_head_dim", 64, kHeadDimRange);
  attention.low_rank = LowRankProjections{.query_rank = reader.require_int("q_lora_rank", kWidthRange),
                                          .output_rank = reader.require_int("o_lora_rank", kWidthRange),
                                          .output_groups = reader.int_or("o_groups", 1, kHeadRange)};
  check_divisible(reader, "num_attention_heads", attention.heads, "o_groups", attention.low_rank->output_groups);
  attention.one_vector = true;
  attention.sinks = true;
  Indexer indexer = read_indexer(reader, 512);
  indexer.cached_bits = 4;
  // Entries of four tokens are so many that the best are chosen.
  constexpr std::int64_t kChosenRatio = 4;
  const auto ratios = config.numbers_of_layers("compress_ratios", {0, kPositionRange.max}, true);
  config.each([&](Layer& layer, std::size_t i) {
    layer.attention = attention;
    const std::int64_t ratio = ratios ? (*ratios)[i] : 0;
    if (ratio > 0) layer.attention.compression = Compression{.ratio = ratio, .overlaps = ratio == kChosenRatio};
    if (ratio == kChosenRatio) layer.attention.indexer = indexer;
    // A table says which experts a token of the vocabulary goes to.
    if (static_cast<std::int64_t>(i) < hashed) layer.feed_forward.experts->score_correction = false;
  });
}

// Blocks of keys are chosen by their index keys, and the block of the query itself.
void make_minimax_m3_layers(ConfigReader& config, Reader& reader) {
  const std::vector<bool> routes = config.switched("moe_layer_freq", all);
  const std::int64_t shared = reader.int_or("shared_intermediate_size", 0, {0, kWidthRange.max});
  const std::int64_t counted = reader.int_or("n_shared_experts", shared > 0 ? 1 : 0, {0, kExpertRange.max});
  const std::int64_t width = reader.int_or("dense_intermediate_size", 1, kWidthRange);
  std::optional<std::vector<std::int64_t>> sparse;
  Indexer indexer;
  if (auto part = reader.optional_mapping("sparse_attention_config")) {
    constexpr std::int64_t kBlock = 128;
    indexer.heads = part->require_int("sparse_num_index_heads", kHeadRange);
    indexer.head_dim = part->require_int("sparse_index_dim", kHeadDimRange);
    indexer.pool = part->int_or("sparse_block_size", kBlock, kPositionRange);
    const std::int64_t blocks = part->require_int("sparse_topk_blocks", {1, 100'000}) +
                                part->int_or("sparse_local_block", 1, {0, 1000}) +
                                part->int_or("sparse_init_block", 0, {0, 1000});
    indexer.top_k = blocks * indexer.pool;
    indexer.from_hidden = true;
    indexer.weighted = false;
    indexer.cached_bits = 16;
    sparse = part->optional_ints("sparse_attention_freq", kSwitch);
    if (sparse->size() != config.layers.size()) {
      part->problem("sparse_attention_freq",
                    fmt::format("sparse_attention_freq lists {} layers, num_hidden_layers is {}", sparse->size(),
                                config.layers.size()));
      sparse.reset();
    }
    part->ignore("sparse_disable_index_value sparse_score_type use_sparse_attention");
    part->finish();
  }
  config.each([&](Layer& layer, std::size_t i) {
    layer.feed_forward.experts->shared_intermediate = counted * shared;
    if (!routes[i]) layer.feed_forward = dense(layer.feed_forward, width);
    if (sparse && (*sparse)[i] == 1) layer.attention.indexer = indexer;
  });
}

// ---- Recurrences

// Layers are named from 1, in two lists.
void make_kimi_layers(ConfigReader& config, Reader& reader) {
  auto linear = reader.optional_mapping("linear_attn_config");
  if (!linear) {
    reader.problem("linear_attn_config", "missing key 'linear_attn_config'");
    return;
  }
  Recurrent kda;
  kda.kind = RecurrentKind::kimi_delta;
  kda.heads = kda.key_heads = linear->require_int("num_heads", kHeadRange);
  kda.key_dim = kda.value_dim = linear->require_int("head_dim", kHeadDimRange);
  kda.conv = linear->int_or("short_conv_kernel_size", 4, kConvRange);
  kda.gate_rank = linear->bool_or("use_full_rank_gate", false) ? 0 : kda.value_dim;
  const IntRange places = {1, static_cast<std::int64_t>(config.layers.size())};
  const std::vector<std::int64_t> recurrent = linear->optional_ints("kda_layers", places);
  const std::vector<std::int64_t> full = linear->optional_ints("full_attn_layers", places);
  if (recurrent.size() + full.size() != config.layers.size()) {
    reader.problem("linear_attn_config", fmt::format("kda_layers and full_attn_layers name {} and {} layers of {}",
                                                     recurrent.size(), full.size(), config.layers.size()));
  }
  linear->ignore("gate_lower_bound");
  linear->finish();
  config.decoder.attention_residuals = reader.int_or("attn_res_block_size", 0, {0, kLayerRange.max}) > 0;
  const std::int64_t latent = reader.int_or("routed_expert_hidden_size", 0, {0, kWidthRange.max});
  const bool latent_norm = reader.bool_or("latent_moe_use_norm", false);
  const bool gated = reader.bool_or("mla_use_output_gate", false);
  for (Layer& layer : config.layers) {
    if (gated) layer.attention.gate = OutputGate::element;
    if (!layer.feed_forward.experts) continue;
    layer.feed_forward.experts->latent = latent;
    layer.feed_forward.experts->latent_norm = latent_norm && latent > 0;
  }
  for (const std::int64_t i : recurrent) recur(config.layers[static_cast<std::size_t>(i - 1)], kda);
}

// layer_types, or every full_attention_interval-th layer has attention, whose query matrix holds an output gate.
void make_delta_net_layers(ConfigReader& config, Reader& reader) {
  Recurrent net;
  net.kind = RecurrentKind::gated_delta_net;
  net.heads = reader.int_or("linear_num_value_heads", 32, kHeadRange);
  net.key_heads = reader.int_or("linear_num_key_heads", 16, kHeadRange);
  check_divisible(reader, "linear_num_value_heads", net.heads, "linear_num_key_heads", net.key_heads);
  net.key_dim = reader.int_or("linear_key_head_dim", 128, kHeadDimRange);
  net.value_dim = reader.int_or("linear_value_head_dim", 128, kHeadDimRange);
  net.conv = reader.int_or("linear_conv_kernel_dim", 4, kConvRange);
  const std::int64_t interval = reader.int_or("full_attention_interval", 4, kLayerRange);
  const std::vector<bool> full = config.second_of("layer_types", "linear_attention full_attention", last_of(interval));
  config.each([&](Layer& layer, std::size_t i) {
    layer.attention.gate = OutputGate::with_queries;
    if (!full[i]) recur(layer, net);
  });
}

// attn_type_list: 0 lightning attention, 1 softmax.
void make_minimax_01_layers(ConfigReader& config, Reader&) {
  Recurrent recurrent = lightning(config.layer.attention);
  recurrent.chunk = 256;
  const std::vector<bool> words = config.second_of("layer_types", "linear_attention full_attention", all);
  const std::vector<bool> numbers = config.switched("attn_type_list", all);
  config.each([&](Layer& layer, std::size_t i) {
    if (!words[i] || !numbers[i]) recur(layer, recurrent);
  });
}

// The last layer of each group, and those that fill no group, have softmax attention.
void make_ring_layers(ConfigReader& config, Reader& reader) {
  Recurrent recurrent = lightning(config.layer.attention);
  recurrent.head_norms = true;
  const auto group = static_cast<std::size_t>(reader.int_or("layer_group_size", 1, kLayerRange));
  const std::size_t whole = config.layers.size() / group * group;
  config.each([&](Layer& layer, std::size_t i) {
    if (i < whole && (i + 1) % group != 0) recur(layer, recurrent);
  });
}

// A letter or a word per block: M mamba, * attention, - MLP, E experts.
void make_nemotron_h_layers(ConfigReader& config, Reader& reader) {
  constexpr std::array<std::string_view, 4> kWords = {"mamba", "attention", "mlp", "moe"};
  constexpr std::string_view kLetters = "M*-E";
  const std::string pattern = reader.string_or("hybrid_override_pattern", "");
  const std::string_view key = pattern.empty() ? "layers_block_type" : "hybrid_override_pattern";
  std::vector<std::size_t> blocks;
  for (const char letter : pattern) {
    blocks.push_back(kLetters.find(letter));
    if (blocks.back() < kLetters.size()) continue;
    reader.problem(key, fmt::format("block {} is not supported", quote(std::string(1, letter))), "known: M, *, -, E");
    return;
  }
  for (const std::string& word : reader.optional_strings("layers_block_type")) {
    if (!pattern.empty()) break;  // the same once more
    blocks.push_back(static_cast<std::size_t>(std::ranges::find(kWords, word) - kWords.begin()));
    if (blocks.back() < kWords.size()) continue;
    reader.problem(key, fmt::format("block {} is not supported", quote(word)), "known: mamba, attention, mlp, moe");
    return;
  }
  const auto counted = reader.optional_int("num_hidden_layers", kLayerRange);
  if (blocks.empty() || (counted && *counted != std::ssize(blocks))) {
    reader.problem(key, blocks.empty()
                            ? "this architecture needs hybrid_override_pattern or layers_block_type"
                            : fmt::format("{} lists {} layers, num_hidden_layers is {}", key, blocks.size(), *counted));
    return;
  }
  const auto has = [&](std::size_t block) { return std::ranges::find(blocks, block) != blocks.end(); };
  Recurrent mamba;
  mamba.kind = RecurrentKind::mamba2;
  mamba.heads = reader.int_or("mamba_num_heads", 128, kWidthRange);
  mamba.key_heads = reader.int_or("n_groups", 8, kWidthRange);
  check_divisible(reader, "mamba_num_heads", mamba.heads, "n_groups", mamba.key_heads);
  mamba.key_dim = reader.int_or("ssm_state_size", 128, kHeadDimRange);
  mamba.value_dim = reader.int_or("mamba_head_dim", 64, kHeadDimRange);
  mamba.conv = reader.int_or("conv_kernel", 4, kConvRange);
  mamba.conv_bias = reader.bool_or("use_conv_bias", true);
  mamba.chunk = reader.int_or("chunk_size", 128, {1, 65'536});
  Experts experts;
  if (has(3)) {
    experts = read_counted_experts(reader, "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size");
    experts.shared_intermediate = reader.int_or("n_shared_experts", 1, {0, kExpertRange.max}) *
                                  reader.int_or("moe_shared_expert_intermediate_size", 0, {0, kWidthRange.max});
    experts.latent = reader.int_or("moe_latent_size", 0, {0, kWidthRange.max});
    experts.groups = reader.int_or("n_group", 1, kGroupRange);
    experts.groups_per_token = reader.int_or("topk_group", experts.groups, kGroupRange);
    if (std::string wrong = groups_problem(experts); !wrong.empty()) reader.problem("n_group", std::move(wrong));
    experts.score_correction = true;
  } else {
    reader.ignore(
        "n_routed_experts num_experts_per_tok moe_intermediate_size n_shared_experts n_group topk_group "
        "moe_shared_expert_intermediate_size moe_latent_size");
  }
  const std::int64_t width = config.layer.feed_forward.intermediate;
  std::vector<Layer> layers;
  for (const std::size_t block : blocks) {
    Layer layer = config.layer;
    layer.norms = 1;
    if (block == 0) recur(layer, mamba);
    if (block > 1) layer.attention = {};
    layer.feed_forward = block == 2   ? dense(layer.feed_forward, width)
                         : block == 3 ? routed(layer.feed_forward, experts)
                                      : FeedForward{};
    layers.push_back(layer);
  }
  config.set_layers(std::move(layers));
}

// An MLP in every layer, which shares its input with experts where there are any.
void make_granite_hybrid_layers(ConfigReader& config, Reader& reader) {
  FeedForward ff = config.layer.feed_forward;
  const std::int64_t shared = reader.int_or("shared_intermediate_size", 0, {0, kWidthRange.max});
  if (reader.int_or("num_local_experts", 0, {0, kExpertRange.max}) > 0) {
    Experts experts = read_counted_experts(reader, "num_local_experts", "num_experts_per_tok", "intermediate_size");
    experts.shared_intermediate = shared;
    ff = routed(ff, experts);
  } else {
    reader.ignore("num_experts_per_tok intermediate_size");
    ff = dense(ff, std::max<std::int64_t>(1, shared));
  }
  const std::vector<bool> recurs = config.second_of("layer_types", "attention mamba", none);
  const bool rotated = reader.string_or("position_embedding_type", "rope") == "rope";
  Recurrent mamba;
  if (std::ranges::count(recurs, true) > 0) {
    mamba = read_mamba2(reader);
  } else {
    reader.ignore(
        "mamba_n_heads mamba_n_groups mamba_d_state mamba_d_head mamba_d_conv mamba_conv_bias mamba_chunk_size");
  }
  reader.ignore("mamba_expand");
  config.each([&](Layer& layer, std::size_t i) {
    layer.feed_forward = ff;
    if (!rotated) layer.attention.rotary_dim = 0;
    if (recurs[i]) recur(layer, mamba);
  });
}

// Attention and Mamba-2 side by side in every layer.
void make_falcon_h1_layers(ConfigReader& config, Reader& reader) {
  Recurrent mamba = read_mamba2(reader);
  mamba.norms = reader.bool_or("mamba_rms_norm", false);
  const std::int64_t width = reader.int_or("mamba_d_ssm", mamba.values(), kWidthRange);
  if (width != mamba.values()) {
    reader.problem("mamba_d_ssm", fmt::format("mamba_d_ssm ({}) is not mamba_n_heads ({}) times mamba_d_head ({})",
                                              width, mamba.heads, mamba.value_dim));
  }
  for (Layer& layer : config.layers) layer.recurrent = mamba;
}

void make_jamba_layers(ConfigReader& config, Reader& reader) {
  const std::int64_t channels = reader.int_or("mamba_expand", 2, {1, 64}) * config.decoder.hidden;
  const Recurrent mamba =
      read_mamba(config, channels, "mamba_d_state", "mamba_d_conv", "mamba_conv_bias", "mamba_dt_rank");
  Experts experts;
  experts.count = reader.int_or("num_experts", 16, kExpertRange);
  experts.per_token = reader.int_or("num_experts_per_tok", 2, kExpertRange);
  if (experts.count > 1) check_experts(reader, "num_experts_per_tok", experts);
  experts.intermediate = config.layer.feed_forward.intermediate;
  const auto of = [&](std::string_view period, std::int64_t p, std::string_view offset, std::int64_t o) {
    const std::int64_t every = reader.int_or(period, p, kLayerRange);
    const std::int64_t first = reader.int_or(offset, o, {0, kLayerRange.max});
    return [every, first](std::size_t i) { return static_cast<std::int64_t>(i) % every == first % every; };
  };
  const auto attends = of("attn_layer_period", 8, "attn_layer_offset", 4);
  const auto routes = of("expert_layer_period", 2, "expert_layer_offset", 1);
  config.each([&](Layer& layer, std::size_t i) {
    if (!attends(i)) recur(layer, mamba);
    if (experts.count > 1 && routes(i)) layer.feed_forward = routed(layer.feed_forward, experts);
  });
}

void make_mamba_layers(ConfigReader& config, Reader& reader) {
  const std::int64_t usual = reader.int_or("expand", 2, {1, 64}) * config.decoder.hidden;
  const std::int64_t channels = reader.int_or("intermediate_size", usual, kWidthRange);
  Recurrent mamba = read_mamba(config, channels, "state_size", "conv_kernel", "use_conv_bias", "time_step_rank");
  mamba.norms = false;
  for (Layer& layer : config.layers) {
    recur(layer, mamba);
    layer.feed_forward = {};
    layer.norms = 1;
  }
}

void make_lfm2_layers(ConfigReader& config, Reader& reader) {
  Recurrent conv;
  conv.kind = RecurrentKind::short_conv;
  conv.heads = config.decoder.hidden;
  conv.key_heads = conv.key_dim = conv.value_dim = 1;
  conv.conv = reader.int_or("conv_L_cache", 3, kConvRange);
  const IntRange places = {0, static_cast<std::int64_t>(config.layers.size()) - 1};
  const std::vector<std::int64_t> full = reader.optional_ints("full_attn_idxs", places);
  const std::int64_t dense_layers = reader.int_or("num_dense_layers", 0, {0, kLayerRange.max});
  const std::int64_t width = config.layer.feed_forward.experts ? reader.int_or("intermediate_size", 1, kWidthRange) : 0;
  // Without a list all layers attend.
  const std::vector<bool> attends = config.second_of("layer_types", "conv full_attention", [&](std::int64_t i) {
    return full.empty() || std::ranges::find(full, i) != full.end();
  });
  config.each([&](Layer& layer, std::size_t i) {
    if (!attends[i]) recur(layer, conv);
    if (width > 0 && static_cast<std::int64_t>(i) < dense_layers) layer.feed_forward = dense(layer.feed_forward, width);
  });
}

// ---- Windows, heads and widths by layer

// Layers without a window have heads of their own; the last ones may use an earlier layer's keys and values.
void make_gemma4_layers(ConfigReader& config, Reader& reader) {
  Decoder& decoder = config.decoder;
  Attention full = config.layer.attention;
  full.head_dim = full.v_head_dim = reader.int_or("global_head_dim", full.head_dim, kHeadDimRange);
  full.kv_heads = reader.int_or("num_global_key_value_heads", full.kv_heads, kHeadRange);
  check_divisible(reader, "num_attention_heads", full.heads, "num_global_key_value_heads", full.kv_heads);
  full.no_v_proj = reader.bool_or("attention_k_eq_v", false);
  full.rotary_dim = full.head_dim;
  if (auto parameters = reader.optional_mapping("rope_parameters")) {
    if (auto of_full = parameters->optional_mapping("full_attention")) {
      const double share = of_full->optional_double("partial_rotary_factor", 0, 1).value_or(1);
      full.rotary_dim = static_cast<std::int64_t>(share * static_cast<double>(full.head_dim));
    }
  }
  const std::int64_t sharing = reader.int_or("num_kv_shared_layers", 0, {0, std::ssize(config.layers)});
  const bool wide = reader.bool_or("use_double_wide_mlp", false);
  decoder.layer_embedding_width = reader.int_or("hidden_size_per_layer_input", 0, {0, kWidthRange.max});
  decoder.layer_embedding_vocab = reader.int_or("vocab_size_per_layer_input", decoder.vocab, kVocabRange);
  if (decoder.layer_embedding_width == 0) decoder.layer_embedding_vocab = 0;
  std::optional<Experts> experts;
  if (reader.bool_or("enable_moe_block", false)) {
    experts = read_counted_experts(reader, "num_experts", "top_k_experts", "moe_intermediate_size");
    experts->router_scales = true;
  } else {
    reader.ignore("num_experts top_k_experts moe_intermediate_size expert_intermediate_size");
  }
  config.each([&](Layer& layer, std::size_t i) {
    if (!layer.attention.window) layer.attention = full;
    layer.attention.shares_cache = std::ssize(config.layers) - static_cast<std::int64_t>(i) <= sharing;
    if (layer.attention.shares_cache) layer.attention.no_v_proj = false;
    if (layer.attention.shares_cache && wide) layer.feed_forward.intermediate *= 2;
    layer.feed_forward.experts = experts;
    layer.scaled = true;
  });
}

void make_gemma3n_layers(ConfigReader& config, Reader& reader) {
  Decoder& decoder = config.decoder;
  decoder.streams = {StreamMix::altup, reader.int_or("altup_num_inputs", 4, {1, 64})};
  decoder.layer_embedding_width = reader.int_or("hidden_size_per_layer_input", 256, kWidthRange);
  decoder.layer_embedding_vocab = reader.int_or("vocab_size_per_layer_input", 262'144, kVocabRange);
  const std::int64_t rank = reader.int_or("laurel_rank", 64, kWidthRange);
  const std::int64_t sharing = reader.int_or("num_kv_shared_layers", 15, {0, std::ssize(config.layers)});
  const descriptor::Node* width = reader.find("intermediate_size");
  const bool listed = width != nullptr && width->kind != descriptor::Node::Kind::scalar;
  const auto widths = listed ? config.numbers_of_layers("intermediate_size", kWidthRange) : std::nullopt;
  const std::int64_t one = listed ? 1 : reader.int_or("intermediate_size", 16'384, kWidthRange);
  config.each([&](Layer& layer, std::size_t i) {
    layer.feed_forward.intermediate = widths ? (*widths)[i] : one;
    layer.low_rank_branch = rank;
    layer.attention.shares_cache = std::ssize(config.layers) - static_cast<std::int64_t>(i) <= sharing;
    layer.attention.unused_kv = layer.attention.shares_cache;
  });
}

// block_configs: of each block how many query heads share a KV head, and how wide its MLP is; either may be missing.
void make_nemotron_nas_layers(ConfigReader& config, Reader& reader) {
  std::vector<Reader> blocks = reader.optional_mappings("block_configs");
  if (blocks.size() != config.layers.size()) {
    reader.problem("block_configs", fmt::format("block_configs lists {} layers, num_hidden_layers is {}", blocks.size(),
                                                config.layers.size()));
    return;
  }
  constexpr std::int64_t kMultiple = 256;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Layer& layer = config.layers[i];
    if (auto attention = blocks[i].optional_mapping("attention")) {
      for (const char* other : {"replace_with_linear", "unshifted_sink"}) {
        if (attention->bool_or(other, false))
          attention->problem(other, fmt::format("{}: true is not supported", other));
      }
      for (const char* other : {"num_sink_tokens", "window_length", "sparsify"}) {
        if (attention->find(other) != nullptr) attention->problem(other, fmt::format("{} is not supported", other));
      }
      if (attention->bool_or("no_op", false)) {
        attention->ignore("n_heads_in_group");
        layer.attention = {};
      } else {
        const std::int64_t group = attention->require_int("n_heads_in_group", kHeadRange);
        check_divisible(reader, "num_attention_heads", layer.attention.heads, "n_heads_in_group", group);
        layer.attention.kv_heads = std::max<std::int64_t>(1, layer.attention.heads / group);
      }
      attention->ignore("use_prefill_window_in_sink_attention");
      attention->finish();
    }
    if (auto ffn = blocks[i].optional_mapping("ffn")) {
      if (ffn->bool_or("replace_with_linear", false)) {
        ffn->problem("replace_with_linear", "replace_with_linear: true is not supported");
      }
      if (ffn->bool_or("no_op", false)) {
        ffn->ignore("ffn_mult");
        layer.feed_forward = {};
      } else {
        const double factor = ffn->require_double("ffn_mult", 0, 64);
        const auto width = static_cast<std::int64_t>(2 * factor * static_cast<double>(config.decoder.hidden) / 3);
        layer.feed_forward.intermediate = std::max<std::int64_t>(1, (width + kMultiple - 1) / kMultiple) * kMultiple;
      }
      ffn->ignore("sparsify intermediate_size hidden_act gated moe");
      ffn->finish();
    }
    blocks[i].ignore("parallel_blocks");
    blocks[i].finish();
    layer.norms = (layer.attends() ? 1 : 0) + (layer.has_feed_forward() ? 1 : 0);
  }
}

// Three layers of four attend to their chunk; the fourth to everything, without rotation.
void make_llama4_layers(ConfigReader& config, Reader& reader) {
  const std::int64_t chunk = reader.int_or("attention_chunk_size", 8192, kPositionRange);
  const std::int64_t step = reader.int_or("interleave_moe_layer_step", 1, kLayerRange);
  const std::int64_t interval = reader.int_or("no_rope_layer_interval", 4, kLayerRange);
  const bool listed = reader.has("no_rope_layers") && !reader.optional_ints("no_rope_layers", kSwitch).empty();
  const auto rule = not_last_of(interval);
  const std::vector<bool> rotates = listed ? config.switched("no_rope_layers", rule) : config.of_layers(rule);
  const IntRange places = {0, static_cast<std::int64_t>(config.layers.size()) - 1};
  const std::vector<std::int64_t> routes = reader.optional_ints("moe_layers", places);
  Experts experts = read_counted_experts(reader, "num_local_experts", "num_experts_per_tok", "intermediate_size");
  experts.shared_intermediate = experts.intermediate;
  config.each([&](Layer& layer, std::size_t at) {
    const auto i = static_cast<std::int64_t>(at);
    if (rotates[at]) {
      layer.attention.window = chunk;
      layer.attention.chunked = true;
    } else {
      layer.attention.rotary_dim = 0;
    }
    if (routes.empty() ? last_of(step)(i) : std::ranges::find(routes, i) != routes.end()) {
      layer.feed_forward = routed(layer.feed_forward, experts);
    }
  });
}

// hybrid_layer_pattern: 1 a window with heads of its own, 0 full attention.
void make_mimo_v2_layers(ConfigReader& config, Reader& reader) {
  const std::vector<bool> slides = config.switched("hybrid_layer_pattern", none);
  const std::vector<bool> routes = config.switched("moe_layer_freq", all);
  const std::int64_t width = config.require(Fact::intermediate);
  Attention full = config.layer.attention;
  full.v_head_dim = reader.int_or("v_head_dim", full.head_dim, kHeadDimRange);
  full.sinks = reader.bool_or("add_full_attention_sink_bias", false);
  Attention window = full;
  window.heads = reader.int_or("swa_num_attention_heads", full.heads, kHeadRange);
  window.kv_heads = reader.int_or("swa_num_key_value_heads", full.kv_heads, kHeadRange);
  check_divisible(reader, "swa_num_attention_heads", window.heads, "swa_num_key_value_heads", window.kv_heads);
  window.head_dim = reader.int_or("swa_head_dim", full.head_dim, kHeadDimRange);
  window.v_head_dim = reader.int_or("swa_v_head_dim", window.head_dim, kHeadDimRange);
  window.rotary_dim = std::min(window.rotary_dim, window.head_dim);
  window.sinks = reader.bool_or("add_swa_attention_sink_bias", true);
  window.window = reader.int_or("sliding_window", 128, kPositionRange);
  config.each([&](Layer& layer, std::size_t i) {
    layer.attention = slides[i] ? window : full;
    if (!routes[i]) layer.feed_forward = dense(layer.feed_forward, width);
  });
}

// Windows have more heads; moe_layers_enum lists the layers with experts, in a text. Some files call experts by usual
// names and count the dense layers before them.
void make_step3_layers(ConfigReader& config, Reader& reader) {
  const std::vector<bool> slides = config.second_of("layer_types", kWindowTypes, none, true);
  Attention full = config.layer.attention;
  full.gate = OutputGate::head;
  Attention window = full;
  window.window = reader.int_or("sliding_window", 512, kPositionRange);
  constexpr std::int64_t kWindowHeads = 96;
  window.heads = kWindowHeads;  // of every published model
  if (auto other = reader.optional_mapping("attention_other_setting")) {
    window.heads = other->int_or("num_attention_heads", full.heads, kHeadRange);
    window.kv_heads = other->int_or("num_attention_groups", full.kv_heads, kHeadRange);
    window.head_dim = window.v_head_dim = other->int_or("head_dim", full.head_dim, kHeadDimRange);
    other->ignore("attention_type true_head_dim");
    other->finish();
  }
  const bool usual = !reader.has("moe_num_experts") && reader.has("num_experts");
  Experts experts = usual ? read_counted_experts(reader, "num_experts", "num_experts_per_tok", "moe_intermediate_size")
                          : read_counted_experts(reader, "moe_num_experts", "moe_top_k", "moe_intermediate_size");
  experts.shared_intermediate = reader.int_or("share_expert_dim", 0, {0, kWidthRange.max});
  experts.score_correction = reader.bool_or("use_moe_router_bias", true);
  std::vector<bool> routes(config.layers.size(), false);
  const auto leading = reader.optional_int("first_k_dense_replace", {0, kLayerRange.max});
  for (std::size_t i = 0; i < routes.size() && leading; ++i) routes[i] = static_cast<std::int64_t>(i) >= *leading;
  const std::string listed =
      leading ? reader.string_or("moe_layers_enum", "") : reader.require_string("moe_layers_enum");
  for (const std::string_view word : llmperf::split(listed, ',')) {
    if (trim(word).empty()) continue;
    const auto i = parse_int(trim(word));
    if (i && *i >= 0 && static_cast<std::size_t>(*i) < routes.size()) {
      routes[static_cast<std::size_t>(*i)] = true;
    } else {
      reader.problem("moe_layers_enum", fmt::format("{} is no layer of this model", quote(std::string(word))));
      return;
    }
  }
  config.each([&](Layer& layer, std::size_t i) {
    layer.attention = slides[i] ? window : full;
    if (routes[i]) layer.feed_forward = routed(layer.feed_forward, experts);
  });
}

// no_rope_layers: 0 where a layer is not rotated.
void make_smollm3_layers(ConfigReader& config, Reader& reader) {
  const std::int64_t interval = reader.int_or("no_rope_layer_interval", 4, kLayerRange);
  const std::vector<bool> rotates = config.switched("no_rope_layers", not_last_of(interval));
  config.each([&](Layer& layer, std::size_t i) {
    if (!rotates[i]) layer.attention.rotary_dim = 0;
  });
}

// ---- Feed-forward parts by layer

// Each layer is two of attention and an MLP; the experts take the first one's input and their result joins after the
// second, so that they can run beside it.
void make_longcat_layers(ConfigReader& config, Reader& reader) {
  const std::int64_t width = config.require(Fact::intermediate);
  const std::int64_t identity = reader.int_or("zero_expert_num", 0, {0, kExpertRange.max});
  constexpr std::array<std::string_view, 1> kIdentity = {"identity"};
  reader.choice("zero_expert_type", kIdentity, 0);
  std::vector<Layer> layers;
  for (const Layer& each : config.layers) {
    Layer first = each;
    first.feed_forward.intermediate = width;
    first.feed_forward.experts->identity = identity;
    Layer second = each;
    second.feed_forward = dense(each.feed_forward, width);
    layers.push_back(first);
    layers.push_back(second);
  }
  config.decoder.notes = "each published layer is two here: attention and an MLP, the first with experts beside it";
  config.set_layers(std::move(layers));
}

void make_ernie_layers(ConfigReader& config, Reader& reader) {
  const std::int64_t width = config.require(Fact::intermediate);
  const std::int64_t first = reader.int_or("moe_layer_start_index", 1, {0, kLayerRange.max});
  const std::int64_t last = reader.int_or("moe_layer_end_index", -1, {-1, kLayerRange.max});
  const std::int64_t interval = reader.int_or("moe_layer_interval", 1, kLayerRange);
  config.each([&](Layer& layer, std::size_t at) {
    const auto i = static_cast<std::int64_t>(at);
    const bool routes = i >= first && (last < 0 || i <= last) && (i + 1) % interval == 0;
    if (!routes) layer.feed_forward = dense(layer.feed_forward, width);
  });
}

void make_dbrx_layers(ConfigReader& config, Reader& reader) {
  Layer layer = config.layers.front();
  if (auto attention = reader.optional_mapping("attn_config")) {
    layer.attention.kv_heads = attention->int_or("kv_n_heads", layer.attention.heads, kHeadRange);
    check_divisible(reader, "n_heads", layer.attention.heads, "kv_n_heads", layer.attention.kv_heads);
    attention->ignore("model_type clip_qkv attn_pdrop rope_theta");
    attention->finish();
  }
  if (auto ffn = reader.optional_mapping("ffn_config")) {
    layer.feed_forward =
        routed(layer.feed_forward, read_counted_experts(*ffn, "moe_num_experts", "moe_top_k", "ffn_hidden_size"));
    ffn->ignore(
        "model_type moe_jitter_eps moe_loss_weight ffn_act_fn moe_normalize_expert_weights "
        "uniform_expert_assignment");
    ffn->finish();
  } else {
    reader.problem("ffn_config", "missing key 'ffn_config'");
  }
  std::ranges::fill(config.layers, layer);
}

// Every global_attn_every_n_layers-th layer, from the first on, reads the whole text, the others a window around each
// token. The first layer has no norm before attention, but one follows the embedding, which is counted as that.
void make_modernbert_layers(ConfigReader& config, Reader& reader) {
  const std::int64_t every = reader.int_or("global_attn_every_n_layers", 3, kLayerRange);
  const std::int64_t window = reader.int_or("local_attention", 128, kPositionRange);
  const std::vector<bool> local =
      config.second_of("layer_types", kWindowTypes, [&](std::int64_t i) { return i % every != 0; });
  config.each([&](Layer& layer, std::size_t i) {
    if (local[i]) layer.attention.window = window;
  });
}

// Keys that only one architecture's config has, and that mean the same for all of its layers.

// The config counts heads times kv_channels, and says whether there is no bias but that of the fused q, k, v matrix.
void read_qwen_keys(ConfigReader& config, Reader& reader) {
  const Attention& attention = config.layer.attention;
  if (attention.heads * attention.head_dim != config.decoder.hidden && is_sound(reader, "hidden_size", kHiddenRange) &&
      is_sound(reader, "num_attention_heads", kHeadRange)) {
    reader.problem("hidden_size", fmt::format("hidden_size ({}) is not num_attention_heads ({}) times kv_channels ({})",
                                              config.decoder.hidden, attention.heads, attention.head_dim));
  }
  const bool biases = !reader.bool_or("no_bias", true);
  config.layer.attention.o_bias = config.layer.feed_forward.bias = biases;
}

// Keys of Qwen3-Coder-480B's own file: other names, or parts that this architecture has never had.
void read_qwen3_moe_keys(ConfigReader& config, Reader& reader) {
  if (reader.bool_or("qkv_bias", false)) config.layer.attention.qkv_bias = true;
  if (reader.int_or("shared_expert_intermediate_size", 0, {0, kWidthRange.max}) != 0) {
    reader.problem("shared_expert_intermediate_size", "shared experts are not supported for this architecture");
  }
}

void read_chatglm_keys(ConfigReader& config, Reader& reader) {
  Attention& attention = config.layer.attention;
  if (!reader.bool_or("multi_query_attention", false)) attention.kv_heads = attention.heads;
  attention.qkv_bias = attention.qkv_bias || attention.o_bias;
  config.decoder.norm = reader.bool_or("rmsnorm", true) ? Norm::rms : Norm::layer;
  if (reader.find("pre_seq_len") != nullptr) reader.problem("pre_seq_len", "prefix tuning is not supported");
  if (reader.int_or("quantization_bit", 0, {0, 64}) != 0) {
    reader.problem("quantization_bit", "quantization_bit is not supported", "remove it and choose with `weights`");
  }
}

// One width for all shared experts, or as many as are counted of a routed one's.
void read_bailing_keys(ConfigReader& config, Reader& reader) {
  Experts& experts = *config.layer.feed_forward.experts;
  const std::int64_t width = reader.int_or("moe_shared_expert_intermediate_size", experts.intermediate, kWidthRange);
  experts.shared_intermediate = width * reader.int_or("num_shared_experts", 0, {0, kExpertRange.max});
}

// A number for all layers, or a list of one for each, which are the same in every published file.
std::int64_t one_number(Reader& reader, std::string_view key, descriptor::IntRange range) {
  const descriptor::Node* node = reader.find(key);
  if (node == nullptr || node->kind == descriptor::Node::Kind::scalar) return reader.require_int(key, range);
  const std::vector<std::int64_t> numbers = reader.optional_ints(key, range);
  if (numbers.empty()) return range.min;
  if (std::ranges::count(numbers, numbers.front()) != std::ssize(numbers)) {
    reader.problem(key, fmt::format("{} that differ by layer are not supported", key));
  }
  return numbers.front();
}

void read_hunyuan_keys(ConfigReader& config, Reader& reader) {
  Experts experts;
  experts.count = one_number(reader, "num_experts", kExpertRange);
  experts.per_token = one_number(reader, "moe_topk", kExpertRange);
  check_experts(reader, "moe_topk", experts);
  experts.intermediate = one_number(reader, "moe_intermediate_size", kWidthRange);
  experts.shared_intermediate = experts.intermediate * one_number(reader, "num_shared_expert", {0, kExpertRange.max});
  config.layer.feed_forward.experts = experts;
  config.layer.feed_forward.intermediate = 0;
}

// The first architecture has one KV head and one norm for both blocks; the second groups of heads and two norms.
void read_falcon_keys(ConfigReader& config, Reader& reader) {
  Layer& layer = config.layer;
  const bool grouped = reader.bool_or("new_decoder_architecture", false);
  const bool one_head = reader.bool_or("multi_query", true);
  if (!grouped) layer.attention.kv_heads = one_head ? 1 : layer.attention.heads;
  layer.parallel_blocks = grouped || reader.bool_or("parallel_attn", true);
  layer.norms = grouped && reader.int_or("num_ln_in_parallel_attn", 2, {1, 2}) == 2 ? 2 : layer.parallel_blocks ? 1 : 2;
}

void read_mpt_keys(ConfigReader& config, Reader& reader) {
  Layer& layer = config.layer;
  layer.feed_forward.intermediate = config.decoder.hidden * reader.int_or("expansion_ratio", 4, {1, 64});
  const bool biased = !reader.bool_or("no_bias", true);
  layer.attention.qkv_bias = layer.attention.o_bias = layer.feed_forward.bias = biased;
  if (biased) config.decoder.norm = Norm::layer;
  auto attention = reader.optional_mapping("attn_config");
  if (!attention) return;
  layer.attention.kv_heads = attention->int_or("kv_n_heads", layer.attention.heads, kHeadRange);
  if (!attention->bool_or("alibi", false)) {
    attention->problem("alibi", "positions other than ALiBi are not supported for this architecture");
  }
  for (const char* other : {"qk_ln", "prefix_lm"}) {
    if (attention->bool_or(other, false)) attention->problem(other, fmt::format("{}: true is not supported", other));
  }
  attention->ignore(
      "alibi_bias_max attn_impl attn_pdrop attn_type attn_uses_sequence_id clip_qkv softmax_scale "
      "model_type rope rope_theta");
  attention->finish();
}

void read_bert_keys(ConfigReader& config, Reader& reader) {
  config.decoder.type_embeddings = reader.int_or("type_vocab_size", 2, {0, kVocabRange.max});
  config.decoder.pooler = true;
  config.decoder.final_norm = false;
}

// The MLP is two thirds of the width that is said, rounded up.
void read_lfm2_keys(ConfigReader& config, Reader& reader) {
  const bool usual = reader.has("intermediate_size") && !reader.has("block_ff_dim");
  std::int64_t width = reader.require_int(usual ? "intermediate_size" : "block_ff_dim", kWidthRange);
  reader.ignore("intermediate_size");
  if (reader.bool_or("block_auto_adjust_ff_dim", true)) {
    const double factor = reader.optional_double("block_ffn_dim_multiplier", 0, 64).value_or(1);
    const std::int64_t multiple = reader.int_or("block_multiple_of", 256, kWidthRange);
    const std::int64_t two_thirds = 2 * width / 3;
    width = static_cast<std::int64_t>(factor * static_cast<double>(two_thirds));
    width = std::max<std::int64_t>(1, (width + multiple - 1) / multiple) * multiple;
  }
  config.layer.feed_forward.intermediate = width;
}

void read_bigcode_keys(ConfigReader& config, Reader& reader) {
  if (reader.bool_or("multi_query", true)) config.layer.attention.kv_heads = 1;
}

// Both blocks read the residual stream, each behind a norm of its own.
void read_neox_keys(ConfigReader& config, Reader& reader) {
  config.layer.parallel_blocks = reader.bool_or("use_parallel_residual", true);
}

}  // namespace llmperf::model
