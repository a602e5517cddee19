#include "measure/op_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/number.h"

namespace llmperf::measure {
namespace {

using graph::CollectiveKind;
using graph::VectorKind;
using graph::VectorOp;

// Of Llama-3.1-8B: hidden 4096, 32 + 8 heads of 128, 14336.
constexpr KnownLayer kLayers[] = {
    {"act_fn", VectorKind::gated_activation, 14336, 2, 1},
    {"embedding", VectorKind::add, 4096, 1, 1},
    {"final_layernorm", VectorKind::add_rms_norm, 4096, 2, 2},
    {"layernorm", VectorKind::add_rms_norm, 4096, 2, 2},
    {"rotary_emb", VectorKind::rope, 5120, 1, 1},
};

// The words of the `op` column, each with what it says of the shape; those of vectors follow a prefix. Of two words for
// the same the first is written.
struct Word {
  std::string_view text;
  OpShape shape;
};
const std::vector<Word>& words() {
  static const std::vector<Word> result = {
      {"gemm", GemmShape{}},
      {"matmul", GemmShape{}},
      {"matmul_all_reduce", GemmShape{.ranks = 2}},
      {"attention_prefill", AttentionShape{.phase = Phase::prefill}},
      {"attention_decode", AttentionShape{.phase = Phase::decode}},
      {"mla_prefill", LatentShape{.phase = Phase::prefill}},
      {"mla_decode", LatentShape{.phase = Phase::decode}},
      {"mla_module_prefill", LatentShape{.part = LatentShape::Part::module}},
      {"mla_module_decode", LatentShape{.phase = Phase::decode, .part = LatentShape::Part::module}},
      {"mla_prolog", LatentShape{.phase = Phase::decode, .q_len = 1, .kv_len = 1, .part = LatentShape::Part::prolog}},
      {"moe", ExpertsShape{}},
      {"moe_products", ExpertsShape{.products = true}},
      {"gather", GatherShape{}},
      {"kv_write", CacheShape{}},
      {"scan:gated_delta_net", ScanShape{.kind = model::RecurrentKind::gated_delta_net}},
      {"scan:kimi_delta", ScanShape{.kind = model::RecurrentKind::kimi_delta}},
      {"scan:mamba", ScanShape{.kind = model::RecurrentKind::mamba}},
      {"scan:mamba2", ScanShape{.kind = model::RecurrentKind::mamba2}},
      {"scan:lightning", ScanShape{.kind = model::RecurrentKind::lightning}},
      {"all_reduce", CollectiveShape{.kind = CollectiveKind::all_reduce}},
      {"custom_all_reduce", CollectiveShape{.custom = true}},
      {"all_gather", CollectiveShape{.kind = CollectiveKind::all_gather}},
      {"reduce_scatter", CollectiveShape{.kind = CollectiveKind::reduce_scatter}},
      {"all_to_all", CollectiveShape{.kind = CollectiveKind::all_to_all}},
      {"alltoall", CollectiveShape{.kind = CollectiveKind::all_to_all}}};
  return result;
}

bool same_word(const GemmShape& a, const GemmShape& b) { return (a.ranks > 1) == (b.ranks > 1); }
bool same_word(const AttentionShape& a, const AttentionShape& b) { return a.phase == b.phase; }
bool same_word(const LatentShape& a, const LatentShape& b) { return a.phase == b.phase && a.part == b.part; }
bool same_word(const ExpertsShape& a, const ExpertsShape& b) { return a.products == b.products; }
bool same_word(const VectorShape&, const VectorShape&) { return false; }  // a layer is its own word
bool same_word(const GatherShape&, const GatherShape&) { return true; }
bool same_word(const CacheShape&, const CacheShape&) { return true; }
bool same_word(const ScanShape& a, const ScanShape& b) { return a.kind == b.kind; }
bool same_word(const CollectiveShape& a, const CollectiveShape& b) { return a.kind == b.kind && a.custom == b.custom; }

struct ShapeText {
  std::string operator()(const GemmShape& g) const {
    std::string text = fmt::format("{} x {} x {}", g.m, g.n, g.k);
    if (g.batch > 1) text = fmt::format("{} * {}", g.batch, text);
    if (g.ranks > 1) text += fmt::format(" over {} ranks", g.ranks);
    for (const std::string* part : {&g.weights, &g.power}) {
      if (!part->empty()) text += " " + *part;
    }
    text += copies_text(g.copies) + tiles_text(g.passes, g.grid);
    if (!g.local.empty()) text += fmt::format(" {} in the tiles", g.local);
    return g.mapping.empty() ? text : text + fmt::format(" as {}", g.mapping);
  }
  std::string operator()(const AttentionShape& a) const {
    return fmt::format("batch {} q {} kv {} heads {}/{} x {}{}{}{}{}{}", a.batch, a.q_len, a.kv_len, a.heads,
                       a.kv_heads, a.head_dim, a.causal ? "" : " not causal",
                       a.window > 0 ? fmt::format(" window {}", a.window) : "", cache_text(a.kv_dtype),
                       copies_text(a.copies), tiles_text(a.passes, a.grid));
  }
  std::string operator()(const LatentShape& l) const {
    const std::string weights = l.weights.empty() ? "" : " " + l.weights;
    if (l.part == LatentShape::Part::prolog) return fmt::format("{} tokens heads {}{}", l.batch, l.heads, weights);
    return fmt::format("batch {} q {} kv {} heads {}{}{}", l.batch, l.q_len, l.kv_len, l.heads, cache_text(l.kv_dtype),
                       weights);
  }
  std::string operator()(const ExpertsShape& e) const {
    std::string text = fmt::format("{} tokens to {} of {} experts {} x {}", e.m, e.topk, e.experts, e.hidden, e.inter);
    if (e.tp > 1) text += fmt::format(" tp {}", e.tp);
    if (e.ep > 1) text += fmt::format(" ep {}", e.ep);
    for (const std::string* part : {&e.weights, &e.distribution}) {
      if (!part->empty()) text += " " + *part;
    }
    return text;
  }
  static std::string copies_text(std::int64_t copies) { return copies > 0 ? fmt::format(" copies {}", copies) : ""; }
  static std::string tiles_text(std::int64_t passes, const std::string& grid) {
    return (passes > 0 ? fmt::format(" passes {}", passes) : "") + (grid.empty() ? "" : fmt::format(" on {}", grid));
  }
  static std::string cache_text(const std::string& kv_dtype) { return kv_dtype.empty() ? "" : " cache " + kv_dtype; }
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
  std::string operator()(const ScanShape& s) const {
    return fmt::format("batch {} q {} heads {}/{} x {} x {}", s.batch, s.q_len, s.heads, s.key_heads, s.key_dim,
                       s.value_dim);
  }
  std::string operator()(const CollectiveShape& c) const {
    return fmt::format("{} ranks {:.0f} B", c.ranks, c.bytes.value);
  }
};

}  // namespace

bool has_gate(const ExpertsShape& shape) { return shape.hidden != 2688 || shape.inter != 1856; }

std::optional<double> drawn_exponent(std::string_view distribution) {
  constexpr std::string_view kPowerLaw = "power_law_";
  constexpr double kMost = 10;
  if (!distribution.starts_with(kPowerLaw)) return std::nullopt;
  const std::optional<double> exponent = parse_double(distribution.substr(kPowerLaw.size()));
  return exponent && *exponent >= 0 && *exponent <= kMost ? exponent : std::nullopt;
}

std::string_view name(Phase phase) {
  constexpr std::array<std::string_view, 3> kNames = {"prefill", "decode", "verify"};
  return kNames[static_cast<std::size_t>(phase)];
}

const VectorOp* vector_op(std::string_view name) {
  const auto* found = std::find_if(graph::kVectorOps.begin(), graph::kVectorOps.end(),
                                   [&](const VectorOp& op) { return op.is(graph::kMeasured) && op.name == name; });
  return found == graph::kVectorOps.end() ? nullptr : found;
}

const KnownLayer* known_layer(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kLayers), std::end(kLayers), [&](const KnownLayer& layer) { return layer.name == name; });
  return found == std::end(kLayers) ? nullptr : found;
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const Word& word : words()) {
    if (!std::holds_alternative<CollectiveShape>(word.shape)) names.emplace_back(word.text);
  }
  for (const VectorOp& op : graph::kVectorOps) {
    if (op.is(graph::kMeasured)) names.push_back(fmt::format("{}{}", kVectorPrefix, op.name));
  }
  for (const KnownLayer& layer : kLayers) names.push_back(fmt::format("{}{}", kVectorPrefix, layer.name));
  for (const Word& word : words()) {
    if (std::holds_alternative<CollectiveShape>(word.shape)) names.emplace_back(word.text);
  }
  return names;
}

std::optional<OpShape> shape_of_word(std::string_view op) {
  if (op.starts_with(kVectorPrefix)) {
    const std::string_view layer = op.substr(kVectorPrefix.size());
    if (!known_layer(layer) && !vector_op(layer)) return std::nullopt;
    return VectorShape{.layer = std::string(layer)};
  }
  for (const Word& word : words()) {
    if (word.text == op) return word.shape;
  }
  return std::nullopt;
}

std::optional<std::string> word_of(const OpShape& shape) {
  if (const auto* v = std::get_if<VectorShape>(&shape)) return fmt::format("{}{}", kVectorPrefix, v->layer);
  for (const Word& word : words()) {
    if (word.shape.index() != shape.index()) continue;
    const bool same = std::visit(
        [&](const auto& of) { return same_word(of, std::get<std::decay_t<decltype(of)>>(shape)); }, word.shape);
    if (same) return std::string(word.text);
  }
  return std::nullopt;
}

std::optional<CollectiveKind> collective_kind(std::string_view op) {
  const std::optional<OpShape> shape = shape_of_word(op);
  const auto* collective = shape ? std::get_if<CollectiveShape>(&*shape) : nullptr;
  return collective ? std::optional(collective->kind) : std::nullopt;
}

std::string shape_text(const OpRow& row) { return std::visit(ShapeText{}, row.shape); }

std::string describe(const OpRow& row) { return fmt::format("{} {} {}", row.op, name(row.dtype), shape_text(row)); }

}  // namespace llmperf::measure
