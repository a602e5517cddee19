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
// place changes. Experts may be left there alone: their inputs and results cross the link, or for many tokens their
// matrices do. A GGUF model takes a long step in micro-batches.
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
//   ring               the keys and values of every other rank, passed round beside attention, or gathered before it
//   experts            beyond the tensor axis an all-to-all of tokens, each once to every device that has experts of
//                      it, and of their results back; the products of experts on devices of their own are ops of one
//                      of those (Op::on_experts), all others of one of attention
//   pipeline           the residual stream from stage to stage
//
// With joined_vectors products take over the vector work beside them: see joins() below.
#include "graph/decoder_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "base/integer.h"
#include "base/maths.h"
#include "graph/expert_placement.h"
#include "graph/step_writer.h"

namespace llmperf::graph {
namespace {

using model::Layer;
using model::Role;

// Chains of element-wise operations that no kernel does in one: the kernels of an eager framework, and those that a
// graph compiler leaves after merging neighbours (PyTorch's operators as transformers' models and their Ascend ports
// call them). In tensors of the chain's shape, of those in fp32 4 bytes per element; statistics of a row are left out.
//
// RMSNorm of x, framework, as reads > writes:
//   widen x (n > w), square (w > w), mean (w > row), add epsilon, root, scale x (w > w), narrow (w > n), weight (n > n)
// so 10 tensors of 16 bits are read and 8 written, where one kernel reads and writes one each.
struct Chain {
  Traffic moved;
  std::int32_t launches = 1;
  std::int32_t views = 0;
};

struct Chained {
  Chain framework;
  Chain compiled;
  const Chain& of(hardware::Chains chains) const { return chains == hardware::Chains::compiled ? compiled : framework; }
};

// Compiled: widen; square and mean; scale, narrow and weight.
constexpr Chained kNormChain = {{{2, 2, 16, 12}, 8}, {{1, 1, 8, 4}, 3}};
// x cos + rotated(x) sin, rotated(x) from a negated half and a concatenation. Compiled: these two, and the rest.
constexpr Chained kRopeChain = {{{5.5, 4.5}, 5, 2}, {{5, 3}, 3, 2}};
// Scores are divided and the mask is added (its own reads are one head's). Compiled: with the cast that softmax needs.
constexpr Chained kMaskChain = {{{2, 2}, 2}, {{1, 0, 0, 4}, 1}};
// Framework: widen, softmax in fp32, narrow.
constexpr Chained kSoftmaxChain = {{{1, 1, 8, 8}, 3}, {{0, 1, 8, 4}, 2}};
// Divide, tanh, multiply.
constexpr Chained kSoftcapChain = {{{3, 3}, 3}, {{1, 1}, 1}};

// Kernels that derive a step's mask from the tokens' positions: each reads and writes a mask in bytes.
constexpr std::int32_t kMaskKernels = 10;

// What of an input is kept for the backward pass: all, the share that was there before the ranks' shares were
// gathered (the backward pass gathers them again), or nothing because an earlier op keeps it.
enum class Input : unsigned char { own, gathered, shared };
struct How {
  Split split = Split::none;
  Input input = Input::own;
  bool bias = false;
  ExpertLoad load = {};
  std::int64_t matrices = 1;  // of the checkpoint that are one here, and of which an adapter is beside each
};

class DecoderBuilder : StepWriter {
 public:
  DecoderBuilder(const Execution& execution, std::span<const SequenceGroup> step, Graph& graph)
      : StepWriter(execution.runtime, execution.plan, execution.activations, execution.model->hidden,
                   splits_residual(execution.plan, step) ? execution.plan.tensor : 1, graph),
        e_(execution),
        m_(*execution.model),
        step_(step),
        chains_(execution.training ? hardware::Chains::one_kernel : execution.runtime.chains),
        split_(splits_sequence(execution.plan, step)) {
    vector_bits_ = e_.weights.vector_bits;
    std::int64_t tokens = 0;
    for (const SequenceGroup& g : step) {
      tokens += g.count * g.new_tokens;
      sampled_ += g.sampled();
      prompts_ |= g.prompts();
      concatenates_ |= concatenates(g);
    }
    if (split_) tokens /= p_.sequence();
    const std::int64_t limit = e_.weights.gguf ? e_.micro_batch : tokens;
    if (tokens >= limit) batches_[batch_count_++] = {.tokens = limit, .times = tokens / limit};
    if (tokens % limit > 0) batches_[batch_count_++] = {.tokens = tokens % limit, .times = 1};
  }

  void build(Part part) {
    const bool all = part == Part::all;
    if (all) each_batch([&] { embed(); });
    prepare_masks();
    for (const model::LayerGroup& group : e_.weights.groups) {
      const Layer layer = shard(m_.kinds[group.kind], p_);
      if (all) each_batch([&] { move_to(place_for(group.on_host, tokens_), tokens_); });
      group_ = &group;
      kind_ = static_cast<int>(group.kind);
      layers_ = static_cast<std::int16_t>(&group - e_.weights.groups.data());
      count_ = group.count();
      if (all) each_batch([&] { before_mixer(layer); });
      scope_ = Scope::group;
      if (layer.attends()) attention(layer.attention, part);
      if (part != Part::context_dependent && layer.recurrent) scan(*layer.recurrent);
      scope_ = Scope::rows;
      if (all) each_batch([&] { after_mixer(layer); });
      group_ = nullptr;
      kind_ = layers_ = -1;
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
    } else if (!m_.encoder) {
      sample();
    }
  }

 private:
  // ---- Vector work that products take over (RuntimeOptions::joined_vectors). A norm waits for the product that reads
  // its result, or is written when something else does.
  bool joins() const {
    return o_.joined_vectors && !chained() && !e_.training && !e_.weights.gguf && !two_dimensional();
  }
  void write_pending_norm() {
    norm_taken_ = std::nullopt;
    if (!norm_pending_) return;
    push(norm_tag_, *std::exchange(norm_pending_, std::nullopt));
  }
  // `again`: the product reads what one before it has read.
  void take_norm(Gemm& product, bool again) {
    if (!again && norm_pending_) {
      norm_taken_ = std::exchange(norm_pending_, std::nullopt);
      again = true;
    }
    if (!again || !norm_taken_) return;
    product.joined.input = norm_taken_->kind;
    product.joined.parameters = norm_taken_->parameters;
  }
  // The product just written, if these are its results and nothing is joined to them yet.
  Gemm* product_of(std::int64_t rows, std::int64_t columns) {
    if (!joins() || graph_.empty() || graph_.back().place != place_) return nullptr;
    auto* product = std::get_if<Gemm>(&graph_.back().body);
    return product && product->m == rows && product->n == columns && !product->joined.output ? product : nullptr;
  }

  // What the op just written keeps for the backward pass, in elements of the activations and in bytes.
  void keeps(double elements, double bytes = 0) {
    if (!e_.training) return;
    graph_.back().saved = Bytes{elements * bits(activations_) / 8 + bytes};
  }

  // ---- What the host does for the op just written.
  bool chained() const { return chains_ != hardware::Chains::one_kernel; }
  void launches(std::int32_t kernels, std::int32_t reshaped = 0, std::int32_t views = 0) {
    Op& op = graph_.back();
    op.launches = kernels;
    op.reshaped = reshaped;
    op.views = views;
  }
  // A cache that grows gives what depends on its length a new shape in every step.
  bool concatenates(const SequenceGroup& g) const { return !o_.static_kv && g.context > 0 && !e_.training; }

  // ---- Between devices
  std::int64_t residual_tokens() const { return residual_of(tokens_); }
  void sum_tokens(Tag all_reduce, Tag scatter) {
    const bool overlaps = overlaps_sums() && std::holds_alternative<Gemm>(graph_.back().body);
    if (Op* sum = reduce_tokens(all_reduce, scatter, tokens_)) sum->overlaps = overlaps;
  }
  // Whether the last op was the sum of a block over the tensor axis.
  bool sums_block() const {
    const auto* last = graph_.empty() ? nullptr : std::get_if<Collective>(&graph_.back().body);
    return last && last->kind == CollectiveKind::all_reduce && last->axis == Axis::tensor;
  }
  // Matrices divided by rows run beside the sum of their results.
  bool overlaps_sums() const {
    return o_.overlap_collectives && prompts_ && p_.tensor > 1 && !two_dimensional() && !e_.training;
  }
  // The kernel that does both takes the matrix the other way round. A compiler keeps it so; an eager framework copies
  // it in every step.
  void transpose_for_overlap(Tag tag, std::int64_t n, std::int64_t k, const model::StoredFormat& stored) {
    if (!overlaps_sums() || chains_ != hardware::Chains::framework) return;
    push(tag, copy_of(stored.bytes(n, k).value / bytes_per_element(activations_)));
  }
  void send(Tag tag, const Transfer& transfer) {
    const Place here = std::exchange(place_, Place::link);
    push(tag, transfer);
    place_ = here;
  }
  const model::StoredFormat& format(model::Role role) const { return (*group_)[role]; }
  bool same_format(model::Role a, model::Role b) const { return format(a) == format(b); }

  // Where `rows` rows meet weights that are kept on the host or not.
  Place place_for(bool on_host, std::int64_t rows) const {
    return on_host && !e_.streams(rows) ? Place::host : Place::device;
  }
  // The residual stream follows: from here on ops run at `place`.
  void move_to(Place place, std::int64_t rows) {
    cross(place, rows, hidden_);
    residual_ = place;
  }
  // Activations on their way to `place`, where ops run from here on.
  void cross(Place place, std::int64_t rows, std::int64_t width) {
    if (place == place_) return;
    send(place == Place::host ? Tag::to_host : Tag::to_device, {.rows = rows, .width = width, .element = element_});
    place_ = place;
  }

  // Micro-batches of one size, which run the same ops one after the other. Attention is not split: the passes over the
  // cache that micro-batches take are its query tiles.
  struct MicroBatches {
    std::int64_t tokens = 0;  // of one
    std::int64_t times = 1;
    Place residual = Place::device;
  };
  void load(const MicroBatches& batches) {
    tokens_ = batches.tokens;
    times_ = batches.times;
    place_ = residual_ = batches.residual;
    streamed_ = group_ && group_->on_host && residual_ == Place::device;
  }
  template <class Build>
  void each_batch(Build&& build) {
    for (std::size_t i = 0; i < batch_count_; ++i) {
      load(batches_[i]);
      build();
      batches_[i].residual = residual_;
    }
    times_ = 1;
    streamed_ = false;
  }

  // Calls `write` with a tag, the width of a token's row and its format: for keys and values together where they are
  // stored alike or are one latent, else for each.
  struct CacheTags {
    Tag both, keys, values;
  };
  template <class Write>
  void each_cache(const model::Attention& a, const CacheTags& tags, Write&& write) {
    const model::CacheRow row = model::cache_row(a);
    if (a.latent || e_.kv.keys == e_.kv.values) {
      write(tags.both, row.keys + row.values, e_.kv.keys);
    } else {
      write(tags.keys, row.keys, e_.kv.keys);
      write(tags.values, row.values, e_.kv.values);
    }
  }
  // Copies `rows` rows of keys and values, each to `times` places, between the caches that `like` names and
  // activations; by kernels of which each has a new shape in every step (`reshaped`) and takes `views`.
  void copy_cache(const model::Attention& a, const CacheTags& tags, double rows, double times, const Copy& like,
                  bool reshaped, std::int32_t views) {
    each_cache(a, tags, [&](Tag tag, std::int64_t width, const model::ElementFormat& cached) {
      Copy copy = like;
      copy.read_elements = rows * d(width);
      copy.write_elements = copy.read_elements * times;
      copy.from = like.from_cache ? cached : element_;
      copy.to = like.to_cache ? cached : element_;
      push(tag, copy);
      // Kernels that treat keys and values of a token, each apart.
      const std::int32_t kernels = chained() && !a.latent && e_.kv.keys == e_.kv.values ? 2 : 1;
      launches(kernels, reshaped ? kernels : 0, views * kernels);
    });
  }

  // All tokens by the group's matrix of a role.
  void linear(Tag tag, Role role, std::int64_t n, std::int64_t k, const How& how = {}) {
    product(tag, tokens_, n, k, format(role), how);
  }
  void product(Tag tag, std::int64_t rows, std::int64_t n, std::int64_t k, const model::StoredFormat& format,
               const How& how = {}) {
    if (two_dimensional() && how.split != Split::none) {
      const bool gathers = how.input != Input::shared;
      over_rows_and_columns(how.split, rows, n, k, gathers, [&](std::int64_t part_n, std::int64_t part_k) {
        multiply(tag, rows, part_n, part_k, format, how);
        if (gathers) keeps(d(rows * part_k) / d(p_.tensor_columns()));
      });
      return;
    }
    if (streamed_) {
      send(Tag::send_weights, {.rows = n, .width = k, .weights = &format, .weight_matrices = how.load.active});
    }
    if (norm_pending_ && norm_pending_->width != k) write_pending_norm();
    Gemm& written = multiply(tag, rows, n, k, format, how);
    if (norm_pending_ || norm_taken_) take_norm(written, how.input == Input::shared);
    if (e_.adapters.any() && e_.adapters.beside(tag) > 0) return adapt(tag, Gemm(written), how.matrices);
    if (how.input == Input::own) keeps(d(rows * k));
    if (how.input == Input::gathered) keeps(d(rows * k) / d(residual_ranks_));
  }
  // Served adapters, as vLLM's and SGLang's kernels run them: one for all of a product's A, grouped by adapter, and one
  // for its B that adds to the product's result. Of grouped products an adapter has matrices for each expert, and rows
  // reach no more of them than they are.
  void adapt(Tag tag, Gemm product, std::int64_t matrices) {
    const Adapters& a = e_.adapters;
    const Scope here = std::exchange(scope_, Scope::sequences);
    product.joined = {};
    product.bias = false;
    product.weights = &e_.vision_weights;
    product.weight_matrices = std::min(a.used(sequences()) * product.weight_matrices, d(product.m));
    product.row_tiles = {};
    Gemm up = product;
    product.n = a.rank * a.beside(tag) * matrices;
    push(Tag::adapter_down, product);
    up.k = a.rank;
    up.accumulated_bits = bits(activations_);
    push(Tag::adapter_up, up);
    scope_ = here;
  }
  Gemm& multiply(Tag tag, std::int64_t rows, std::int64_t n, std::int64_t k, const model::StoredFormat& format,
                 const How& how) {
    Gemm& g = std::get<Gemm>(append(tag).body);
    g.m = rows;
    g.n = n;
    g.k = k;
    g.activation = activations_;
    g.weights = &format;
    g.weight_matrices = how.load.active;
    g.row_tiles = how.load.tiles;
    g.bias = how.bias;
    return g;
  }

  // One kernel of `operations` per element that no VectorKind is for.
  void elementwise(Tag tag, std::int64_t rows, std::int64_t width, double operations, double reads, double writes,
                   std::int64_t parameters = 0) {
    vector(tag, VectorKind::elementwise, rows, width, reads, writes, parameters);
    std::get<Vector>(graph_.back().body).operations = operations;
  }
  // One vector op that stands for the kernels of a chain.
  void chain(Tag tag, VectorKind kind, const Chained& kernels, std::int64_t rows, std::int64_t width,
             std::int64_t parameters = 0) {
    const Chain& c = kernels.of(chains_);
    vector(tag, kind, rows, width, c.moved.read_tensors(activations_), c.moved.written_tensors(activations_),
           parameters);
    launches(c.launches, 0, c.views);
  }
  void rms_norm(Tag tag, std::int64_t rows, std::int64_t width) {
    if (chained() && !o_.fused_norm) {
      chain(tag, VectorKind::rms_norm, kNormChain, rows, width, width);
    } else {
      vector(tag, VectorKind::rms_norm, rows, width, 1, 1, width);
    }
  }
  // (Frameworks have a kernel for LayerNorm.)
  void norm(Tag tag) {
    const bool rms = m_.norm == model::Norm::rms;
    if (joins()) {
      write_pending_norm();
      norm_tag_ = tag;
      norm_pending_ = Vector{.kind = rms ? VectorKind::rms_norm : VectorKind::layer_norm,
                             .rows = residual_tokens(),
                             .width = residual_width(),
                             .parameters = vector_bytes(norm_weights() * residual_width()),
                             .activation = activations_};
      return;
    }
    if (rms) {
      rms_norm(tag, residual_tokens(), residual_width());
    } else {
      vector(tag, VectorKind::layer_norm, residual_tokens(), residual_width(), 1, 1, norm_weights() * residual_width());
    }
    keep_norm_input(rms);
  }
  // Weights of a norm per element: its gain, and of LayerNorm usually a bias.
  std::int64_t norm_weights() const { return m_.norm == model::Norm::layer ? 2 : 1; }
  // A norm over a row that lies on several devices sums its statistics.
  void keep_norm_input(bool rms) {
    keeps(d(residual_tokens() * residual_width()));
    if (two_dimensional()) {
      exchange(Tag::norm_statistics, CollectiveKind::all_reduce, Axis::tensor, p_.tensor, d(residual_tokens()),
               rms ? 1 : 2);
    }
  }
  // Dropout on the output of a block, in training: the mask takes a byte per element.
  void dropout(Tag tag, std::int64_t rows, std::int64_t width) {
    if (!e_.training || !m_.dropout) return;
    vector(tag, VectorKind::dropout, rows, width, 1, 1 + 8.0 / bits(activations_));
    keeps(0, d(rows * width));
  }
  // The residual add after a block and the norm that reads its result. `inputs` tensors are added (2, or 3 in parallel
  // blocks).
  void add_and_norm(Tag add_tag, Tag norm_tag, Tag fused_tag, double inputs) {
    if (m_.streams.mix == model::StreamMix::hyper_connections || (predicts_streams() && norm_tag == Tag::next_norm)) {
      write_pending_norm();
      if (predicts_streams()) vector(add_tag, VectorKind::add, residual_tokens(), residual_width(), inputs, 1);
      write_streams();
      read_streams();
      norm(norm_tag);
    } else if (joins()) {
      write_pending_norm();
      if (Gemm* product = product_of(residual_tokens(), residual_width())) {
        product->joined.output = VectorKind::add;
        product->joined.reads = inputs - 1;
      } else {
        vector(add_tag, VectorKind::add, residual_tokens(), residual_width(), inputs, 1);
      }
      norm(norm_tag);
    } else if (o_.fused_add_norm) {
      const bool rms = m_.norm == model::Norm::rms;
      const bool in_sum = o_.fused_all_reduce_norm && !prompts_ && !e_.training && sums_block();
      if (auto* sum = in_sum ? std::get_if<Collective>(&graph_.back().body) : nullptr) sum->with_norm = true;
      vector(fused_tag, rms ? VectorKind::add_rms_norm : VectorKind::add_layer_norm, residual_tokens(),
             residual_width(), in_sum ? inputs - 1 : inputs, 2, norm_weights() * residual_width());
      if (in_sum) launches(0);
      keep_norm_input(rms);
    } else {
      vector(add_tag, VectorKind::add, residual_tokens(), residual_width(), inputs, 1);
      norm(norm_tag);
    }
  }

  // ---- Several residual streams (model::Streams). Hyper-connections: a part reads one vector made of all of them, and
  // its result goes back to all, with weights made from all streams side by side (the head, which needs fewer, is taken
  // to read as a part does). AltUp: a layer predicts all streams from all, works on one of them, and corrects all by
  // what came of it; its embeddings come and go through a matrix for each further stream.

  bool predicts_streams() const { return m_.streams.mix == model::StreamMix::altup; }
  // The product that the weights of a mixture come from.
  void mix_streams() {
    const std::int64_t n = m_.streams.count;
    const bool one = predicts_streams();
    product(Tag::stream_mix, residual_tokens(), one ? n : model::hyper_connection(m_).outputs,
            one ? residual_width() : n * residual_width(), format(Role::stream_mix));
  }
  void read_streams() {
    const auto n = d(m_.streams.count);
    mix_streams();
    elementwise(Tag::stream_read, residual_tokens(), residual_width(), 2 * n * (predicts_streams() ? n : 1), n,
                predicts_streams() ? n : 1);
  }
  void write_streams() {
    const auto n = d(m_.streams.count);
    if (predicts_streams()) mix_streams();
    elementwise(Tag::stream_write, residual_tokens(), residual_width(),
                predicts_streams() ? 2 * n + 1 : 2 * n * (n + 1), n + 1, n);
  }
  void project_streams(std::int64_t rows) {
    if (!predicts_streams()) return;
    product(Tag::stream_projection, rows, (m_.streams.count - 1) * hidden_, hidden_, e_.weights.token_embedding,
            {.input = Input::shared});
  }

  // ---- Before attention and recurrences: their products, rope, the cache

  void before_mixer(const Layer& layer) {
    if (!layer.mixes()) return;
    gather_tokens(Tag::attention_gather, tokens_);
    mixer_input_ = layer.mixer_input(hidden_);
    if (layer.attends()) {
      if (layer.attention.latent) {
        latent_projections(layer.attention, *layer.attention.latent);
      } else {
        projections(layer.attention);
      }
      if (layer.attention.compression) compress(layer.attention, *layer.attention.compression);
      if (layer.attention.indexer) index(layer.attention, *layer.attention.indexer);
      gate_projection(layer.attention);
    }
    if (layer.recurrent) recurrent_projections(*layer.recurrent, layer.attends() ? Input::shared : Input::gathered);
  }

  // Of a recurrence: its inputs, gates and decays, and the convolution over the tokens of each sequence.
  void recurrent_projections(const model::Recurrent& r, Input input) {
    using model::RecurrentKind;
    const model::RecurrentProducts products = model::recurrent_products(r);
    const auto of_hidden = [&](Tag tag, Split split, std::int64_t n, Role role) {
      linear(tag, role, n, hidden_, {split, std::exchange(input, Input::shared)});
    };
    of_hidden(Tag::recurrent_in, Split::outputs, products.in, Role::recurrent_in);
    if (products.gates > 0) of_hidden(Tag::recurrent_gates, Split::outputs, products.gates, Role::recurrent_gates);
    if (r.kind == RecurrentKind::kimi_delta) {
      const std::int64_t rank = r.gate_rank > 0 ? r.gate_rank : r.value_dim;
      of_hidden(Tag::decay_a, Split::none, rank, Role::decay_a);
      linear(Tag::decay_b, Role::decay_b, r.keys(), rank);
      of_hidden(Tag::gate_a, Split::none, r.gate_rank > 0 ? rank : r.values(), Role::gate_a);
      if (r.gate_rank > 0) {
        linear(Tag::gate_b, Role::gate_b, r.values(), rank);
      }
    }
    if (r.head_norms) {
      rms_norm(Tag::q_norm, tokens_ * r.key_heads, r.key_dim);
      rms_norm(Tag::k_norm, tokens_ * r.key_heads, r.key_dim);
    }
    if (r.conv > 0) convolve(r);
    if (r.kind == RecurrentKind::mamba) {
      linear(Tag::recurrent_x, Role::recurrent_x, r.gate_rank + 2 * r.key_dim, r.values(), {Split::inputs});
      exchange(Tag::recurrent_reduce, CollectiveKind::all_reduce, Axis::tensor, p_.tensor, d(tokens_),
               d(r.gate_rank + 2 * r.key_dim));
      if (r.norms)
        vector(Tag::recurrent_norm, VectorKind::rms_norm, tokens_, r.gate_rank + 2 * r.key_dim, 1, 1,
               r.gate_rank + 2 * r.key_dim);
      linear(Tag::recurrent_dt, Role::recurrent_dt, r.values(), r.gate_rank, {.bias = true});
    }
  }
  // A multiply and an add per tap, and the activation after it; of a convolution that stands alone the products with
  // what gates its input and its result. The last inputs of every sequence are read and written with the state.
  void convolve(const model::Recurrent& r) {
    constexpr double kSilu = 4;
    const bool alone = r.kind == model::RecurrentKind::short_conv;
    const double kept = d(r.conv - 1) * sequences() / d(tokens_ * times_);
    const Scope here = std::exchange(scope_, Scope::sequences);
    elementwise(Tag::conv, tokens_, r.conv_channels(), 2 * d(r.conv) + (alone ? 2 : kSilu), (alone ? 3 : 1) + kept,
                1 + kept, r.conv_channels() * (r.conv + (r.conv_bias ? 1 : 0)));
    keeps(d(tokens_ * r.conv_channels()));
    scope_ = here;
  }
  std::int16_t number_of(const SequenceGroup& g) const { return static_cast<std::int16_t>(&g - step_.data()); }
  double sequences() const {
    double sum = 0;
    for (const SequenceGroup& g : step_) sum += d(g.count);
    return sum;
  }
  // Not divided over the sequence: a state passes through all tokens before it.
  void scan(const model::Recurrent& r) {
    if (r.state_elements() == 0) return;
    place_ = place_for(group_->on_host, batches_[0].tokens);
    for (const SequenceGroup& g : step_) {
      group_number_ = number_of(g);
      const bool chunks = g.prompts() && r.kind != model::RecurrentKind::mamba;
      push(Tag::scan, Scan{.kind = r.kind,
                           .sequences = g.count,
                           .tokens = g.new_tokens,
                           .heads = r.heads,
                           .key_heads = r.key_heads,
                           .key_dim = r.key_dim,
                           .value_dim = r.value_dim,
                           .chunk = chunks ? r.chunk : 0,
                           .has_past = g.context > 0,
                           .activation = activations_});
      // Cumulative decays, scores, their inverse, what the delta rule writes, states, results.
      constexpr std::int32_t kDeltaKernels = 6;
      constexpr std::int32_t kChunkKernels = 4;
      const bool delta = r.kind == model::RecurrentKind::gated_delta_net || r.kind == model::RecurrentKind::kimi_delta;
      // Queries, keys, values and decays; and the states at the ends of chunks, in fp32.
      const double tokens = d(g.count * g.new_tokens);
      const double states = chunks ? tokens / d(r.chunk) * d(r.state_elements()) : 0;
      keeps(tokens * d(r.values() + 2 * r.keys() + r.heads), 4 * states);
      if (chunks) launches(delta ? kDeltaKernels : kChunkKernels);
    }
  }
  void recurrent_output(const model::Recurrent& r) {
    using model::RecurrentKind;
    const bool by_head = r.kind == RecurrentKind::gated_delta_net || r.kind == RecurrentKind::kimi_delta;
    if (r.kind == RecurrentKind::mamba2 && !r.norms) {
      vector(Tag::gated_norm, VectorKind::multiply, tokens_, r.values(), 2, 1);
    } else if (by_head) {
      vector(Tag::gated_norm, VectorKind::rms_norm, tokens_ * r.heads, r.value_dim, 2, 1, r.value_dim);
    } else if (r.kind == RecurrentKind::mamba2 || r.kind == RecurrentKind::lightning) {
      vector(Tag::gated_norm, VectorKind::rms_norm, tokens_, r.values(), 2, 1, r.values());
    }  // of mamba the gate is part of the scan
    if (graph_.back().tag == Tag::gated_norm) keeps(2 * d(tokens_ * r.values()));
    linear(Tag::recurrent_out, Role::recurrent_out, hidden_, r.values(), {Split::inputs});
  }

  // Index queries, keys and head weights, and the new index keys' rows of the cache.
  void index(const model::Attention& a, const model::Indexer& x) {
    if (x.reused) return;
    const bool latent = a.latent && a.latent->q_lora_rank;
    const std::int64_t rank = x.from_hidden ? hidden_
                              : latent      ? *a.latent->q_lora_rank
                              : a.low_rank  ? a.low_rank->query_rank
                                            : hidden_;
    linear(Tag::index_q, Role::index_q, x.heads * x.head_dim, rank,
           {.input = x.from_hidden || !(latent || a.low_rank) ? Input::shared : Input::own});
    if (x.weighted) {
      linear(Tag::index_weights, Role::index_weights, x.heads, hidden_, {.input = Input::shared});
    }
    if (!a.compression) {
      linear(Tag::index_k, Role::index_k, x.head_dim, hidden_, {.input = Input::shared});
      vector(Tag::index_norm, VectorKind::layer_norm, tokens_, x.head_dim, 1, 1, 2 * x.head_dim);
    }
    write_index(a);
  }
  void write_index(const model::Attention& a) {
    const model::IndexRow row = e_.index_row(a);
    push(Tag::index_write, Copy{.read_elements = d(tokens_) * row.elements,
                                .write_elements = d(tokens_) * row.elements,
                                .from = element_,
                                .to = index_format(row.bits),
                                .to_cache = true,
                                .rows = d(tokens_)});
  }
  static model::ElementFormat index_format(double bits) { return {.name = "index keys", .bits = bits, .block = 1}; }

  // Entries of several tokens: keys and gates of each token, whose weighted sum a kernel makes once there are enough.
  void compress(const model::Attention& a, const model::Compression& c) {
    const std::int64_t width = (c.overlaps ? 2 : 1) * a.head_dim;
    linear(Tag::compress, Role::compress, 2 * width, hidden_, {.input = Input::shared});
    constexpr double kPooling = 6;  // an exponential, sums of it and of the product, a norm
    elementwise(Tag::compress_pool, tokens_, 2 * width, kPooling, 1, d(a.head_dim) / d(2 * width * c.ratio),
                width * c.ratio);
    if (!a.indexer || a.indexer->reused) return;
    const std::int64_t of_index = 4 * a.indexer->head_dim;
    linear(Tag::compress, Role::index_compress, of_index, hidden_, {.input = Input::shared});
    elementwise(Tag::compress_pool, tokens_, of_index, kPooling, 1, 1 / d(4 * c.ratio),
                2 * a.indexer->head_dim * c.ratio);
  }

  void gate_projection(const model::Attention& a) {
    if (a.gate != model::OutputGate::element && a.gate != model::OutputGate::head) return;
    const std::int64_t columns = a.gate == model::OutputGate::element ? a.heads * a.v_head_dim : a.heads;
    linear(Tag::attention_gate, Role::attention_gate, columns, hidden_, {Split::outputs, Input::shared});
  }
  // Ulysses: from all heads of some tokens to some heads of all tokens, or back.
  void exchange_heads(Tag tag, std::int64_t width) {
    if (!split_) return;
    exchange(tag, CollectiveKind::all_to_all, Axis::ulysses, p_.ulysses, d(tokens_), d(width));
  }

  void projections(const model::Attention& a) {
    const std::int64_t q = a.heads * a.head_dim * (a.gate == model::OutputGate::with_queries ? 2 : 1);
    const std::int64_t k = a.shares_cache ? 0 : a.kv_heads * a.head_dim;
    const std::int64_t v = a.shares_cache || a.no_v_proj || a.one_vector ? 0 : a.kv_heads * a.v_head_dim;
    if (a.low_rank) {
      low_rank_queries(*a.low_rank, q);
      linear(Tag::k_proj, Role::k, k, hidden_, {.input = Input::shared});
      rms_norm(Tag::k_norm, tokens_, k);
      rope(a.heads, a.kv_heads, a.rotary_dim);
      write_cache(a);
      return;
    }
    // One product reads one format: what a quantiser stores differently is multiplied apart.
    const bool alike = same_format(Role::q, Role::k) && same_format(Role::q, Role::v);
    if ((o_.fused_qkv || a.fused_qkv) && alike) {
      linear(Tag::qkv_proj, Role::q, q + k + v, mixer_input_, {Split::outputs, Input::gathered, a.qkv_bias});
      if (chained()) split_qkv(q + k + v);
    } else {
      linear(Tag::q_proj, Role::q, q, mixer_input_, {Split::outputs, Input::gathered, a.qkv_bias});
      if (k > 0) linear(Tag::k_proj, Role::k, k, mixer_input_, {Split::outputs, Input::shared, a.qkv_bias});
      if (v > 0) linear(Tag::v_proj, Role::v, v, mixer_input_, {Split::outputs, Input::shared, a.qkv_bias});
    }
    norm_heads(a);
    if (Gemm* product = product_of(tokens_, q + k + v)) {
      join_rope_and_cache(*product, a, k + v);
      if (product->joined.cached > 0) return;
    } else {
      rope(a.heads, a.shares_cache ? 0 : a.kv_heads, a.rotary_dim);
    }
    exchange_heads(Tag::q_all_to_all, a.heads * a.head_dim);  // gates stay with their tokens
    exchange_heads(Tag::k_all_to_all, k);
    exchange_heads(Tag::v_all_to_all, v);
    if (!e_.training) write_cache(a);
  }
  void norm_heads(const model::Attention& a) {
    if (a.qk_norm == model::QkNorm::none) return;
    const bool whole = a.qk_norm == model::QkNorm::whole;
    const auto norm = [&](Tag tag, std::int64_t heads) {
      rms_norm(tag, whole ? tokens_ : tokens_ * heads, whole ? heads * a.head_dim : a.head_dim);
      keeps(d(tokens_ * heads * a.head_dim));
    };
    norm(Tag::q_norm, a.heads);
    if (!a.shares_cache) norm(Tag::k_norm, a.kv_heads);
    // Statistics of a vector that lies on several devices are summed.
    if (whole) exchange(Tag::norm_statistics, CollectiveKind::all_reduce, Axis::tensor, p_.tensor, d(tokens_), 2);
  }
  void low_rank_queries(const model::LowRankProjections& r, std::int64_t queries) {
    linear(Tag::q_a_proj, Role::q_a, r.query_rank, hidden_, {.input = Input::gathered});
    rms_norm(Tag::q_a_norm, tokens_, r.query_rank);
    linear(Tag::q_b_proj, Role::q_b, queries, r.query_rank);
  }
  // New keys and values go to the cache at once where it has a row for each of them on this device.
  void join_rope_and_cache(Gemm& product, const model::Attention& a, std::int64_t keys_and_values) {
    if (a.rotary_dim > 0) {
      product.joined.output = VectorKind::rope;
      product.joined.share = d((a.heads + a.kv_heads) * a.rotary_dim) / d(product.n);
    }
    if (e_.kv.keys == e_.kv.values && p_.sequence() == 1 && keys_and_values > 0 && !m_.encoder) {
      product.joined.cached = keys_and_values;
      product.cached = e_.kv.keys;
    }
  }
  // The kernels that follow want q, k and v in one piece each.
  void split_qkv(std::int64_t width) {
    push(Tag::split_qkv, copy_of(d(tokens_ * width)));
    const std::int32_t kernels = chains_ == hardware::Chains::compiled ? 1 : 3;
    launches(kernels, 0, kernels);
  }
  // The new tokens' rows, where the cache is.
  void write_cache(const model::Attention& a) {
    if (chained() && !o_.static_kv) return;  // keys and values are the cache, or appended to it
    if (a.shares_cache || m_.encoder) return;
    if (streamed_) {
      send(Tag::kv_to_host, {.rows = tokens_, .width = model::kv_values_per_token(a), .element = element_});
    }
    const Place here = std::exchange(place_, group_->on_host ? Place::host : Place::device);
    const double rows = d(tokens_) / (split_ ? 1 : d(p_.sequence()));  // of which each has an owner
    copy_cache(a, {Tag::kv_write, Tag::k_write, Tag::v_write}, rows, 1, {.to_cache = true, .rows = rows}, false, 0);
    place_ = here;
  }

  // formulas of arXiv 2405.04434 section 2.1: q through its own low rank (or one matrix), k and v through one latent.
  void latent_projections(const model::Attention& a, const model::LatentAttention& l) {
    const std::int64_t q = a.heads * a.head_dim;
    const std::int64_t kv = l.kv_lora_rank + l.rope_dim;
    const bool together = o_.fused_qkv_a && l.q_lora_rank && !e_.training && same_format(Role::q_a, Role::kv_a);
    const std::size_t first = graph_.size();
    if (l.q_lora_rank) {
      linear(Tag::q_a_proj, Role::q_a, *l.q_lora_rank + (together ? kv : 0), hidden_,
             {.input = Input::gathered, .bias = a.qkv_bias, .matrices = together ? 2 : 1});
      rms_norm(Tag::q_a_norm, tokens_, *l.q_lora_rank);
      keeps(d(tokens_ * *l.q_lora_rank));
      linear(Tag::q_b_proj, Role::q_b, q, *l.q_lora_rank);
    } else {
      linear(Tag::q_proj, Role::q, q, hidden_, {Split::outputs, Input::gathered, a.qkv_bias});
    }
    if (!together) linear(Tag::kv_a_proj, Role::kv_a, kv, hidden_, {.input = Input::shared, .bias = a.qkv_bias});
    rms_norm(Tag::kv_a_norm, tokens_, l.kv_lora_rank);
    keeps(d(tokens_ * l.kv_lora_rank));
    rope(a.heads, 1, l.rope_dim);
    if (!e_.training) write_cache(a);
    if (!fuses_prolog(a)) return;
    for (std::size_t i = first + 1; i < graph_.size(); ++i) graph_[i].launches = 0;
  }
  // Where all new tokens meet latents as they are.
  bool fuses_prolog(const model::Attention& a) const {
    return o_.fused_mla_prolog && !e_.training && std::all_of(step_.begin(), step_.end(), [&](const SequenceGroup& g) {
             return latent_absorbed(a, g, o_.absorbed_prompts);
           });
  }

  void rope(std::int64_t heads, std::int64_t kv_heads, std::int64_t rotary_dim) {
    if (rotary_dim == 0) return;
    if (o_.fused_rope) {
      vector(Tag::rope, VectorKind::rope, tokens_ * (heads + kv_heads), rotary_dim, 1, 1);
    } else if (chained()) {
      // Every layer looks up cosines and sines by position.
      push(Tag::rope_tables, copy_of(d(2 * tokens_ * rotary_dim)));
      launches(2, concatenates_ ? 2 : 0, 12);
      chain(Tag::rope_q, VectorKind::rope, kRopeChain, tokens_ * heads, rotary_dim);
      chain(Tag::rope_k, VectorKind::rope, kRopeChain, tokens_ * kv_heads, rotary_dim);
    } else {
      vector(Tag::rope_q, VectorKind::rope, tokens_ * heads, rotary_dim, 1, 1);
      vector(Tag::rope_k, VectorKind::rope, tokens_ * kv_heads, rotary_dim, 1, 1);
    }
  }
  // ---- Attention proper: what grows with the context

  // Everything whose size grows with the context, per sequence group. It runs where the products around it do; a cache
  // that is elsewhere is sent there, once for each pass over it.
  void attention(const model::Attention& a, Part part) {
    const bool sent = group_->on_host && place_for(true, batches_[0].tokens) == Place::device;
    // What does not grow with the context stands among what does.
    const auto fixed = [&](auto&& build) {
      if (part == Part::context_dependent) return;
      grows_ = false;
      build();
      grows_ = true;
    };
    grows_ = true;
    for (const SequenceGroup& g : step_) {
      group_number_ = number_of(g);
      place_ = group_->on_host ? Place::host : Place::device;
      if (concatenates(g)) concatenate(a, g);
      if (sent) place_ = Place::device;
      const Attention core = kernel(a, g);
      if (a.indexer && !a.indexer->reused) score_keys(a, *a.indexer, g);
      if (sent) send_cache(a, g, core);
      if (sent && a.latent) fixed([&] { send_kv_b(a); });
      if (a.latent && latent_absorbed(a, g, o_.absorbed_prompts)) {
        absorbed(a, *a.latent, g, core);
        continue;
      }
      if (a.latent) expand(a, *a.latent, g);
      if (o_.flash_attention || a.compression || a.indexer) {
        if (chained() && needs_mask()) convert_mask(g);
        push(Tag::attention, repeats(a) ? repeated(a, g, core) : core);
        keep_flash(a, g);
        if (a.compression) push(Tag::compressed_attention, over_entries(a, core));
      } else {
        naive(a, g);
        if (chained()) fixed([&] { merge_heads(a, g); });
      }
      if (split_) {
        pass_keys(a, g);
      } else {
        fixed([&] { merge_shares(a, g); });
      }
    }
    grows_ = false;
  }

  // ---- The mask of a step, [sequences, queries, keys]. A fused kernel over a cache without room to spare does
  // without.
  bool needs_mask() const { return !o_.flash_attention || o_.static_kv; }
  // Before the layers.
  void prepare_masks() {
    if (!chained() || !needs_mask()) return;
    const Place here = std::exchange(place_, Place::device);
    const Scope scope = std::exchange(scope_, Scope::group);
    grows_ = true;
    for (const SequenceGroup& g : step_) {
      group_number_ = number_of(g);
      mask(Tag::mask_prepare, g, kMaskKernels * in_bytes(), kMaskKernels * in_bytes());
      launches(kMaskKernels);
    }
    grows_ = false;
    place_ = here;
    scope_ = scope;
  }

  // Heads and KV heads of one device inside attention.
  std::int64_t core_heads(const model::Attention& a) const { return a.heads / p_.ulysses; }
  std::int64_t core_kv_heads(const model::Attention& a) const {
    return a.latent ? core_heads(a) : a.kv_heads / p_.ulysses;
  }
  std::int64_t query_ranks() const { return split_ ? p_.ring : 1; }
  std::int64_t key_ranks() const { return split_ ? 1 : p_.ring; }

  // Keys of a sequence that its new tokens' attention walks over.
  std::int64_t walked_keys(const SequenceGroup& g) const {
    const std::int64_t present = g.context + g.new_tokens;
    return g.context > 0 && o_.static_kv ? std::max(present, o_.allocated_kv) : present;
  }
  std::int64_t walked_columns(std::int64_t keys) const { return (keys + key_ranks() - 1) / key_ranks(); }

  // A mask of one byte per element, in tensors of the activation type.
  double in_bytes() const { return 8 / bits(activations_); }
  void mask(Tag tag, const SequenceGroup& g, double reads, double writes) {
    push(tag, Vector{.kind = VectorKind::mask,
                     .rows = g.count * g.new_tokens / query_ranks(),
                     .width = walked_columns(walked_keys(g)),
                     .reads = reads,
                     .writes = writes,
                     .activation = activations_});
  }
  // Fused kernels take the mask in bytes.
  void convert_mask(const SequenceGroup& g) {
    mask(Tag::mask, g, 1, in_bytes());
    launches(1, 0, 4);
  }
  // From [heads, tokens] to [tokens, heads].
  void merge_heads(const model::Attention& a, const SequenceGroup& g) {
    const std::int64_t rows = g.count * g.new_tokens / query_ranks();
    push(Tag::merge_heads, copy_of(d(rows * core_heads(a) * a.v_head_dim)));
    launches(1, 0, 2);
  }
  // Scores of all keys and the choice of the best, of which a query sees `top_k`.
  void score_keys(const model::Attention& a, const model::Indexer& x, const SequenceGroup& g) {
    const std::int64_t pool = a.compression ? a.compression->ratio : x.pool;
    const model::ElementFormat cached = index_format(e_.weights.gguf ? e_.kv.keys.bits : x.cached_bits);
    push(Tag::index_scores, Attention{.sequences = g.count,
                                      .q_tokens = g.new_tokens,
                                      .context = g.context,
                                      .heads = x.heads,
                                      .kv_heads = 1,
                                      .qk_dim = x.head_dim,
                                      .v_dim = 0,
                                      .shared_kv = true,
                                      .pool = pool,
                                      .verifies = g.verifies,
                                      .activation = activations_,
                                      .cached = {cached, cached}});
    // The scores come in 32 bits, of which a query looks at those of the keys before it, on the mean of half the new.
    const double share = 1 / d(pool);
    push(Tag::top_k, Vector{.kind = VectorKind::elementwise,
                            .rows = g.count * g.new_tokens,
                            .width = g.context + (g.new_tokens + 1) / 2,
                            .reads = share * 32 / bits(activations_),
                            .writes = 0,
                            .activation = activations_,
                            .operations = share});
  }
  // Behind the window: entries of several tokens, all of them or the chosen ones.
  static Attention over_entries(const model::Attention& a, Attention core) {
    core.pool = a.compression->ratio;
    core.window = a.indexer ? std::optional(a.indexer->top_k) : std::nullopt;
    core.picked = a.indexer.has_value();
    return core;
  }
  // Attention over keys and values with all their heads, in one kernel.
  Attention kernel(const model::Attention& a, const SequenceGroup& g) const {
    Attention core = whole_kernel(a, g);
    if (m_.encoder && !m_.causal) {
      core.context = 0;
      core.keys = std::min(g.new_tokens, core.window.value_or(g.new_tokens));
      core.window.reset();
    } else if (chooses_keys(a, g)) {
      core.window = std::min(a.indexer->top_k, core.window.value_or(a.indexer->top_k));
      core.picked = true;
    }
    if (a.one_vector) {
      core.shared_kv = true;
      core.v_dim = core.qk_dim;
    }
    return core;
  }
  Attention whole_kernel(const model::Attention& a, const SequenceGroup& g) const {
    return {.sequences = g.count,
            .q_tokens = g.new_tokens,
            .context = walked_keys(g) - g.new_tokens,
            .longest = g.longest > g.context ? g.longest : 0,
            .heads = core_heads(a),
            .kv_heads = core_kv_heads(a),
            .qk_dim = a.head_dim,
            .v_dim = a.v_head_dim,
            .window = e_.window(a),
            .chunked = a.chunked && e_.window(a),
            .query_tile = query_tile(g),
            .softcap = a.softcap,
            .verifies = g.verifies,
            .query_ranks = query_ranks(),
            .key_ranks = key_ranks(),
            .activation = activations_,
            .cached = a.latent || e_.training || m_.encoder ? activations_as_cache() : e_.kv};
  }
  // Queries, keys and values, and the logarithm of the sum of each row of scores.
  void keep_flash(const model::Attention& a, const SequenceGroup& g) {
    const double rows = d(g.count * g.new_tokens) / d(query_ranks());
    keeps(rows * d(core_heads(a) * a.head_dim + core_kv_heads(a) * (a.head_dim + a.v_head_dim)),
          4 * rows * d(core_heads(a)));
  }
  // Ring attention: the keys and values of one rank visit all others while those before them are multiplied.
  void pass_keys(const model::Attention& a, const SequenceGroup& g) {
    const double rows = d(g.count * (g.context + g.new_tokens));
    const double width = d(core_kv_heads(a) * (a.head_dim + a.v_head_dim));
    if (p_.gathers_keys) {
      exchange(Tag::kv_gather, CollectiveKind::all_gather, Axis::ring, p_.ring, rows, width);
    } else if (Op* ring =
                   exchange(Tag::kv_ring, CollectiveKind::ring_pass, Axis::ring, p_.ring, rows / d(p_.ring), width)) {
      ring->overlaps = true;
    }
  }
  // A step that every device of the sequence axes runs whole, each with its share of the cache: the heads of all are
  // put together, and so are the sums over parts of the keys, with the maximum and the sum of each row.
  void merge_shares(const model::Attention& a, const SequenceGroup& g) {
    const auto rows = d(g.count * g.new_tokens);
    const std::int64_t width = core_heads(a) * a.v_head_dim;
    exchange(Tag::merge_reduce, CollectiveKind::all_reduce, Axis::ring, p_.ring, rows, d(width + 2 * core_heads(a)));
    exchange(Tag::heads_gather, CollectiveKind::all_gather, Axis::ulysses, p_.ulysses, rows, d(width * p_.ulysses));
  }
  void send_cache(const model::Attention& a, const SequenceGroup& g, const Attention& core) {
    const auto rows = g.count * static_cast<std::int64_t>(keys_read(core));
    each_cache(a, {Tag::kv_to_device, Tag::k_to_device, Tag::v_to_device},
               [&](Tag tag, std::int64_t width, const model::ElementFormat& element) {
                 send(tag, {.rows = rows, .width = width, .element = element});
               });
  }
  // The matrix that takes latents apart, for each micro-batch.
  void send_kv_b(const model::Attention& a) {
    const Transfer matrix{.rows = a.heads * (a.latent->nope_dim + a.v_head_dim),
                          .width = a.latent->kv_lora_rank,
                          .weights = &format(model::Role::kv_b)};
    each_batch([&] { send(Tag::send_weights, matrix); });
    place_ = Place::device;
  }

  std::int64_t query_tile(const SequenceGroup& g) const {
    const std::int64_t tile = o_.attention_query_tile;
    if (!e_.weights.gguf || g.new_tokens <= e_.micro_batch) return tile;
    return tile > 0 ? std::min(tile, e_.micro_batch) : e_.micro_batch;
  }
  void concatenate(const model::Attention& a, const SequenceGroup& g) {
    // A framework's kernel writes the new tokens, too.
    const std::int64_t present = chained() ? g.context + g.new_tokens : g.context;
    const double tokens = d(g.count * std::min(present, e_.window(a).value_or(present))) / d(p_.sequence());
    copy_cache(a, {Tag::kv_concat, Tag::k_concat, Tag::v_concat}, tokens, 1, {.from_cache = true, .to_cache = true},
               true, 0);
  }
  model::CacheScheme activations_as_cache() const { return {element_, element_}; }
  // Latent attention, expanded: keys and values of all tokens in the cache are computed again from their latents.
  void expand(const model::Attention& a, const model::LatentAttention& l, const SequenceGroup& g) {
    push(Tag::kv_b_proj, Gemm{.m = g.count * walked_keys(g),
                              .n = a.heads * (l.nope_dim + a.v_head_dim),
                              .k = l.kv_lora_rank,
                              .activation = activations_,
                              .weights = &format(model::Role::kv_b)});
    keeps(d(g.count * walked_keys(g) * l.kv_lora_rank));
  }
  // Latent attention, absorbed: queries are taken into the latent space, one shared key/value head is read, and the
  // weighted latents are brought back. The two products use the two halves of kv_b_proj.
  void absorbed(const model::Attention& a, const model::LatentAttention& l, const SequenceGroup& g, Attention core) {
    const auto per_head = [&](Tag tag, std::int64_t n, std::int64_t k) {
      push(tag, Gemm{.m = g.count * g.new_tokens,
                     .n = n,
                     .k = k,
                     .batch = a.heads,
                     .activation = activations_,
                     .weights = &format(model::Role::kv_b),
                     .weight_matrices = d(a.heads)});
    };
    per_head(Tag::q_absorb, l.kv_lora_rank, l.nope_dim);
    if (fuses_prolog(a)) launches(0);
    core.kv_heads = 1;
    core.qk_dim = l.kv_lora_rank + l.rope_dim;
    core.v_dim = l.kv_lora_rank;
    core.shared_kv = true;
    core.cached = e_.kv;
    push(Tag::attention, core);
    per_head(Tag::v_absorb, a.v_head_dim, l.kv_lora_rank);
  }

  bool repeats(const model::Attention& a) const { return o_.repeated_kv && a.heads != a.kv_heads && !a.latent; }
  // Copies `columns` keys and values of every sequence to all the heads that share them.
  void repeat_heads(const model::Attention& a, const SequenceGroup& g, std::int64_t columns) {
    const double per_width = d(g.count * columns) / d(p_.ulysses);
    copy_cache(a, {Tag::repeat_kv, Tag::repeat_k, Tag::repeat_v}, per_width, d(a.heads) / d(a.kv_heads),
               {.from_cache = !e_.training}, concatenates(g), chained() ? 3 : 0);
  }
  // Attention over keys and values that were repeated before: nothing is shared any more, or read from the cache.
  Attention repeated(const model::Attention& a, const SequenceGroup& g, Attention core) {
    repeat_heads(a, g, walked_columns(walked_keys(g)));
    core.kv_heads = core.heads;
    core.cached = activations_as_cache();
    return core;
  }

  // Scores of a prompt, in memory: all at once, or llama.cpp's micro-batches after one another, each over what is
  // cached by its end; `keys` on the mean.
  void naive(const model::Attention& a, const SequenceGroup& g) {
    const std::int64_t total = walked_keys(g);
    const std::int64_t most = e_.weights.gguf && !a.latent ? e_.micro_batch : g.new_tokens;
    if (g.new_tokens <= most) return scores_of(a, g, g.new_tokens, total, 1);
    const std::int64_t whole = g.new_tokens / most;
    scores_of(a, g, most, total - g.new_tokens + most * (whole + 1) / 2, whole);
    if (g.new_tokens % most > 0) scores_of(a, g, g.new_tokens % most, total, 1);
  }
  // Of `tokens` new ones of every sequence over `total` keys, `times`.
  void scores_of(const model::Attention& a, const SequenceGroup& g, std::int64_t tokens, std::int64_t total,
                 std::int64_t times) {
    // A cache that keeps only a window holds what the new tokens may see: the window before the first of them, and
    // themselves.
    const std::optional<std::int64_t> window = e_.window(a);
    const std::int64_t keys = window ? std::min(total, *window - 1 + tokens) : total;
    // ggml's products share a KV head among the rows of the heads of its group; others copy it to each of them.
    const bool shares = e_.weights.gguf && !a.latent && !e_.training;
    const std::int64_t group = shares ? core_heads(a) / core_kv_heads(a) : 1;
    const std::int64_t products = g.count * core_heads(a) / group;
    const std::int64_t rows = tokens / query_ranks() * group;
    const std::int64_t columns = walked_columns(keys);
    const bool repeat = a.heads != a.kv_heads && !shares;
    const bool plain = a.latent || e_.training;
    // Kernels over a cache that grows have a new shape in every step.
    const auto kernels = [&](std::int32_t number, std::int32_t views = 0) {
      launches(number, concatenates(g) ? number : 0, chained() ? views : 0);
    };
    const model::CacheScheme operand = plain || repeat ? activations_as_cache() : e_.kv;
    if (repeat) repeat_heads(a, g, columns);
    times_ = times;
    const auto multiply_heads = [&](Tag tag, std::int64_t n, std::int64_t k, const model::ElementFormat& cached) {
      push(tag, Gemm{.m = rows,
                     .n = n,
                     .k = k,
                     .batch = products,
                     .activation = activations_,
                     .cached_operand = !plain,
                     .cached = cached});
    };
    multiply_heads(Tag::scores, columns, a.head_dim, operand.keys);
    kernels(1, 7);  // q, k and v are taken apart into heads, and the keys transposed
    // Queries and keys; the values are the weighted sum's.
    const auto local = d(g.count * rows / group);
    keeps(local * d((core_heads(a) + core_kv_heads(a)) * a.head_dim));
    const double scores = d(products * rows) * d(columns);
    const auto on_scores = [&](Tag tag, VectorKind kind, const Chained& chain, double operands = 0) {
      Vector v{.kind = kind, .rows = products * rows, .width = columns, .activation = activations_};
      const Chain one = chained() ? chain.of(chains_) : Chain{{1, 1}};
      v.reads = one.moved.read_tensors(activations_) + operands;
      v.writes = one.moved.written_tensors(activations_);
      push(tag, v);
      kernels(one.launches);
    };
    if (a.softcap) on_scores(Tag::softcap, VectorKind::softcap, kSoftcapChain);
    on_scores(Tag::mask, VectorKind::mask, kMaskChain, chained() ? 1 / d(core_heads(a)) : 0);
    on_scores(Tag::softmax, VectorKind::softmax, kSoftmaxChain);
    keeps(scores);
    const bool drops = e_.training && m_.dropout;
    if (drops) {
      dropout(Tag::scores_dropout, products * rows, columns);
      keeps(scores, scores);  // its result for the weighted sum, and the mask
    }
    multiply_heads(Tag::weighted_sum, a.v_head_dim, columns, operand.values);
    kernels(1);
    keeps(local * d(core_kv_heads(a) * a.v_head_dim));
    times_ = 1;
  }
  // ---- After attention, and what surrounds the layers

  // Every device of a stage sends its share of the residual stream to its neighbour in the next one.
  void send_stages() {
    each_batch([&] {
      exchange(Tag::stage_send, CollectiveKind::send, Axis::pipeline, p_.pipeline, d(residual_tokens()),
               d(residual_width()))
          ->count *= p_.pipeline - 1;
    });
  }
  void embed() {
    place_ = residual_ = e_.weights.embedding_on_host ? Place::host : Place::device;
    push(Tag::embed, Gather{.rows = tokens_,
                            .width = residual_width(),
                            .table = &e_.weights.token_embedding,
                            .entries = table_rows(),
                            .activation = activations_});
    if (p_.shard_embedding && place_ == Place::device) sum_tokens(Tag::embed_reduce, Tag::embed_scatter);
    if (m_.position_embeddings > 0)
      vector(Tag::add_positions, VectorKind::add, residual_tokens(), residual_width(), 2, 1);
    if (m_.type_embeddings > 0) vector(Tag::add_types, VectorKind::add, residual_tokens(), residual_width(), 2, 1);
    if (m_.embedding_norm) norm(Tag::embed_norm);
    write_pending_norm();  // for the residual stream
    if (m_.layer_embedding_width > 0) embed_layers();
    dropout(Tag::embed_dropout, residual_tokens(), residual_width());
    move_to(place_for(e_.weights.groups.front().on_host, tokens_), tokens_);
    join_inputs(m_.kinds.front());
    if (m_.kinds.front().norms_after) return;
    if (m_.streams.mix != model::StreamMix::none) {
      project_streams(residual_tokens());
      group_ = &e_.weights.groups.front();
      read_streams();
      group_ = nullptr;
    }
    norm(Tag::input_norm);  // of the first layer; the others' follow the previous layer's add
  }
  // Of a draft: what its layer reads is made of hidden states of its target and of the token's embedding.
  void join_inputs(const Layer& layer) {
    if (layer.joined_inputs == 0) return;
    group_ = &e_.weights.groups.front();
    const auto join = [&](Tag tag) {
      product(tag, residual_tokens(), hidden_, layer.joined_inputs * hidden_, format(Role::join_inputs));
    };
    if (layer.reads_token) {
      join(Tag::join_states);
      rms_norm(Tag::input_norms, residual_tokens(), hidden_);
    } else {
      rms_norm(Tag::input_norms, layer.joined_inputs * residual_tokens(), hidden_);
      join(Tag::join_inputs);
    }
    group_ = nullptr;
  }
  // The tokens' rows of the table for all layers, with what is made of their embedding.
  void embed_layers() {
    const std::int64_t width = m_.num_layers() * m_.layer_embedding_width;
    push(Tag::layer_embed, Gather{.rows = tokens_,
                                  .width = width,
                                  .table = &e_.weights.token_embedding,
                                  .entries = table_rows(),
                                  .activation = activations_});
    product(Tag::layer_embed_proj, tokens_, width, hidden_, e_.weights.token_embedding, {.input = Input::shared});
    rms_norm(Tag::layer_embed_norm, tokens_ * m_.num_layers(), m_.layer_embedding_width);
    vector(Tag::layer_add, VectorKind::add, tokens_, width, 2, 1);
  }

  void attention_output(const Layer& layer) {
    const model::Attention& a = layer.attention;
    const std::int64_t width = a.heads * a.v_head_dim;
    exchange_heads(Tag::o_all_to_all, width);
    if (a.gate != model::OutputGate::none) {
      const double gates = a.gate == model::OutputGate::head ? 1 / d(a.v_head_dim) : 1;
      vector(Tag::apply_gate, VectorKind::sigmoid_gate, tokens_, width, 1 + gates, 1);
    }
    if (!layer.parallel_blocks) transpose_for_overlap(Tag::o_proj_transpose, hidden_, width, format(Role::o));
    if (!a.low_rank) {
      linear(Tag::o_proj, Role::o, hidden_, width, {Split::inputs, Input::own, a.o_bias});
      return;
    }
    const model::LowRankProjections& r = *a.low_rank;
    push(Tag::o_a_proj, Gemm{.m = tokens_,
                             .n = r.output_rank,
                             .k = width / r.output_groups,
                             .batch = r.output_groups,
                             .activation = activations_,
                             .weights = &format(Role::o_a),
                             .weight_matrices = d(r.output_groups)});
    linear(Tag::o_b_proj, Role::o_b, hidden_, r.output_groups * r.output_rank, {Split::inputs, Input::own, a.o_bias});
  }

  void after_mixer(const Layer& layer) {
    if (layer.attends()) attention_output(layer);
    if (layer.recurrent) recurrent_output(*layer.recurrent);
    if (layer.attends() && layer.recurrent) vector(Tag::add_mixers, VectorKind::add, tokens_, hidden_, 2, 1);
    if (layer.low_rank_branch > 0) branch(layer.low_rank_branch);
    const bool apart = !layer.parallel_blocks;
    if (layer.mixes()) {
      // Blocks side by side add up before they are summed over the ranks, unless the experts' results are whole.
      if (apart || spreads_experts(layer)) sum_tokens(Tag::attention_reduce, Tag::attention_scatter);
      if (layer.norms == 4 || layer.norms_after) norm(Tag::post_attention_norm);
      dropout(Tag::attention_dropout, residual_tokens(), residual_width());
    }
    if (!layer.has_feed_forward()) {
      if (layer.mixes()) finish_part(layer, Tag::attention_add, Tag::next_norm, Tag::attention_add_norm, 2);
      return;
    }
    if (layer.mixes() && apart) {
      finish_part(layer, Tag::attention_add, Tag::mlp_norm, Tag::attention_add_norm, 2);
    }
    if (apart && !spreads_experts(layer)) gather_tokens(Tag::mlp_gather, tokens_);
    const bool two_norms = layer.parallel_blocks && layer.norms == 2;
    if (two_norms) norm(Tag::mlp_norm);
    if (layer.feed_forward.experts) {
      experts(layer, *layer.feed_forward.experts);
    } else {
      mlp(layer.feed_forward, layer.feed_forward.intermediate, {Role::gate, Role::up, Role::down},
          apart || two_norms ? Input::gathered : Input::shared);
      sum_tokens(Tag::mlp_reduce, Tag::mlp_scatter);
    }
    if (layer.norms == 4 || layer.norms_after) norm(Tag::post_mlp_norm);
    dropout(Tag::mlp_dropout, residual_tokens(), residual_width());
    if (m_.layer_embedding_width > 0) layer_embedding();
    // The norm that follows is the next layer's input norm, or the final norm.
    finish_part(layer, Tag::mlp_add, Tag::next_norm, Tag::mlp_add_norm, apart ? 2 : 3);
  }
  // The residual add after a part, and the norm before the next one where norms stand before parts.
  void finish_part(const Layer& layer, Tag add_tag, Tag norm_tag, Tag fused_tag, double inputs) {
    if (!layer.norms_after) {
      add_and_norm(add_tag, norm_tag, fused_tag, inputs);
    } else {
      write_pending_norm();
      vector(add_tag, VectorKind::add, residual_tokens(), residual_width(), inputs, 1);
    }
  }
  // Beside attention (LAuReL): the input through a low rank, a norm, added.
  void branch(std::int64_t rank) {
    linear(Tag::branch_down, Role::branch_down, rank, hidden_, {.input = Input::shared});
    linear(Tag::branch_up, Role::branch_up, hidden_, rank);
    rms_norm(Tag::branch_norm, tokens_, hidden_);
    vector(Tag::add_mixers, VectorKind::add, tokens_, hidden_, 2, 1);
  }
  // A layer's share of the embedding made for it, gated by the layer's result (Gemma 3n).
  void layer_embedding() {
    const std::int64_t width = m_.layer_embedding_width;
    write_pending_norm();
    linear(Tag::layer_gate, Role::layer_gate, width, hidden_);
    vector(Tag::layer_multiply, VectorKind::gated_activation, tokens_, width, 2, 1);
    linear(Tag::layer_projection, Role::layer_projection, hidden_, width);
    rms_norm(Tag::layer_norm, tokens_, hidden_);
    vector(Tag::layer_add, VectorKind::add, tokens_, hidden_, 2, 1);
  }

  void activate(Tag tag, std::int64_t rows, std::int64_t width, bool gated) {
    if (Gemm* product = product_of(rows, gated ? 2 * width : width)) {
      product->joined.output = gated ? VectorKind::gated_activation : VectorKind::activation;
      product->joined.share = product->joined.results = gated ? 0.5 : 1;
      return;
    }
    if (!gated || o_.fused_activation || chains_ == hardware::Chains::compiled) {
      vector(tag, gated ? VectorKind::gated_activation : VectorKind::activation, rows, width, gated ? 2 : 1, 1);
      keeps(d(rows * width * (gated ? 2 : 1)));
    } else {
      vector(tag, VectorKind::activation, rows, width, 1, 1);
      keeps(d(rows * width));
      vector(Tag::multiply_gate, VectorKind::multiply, rows, width, 2, 1);
      keeps(d(2 * rows * width));
    }
  }

  struct MlpRoles {
    Role gate, up, down;
  };
  void mlp(const model::FeedForward& f, std::int64_t width, const MlpRoles& roles, Input input) {
    if (!f.gated) {
      linear(Tag::up_proj, roles.up, width, hidden_, {Split::outputs, input, f.bias});
    } else if ((o_.fused_gate_up || f.fused_gate_up) && same_format(roles.gate, roles.up)) {
      linear(Tag::gate_up_proj, roles.up, 2 * width, hidden_, {Split::outputs, input, f.bias});
    } else {
      linear(Tag::gate_proj, roles.gate, width, hidden_, {Split::outputs, input, f.bias});
      linear(Tag::up_proj, roles.up, width, hidden_, {Split::outputs, Input::shared, f.bias});
    }
    activate(Tag::activation, tokens_, width, f.gated);
    if (!f.experts) transpose_for_overlap(Tag::down_proj_transpose, hidden_, width, format(roles.down));
    linear(Tag::down_proj, roles.down, hidden_, width, {Split::inputs, Input::own, f.bias});
  }

  // Whether the experts of a layer lie on devices beyond the tensor axis, which hold other tokens.
  bool spreads_experts(const Layer& layer) const { return layer.feed_forward.experts && p_.sends_tokens(); }

  // Routed experts: every token is copied to its experts, the experts run as grouped GEMMs over all copies (weights of
  // the experts reached are read once), and the weighted results are summed. How many they are is expected of their
  // popularity. Of devices that share them the step is that of the busiest (load_of_device()).
  //
  // Within the tensor axis every device has all tokens and serves those that its experts were picked for; the sum over
  // the axis is the one that ends a divided block. Beyond it every device routes its own share of the tokens, and the
  // copies travel.
  void experts(const Layer& layer, const model::Experts& x) {
    const model::FeedForward& f = layer.feed_forward;
    write_pending_norm();  // for the router and for the copies
    const bool spread = p_.sends_tokens();
    const std::int64_t own = spread ? divide_up(tokens_, p_.tensor) : tokens_;  // tokens routed here
    // Those that tokens pick among experts that return their input are no work.
    const std::int64_t all = x.count + x.identity;
    const double real = d(x.count) / d(all);
    const auto copies_out = static_cast<std::int64_t>(std::ceil(d(own * x.per_token) * real));
    const std::int64_t width = x.latent > 0 ? x.latent : hidden_;  // that experts work in
    const std::int64_t routed = routed_tokens(p_, tokens_);
    // Of a device of experts: as many as each of others sends, where these are as many; more of the busiest.
    ExpertLoad load = load_of_device(e_, x, routed);
    const double share = d(spread ? copies_out * p_.routing_devices() : copies_out) / d(p_.expert);
    std::int64_t rows = std::min(static_cast<std::int64_t>(std::ceil(share * load.imbalance)), routed * x.per_token);
    const bool shared_is_routed = routes_shared_expert(x);
    if (shared_is_routed) {
      rows += own;
      load.active += 1;
      for (std::size_t i = 0; i < kTileRows.size(); ++i) load.tiles[i] += std::ceil(d(own) / kTileRows[i]);
    }
    const bool beside = f.intermediate > 0;
    if (beside) {
      mlp(f, f.intermediate, {Role::gate, Role::up, Role::down}, Input::gathered);
      if (model::has_norms_beside_experts(layer)) rms_norm(Tag::experts_norm, own, hidden_);
    }
    product(Tag::router, own, all, hidden_, format(Role::router),
            {.input = spread   ? Input::own
                      : beside ? Input::shared
                               : Input::gathered,
             .bias = x.router_bias});
    vector(Tag::routing, VectorKind::router, own, all, 1, 1);
    keeps(d(own * all));
    if (x.latent > 0) {
      product(Tag::latent_down, own, width, hidden_, format(Role::latent_down), {.input = Input::shared});
      if (x.latent_norm) rms_norm(Tag::latent_norm, own, width);
    }
    expert_products(f, x, own, p_.afd ? copies_out : rows, rows, load);
    if (x.latent > 0) product(Tag::latent_up, own, hidden_, width, format(Role::latent_up));
    if (beside) {
      if (model::has_norms_beside_experts(layer)) {
        rms_norm(Tag::experts_norm, 2 * own, hidden_);  // of the results of both
      }
      vector(Tag::add_shared, VectorKind::add, own, hidden_, 2, 1);
    }
    if (spread && residual_ranks_ == 1) {
      exchange(Tag::experts_gather, CollectiveKind::all_gather, Axis::tensor, p_.tensor, d(tokens_), d(hidden_));
    }
    if (x.shared_intermediate > 0 && !shared_is_routed) shared_experts(f, x, spread);
    if (!spread) sum_tokens(Tag::mlp_reduce, Tag::mlp_scatter);
  }
  bool routes_shared_expert(const model::Experts& x) const {
    return e_.joins_shared_expert(x) && same_format(Role::shared_up, Role::expert_up) &&
           same_format(Role::shared_down, Role::expert_down);
  }
  // Of `copies` of `own` tokens: there, where `rows` of all devices meet, through the experts, and back.
  void expert_products(const model::FeedForward& f, const model::Experts& x, std::int64_t own, std::int64_t copies,
                       std::int64_t rows, const ExpertLoad& load) {
    const bool spread = p_.sends_tokens();
    const std::int64_t width = x.latent > 0 ? x.latent : hidden_;
    const Place up = place_of(Role::expert_up);
    const Place gate = f.gated ? place_of(Role::expert_gate) : up;
    const Place down = place_of(Role::expert_down);
    const auto multiply = [&](Tag tag, Place place, Role role, std::int64_t n, std::int64_t k,
                              Input input = Input::own) {
      streamed_ = place == Place::device && group_->holds_on_host(role);
      product(tag, rows, n, k, format(role), {.input = input, .bias = f.bias, .load = load});
    };
    if (gate != residual_ || up != residual_) cross(Place::host, own, width);
    place_ = gate;
    push(Tag::dispatch, copy_of(d(copies * width)));
    if (spread) exchange_experts(Tag::experts_dispatch, own, x, load, Way::there);
    on_experts_ = p_.afd;
    const bool together = group_->holds_on_host(Role::expert_gate) == group_->holds_on_host(Role::expert_up) &&
                          same_format(Role::expert_gate, Role::expert_up);
    if (f.gated && (o_.fused_gate_up || f.fused_gate_up) && together) {
      multiply(Tag::experts_gate_up, gate, Role::expert_up, 2 * x.intermediate, width);
    } else {
      if (f.gated) {
        multiply(Tag::experts_gate, gate, Role::expert_gate, x.intermediate, width);
        cross(up, rows, x.intermediate);
      }
      multiply(Tag::experts_up, up, Role::expert_up, x.intermediate, width, f.gated ? Input::shared : Input::own);
    }
    activate(Tag::experts_activation, rows, x.intermediate, f.gated);
    cross(down, rows, x.intermediate);
    multiply(Tag::experts_down, down, Role::expert_down, width, x.intermediate);
    cross(residual_, rows, width);
    streamed_ = group_->on_host && residual_ == Place::device;
    on_experts_ = false;
    if (spread) exchange_experts(Tag::experts_return, own, x, load, Way::back);
    vector(Tag::combine, VectorKind::combine, copies, width, 1, d(own) / d(copies));
    keeps(d(copies * width));
  }
  // Of all tokens, beside the routed ones.
  void shared_experts(const model::FeedForward& f, const model::Experts& x, bool spread) {
    if (spread) gather_tokens(Tag::mlp_gather, tokens_);
    mlp(f, x.shared_intermediate, {Role::shared_gate, Role::shared_up, Role::shared_down}, Input::shared);
    if (spread) sum_tokens(Tag::mlp_reduce, Tag::mlp_scatter);
    const std::int64_t sum = spread ? residual_tokens() : tokens_;
    if (x.shared_gate) {
      product(Tag::shared_gate, sum, 1, hidden_, format(Role::shared_router), {.input = Input::shared});
      vector(Tag::apply_shared_gate, VectorKind::sigmoid_gate, sum, hidden_, 1, 1);
      keeps(d(sum * hidden_));
    }
    vector(Tag::add_shared, VectorKind::add, sum, hidden_, 2, 1);
  }
  // Where the products with an expert's matrix run: with the rest of the layer, or on the host that keeps the matrix
  // while its rows are too few to send it. Activations go there and back, and what is between two products is computed
  // where the first one is.
  Place place_of(Role role) const {
    return group_->holds_on_host(role) && !e_.streams(tokens_) ? Place::host : residual_;
  }
  // A token goes once to every device that has experts of it, which sums up its results before they come back.
  enum class Way : unsigned char { there, back };
  void exchange_experts(Tag tag, std::int64_t tokens, const model::Experts& x, const ExpertLoad& load, Way way) {
    const model::StoredFormat& weights = format(Role::expert_up);
    const bool narrow = bits(weights.compute) < bits(activations_);
    model::ElementFormat there =
        model::element_format(p_.expert_dispatch.value_or(narrow ? weights.compute : activations_));
    if (weights.block > 0 && there.bits < bits(activations_)) there.bits += weights.bits_per_block / weights.block;
    model::ElementFormat back = model::element_format(p_.expert_combine.value_or(activations_));
    if (way == Way::back) std::swap(there, back);
    // Copies and shared experts are places that tokens go to as the others; they are in no group.
    const std::int64_t held = p_.held_experts(x.count);
    const bool plain = p_.expert_copies == 0 && p_.shared_ranks == 0;
    Routing routing{.experts = held * p_.expert,
                    .per_token = x.per_token,
                    .groups = plain ? x.groups : 1,
                    .groups_per_token = plain ? x.groups_per_token : 1,
                    .back = back,
                    .returns = way == Way::back};
    const double once = reached(routing, held);
    // A device is sent a token with chance 1 - prod(1 - p) of its experts' p, whose sum is `imbalance` times the mean.
    const Placement* placed = e_.placement();
    const double most = placed ? once * placed->reached : 1 - maths::pow(1 - once, load.imbalance);
    routing.busiest = std::min(most, 1.0) / once;
    if (p_.afd) {  // nothing stays where it is, and fewer devices of experts get more than each of the others sends
      const double ranks = d(p_.expert);
      routing.busiest = ranks / (ranks - 1) * std::max(1.0, routing.busiest * d(p_.stage()) / ranks);
    }
    const double devices = d(p_.expert) * once * routing.busiest;
    exchange(tag, CollectiveKind::all_to_all, Axis::expert, p_.expert, d(tokens) * devices,
             d(x.latent > 0 ? x.latent : hidden_));
    Collective& c = std::get<Collective>(graph_.back().body);
    c.others = p_.afd ? p_.stage() : 0;
    c.element = there;
    c.routing = routing;
  }

  void head() {
    if (m_.encoder) {
      scope_ = Scope::sampled;
      if (m_.pooler) {
        product(Tag::pooler, sampled_, hidden_, hidden_, e_.weights.lm_head, {.input = Input::gathered, .bias = true});
      }
      if (m_.labels > 0) {
        product(Tag::lm_head, sampled_, m_.labels, hidden_, e_.weights.lm_head,
                {.input = Input::gathered, .bias = m_.lm_head_bias});
      }
      return;
    }
    if (m_.kinds.back().norms_after && m_.final_norm) norm(Tag::final_norm);
    const bool last = o_.last_token_logits && !e_.training;
    const std::int64_t rows = last ? sampled_ : tokens_;
    if (last) scope_ = Scope::sampled;
    move_to(place_for(e_.weights.head_on_host, rows), rows);
    streamed_ = e_.weights.head_on_host && residual_ == Place::device;
    project_streams(rows);
    gather_tokens(Tag::head_gather, rows);
    if (two_dimensional() && !p_.shard_embedding) {
      exchange(Tag::head_gather, CollectiveKind::all_gather, Axis::tensor, p_.tensor, d(rows), d(hidden_));
    }
    product(Tag::lm_head, rows, vocab(), hidden_, e_.weights.lm_head,
            {p_.shard_embedding ? Split::outputs : Split::none, Input::gathered, m_.lm_head_bias});
    if (!e_.training && p_.shard_embedding) {
      exchange(Tag::logits_gather, CollectiveKind::all_gather, Axis::tensor, p_.tensor, d(rows), d(m_.vocab));
    }
    if (chained()) widen_logits(rows);
    scope_ = Scope::rows;
  }
  void widen_logits(std::int64_t rows) {
    Copy copy = copy_of(d(rows * m_.vocab));
    copy.to = model::element_format(Dtype::fp32);
    push(Tag::logits_to_fp32, copy);
  }
  std::int64_t vocab() const { return shard_vocab(m_, p_); }
  std::int64_t table_rows() const { return p_.shard_embedding ? vocab() : m_.vocab; }

  // Cross entropy over logits widened to fp32; over a divided vocabulary the maximum, the sum and the logit of the
  // target are reduced.
  void loss() {
    vector(Tag::cross_entropy, VectorKind::cross_entropy, tokens_, vocab(), 1, 32.0 / bits(activations_));
    keeps(0, 4 * d(tokens_ * vocab()));
    if (p_.shard_embedding) {
      exchange(Tag::loss_reduce, CollectiveKind::all_reduce, Axis::tensor, p_.tensor, d(tokens_),
               3 * 32.0 / bits(activations_));
    }
  }

  void sample() {
    scope_ = Scope::sampled;
    if (e_.weights.embedding_on_host) {  // llama.cpp samples on the host
      if (place_ == Place::device) {
        send(Tag::logits_to_host,
             Transfer{.rows = sampled_, .width = m_.vocab, .element = model::element_format(Dtype::fp32)});
      }
      place_ = Place::host;
    }
    const bool draws = e_.draws && place_ == Place::device;
    vector(Tag::sampling, draws ? VectorKind::draw : VectorKind::sampling, sampled_, m_.vocab, 1, 0);
  }

  const Execution& e_;
  const model::Decoder& m_;
  std::span<const SequenceGroup> step_;
  hardware::Chains chains_;
  bool split_;  // the step's tokens are divided over the sequence axes
  std::int64_t sampled_ = 0;
  bool prompts_ = false;                 // the step has some
  bool concatenates_ = false;            // some cache of the step
  std::array<MicroBatches, 2> batches_;  // full ones, and the rest
  std::size_t batch_count_ = 0;
  std::int64_t tokens_ = 0;                   // of the micro-batch being built
  std::int64_t mixer_input_ = 0;              // width of what the products before attention read
  const model::LayerGroup* group_ = nullptr;  // that is being built
  Place residual_ = Place::device;            // of the residual stream
  Tag norm_tag_ = Tag::none;
  std::optional<Vector> norm_pending_;  // waits for the product that takes it over
  std::optional<Vector> norm_taken_;    // by the last product that took one, for others that read the same
  bool streamed_ = false;               // the group's weights are on the host and its products on the device
};

}  // namespace

std::int64_t Execution::stage_layers(const model::LayerGroup& group, std::int64_t stage) const {
  if (plan.pipeline == 1) return group.count();
  const auto i = static_cast<std::size_t>(stage);
  const std::int64_t run = model->num_layers() / plan.pipeline;
  const std::int64_t first = split.first.empty() ? stage * run : split.first[i];
  const std::int64_t end = split.first.empty() ? first + run : split.first[i + 1];
  const auto at = [&](std::int64_t layer) { return std::lower_bound(group.layers.begin(), group.layers.end(), layer); };
  return at(end) - at(first);
}

double Adapters::used(double requests) const { return d(served) * (1 - std::pow(1 - 1 / d(served), requests)); }

bool Execution::joins_shared_expert(const model::Experts& x) const {
  return runtime.fused_shared_expert && !training && plan.expert == 1 && x.latent == 0 && !x.shared_gate &&
         x.shared_intermediate == x.intermediate;
}

std::int64_t routed_tokens(const Plan& plan, std::int64_t tokens) {
  return plan.sends_tokens() ? divide_up(tokens, plan.tensor) * plan.routing_devices() : tokens;
}

ExpertLoad load_of_device(const Execution& e, const model::Experts& x, std::int64_t routed) {
  if (const Placement* placed = e.placement()) return placed->load(routed);
  const std::int64_t all = x.count + x.identity;
  const std::int64_t ranks = e.plan.routed_ranks();
  const double real = d(x.count) / d(all);
  if (e.training) return expert_load(e.routing, all, x.per_token, routed) / (d(ranks) / real);
  ExpertLoad load = expert_load(e.routing, all, x.per_token, routed, ranks, e.levels_experts()) / (1 / real);
  if (e.plan.expert_copies > 0) {  // as likely to be reached as the experts that they are copies of
    load.active *= 1 + d(e.plan.expert_copies) / d(x.count);
    for (double& tiles : load.tiles) tiles = std::max(tiles, load.active);
  }
  return load;
}

const Placement* Execution::placement() const {
  if (!routing.measured) return nullptr;
  const model::Experts& x = *model->first_routed()->feed_forward.experts;
  const double picks = d(x.per_token * x.count) / d(x.count + x.identity);
  return &routing.measured->placed(picks, plan.routed_ranks(), plan.expert_copies);
}

std::optional<std::int64_t> Execution::window(const model::Attention& a) const {
  return windows ? a.window : std::nullopt;
}

std::int64_t Execution::cached_tokens(const model::Attention& a, std::int64_t tokens) const {
  const std::optional<std::int64_t> full = window(a);
  if (!full) return tokens;
  // llama.cpp keeps a micro-batch more than the window, in whole 256s.
  const std::int64_t cells = weights.gguf ? (*full + micro_batch + 255) / 256 * 256 : *full;
  return std::min(tokens, cells);
}

model::IndexRow Execution::index_row(const model::Attention& a) const {
  model::IndexRow row = model::index_row(a);
  if (weights.gguf && row.elements > 0) row.bits = kv.keys.bits;
  return row;
}

bool splits_sequence(const Plan& plan, std::span<const SequenceGroup> step) {
  return plan.sequence() > 1 && std::all_of(step.begin(), step.end(), [&](const SequenceGroup& g) {
           return !g.verifies && g.new_tokens % sequence_pieces(plan) == 0;
         });
}

bool splits_residual(const Plan& plan, std::span<const SequenceGroup> step) {
  return plan.sequence_parallel &&
         std::any_of(step.begin(), step.end(), [](const SequenceGroup& g) { return g.prompts(); });
}

void build_step(const Execution& execution, std::span<const SequenceGroup> step, Part part, Graph& graph) {
  DecoderBuilder(execution, step, graph).build(part);
}

bool chooses_keys(const model::Attention& a, const SequenceGroup& g) {
  return a.indexer && !a.compression && g.context + g.new_tokens > a.indexer->top_k;
}

bool latent_absorbed(const model::Attention& a, const SequenceGroup& group, bool prompts) {
  if (prompts || chooses_keys(a, group)) return true;  // each query has latents of its own
  // Per head and cached token, expanding costs kv_lora (nope + v) multiply-adds once; per new token on top, scores and
  // values cost 2 kv_lora + rope absorbed against nope + rope + v expanded.
  const std::int64_t r = a.latent->kv_lora_rank;
  const std::int64_t dearer = 2 * r - a.latent->nope_dim - a.v_head_dim;
  if (dearer <= 0) return true;  // wide heads: absorbed is never dearer
  return group.context > 0 && group.new_tokens * dearer <= r * (a.latent->nope_dim + a.v_head_dim);
}

}  // namespace llmperf::graph
