#include "calibrate/row_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/text.h"

namespace llmperf::calibrate {
namespace {

using graph::VectorKind;

// The format of the scheme's linear layers. Ops point to formats, so that those of measured rows live as long as the
// program.
const model::StoredFormat& stored_format(const std::string& scheme, Dtype wide) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, Dtype>, model::StoredFormat> formats;
  const std::lock_guard lock(mutex);
  const auto [found, added] = formats.try_emplace({scheme, wide});
  if (added) found->second = model::parse_weight_scheme(scheme, wide).linear;
  return found->second;
}

// Several products with weights of their own are the experts of one grouped product.
graph::Op op_of(const GemmShape& s, Dtype dtype) {
  graph::Gemm g{.m = s.m, .n = s.n, .k = s.k, .batch = s.batch, .activation = dtype};
  if (!s.weights.empty()) {
    g.m *= s.batch;
    g.batch = 1;
    g.weights = &stored_format(s.weights, dtype);
    g.weight_matrices = static_cast<double>(s.batch);
  }
  return {.name = "gemm", .body = g};
}

graph::Op op_of(const VectorShape& s, Dtype dtype) {
  graph::Vector v{.rows = s.tokens, .activation = dtype};
  if (const VectorOp* op = s.width > 0 ? vector_op(s.layer) : nullptr) {
    const double tensor = static_cast<double>(s.tokens) * static_cast<double>(s.width) * bytes_per_element(dtype);
    v.kind = op->kind;
    v.width = s.width;
    v.reads = s.bytes.value > 0 ? std::max(0.0, s.bytes.value / tensor - op->writes) : op->reads;
    v.writes = op->writes;
    v.parameters = Bytes{op->parameters * static_cast<double>(s.width) * bytes_per_element(dtype)};
    v.operations = op->kind == VectorKind::elementwise ? 1 : 0;
    return {.name = graph::name(op->kind), .body = v};
  }
  const KnownLayer* layer = known_layer(s.layer);
  if (layer == nullptr) throw Error::bad_input("unknown layer " + quote(s.layer), name_hint(s.layer, op_names()));
  v.kind = layer->kind;
  v.width = layer->width;
  v.reads = layer->reads;
  v.writes = layer->writes;
  return {.name = layer->name, .body = v};
}

graph::Op op_of(const GatherShape& s, Dtype dtype) {
  return {.name = "gather",
          .body = graph::Gather{.rows = s.rows,
                                .width = s.width,
                                .table = &stored_format(std::string(name(dtype)), dtype),
                                .activation = dtype}};
}

graph::Op op_of(const CacheShape& s, Dtype dtype) {
  const auto values = static_cast<double>(s.tokens) * static_cast<double>(2 * s.kv_heads * s.head_dim);
  const model::ElementFormat element = model::element_format(dtype);
  return {.name = "kv_write",
          .body = graph::Copy{.read_elements = values,
                              .write_elements = values,
                              .from = element,
                              .to = element,
                              .to_cache = true,
                              .rows = static_cast<double>(s.tokens)}};
}

// Of a row's cache; `dtype` where it does not say.
model::ElementFormat cache_element(const std::string& kv_dtype, Dtype dtype) {
  return model::element_format(parse_dtype(kv_dtype).value_or(dtype));
}

graph::Op op_of(const LatentShape& s, Dtype dtype) {
  constexpr std::int64_t kLatent = 512;
  constexpr std::int64_t kRotary = 64;
  constexpr std::int64_t kHead = 128;
  const bool absorbed = s.phase == Phase::decode;
  const model::ElementFormat element = cache_element(s.kv_dtype, dtype);
  return {.name = "attention",
          .body = graph::Attention{.sequences = s.batch,
                                   .q_tokens = s.q_len,
                                   .context = s.kv_len - s.q_len,
                                   .heads = s.heads,
                                   .kv_heads = absorbed ? 1 : s.heads,
                                   .qk_dim = (absorbed ? kLatent : kHead) + kRotary,
                                   .v_dim = absorbed ? kLatent : kHead,
                                   .window = std::nullopt,
                                   .shared_kv = absorbed,
                                   .activation = dtype,
                                   .cached = {element, element}}};
}

graph::Op op_of(const AttentionShape& s, Dtype dtype) {
  const model::ElementFormat element = cache_element(s.kv_dtype, dtype);
  return {.name = "attention",
          .body = graph::Attention{.sequences = s.batch,
                                   .q_tokens = s.q_len,
                                   .context = s.causal ? s.kv_len - s.q_len : 0,
                                   .keys = s.causal ? 0 : s.kv_len,
                                   .heads = s.heads,
                                   .kv_heads = s.kv_heads,
                                   .qk_dim = s.head_dim,
                                   .v_dim = s.head_dim,
                                   .window = s.window > 0 ? std::optional(s.window) : std::nullopt,
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
                                    .element = model::element_format(dtype),
                                    .library = !s.custom}};
}

}  // namespace

std::vector<graph::Op> ops_of(const OpRow& row, const hardware::RuntimeProfile& profile) {
  std::vector<graph::Op> ops = {std::visit([&](const auto& shape) { return op_of(shape, row.dtype); }, row.shape)};
  if (const auto* gemm = std::get_if<GemmShape>(&row.shape); gemm && gemm->ranks > 1) {
    const double bytes = static_cast<double>(gemm->m * gemm->n) * bytes_per_element(row.dtype);
    ops.push_back(op_of(CollectiveShape{graph::CollectiveKind::all_reduce, gemm->ranks, Bytes{bytes}}, row.dtype));
    ops.back().overlaps = true;
  }
  const auto* attention = std::get_if<AttentionShape>(&row.shape);
  if (attention && attention->phase == Phase::prefill && profile.choices.attention_appends) {
    ops.push_back(
        op_of(CacheShape{attention->batch * attention->q_len, attention->kv_heads, attention->head_dim}, row.dtype));
    std::get<graph::Copy>(ops.back().body).to = cache_element(attention->kv_dtype, row.dtype);
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
