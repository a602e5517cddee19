// What a builder of steps writes ops with: where they run, how often, and in which micro-batches. Internal to
// src/graph.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "graph/chains.h"
#include "graph/decoder_graph.h"

namespace llmperf::graph {

class StepWriter {
 public:
  StepWriter(const Execution& execution, std::span<const SequenceGroup> step, Graph& graph)
      : e_(execution),
        m_(*execution.model),
        o_(execution.runtime),
        p_(execution.plan),
        step_(step),
        graph_(graph),
        chains_(execution.training ? hardware::Chains::one_kernel : execution.runtime.chains),
        split_(splits_sequence(execution.plan, step)),
        residual_ranks_(splits_residual(execution.plan, step) ? execution.plan.tensor : 1) {
    std::int64_t tokens = 0;
    for (const SequenceGroup& g : step) {
      tokens += g.count * g.new_tokens;
      sequences_ += g.count;
      prompts_ |= g.new_tokens > 1;
      concatenates_ |= concatenates(g);
    }
    if (split_) tokens /= p_.sequence();
    const std::int64_t limit = e_.weights.gguf ? e_.micro_batch : tokens;
    if (tokens >= limit) batches_[batch_count_++] = {.tokens = limit, .times = tokens / limit};
    if (tokens % limit > 0) batches_[batch_count_++] = {.tokens = tokens % limit, .times = 1};
  }

 protected:
  void push(std::string_view name, const OpBody& body, std::int64_t times = 1, bool grows = false) {
    append(name, times, grows).body = body;
  }
  // An op whose body is to be filled in: a product, as long as it is no other.
  Op& append(std::string_view name, std::int64_t times = 1, bool grows = false) {
    Op& op = graph_.emplace_back();
    op.name = name;
    op.count = count_ * times_ * times;
    op.layer_kind = kind_;
    op.place = place_;
    op.grows_with_context = grows;
    return op;
  }
  // ---- Vector work that products take over (RuntimeOptions::joined_vectors). A norm waits for the product that reads
  // its result, or is written when something else does.
  bool joins() const {
    return o_.joined_vectors && !chained() && !e_.training && !e_.weights.gguf && !two_dimensional();
  }
  void write_pending_norm() {
    norm_taken_ = std::nullopt;
    if (!norm_pending_) return;
    push(norm_name_, *std::exchange(norm_pending_, std::nullopt));
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
    graph_.back().saved = Bytes{elements * bits(e_.activations) / 8 + bytes};
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

  // ---- Between devices. A collective among one device is none.
  void exchange(std::string_view name, CollectiveKind kind, Axis axis, std::int64_t ranks, double rows, double width,
                bool overlaps = false, bool grows = false, std::int64_t times = 1) {
    if (ranks == 1) return;
    const Place here = std::exchange(place_, Place::network);
    push(name,
         Collective{.kind = kind,
                    .axis = axis,
                    .ranks = ranks,
                    .stride = p_.stride(axis),
                    .rows = rows,
                    .width = width,
                    .element = model::element_format(e_.activations)},
         times, grows);
    graph_.back().overlaps = overlaps;
    place_ = here;
  }
  bool two_dimensional() const { return p_.tensor_rows > 0; }
  std::int64_t residual_tokens() const { return (tokens_ + residual_ranks_ - 1) / residual_ranks_; }
  // Width of the residual stream on one device.
  std::int64_t residual_width() const { return two_dimensional() ? m_.hidden / p_.tensor : m_.hidden; }
  // Sequence parallelism: the tokens of all ranks, before matrices divided by columns.
  void gather_tokens(std::string_view name, std::int64_t rows) {
    if (residual_ranks_ > 1) {
      exchange(name, CollectiveKind::all_gather, Axis::tensor, p_.tensor, static_cast<double>(rows),
               static_cast<double>(m_.hidden));
    }
  }
  // The summands of all ranks, after matrices divided by rows.
  void reduce_tokens(std::string_view all_reduce, std::string_view scatter, std::int64_t rows) {
    if (two_dimensional()) return;
    const bool scatters = residual_ranks_ > 1;
    const bool overlaps = overlaps_sums() && std::holds_alternative<Gemm>(graph_.back().body);
    exchange(scatters ? scatter : all_reduce, scatters ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
             Axis::tensor, p_.tensor, static_cast<double>(rows), static_cast<double>(m_.hidden), overlaps);
  }
  // Matrices divided by rows run beside the sum of their results.
  bool overlaps_sums() const {
    return o_.overlap_collectives && prompts_ && p_.tensor > 1 && !two_dimensional() && !e_.training;
  }
  // The kernel that does both takes the matrix the other way round. A compiler keeps it so; an eager framework copies
  // it in every step.
  void transpose_for_overlap(std::string_view name, std::int64_t n, std::int64_t k, const model::StoredFormat& stored) {
    if (!overlaps_sums() || chains_ != hardware::Chains::framework) return;
    push(name, copy_of(stored.bytes(n, k).value / bytes_per_element(e_.activations)));
  }
  void send(std::string_view name, const Transfer& transfer, bool grows = false) {
    const Place here = std::exchange(place_, Place::link);
    push(name, transfer, 1, grows);
    place_ = here;
  }
  const model::StoredFormat& format(model::Role role) const { return (*group_)[role]; }
  bool same_format(model::Role a, model::Role b) const { return format(a) == format(b); }

  // Where `rows` rows meet weights that are kept on the host or not.
  static Place place_for(bool on_host, std::int64_t rows) {
    return on_host && rows < kStreamedRows ? Place::host : Place::device;
  }
  // The residual stream follows: from here on ops run at `place`.
  void move_to(Place place, std::int64_t rows) {
    if (place != residual_) {
      send(place == Place::host ? "to_host" : "to_device",
           Transfer{.rows = rows, .width = m_.hidden, .element = model::element_format(e_.activations)});
    }
    place_ = residual_ = place;
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

  // Calls `write` with a name, the width of a token's row and its format: for keys and values together where they are
  // stored alike or are one latent, else for each.
  struct CacheNames {
    std::string_view both, keys, values;
  };
  template <class Write>
  void each_cache(const model::Attention& a, const CacheNames& names, Write&& write) {
    const model::CacheRow row = model::cache_row(a);
    if (a.latent || e_.kv.keys == e_.kv.values) {
      write(names.both, row.keys + row.values, e_.kv.keys);
    } else {
      write(names.keys, row.keys, e_.kv.keys);
      write(names.values, row.values, e_.kv.values);
    }
  }

  // How a matrix is divided over the tensor axis: not at all, its outputs n, or its inputs k. `n` and `k` are those of
  // one device.
  enum class Split : unsigned char { none, outputs, inputs };
  // What of an input is kept for the backward pass: all, the share that was there before the ranks' shares were
  // gathered (the backward pass gathers them again), or nothing because an earlier op keeps it.
  enum class Input : unsigned char { own, gathered, shared };

  void linear(std::string_view name, Split split, std::int64_t rows, std::int64_t n, std::int64_t k, bool bias,
              const model::StoredFormat& format, double matrices = 1, Input input = Input::own) {
    if (two_dimensional() && split != Split::none) {
      two_dimensional_linear(name, split, rows, n, k, bias, format, input);
      return;
    }
    if (streamed_)
      send("send_weights", Transfer{.rows = n, .width = k, .weights = &format, .weight_matrices = matrices});
    if (norm_pending_ && norm_pending_->width != k) write_pending_norm();
    Gemm& product = std::get<Gemm>(append(name).body);
    product.m = rows;
    product.n = n;
    product.k = k;
    product.activation = e_.activations;
    product.weights = &format;
    product.weight_matrices = matrices;
    product.bias = bias;
    if (norm_pending_ || norm_taken_) take_norm(product, input == Input::shared);
    if (input == Input::own) keeps(static_cast<double>(rows * k));
    if (input == Input::gathered) keeps(static_cast<double>(rows * k) / static_cast<double>(residual_ranks_));
  }

  // Weights over rows x columns of devices (docs/formulas.md, Plans): the input [rows, K / (rows columns)] of each is
  // gathered along the columns, the partial products [rows, N / columns] are reduce-scattered along the rows.
  void two_dimensional_linear(std::string_view name, Split split, std::int64_t rows, std::int64_t n, std::int64_t k,
                              bool bias, const model::StoredFormat& format, Input input) {
    const std::int64_t columns = p_.tensor_columns();
    const std::int64_t part_n = split == Split::outputs ? n * p_.tensor_rows : n / columns;
    const std::int64_t part_k = split == Split::outputs ? k / p_.tensor_rows : k * columns;
    const auto tokens = static_cast<double>(rows);
    if (input != Input::shared) {
      exchange("gather_columns", CollectiveKind::all_gather, Axis::tensor_columns, columns, tokens,
               static_cast<double>(part_k));
    }
    push(name,
         Gemm{.m = rows, .n = part_n, .k = part_k, .activation = e_.activations, .weights = &format, .bias = bias});
    if (input != Input::shared) keeps(static_cast<double>(rows * part_k) / static_cast<double>(columns));
    exchange("reduce_rows", CollectiveKind::reduce_scatter, Axis::tensor_rows, p_.tensor_rows, tokens,
             static_cast<double>(part_n));
  }

  // Activations from one place to another.
  Copy copy_of(double elements) const {
    const model::ElementFormat element = model::element_format(e_.activations);
    return {.read_elements = elements, .write_elements = elements, .from = element, .to = element};
  }
  void vector(std::string_view name, VectorKind kind, std::int64_t rows, std::int64_t width, double reads,
              double writes, std::int64_t parameters = 0) {
    push(name, Vector{.kind = kind,
                      .rows = rows,
                      .width = width,
                      .reads = reads,
                      .writes = writes,
                      .parameters = vector_bytes(parameters),
                      .activation = e_.activations});
  }
  Bytes vector_bytes(std::int64_t parameters) const {
    return Bytes{static_cast<double>(parameters) * e_.weights.vector_bits / 8};
  }
  // One vector op that stands for the kernels of a chain.
  void chain(std::string_view name, VectorKind kind, const Chained& kernels, std::int64_t rows, std::int64_t width,
             std::int64_t parameters = 0) {
    const Chain& c = kernels.of(chains_);
    vector(name, kind, rows, width, c.reads(e_.activations), c.writes(e_.activations), parameters);
    launches(c.launches, 0, c.views);
  }
  void rms_norm(std::string_view name, std::int64_t rows, std::int64_t width) {
    if (chained() && !o_.fused_norm) {
      chain(name, VectorKind::rms_norm, kNormChain, rows, width, width);
    } else {
      vector(name, VectorKind::rms_norm, rows, width, 1, 1, width);
    }
  }
  // (Frameworks have a kernel for LayerNorm.)
  void norm(std::string_view name) {
    const bool rms = m_.norm == model::Norm::rms;
    if (joins()) {
      write_pending_norm();
      norm_name_ = name;
      norm_pending_ = Vector{.kind = rms ? VectorKind::rms_norm : VectorKind::layer_norm,
                             .rows = residual_tokens(),
                             .width = residual_width(),
                             .parameters = vector_bytes((rms ? 1 : 2) * residual_width()),
                             .activation = e_.activations};
      return;
    }
    if (rms) {
      rms_norm(name, residual_tokens(), residual_width());
    } else {
      vector(name, VectorKind::layer_norm, residual_tokens(), residual_width(), 1, 1, 2 * residual_width());
    }
    keep_norm_input(rms);
  }
  // A norm over a row that lies on several devices sums its statistics.
  void keep_norm_input(bool rms) {
    keeps(static_cast<double>(residual_tokens() * residual_width()));
    if (two_dimensional()) {
      exchange("norm_statistics", CollectiveKind::all_reduce, Axis::tensor, p_.tensor,
               static_cast<double>(residual_tokens()), rms ? 1 : 2);
    }
  }
  // Dropout on the output of a block, in training: the mask takes a byte per element.
  void dropout(std::string_view name, std::int64_t rows, std::int64_t width) {
    if (!e_.training || !m_.dropout) return;
    vector(name, VectorKind::dropout, rows, width, 1, 1 + 8.0 / bits(e_.activations));
    keeps(0, static_cast<double>(rows * width));
  }
  // The residual add after a block and the norm that reads its result. `inputs` tensors are added (2, or 3 in parallel
  // blocks).
  void add_and_norm(std::string_view add_name, std::string_view norm_name, std::string_view fused_name, double inputs) {
    if (joins()) {
      write_pending_norm();
      if (Gemm* product = product_of(residual_tokens(), residual_width())) {
        product->joined.output = VectorKind::add;
        product->joined.reads = inputs - 1;
      } else {
        vector(add_name, VectorKind::add, residual_tokens(), residual_width(), inputs, 1);
      }
      norm(norm_name);
    } else if (o_.fused_add_norm) {
      const bool rms = m_.norm == model::Norm::rms;
      vector(fused_name, rms ? VectorKind::add_rms_norm : VectorKind::add_layer_norm, residual_tokens(),
             residual_width(), inputs, 2, (rms ? 1 : 2) * residual_width());
      keep_norm_input(rms);
    } else {
      vector(add_name, VectorKind::add, residual_tokens(), residual_width(), inputs, 1);
      norm(norm_name);
    }
  }

  const Execution& e_;
  const model::Decoder& m_;
  const hardware::RuntimeOptions& o_;
  const Plan& p_;
  std::span<const SequenceGroup> step_;
  Graph& graph_;
  hardware::Chains chains_;
  bool split_;                   // the step's tokens are divided over the sequence axes
  std::int64_t residual_ranks_;  // devices of the tensor axis that the residual stream is divided over
  std::int64_t sequences_ = 0;
  bool prompts_ = false;                 // the step has some
  bool concatenates_ = false;            // some cache of the step
  std::array<MicroBatches, 2> batches_;  // full ones, and the rest
  std::size_t batch_count_ = 0;
  std::int64_t tokens_ = 0;  // of the micro-batch being built
  std::int64_t times_ = 1;   // micro-batches that are like it
  std::int64_t count_ = 1;
  int kind_ = -1;
  const model::LayerGroup* group_ = nullptr;  // that is being built
  Place place_ = Place::device;               // of the ops being built
  Place residual_ = Place::device;            // of the residual stream
  std::string_view norm_name_;
  std::optional<Vector> norm_pending_;  // waits for the product that takes it over
  std::optional<Vector> norm_taken_;    // by the last product that took one, for others that read the same
  bool streamed_ = false;               // the group's weights are on the host and its products on the device
};

}  // namespace llmperf::graph
