#include "graph/stdit_block.h"

#include "base/integer.h"

namespace llmperf::graph {
namespace {

using enum VectorKind;
constexpr Access kDense = Access::dense;
constexpr Access kStrided = Access::strided;

// One side of the frame mask: the norm and its two vectors.
struct Modulation {
  Kernel norm, scale, multiply, add, fused;
};
constexpr Modulation kModulate = {{"modulate_norm", layer_norm, kDense},
                                  {"modulate_scale", add, kDense},
                                  {"modulate_multiply", multiply, kStrided},
                                  {"modulate_add", add, kStrided},
                                  {"modulate", modulate, kDense}};
constexpr Modulation kMasked = {{"frame_mask_norm", layer_norm, kDense},
                                {"frame_mask_scale", add, kDense},
                                {"frame_mask_multiply", multiply, kStrided},
                                {"frame_mask_add", add, kStrided},
                                {"frame_mask_modulate", modulate, kDense}};
constexpr Kernel kSelect = {"frame_mask_select", select, kStrided, 2};
constexpr Kernel kMaskedGate = {"frame_mask_gate", multiply, kStrided};
constexpr Kernel kFusedMaskedGate = {"frame_mask_gate", gate_add, kDense, 2};

// Of one tensor of heads; rows are heads of tokens but for the two kernels on statistics, which have one per row.
constexpr Kernel kNormKernels[] = {
    {"qk_norm_to_fp32", add, kStrided, 1, 0, 0, 1}, {"qk_norm_square", multiply, kDense, 0, 1, 0, 1},
    {"qk_norm_mean", reduce, kStrided, 0, 1, 0, 0}, {"qk_norm_multiply", multiply, kStrided, 0, 1, 0, 1},
    {"qk_norm_from_fp32", add, kDense, 0, 1, 1, 0}, {"qk_norm_weight", multiply, kStrided},
};
constexpr Kernel kNormStatistics = {"qk_norm_statistics", add, kDense, 0, 1, 0, 1};
constexpr Kernel kFusedNorm = {"qk_norm", rms_norm, kDense};

constexpr Kernel kRopeTables = {"rope_tables", activation, kDense};
constexpr Kernel kRopeKernels[] = {
    {"rope_multiply_cos", multiply, kStrided},
    {"rope_scale", multiply, kDense},
    {"rope_multiply_sin", multiply, kStrided},
    {"rope_scale", multiply, kDense},
    {"rope_add", add, kStrided, 2},
    {"rope_concatenate", add, kStrided},
};
// On half of the elements, whose neighbours share their memory transactions.
constexpr Kernel kRopeHalves[] = {{"rope_negate", multiply, kStrided, 2},
                                  {"rope_interleave_even", add, kStrided},
                                  {"rope_interleave_odd", add, kStrided, 1, 0, 2}};
constexpr Kernel kFusedRope = {"rope", rope, kDense};

constexpr Kernel kFusedGate = {"gate_add", gate_add, kDense, 2};

}  // namespace

struct BlockWriter::AttentionNames {
  std::string_view flash, scale, scores, to_fp32, softmax, from_fp32, copy_values, values, copy_result;
};

BlockWriter::BlockWriter(const VideoExecution& execution, Graph& graph)
    : VideoWriter(execution, graph),
      batch_(execution.batch()),
      // Rows of patches are dealt out whole: a device's share is padded to the largest.
      spatial_(divide_up(execution.shape.patch_rows, execution.plan.ulysses * execution.patches) *
               execution.shape.patch_columns) {}

void BlockWriter::modulation_vectors(std::int32_t kernels) {
  run({"modulate_vectors", add, kDense}, static_cast<double>(batch_), 3 * m_.hidden,
      o_.fused_modulate ? 1 : kernels * (masked() ? 2 : 1));
}

void BlockWriter::norm_and_modulate(bool copied) {
  const auto rows = static_cast<double>(residual_tokens());
  const std::int64_t columns = residual_width();
  const bool sole = !masked() && !copied;
  const auto side = [&](const Modulation& k) {
    if (o_.fused_modulate) return sole ? run_before_product(k.fused, rows, columns) : run(k.fused, rows, columns);
    run(k.norm, rows, columns);
    run(k.scale, static_cast<double>(batch_), columns);
    run(k.multiply, rows, columns);
    run(k.add, rows, columns);
  };
  side(kModulate);
  if (two_dimensional()) {
    exchange("norm_statistics", CollectiveKind::all_reduce, Axis::tensor, p_.tensor, residual_tokens(), 2);
  }
  if (!masked()) return;
  side(kMasked);
  run(kSelect, rows, columns);
}

void BlockWriter::gate(std::string_view multiply_name, std::string_view add_name) {
  const auto rows = static_cast<double>(residual_tokens());
  const std::int64_t columns = residual_width();
  const bool fused = o_.fused_gate;
  if (fused && !masked()) return run_after_product(kFusedGate, rows, columns);
  run(fused ? kFusedGate : Kernel{multiply_name, multiply, kStrided}, rows, columns);
  if (masked()) {
    run(fused ? kFusedMaskedGate : kMaskedGate, rows, columns);
    run(kSelect, rows, columns);
  }
  if (!fused) run({add_name, add, kDense, 2}, rows, columns);
}

void BlockWriter::norm_queries_and_keys() {
  if (!m_.qk_norm) return;
  const auto rows = static_cast<double>(tokens() * heads());
  const std::int64_t head = m_.head_dim();
  if (o_.fused_qk_norm) return run(kFusedNorm, 2 * rows, head);
  constexpr int kTensors = 2;  // queries and keys
  for (int i = 0; i < kTensors; ++i) {
    for (const Kernel& kernel : kNormKernels) run(kernel, rows, head);
    run(kNormStatistics, rows, 1, 2);  // epsilon added, root
  }
}

void BlockWriter::rotate() {
  const auto rows = static_cast<double>(tokens() * heads());
  const std::int64_t head = m_.head_dim();
  if (o_.fused_rope) return run(kFusedRope, 2 * rows, head);
  constexpr int kTensors = 2;
  for (int i = 0; i < kTensors; ++i) {
    run(kRopeTables, static_cast<double>(frames()), head, 2);
    for (const Kernel& kernel : kRopeKernels) run(kernel, rows, head);
    for (const Kernel& kernel : kRopeHalves) run(kernel, rows / 2, head);
  }
}

void BlockWriter::flash(std::string_view name, std::int64_t sequences, std::int64_t queries, std::int64_t keys,
                        std::int64_t heads) {
  push(name, Attention{.sequences = sequences,
                       .q_tokens = queries,
                       .keys = keys,
                       .heads = heads,
                       .kv_heads = heads,
                       .qk_dim = m_.head_dim(),
                       .v_dim = m_.head_dim(),
                       .window = {},
                       .activation = e_.activations});
}

void BlockWriter::naive(const AttentionNames& names, std::int64_t sequences, std::int64_t queries, std::int64_t keys,
                        std::int64_t heads) {
  const std::int64_t head = m_.head_dim();
  const std::int64_t products = sequences * heads;
  const auto rows = static_cast<double>(products * queries);
  run({names.scale, multiply, kDense}, rows, head);
  push(names.scores, Gemm{.m = queries, .n = keys, .k = head, .batch = products, .activation = e_.activations});
  run({names.to_fp32, add, kDense, 1, 0, 0, 1}, rows, keys);
  run({names.softmax, softmax, kDense, 0, 1, 0, 1}, rows, keys);
  run({names.from_fp32, add, kDense, 0, 1, 1, 0}, rows, keys);
  run({names.copy_values, add, kStrided}, static_cast<double>(products * keys), head);
  push(names.values, Gemm{.m = queries, .n = head, .k = keys, .batch = products, .activation = e_.activations});
  run({names.copy_result, add, kStrided}, rows, head);
}

void BlockWriter::self_attention(bool modulated) {
  static constexpr AttentionNames kSpatialNames = {
      "spatial_attention",         "spatial_attention_scale",    "spatial_attention_scores",
      "spatial_attention_to_fp32", "spatial_attention_softmax",  "spatial_attention_from_fp32",
      "spatial_attention_copy_v",  "spatial_attention_weighted", "spatial_attention_copy"};
  static constexpr AttentionNames kTemporalNames = {
      "temporal_attention",         "temporal_attention_scale",    "temporal_attention_scores",
      "temporal_attention_to_fp32", "temporal_attention_softmax",  "temporal_attention_from_fp32",
      "temporal_attention_copy_v",  "temporal_attention_weighted", "temporal_attention_copy"};
  const bool over_space = layer_ == VideoLayer::spatial;
  // A kernel that strides through memory does without the permuted copies.
  const bool copies = !over_space && !o_.flash_any_length;
  if (modulated) norm_and_modulate(copies);
  gather_tokens("attention_gather");
  const auto rows = static_cast<double>(tokens());
  if (copies) run({"rearrange_to_time", add, kStrided}, rows, m_.hidden);
  linear("qkv_proj", Split::outputs, tokens(), 3 * width(), m_.hidden);
  // All heads of some tokens become some heads of all tokens.
  const std::int64_t ranks = over_space ? p_.ulysses : 1;
  if (over_space) exchange("qkv_all_to_all", CollectiveKind::all_to_all, Axis::ulysses, ranks, tokens(), 3 * width());
  norm_queries_and_keys();
  if (!over_space && m_.rotary()) rotate();
  const std::int64_t sequences = batch_ * (over_space ? frames() : spatial_);
  const std::int64_t queries = over_space ? spatial_ * ranks : frames();
  const std::int64_t keys = over_space ? queries * e_.patches : queries;
  // Open-Sora's attention over divided sequences has no test of their length.
  const bool long_enough = keys > sequences || (over_space && ranks > 1);
  const AttentionNames& names = over_space ? kSpatialNames : kTemporalNames;
  if (o_.flash_attention && (o_.flash_any_length || long_enough)) {
    flash(names.flash, sequences, queries, keys, heads() / ranks);
  } else {
    naive(names, sequences, queries, keys, heads() / ranks);
  }
  if (over_space) exchange("attention_all_to_all", CollectiveKind::all_to_all, Axis::ulysses, ranks, tokens(), width());
  linear("attention_proj", Split::inputs, tokens(), m_.hidden, width());
  reduce_tokens("attention_reduce", "attention_scatter");
  if (copies) run({"rearrange_to_space", add, kStrided}, static_cast<double>(residual_tokens()), residual_width());
  gate("gate_attention", "gate_attention_residual");
}

void BlockWriter::cross_attention() {
  const std::int64_t text = batch_ * text_tokens();
  gather_tokens("cross_gather");
  linear("cross_q_proj", Split::outputs, tokens(), width(), m_.hidden);
  linear("cross_kv_proj", Split::outputs, text, 2 * width(), m_.hidden);
  exchange("cross_q_all_to_all", CollectiveKind::all_to_all, Axis::ulysses, p_.ulysses, tokens(), width());
  // Where the queries and keys of every sequence start: two small tensors, filled on the host and copied.
  if (eager()) copy("cross_attention_starts", static_cast<double>(batch_ + 1), kDense, Dtype::int32, Dtype::int32, 4);
  flash("cross_attention", batch_, frames() * spatial_ * p_.ulysses, text_tokens(), heads() / p_.ulysses);
  exchange("cross_all_to_all", CollectiveKind::all_to_all, Axis::ulysses, p_.ulysses, tokens(), width());
  linear("cross_proj", Split::inputs, tokens(), m_.hidden, width());
  reduce_tokens("cross_reduce", "cross_scatter");
  run_after_product({"gate_cross_residual", add, kDense, 2}, static_cast<double>(residual_tokens()), residual_width());
}

void BlockWriter::mlp() {
  const std::int64_t inner = m_.intermediate / p_.tensor;
  norm_and_modulate(false);
  gather_tokens("mlp_gather");
  linear("mlp_up_proj", Split::outputs, tokens(), inner, m_.hidden);
  run_after_product({"gelu", activation, kDense}, static_cast<double>(tokens()), inner);
  linear("mlp_down_proj", Split::inputs, tokens(), m_.hidden, inner);
  reduce_tokens("mlp_reduce", "mlp_scatter");
  gate("gate_mlp", "gate_mlp_residual");
}

void BlockWriter::exchange(std::string_view name, CollectiveKind kind, Axis axis, std::int64_t ranks, std::int64_t rows,
                           std::int64_t columns) {
  if (ranks == 1) return;
  push(name, Collective{.kind = kind,
                        .axis = axis,
                        .ranks = ranks,
                        .stride = p_.stride(axis),
                        .rows = static_cast<double>(rows),
                        .width = static_cast<double>(columns),
                        .element = model::element_format(e_.activations)})
      .place = Place::network;
}

void BlockWriter::gather_tokens(std::string_view name) {
  if (p_.sequence_parallel) exchange(name, CollectiveKind::all_gather, Axis::tensor, p_.tensor, tokens(), m_.hidden);
}

void BlockWriter::reduce_tokens(std::string_view all_reduce, std::string_view scatter) {
  if (two_dimensional()) return;
  exchange(p_.sequence_parallel ? scatter : all_reduce,
           p_.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, Axis::tensor, p_.tensor,
           tokens(), m_.hidden);
}

// Two-dimensional plans as in StepWriter::two_dimensional_linear: the input is gathered along the columns, partial
// products are reduce-scattered along the rows.
void BlockWriter::linear(std::string_view name, Split split, std::int64_t rows, std::int64_t n, std::int64_t k) {
  if (two_dimensional()) {
    const std::int64_t columns = p_.tensor_columns();
    n = split == Split::outputs ? n * p_.tensor_rows : n / columns;
    k = split == Split::outputs ? k / p_.tensor_rows : k * columns;
    exchange("gather_columns", CollectiveKind::all_gather, Axis::tensor_columns, columns, rows, k);
  }
  product(name, rows, n, k, true, e_.weights, e_.activations);
  if (two_dimensional()) {
    exchange("reduce_rows", CollectiveKind::reduce_scatter, Axis::tensor_rows, p_.tensor_rows, rows, n);
  }
}

}  // namespace llmperf::graph
