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
      {"copy_to_device", TransferShape{}},
      {"copy_to_host", TransferShape{.to_host = true}},
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
bool same_word(const TransferShape& a, const TransferShape& b) { return a.to_host == b.to_host; }
bool same_word(const CollectiveShape& a, const CollectiveShape& b) { return a.kind == b.kind && a.custom == b.custom; }

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

bool stands_in(std::string_view kernel) {
  constexpr std::string_view kWords[] = {"torch chain", "matmul and softmax", "linear of each expert", "token by token",
                                         "with a mask", "routed by a chain",  "keys repeated"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return kernel.find(word) != std::string_view::npos; });
}

OpRow row_of(Dtype dtype, OpShape shape) {
  std::string word = word_of(shape).value();
  return {std::move(word), dtype, std::move(shape)};
}

std::optional<CollectiveKind> collective_kind(std::string_view op) {
  const std::optional<OpShape> shape = shape_of_word(op);
  const auto* collective = shape ? std::get_if<CollectiveShape>(&*shape) : nullptr;
  return collective ? std::optional(collective->kind) : std::nullopt;
}

}  // namespace llmperf::measure
