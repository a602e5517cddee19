// The ops of one decoder step, in execution order:
//
//   embed, input_norm,
//   per layer kind: qkv, [q/k norm], rope, kv_write, attention, o_proj, [add,] norm, gate_up, act, down, [add, norm]
//   [final_norm,] lm_head, sampling
//
// Layers of one kind are described once and counted. A residual add and the norm after it are one op when the runtime
// fuses them; the norm after a layer's last add is the next layer's first or the final one, so with L layers there are
// always 2L adds and 2L + 1 norms (GPT-style pre-norm), fused or not.
//
// Layers left on the host run there, but for a step of many tokens, which the device computes with the layer's weights
// and cache sent over the link for the occasion; new keys and values go back to it. The residual stream moves when the
// place changes. A GGUF model takes a long step in micro-batches.
//
// Where chains of element-wise operations are kernels of their own (hardware::Chains) a vector op stands for those of a
// chain, and the step has what such stacks run besides: mask_prepare before the layers, rope_tables, split_qkv (of a
// fused product), mask (of a fused attention over an allocated cache) or merge_heads, copies of the weights whose
// products run beside their sum, and logits_to_fp32. A cache that grows is written by kv_concat alone.
//
// A plan (plan.h) divides the shapes, which are then those of one device, and adds what the devices exchange:
//
//   tensor axis        after o_proj, after down_proj and after the embedding an all-reduce of [tokens, hidden]; with
//                      sequence parallelism an all-gather before qkv and gate_up and a reduce-scatter in its place
//   ulysses            all-to-all of q, k, v before attention and of its result after
//   ring               the keys and values of every other rank, passed round beside attention
//   experts            beyond the tensor axis an all-to-all of tokens, each once to every device that has experts of
//                      it, and of their results back
//   pipeline           the residual stream from stage to stage
//
// With joined_vectors products take over the vector work beside them: see StepWriter.
#include "graph/decoder_graph.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/projection_writer.h"

namespace llmperf::graph {
namespace {

using model::Layer;

class Builder : private ProjectionWriter {
 public:
  Builder(const Execution& execution, std::span<const SequenceGroup> step, Part part, Graph& graph)
      : ProjectionWriter(execution, step, graph), part_(part) {}

  void build() {
    graph_.clear();
    const bool all = part_ == Part::all;
    if (all) each_batch([&] { embed(); });
    prepare_masks();
    for (const model::LayerGroup& group : e_.weights.groups) {
      const Layer layer = shard(m_.kinds[group.kind], p_);
      if (all) each_batch([&] { move_to(place_for(group.on_host, tokens_), tokens_); });
      group_ = &group;
      kind_ = static_cast<int>(group.kind);
      count_ = group.count();
      if (all) each_batch([&] { before_attention(layer); });
      attention(layer.attention, part_);
      if (all) each_batch([&] { after_attention(layer); });
      group_ = nullptr;
      kind_ = -1;
      count_ = 1;
    }
    if (!all) return;
    if (p_.pipeline > 1) send_stages();
    if (o_.last_token_logits && !e_.training) {
      load(batches_[batch_count_ - 1]);
      times_ = 1;
      head();
    } else {
      each_batch([&] { head(); });
    }
    if (e_.training) {
      loss();
    } else {
      sample();
    }
  }

 private:
  // Every device of a stage sends its share of the residual stream to its neighbour in the next one.
  void send_stages() {
    each_batch([&] {
      exchange("stage_send", CollectiveKind::send, Axis::pipeline, p_.pipeline, static_cast<double>(residual_tokens()),
               static_cast<double>(residual_width()), false, false, p_.pipeline - 1);
    });
  }
  void embed() {
    place_ = residual_ = e_.weights.embedding_on_host ? Place::host : Place::device;
    push("embed", Gather{.rows = tokens_,
                         .width = residual_width(),
                         .table = &e_.weights.token_embedding,
                         .activation = e_.activations});
    if (p_.shard_embedding) reduce_tokens("embed_reduce", "embed_scatter", tokens_);
    if (m_.position_embeddings > 0) vector("add_positions", VectorKind::add, residual_tokens(), residual_width(), 2, 1);
    dropout("embed_dropout", residual_tokens(), residual_width());
    move_to(place_for(e_.weights.groups.front().on_host, tokens_), tokens_);
    norm("input_norm");  // of the first layer; the others' follow the previous layer's add
  }

  void after_attention(const Layer& layer) {
    const model::Attention& a = layer.attention;
    exchange_heads("o_all_to_all", a.heads * a.v_head_dim);
    if (!layer.parallel_blocks) {
      transpose_for_overlap("o_proj_transpose", m_.hidden, a.heads * a.v_head_dim, format(Role::o));
    }
    linear("o_proj", Split::inputs, tokens_, m_.hidden, a.heads * a.v_head_dim, a.o_bias, format(Role::o));
    // Blocks side by side add up before they are summed over the ranks, unless the experts' results are whole.
    if (!layer.parallel_blocks || spreads_experts(layer)) {
      reduce_tokens("attention_reduce", "attention_scatter", tokens_);
    }
    if (layer.norms == 4) norm("post_attention_norm");
    dropout("attention_dropout", residual_tokens(), residual_width());
    if (!layer.parallel_blocks) {
      add_and_norm("attention_add", "mlp_norm", "attention_add_norm", 2);
      if (!spreads_experts(layer)) gather_tokens("mlp_gather", tokens_);
    }
    if (layer.feed_forward.experts) {
      experts(layer.feed_forward, *layer.feed_forward.experts);
    } else {
      mlp(layer.feed_forward, layer.feed_forward.intermediate, {Role::gate, Role::up, Role::down},
          layer.parallel_blocks ? Input::shared : Input::gathered);
      reduce_tokens("mlp_reduce", "mlp_scatter", tokens_);
    }
    if (layer.norms == 4) norm("post_mlp_norm");
    dropout("mlp_dropout", residual_tokens(), residual_width());
    // The norm that follows is the next layer's input norm, or the final norm.
    add_and_norm("mlp_add", "next_norm", "mlp_add_norm", layer.parallel_blocks ? 3 : 2);
  }

  void activate(std::string_view name, std::int64_t rows, std::int64_t width, bool gated) {
    if (Gemm* product = product_of(rows, gated ? 2 * width : width)) {
      product->joined.output = gated ? VectorKind::gated_activation : VectorKind::activation;
      product->joined.share = product->joined.results = gated ? 0.5 : 1;
      return;
    }
    if (!gated || o_.fused_activation || chains_ == hardware::Chains::compiled) {
      vector(name, gated ? VectorKind::gated_activation : VectorKind::activation, rows, width, gated ? 2 : 1, 1);
      keeps(static_cast<double>(rows * width * (gated ? 2 : 1)));
    } else {
      vector(name, VectorKind::activation, rows, width, 1, 1);
      keeps(static_cast<double>(rows * width));
      vector("multiply_gate", VectorKind::multiply, rows, width, 2, 1);
      keeps(static_cast<double>(2 * rows * width));
    }
  }

  struct MlpRoles {
    Role gate, up, down;
  };
  void mlp(const model::FeedForward& f, std::int64_t width, const MlpRoles& roles, Input input) {
    if (!f.gated) {
      linear("up_proj", Split::outputs, tokens_, width, m_.hidden, f.bias, format(roles.up), 1, input);
    } else if ((o_.fused_gate_up || f.fused_gate_up) && same_format(roles.gate, roles.up)) {
      linear("gate_up_proj", Split::outputs, tokens_, 2 * width, m_.hidden, f.bias, format(roles.up), 1, input);
    } else {
      linear("gate_proj", Split::outputs, tokens_, width, m_.hidden, f.bias, format(roles.gate), 1, input);
      linear("up_proj", Split::outputs, tokens_, width, m_.hidden, f.bias, format(roles.up), 1, Input::shared);
    }
    activate("activation", tokens_, width, f.gated);
    if (!f.experts) transpose_for_overlap("down_proj_transpose", m_.hidden, width, format(roles.down));
    linear("down_proj", Split::inputs, tokens_, m_.hidden, width, f.bias, format(roles.down));
  }

  // Whether the experts of a layer lie on devices beyond the tensor axis, which hold other tokens.
  bool spreads_experts(const Layer& layer) const { return layer.feed_forward.experts && p_.expert > p_.tensor; }

  // Routed experts: every token is copied to its experts, the experts run as grouped GEMMs over all copies (weights of
  // the experts reached are read once), and the weighted results are summed. Tokens are taken to be routed evenly.
  //
  // Within the tensor axis every device has all tokens and serves those that its experts were picked for; the sum over
  // the axis is the one that ends a divided block. Beyond it every device routes its own share of the tokens, and the
  // copies travel.
  void experts(const model::FeedForward& f, const model::Experts& x) {
    write_pending_norm();  // for the router and for the copies
    const bool spread = p_.expert > p_.tensor;
    const std::int64_t own = spread ? (tokens_ + p_.tensor - 1) / p_.tensor : tokens_;  // tokens routed here
    const std::int64_t copies_out = own * x.per_token;
    const std::int64_t rows = spread ? copies_out : (copies_out + p_.expert - 1) / p_.expert;
    const double reached =
        experts_reached(x.count, x.per_token, spread ? own * p_.expert : own) / static_cast<double>(p_.expert);
    const double copied = static_cast<double>(rows * m_.hidden);
    linear("router", Split::none, own, x.count, m_.hidden, x.router_bias, format(Role::router), 1,
           spread ? Input::own : Input::gathered);
    vector("routing", VectorKind::router, own, x.count, 1, 1);
    keeps(static_cast<double>(own * x.count));
    const model::ElementFormat element = model::element_format(e_.activations);
    push("dispatch", Copy{.read_elements = copied, .write_elements = copied, .from = element, .to = element});
    if (spread) exchange_experts("experts_dispatch", own, x, Way::there);
    if (f.gated && (o_.fused_gate_up || f.fused_gate_up) && same_format(Role::expert_gate, Role::expert_up)) {
      linear("experts_gate_up", Split::none, rows, 2 * x.intermediate, m_.hidden, f.bias, format(Role::expert_up),
             reached);
    } else {
      if (f.gated) {
        linear("experts_gate", Split::none, rows, x.intermediate, m_.hidden, f.bias, format(Role::expert_gate),
               reached);
      }
      linear("experts_up", Split::none, rows, x.intermediate, m_.hidden, f.bias, format(Role::expert_up), reached,
             f.gated ? Input::shared : Input::own);
    }
    activate("experts_activation", rows, x.intermediate, f.gated);
    linear("experts_down", Split::none, rows, m_.hidden, x.intermediate, f.bias, format(Role::expert_down), reached);
    if (spread) exchange_experts("experts_return", own, x, Way::back);
    vector("combine", VectorKind::combine, rows, m_.hidden, 1, static_cast<double>(own) / static_cast<double>(rows));
    keeps(copied);
    if (spread && residual_ranks_ == 1) {
      exchange("experts_gather", CollectiveKind::all_gather, Axis::tensor, p_.tensor, static_cast<double>(tokens_),
               static_cast<double>(m_.hidden));
    }
    if (x.shared_intermediate > 0) {
      if (spread) gather_tokens("mlp_gather", tokens_);
      mlp(f, x.shared_intermediate, {Role::shared_gate, Role::shared_up, Role::shared_down}, Input::shared);
      if (spread) reduce_tokens("mlp_reduce", "mlp_scatter", tokens_);
      const std::int64_t sum = spread ? residual_tokens() : tokens_;
      if (x.shared_gate) {
        linear("shared_gate", Split::none, sum, 1, m_.hidden, false, format(Role::shared_router), 1, Input::shared);
        vector("apply_shared_gate", VectorKind::sigmoid_gate, sum, m_.hidden, 1, 1);
        keeps(static_cast<double>(sum * m_.hidden));
      }
      vector("add_shared", VectorKind::add, sum, m_.hidden, 2, 1);
    }
    if (!spread) reduce_tokens("mlp_reduce", "mlp_scatter", tokens_);
  }
  // A token goes once to every device that has experts of it, which sums up its results before they come back.
  enum class Way : unsigned char { there, back };
  void exchange_experts(std::string_view name, std::int64_t tokens, const model::Experts& x, Way way) {
    const model::StoredFormat& weights = format(Role::expert_up);
    const bool narrow = bits(weights.compute) < bits(e_.activations);
    model::ElementFormat there =
        model::element_format(p_.expert_dispatch.value_or(narrow ? weights.compute : e_.activations));
    if (weights.block > 0 && there.bits < bits(e_.activations)) there.bits += weights.bits_per_block / weights.block;
    model::ElementFormat back = model::element_format(p_.expert_combine.value_or(e_.activations));
    if (way == Way::back) std::swap(there, back);
    const Routing routing{.experts = x.count,
                          .per_token = x.per_token,
                          .groups = x.groups,
                          .groups_per_token = x.groups_per_token,
                          .back = back};
    const double devices = static_cast<double>(p_.expert) * reached(routing, x.count / p_.expert);
    exchange(name, CollectiveKind::all_to_all, Axis::expert, p_.expert, static_cast<double>(tokens) * devices,
             static_cast<double>(m_.hidden));
    Collective& c = std::get<Collective>(graph_.back().body);
    c.element = there;
    c.routing = routing;
  }

  void head() {
    const std::int64_t rows = o_.last_token_logits && !e_.training ? sequences_ : tokens_;
    move_to(place_for(e_.weights.head_on_host, rows), rows);
    streamed_ = e_.weights.head_on_host && residual_ == Place::device;
    gather_tokens("head_gather", rows);
    if (two_dimensional() && !p_.shard_embedding) {
      exchange("head_gather", CollectiveKind::all_gather, Axis::tensor, p_.tensor, static_cast<double>(rows),
               static_cast<double>(m_.hidden));
    }
    linear("lm_head", p_.shard_embedding ? Split::outputs : Split::none, rows, vocab(), m_.hidden, m_.lm_head_bias,
           e_.weights.lm_head, 1, Input::gathered);
    if (!e_.training && p_.shard_embedding) {
      exchange("logits_gather", CollectiveKind::all_gather, Axis::tensor, p_.tensor, static_cast<double>(rows),
               static_cast<double>(m_.vocab));
    }
    if (chained()) widen_logits(rows);
  }
  void widen_logits(std::int64_t rows) {
    Copy copy = copy_of(static_cast<double>(rows * m_.vocab));
    copy.to = model::element_format(Dtype::fp32);
    push("logits_to_fp32", copy);
  }
  std::int64_t vocab() const { return shard_vocab(m_, p_); }

  // Cross entropy over logits widened to fp32; over a divided vocabulary the maximum, the sum and the logit of the
  // target are reduced.
  void loss() {
    vector("cross_entropy", VectorKind::cross_entropy, tokens_, vocab(), 1, 32.0 / bits(e_.activations));
    keeps(0, 4 * static_cast<double>(tokens_ * vocab()));
    if (p_.shard_embedding) {
      exchange("loss_reduce", CollectiveKind::all_reduce, Axis::tensor, p_.tensor, static_cast<double>(tokens_),
               3 * 32.0 / bits(e_.activations));
    }
  }

  void sample() {
    if (e_.weights.embedding_on_host) {  // llama.cpp samples on the host
      if (place_ == Place::device) {
        send("logits_to_host",
             Transfer{.rows = sequences_, .width = m_.vocab, .element = model::element_format(Dtype::fp32)});
      }
      place_ = Place::host;
    }
    vector("sampling", VectorKind::sampling, sequences_, m_.vocab, 1, 0);
  }

  Part part_;
};

}  // namespace

double keys_read(const Attention& a) {
  const std::int64_t tile = a.query_tile > 0 ? std::min(a.query_tile, a.q_tokens) : a.q_tokens;
  if (a.keys > 0) {
    const std::int64_t tiles = (a.q_tokens + tile - 1) / tile;
    return static_cast<double>(a.keys * tiles);
  }
  // A tile of rows first..last sees from the oldest key of its first row to the newest of its last row.
  auto keys = [&](std::int64_t first, std::int64_t last) {
    const std::int64_t newest = a.context + last;
    const std::int64_t oldest = a.window ? std::max<std::int64_t>(0, a.context + first - *a.window) : 0;
    return static_cast<double>(newest - oldest);
  };
  if (tile == a.q_tokens) return keys(1, a.q_tokens);
  double sum = 0;
  for (std::int64_t first = 1; first <= a.q_tokens; first += tile) {
    sum += keys(first, std::min(first + tile - 1, a.q_tokens));
  }
  return sum;
}

std::int64_t Execution::stage_layers(const model::LayerGroup& group, std::int64_t stage) const {
  if (plan.pipeline == 1) return group.count();
  const auto i = static_cast<std::size_t>(stage);
  const std::int64_t run = model->num_layers() / plan.pipeline;
  const std::int64_t first = split.first.empty() ? stage * run : split.first[i];
  const std::int64_t end = split.first.empty() ? first + run : split.first[i + 1];
  const auto at = [&](std::int64_t layer) { return std::lower_bound(group.layers.begin(), group.layers.end(), layer); };
  return at(end) - at(first);
}

std::int64_t Execution::cached_tokens(const model::Attention& a, std::int64_t tokens) const {
  const std::optional<std::int64_t> full = window(a);
  if (!full) return tokens;
  // llama.cpp keeps a micro-batch more than the window, in whole 256s.
  const std::int64_t cells = weights.gguf ? (*full + micro_batch + 255) / 256 * 256 : *full;
  return std::min(tokens, cells);
}

std::string_view name(Place place) {
  constexpr std::string_view names[] = {"device", "host", "link", "network"};
  return names[static_cast<std::size_t>(place)];
}

bool splits_sequence(const Plan& plan, std::span<const SequenceGroup> step) {
  return plan.sequence() > 1 && std::all_of(step.begin(), step.end(), [&](const SequenceGroup& g) {
           return g.new_tokens % sequence_pieces(plan) == 0;
         });
}

bool splits_residual(const Plan& plan, std::span<const SequenceGroup> step) {
  return plan.sequence_parallel &&
         std::any_of(step.begin(), step.end(), [](const SequenceGroup& g) { return g.new_tokens > 1; });
}

void build_step(const Execution& execution, std::span<const SequenceGroup> step, Part part, Graph& graph) {
  Builder(execution, step, part, graph).build();
}

double experts_reached(std::int64_t experts, std::int64_t per_token, std::int64_t tokens) {
  const double e = static_cast<double>(experts);
  return e * (1 - std::pow(1 - static_cast<double>(per_token) / e, static_cast<double>(tokens)));
}

bool latent_absorbed(const model::Attention& a, const SequenceGroup& group) {
  // Per head and cached token, expanding costs kv_lora (nope + v) multiply-adds once; per new token on top, scores and
  // values cost 2 kv_lora + rope absorbed against nope + rope + v expanded.
  const std::int64_t r = a.latent->kv_lora_rank;
  const std::int64_t dearer = 2 * r - a.latent->nope_dim - a.v_head_dim;
  if (dearer <= 0) return true;  // wide heads: absorbed is never dearer
  return group.context > 0 && group.new_tokens * dearer <= r * (a.latent->nope_dim + a.v_head_dim);
}

}  // namespace llmperf::graph
