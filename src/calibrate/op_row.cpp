#include "calibrate/op_row.h"

#include <fmt/format.h>

#include <algorithm>

namespace llmperf::calibrate {
namespace {

using graph::CollectiveKind;
using graph::VectorKind;

constexpr VectorOp kVectorOps[] = {
    {VectorKind::rms_norm, 1, 1, 1},     {VectorKind::layer_norm, 1, 1, 2},       {VectorKind::add, 2, 1, 0},
    {VectorKind::add_rms_norm, 2, 2, 1}, {VectorKind::add_layer_norm, 2, 2, 2},   {VectorKind::rope, 1, 1, 0},
    {VectorKind::activation, 1, 1, 0},   {VectorKind::gated_activation, 2, 1, 0}, {VectorKind::multiply, 2, 1, 0},
    {VectorKind::softmax, 1, 1, 0},      {VectorKind::sampling, 1, 0, 0},         {VectorKind::elementwise, 1, 1, 0}};

// Of Llama-3.1-8B: hidden 4096, 32 + 8 heads of 128, 14336.
constexpr KnownLayer kLayers[] = {
    {"act_fn", VectorKind::gated_activation, 14336, 2, 1},
    {"embedding", VectorKind::add, 4096, 1, 1},
    {"final_layernorm", VectorKind::add_rms_norm, 4096, 2, 2},
    {"layernorm", VectorKind::add_rms_norm, 4096, 2, 2},
    {"rotary_emb", VectorKind::rope, 5120, 1, 1},
};

constexpr std::pair<std::string_view, CollectiveKind> kCollectives[] = {
    {"all_reduce", CollectiveKind::all_reduce},
    {"all_gather", CollectiveKind::all_gather},
    {"reduce_scatter", CollectiveKind::reduce_scatter},
    {"alltoall", CollectiveKind::all_to_all},
    {"all_to_all", CollectiveKind::all_to_all}};

struct ShapeText {
  std::string operator()(const GemmShape& g) const {
    std::string text = fmt::format("{} x {} x {}", g.m, g.n, g.k);
    if (g.batch > 1) text = fmt::format("{} * {}", g.batch, text);
    if (g.ranks > 1) text += fmt::format(" over {} ranks", g.ranks);
    return g.weights.empty() ? text : text + " " + g.weights;
  }
  std::string operator()(const AttentionShape& a) const {
    return fmt::format("batch {} q {} kv {} heads {}/{} x {}{}", a.batch, a.q_len, a.kv_len, a.heads, a.kv_heads,
                       a.head_dim, a.causal ? "" : " not causal");
  }
  std::string operator()(const VectorShape& v) const {
    if (v.width == 0) return fmt::format("{} tokens", v.tokens);
    std::string text = fmt::format("{} x {}", v.tokens, v.width);
    if (v.heads > 0) text += fmt::format(" heads {}/{}", v.heads, v.kv_heads);
    return v.bytes.value > 0 ? text + fmt::format(" {:.0f} B", v.bytes.value) : text;
  }
  std::string operator()(const GatherShape& g) const { return fmt::format("{} x {} of {}", g.rows, g.width, g.table); }
  std::string operator()(const CacheShape& c) const {
    return fmt::format("{} tokens {} x {}", c.tokens, c.kv_heads, c.head_dim);
  }
  std::string operator()(const CollectiveShape& c) const {
    return fmt::format("{} ranks {:.0f} B", c.ranks, c.bytes.value);
  }
};

}  // namespace

std::string_view name(Phase phase) { return phase == Phase::prefill ? "prefill" : "decode"; }

const VectorOp* vector_op(std::string_view name) {
  const auto* found = std::find_if(std::begin(kVectorOps), std::end(kVectorOps),
                                   [&](const VectorOp& op) { return graph::name(op.kind) == name; });
  return found == std::end(kVectorOps) ? nullptr : found;
}

const KnownLayer* known_layer(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kLayers), std::end(kLayers), [&](const KnownLayer& layer) { return layer.name == name; });
  return found == std::end(kLayers) ? nullptr : found;
}

std::vector<std::string> op_names() {
  std::vector<std::string> names = {"gemm",   "matmul_all_reduce", "attention_prefill", "attention_decode",
                                    "gather", "kv_write"};
  for (const VectorOp& op : kVectorOps) names.push_back(fmt::format("{}{}", kVectorPrefix, graph::name(op.kind)));
  for (const KnownLayer& layer : kLayers) names.push_back(fmt::format("{}{}", kVectorPrefix, layer.name));
  for (const auto& [text, kind] : kCollectives) names.emplace_back(text);
  return names;
}

std::optional<CollectiveKind> collective_kind(std::string_view op) {
  const auto* found =
      std::find_if(std::begin(kCollectives), std::end(kCollectives), [&](const auto& c) { return c.first == op; });
  return found == std::end(kCollectives) ? std::nullopt : std::optional(found->second);
}

std::string shape_text(const OpRow& row) { return std::visit(ShapeText{}, row.shape); }

std::string describe(const OpRow& row) { return fmt::format("{} {} {}", row.op, name(row.dtype), shape_text(row)); }

}  // namespace llmperf::calibrate
