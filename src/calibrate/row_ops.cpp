#include "calibrate/row_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace llmperf::calibrate {
namespace {

using graph::VectorKind;

// Shapes of the layers that profilers of vLLM time by name, of Llama-3.1-8B: hidden 4096, 32 + 8 heads of 128, 14336.
struct Layer {
  std::string_view name;
  VectorKind kind;
  std::int64_t width;
  double reads;
  double writes;
};
constexpr Layer kLayers[] = {
    {"act_fn", VectorKind::gated_activation, 14336, 2, 1},
    {"embedding", VectorKind::add, 4096, 1, 1},
    {"final_layernorm", VectorKind::add_rms_norm, 4096, 2, 2},
    {"layernorm", VectorKind::add_rms_norm, 4096, 2, 2},
    {"rotary_emb", VectorKind::rope, 5120, 1, 1},
};

graph::Op op_of(const GemmShape& s, Dtype dtype) {
  return {.name = "gemm", .body = graph::Gemm{.m = s.m, .n = s.n, .k = s.k, .activation = dtype}};
}

graph::Op op_of(const VectorShape& s, Dtype dtype) {
  const auto* layer =
      std::find_if(std::begin(kLayers), std::end(kLayers), [&](const Layer& l) { return l.name == s.layer; });
  if (layer == std::end(kLayers)) {
    std::vector<std::string> names;
    for (const Layer& l : kLayers) names.emplace_back(l.name);
    throw Error::bad_input("unknown layer " + quote(s.layer), name_hint(s.layer, names));
  }
  return {.name = layer->name,
          .body = graph::Vector{.kind = layer->kind,
                                .rows = s.tokens,
                                .width = layer->width,
                                .reads = layer->reads,
                                .writes = layer->writes,
                                .activation = dtype}};
}

graph::Op op_of(const AttentionShape& s, Dtype dtype) {
  const model::ElementFormat element = model::element_format(dtype);
  return {.name = "attention",
          .body = graph::Attention{.sequences = s.batch,
                                   .q_tokens = s.q_len,
                                   .context = s.kv_len - s.q_len,
                                   .heads = s.heads,
                                   .kv_heads = s.kv_heads,
                                   .qk_dim = s.head_dim,
                                   .v_dim = s.head_dim,
                                   .window = std::nullopt,
                                   .activation = dtype,
                                   .cached = {element, element}}};
}

graph::Op op_of(const CollectiveShape& s, Dtype dtype) {
  return {.name = graph::name(s.kind),
          .place = graph::Place::network,
          .body = graph::Collective{.kind = s.kind,
                                    .ranks = s.ranks,
                                    .rows = 1,
                                    .width = s.bytes.value / bytes_per_element(dtype),
                                    .element = model::element_format(dtype)}};
}

}  // namespace

std::vector<graph::Op> ops_of(const OpRow& row, const hardware::RuntimeProfile& profile) {
  std::vector<graph::Op> ops = {std::visit([&](const auto& shape) { return op_of(shape, row.dtype); }, row.shape)};
  const auto* attention = std::get_if<AttentionShape>(&row.shape);
  if (attention && attention->phase == Phase::prefill && profile.choices.attention_appends) {
    const auto values = static_cast<double>(attention->batch * attention->q_len) *
                        static_cast<double>(2 * attention->kv_heads * attention->head_dim);
    const model::ElementFormat element = model::element_format(row.dtype);
    ops.push_back({.name = "kv_write",
                   .body = graph::Copy{.read_elements = values,
                                       .write_elements = values,
                                       .from = element,
                                       .to = element,
                                       .to_cache = true,
                                       .rows = static_cast<double>(attention->batch * attention->q_len)}});
  }
  return ops;
}

std::int64_t running_batch(const estimate::Estimator& estimator, const hardware::RuntimeProfile& profile,
                           const graph::SequenceGroup& group) {
  const double share = get(profile.values, hardware::Parameter::memory_utilisation);
  const double room = share * estimator.capacity().value - estimator.stages().front().weights.value;
  const graph::Execution& e = estimator.setup().execution;
  const double each =
      cost::stage_kv_bytes(e, estimator.stages().front().layers, group.context + group.new_tokens).value;
  const auto running = static_cast<std::int64_t>(std::floor(room / each));
  return std::clamp<std::int64_t>(running, 1, group.count);
}

}  // namespace llmperf::calibrate
