// Random small decoders for property tests, the same ones on every run: every kind of attention and feed-forward that
// the graph builder tells apart.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <vector>

#include "graph/decoder_graph.h"
#include "graph/plan.h"
#include "model/gguf/file.h"

namespace llmperf::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::int64_t in(std::int64_t first, std::int64_t last) {
    return first + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(last - first + 1));
  }
  bool chance() { return in(0, 1) == 1; }

 private:
  std::mt19937_64 engine_;
};

inline model::Attention random_attention(Random& random) {
  model::Attention a;
  a.kv_heads = random.in(1, 4);
  a.heads = a.kv_heads * random.in(1, 4);
  a.head_dim = 16 * random.in(1, 8);
  a.v_head_dim = a.head_dim;
  a.rotary_dim = random.chance() ? a.head_dim : 0;
  if (random.chance()) a.window = random.in(1, 300);
  a.qkv_bias = random.chance();
  a.o_bias = random.chance();
  a.qk_norm = random.chance() ? model::QkNorm::head : model::QkNorm::none;
  a.softcap = random.chance();
  a.fused_qkv = random.chance();
  if (random.in(0, 3) == 0) {
    a.kv_heads = a.heads;
    a.window.reset();
    a.v_head_dim = 16 * random.in(1, 8);
    a.latent = model::LatentAttention{.q_lora_rank = std::nullopt,
                                      .kv_lora_rank = 16 * random.in(1, 32),
                                      .rope_dim = 16,
                                      .nope_dim = 16 * random.in(1, 8)};
    if (random.chance()) a.latent->q_lora_rank = 16 * random.in(1, 8);
    a.head_dim = a.latent->rope_dim + a.latent->nope_dim;
  }
  return a;
}

inline model::FeedForward random_feed_forward(Random& random) {
  model::FeedForward f;
  f.intermediate = 32 * random.in(1, 40);
  f.gated = random.chance();
  f.bias = random.chance();
  f.fused_gate_up = f.gated && random.chance();
  if (random.chance()) return f;
  f.intermediate = 0;
  model::Experts e;
  e.count = random.in(2, 40);
  e.per_token = random.in(1, e.count);
  e.intermediate = 32 * random.in(1, 10);
  e.shared_intermediate = random.chance() ? 64 : 0;
  e.shared_gate = random.chance();
  e.router_bias = random.chance();
  f.experts = e;
  return f;
}

// Attention and an MLP or experts in every layer.
inline model::Decoder plain_decoder(Random& random) {
  model::Decoder m;
  m.name = "random";
  m.hidden = 32 * random.in(1, 24);
  m.vocab = random.in(100, 5000);
  m.norm = random.chance() ? model::Norm::rms : model::Norm::layer;
  m.tied_embeddings = random.chance();
  m.lm_head_bias = random.chance();
  m.position_embeddings = random.chance() ? 1024 : 0;
  const std::int64_t kinds = random.in(1, 3);
  for (std::int64_t kind = 0; kind < kinds; ++kind) {
    model::Layer layer;
    layer.attention = random_attention(random);
    layer.feed_forward = random_feed_forward(random);
    layer.parallel_blocks = random.in(0, 3) == 0;
    layer.norms = layer.parallel_blocks ? 1 : random.chance() ? 2 : 4;
    for (std::int64_t i = random.in(1, 6); i > 0; --i) m.add_layer(layer);
  }
  return m;
}

inline model::Recurrent random_recurrent(Random& random) {
  model::Recurrent r;
  r.kind = static_cast<model::RecurrentKind>(random.in(0, 5));
  r.key_heads = random.in(1, 4);
  r.heads = r.key_heads * random.in(1, 4);
  r.key_dim = 16 * random.in(1, 8);
  r.value_dim = 16 * random.in(1, 8);
  r.conv = random.chance() ? 4 : 0;
  r.conv_bias = r.conv > 0 && random.chance();
  r.norms = random.chance();
  r.chunk = random.in(16, 128);
  if (r.kind == model::RecurrentKind::kimi_delta && random.chance()) r.gate_rank = 16 * random.in(1, 4);
  if (r.kind == model::RecurrentKind::mamba || r.kind == model::RecurrentKind::short_conv) {
    r.heads = 32 * random.in(1, 16);
    r.key_heads = r.value_dim = 1;
    r.conv = 4;
    r.gate_rank = r.kind == model::RecurrentKind::mamba ? 16 * random.in(1, 4) : 0;
    if (r.gate_rank == 0) r.key_dim = 1;
  }
  return r;
}

// Gates, norms over all heads, values that are the keys, caches of other layers, chosen and compressed keys.
inline void vary_attention(Random& random, model::Attention& a) {
  a.gate = static_cast<model::OutputGate>(a.latent ? 2 * random.in(0, 1) : random.in(0, 3));
  a.sinks = random.chance();
  if (a.window && random.in(0, 2) == 0) a.chunked = true;
  if (!a.latent) {
    a.qk_norm = static_cast<model::QkNorm>(random.in(0, 2));
    a.no_v_proj = random.in(0, 3) == 0;
    a.shares_cache = random.in(0, 3) == 0;
  }
  if (random.in(0, 2) > 0 || a.shares_cache) return;
  model::Indexer x{.heads = 4 * random.in(1, 4), .head_dim = 32, .top_k = random.in(8, 400)};
  x.from_hidden = random.chance();
  x.weighted = random.chance();
  x.reused = random.in(0, 3) == 0;
  if (a.latent || random.chance()) {
    a.window.reset();
    a.chunked = false;
    a.softcap = false;
    x.pool = a.latent ? 1 : 16 * random.in(1, 3);
    a.indexer = x;
    return;
  }
  a = {.heads = a.heads, .kv_heads = 1, .head_dim = a.head_dim, .v_head_dim = a.head_dim, .rotary_dim = 16};
  a.window = random.in(1, 200);
  a.one_vector = true;
  a.low_rank = {.query_rank = 32, .output_rank = 32, .output_groups = a.heads};
  a.compression = {.ratio = random.chance() ? 4 : 32};
  a.compression->overlaps = a.compression->ratio == 4;
  if (!a.compression->overlaps) return;
  x.top_k = 1 + x.top_k / 8;
  x.cached_bits = 4;
  x.reused = x.from_hidden = false;
  a.indexer = x;
}

inline void vary_layer(Random& random, model::Layer& layer, bool norms_after) {
  const std::int64_t mixer = random.in(0, 7);
  if (mixer < 3) layer.recurrent = random_recurrent(random);
  if (mixer == 1 || mixer == 2 || mixer == 3) layer.attention = {};  // 3: a layer that mixes nothing
  if (layer.attends()) vary_attention(random, layer.attention);
  model::FeedForward& f = layer.feed_forward;
  if (layer.mixes() && random.in(0, 3) == 0) {
    f = {};
  } else if (f.experts) {
    if (random.in(0, 2) == 0) f.intermediate = 32 * random.in(1, 20);
    if (random.in(0, 2) == 0) f.experts->identity = random.in(1, 20);
    if (random.in(0, 2) == 0) f.experts->latent = 32 * random.in(1, 8);
    f.experts->latent_norm = f.experts->latent > 0 && random.chance();
  }
  layer.norms_after = norms_after;
  layer.scaled = random.chance();
  if (norms_after || !layer.mixes() || !layer.has_feed_forward()) {
    layer.parallel_blocks = false;
    layer.norms = layer.mixes() && layer.has_feed_forward() ? 2 : 1;
  } else if (layer.parallel_blocks && random.chance()) {
    layer.norms = 2;
  }
  if (layer.attends() && !layer.recurrent && !layer.parallel_blocks && random.in(0, 5) == 0) layer.low_rank_branch = 16;
}

// Every second one of layers that newer models have besides. What came later is drawn apart, so that the cases of a
// seed stay what they were.
inline model::Decoder random_decoder(Random& random) {
  model::Decoder plain = plain_decoder(random);
  Random later(static_cast<std::uint64_t>(plain.vocab * plain.hidden + plain.num_layers()));
  if (later.chance()) return plain;
  const bool norms_after = later.in(0, 4) == 0;
  std::vector<model::Layer> kinds = plain.kinds;
  for (model::Layer& layer : kinds) vary_layer(later, layer, norms_after);
  model::Decoder m = plain;
  m.kinds.clear();
  m.layer_kinds.clear();
  m.kind_counts.clear();
  for (const unsigned char kind : plain.layer_kinds) m.add_layer(kinds[kind]);
  m.embedding_norm = later.chance();
  m.final_norm = !norms_after || later.chance();
  if (later.in(0, 4) == 0) m.layer_embedding_width = 16 * later.in(1, 4), m.layer_embedding_vocab = m.vocab;
  if (!norms_after && later.in(0, 3) == 0) {
    m.streams = {.mix = later.chance() ? model::StreamMix::altup : model::StreamMix::hyper_connections,
                 .count = later.in(2, 4)};
  }
  return m;
}

inline hardware::RuntimeOptions random_options(Random& random) {
  hardware::RuntimeOptions o;
  o.flash_attention = random.chance();
  o.fused_qkv = random.chance();
  o.fused_gate_up = random.chance();
  o.fused_add_norm = random.chance();
  o.fused_rope = random.chance();
  o.fused_activation = random.chance();
  o.static_kv = random.chance();
  o.last_token_logits = random.chance();
  o.attention_query_tile = random.chance() ? random.in(1, 64) : 0;
  // What came later is drawn apart, so that the cases of a seed stay what they were.
  int switches = 0;
  for (const std::string& name : hardware::runtime_option_names()) {
    hardware::RuntimeOptions on = o;
    set_option(on, name, true);
    switches = 2 * switches + (on == o ? 1 : 0);
  }
  Random later(static_cast<std::uint64_t>(1000 * o.attention_query_tile + switches));
  o.fused_norm = later.chance();
  o.overlap_collectives = later.chance();
  o.chains = static_cast<hardware::Chains>(later.in(0, 2));
  o.allocated_kv = later.chance() ? later.in(1, 2000) : 0;
  o.fused_all_reduce_norm = later.chance();
  o.fused_mla_prolog = later.chance();
  return o;
}

// Layers stored in one of a few mixtures of ggml types, as a GGUF file may hold them; nothing on the host.
inline model::WeightLayout random_mixture(Random& random, const model::Decoder& m) {
  static constexpr model::GgmlType kTypes[] = {model::GgmlType::f16, model::GgmlType::q8_0, model::GgmlType::q6_k,
                                               model::GgmlType::q4_k, model::GgmlType::iq2_xxs};
  const auto format = [&] { return model::stored_format(kTypes[random.in(0, 4)]); };
  std::vector<model::RoleFormats> mixtures(3);
  for (model::RoleFormats& mixture : mixtures) {
    for (model::StoredFormat& each : mixture) each = format();
  }
  model::WeightLayout layout{.name = "mixture", .vector_bits = 32, .gguf = true};
  layout.token_embedding = format();
  layout.position_embedding = format();
  layout.lm_head = m.tied_embeddings ? layout.token_embedding : format();
  for (std::size_t i = 0; i < m.layer_kinds.size(); ++i) {
    const model::RoleFormats& mixture = mixtures[static_cast<std::size_t>(random.in(0, 2))];
    const auto same = std::find_if(layout.groups.begin(), layout.groups.end(), [&](const model::LayerGroup& group) {
      return group.kind == m.layer_kinds[i] && group.formats == mixture;
    });
    model::LayerGroup& group = same != layout.groups.end() ? *same : layout.groups.emplace_back();
    group.kind = m.layer_kinds[i];
    group.formats = mixture;
    group.layers.push_back(static_cast<std::int64_t>(i));
  }
  return layout;
}

// How `m` may be executed; `m` must outlive it.
inline graph::Execution random_execution(Random& random, const model::Decoder& m) {
  static const char* const kSchemes[] = {"bf16", "fp8", "int8", "w8a8", "w4a16-g32", "mxfp4", "4.5"};
  static const char* const kCaches[] = {"bf16", "fp8", "int4", "q8_0"};
  graph::Execution e;
  e.model = &m;
  e.weights = random.in(0, 2) == 0 ? random_mixture(random, m)
                                   : model::uniform_layout(m, model::parse_weight_scheme(kSchemes[random.in(0, 6)]));
  e.kv.keys = model::parse_kv_scheme(kCaches[random.in(0, 3)]);
  e.kv.values = random.chance() ? e.kv.keys : model::parse_kv_scheme(kCaches[random.in(0, 3)]);
  e.runtime = random_options(random);
  return e;
}

// A legal plan for `m`, one axis after the other: each takes one of the degrees that the axes before it leave legal.
// Experts beyond the tensor axis need replicas to lie on, so the two are drawn together.
inline graph::Plan random_plan(Random& random, const model::Decoder& m) {
  graph::Plan plan;
  const auto draw = [&](auto&& degrees_of) {
    std::vector<graph::Plan> choices;
    for (std::int64_t degree = 1; degree <= 16; ++degree) {
      graph::Plan candidate = plan;
      degrees_of(candidate, degree);
      if (graph::legal(m, candidate)) choices.push_back(candidate);
    }
    if (!choices.empty()) plan = choices[static_cast<std::size_t>(random.in(0, std::ssize(choices) - 1))];
  };
  if (random.in(0, 2) > 0) draw([](graph::Plan& p, std::int64_t degree) { p.tensor = degree; });
  if (random.chance()) draw([](graph::Plan& p, std::int64_t degree) { p.ulysses = degree; });
  if (random.chance()) draw([](graph::Plan& p, std::int64_t degree) { p.ring = degree; });
  if (random.chance()) draw([](graph::Plan& p, std::int64_t degree) { p.pipeline = degree; });
  if (random.chance()) plan.data = random.in(1, 3);
  if (random.chance()) {
    draw([](graph::Plan& p, std::int64_t degree) { p.expert = degree; });
  } else {
    draw([](graph::Plan& p, std::int64_t degree) {
      p.data = degree;
      p.expert = p.tensor * degree;
    });
  }
  plan.shard_embedding = random.chance();
  if (random.chance()) draw([](graph::Plan& p, std::int64_t degree) { p.tensor_rows = degree; });
  plan.sequence_parallel = plan.tensor > 1 && plan.tensor_rows == 0 && random.chance();
  return plan;
}

// Layers dealt to the plan's stages as evenly as their number allows.
inline graph::StageSplit even_split(const model::Decoder& m, const graph::Plan& plan) {
  graph::StageSplit split{.stages = plan.pipeline, .first = {}};
  for (std::int64_t i = 0; i <= plan.pipeline; ++i) split.first.push_back(i * m.num_layers() / plan.pipeline);
  return split;
}

// The smallest prompt, and batch of one replica, that every axis of the plan divides.
inline std::int64_t smallest_prompt(const graph::Plan& plan) { return graph::sequence_pieces(plan) * plan.tensor; }
inline std::int64_t smallest_batch(const graph::Plan& plan) { return plan.expert * plan.pipeline; }

}  // namespace llmperf::test
