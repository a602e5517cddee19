#include "graph/training_kernels.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace llmperf::graph {
namespace {

const Vector* vector_of(const Op& op) { return std::get_if<Vector>(&op.body); }
bool drops(const Op& op) {
  const Vector* v = vector_of(op);
  return v && v->kind == VectorKind::dropout;
}
bool multiplies_to_heads(std::string_view name) {
  constexpr std::string_view names[] = {"qkv_proj", "q_proj", "k_proj", "v_proj"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}
// Tensors of the activations' type that so many bytes per element are.
double tensors(const Vector& v, double bytes) { return bytes * 8 / bits(v.activation); }

// Whether the bias of the product before op `i` is added by op `i`.
bool adds_bias(const Graph& forward, std::size_t i) {
  while (i > 0 && forward[i - 1].place == Place::network) --i;
  const auto* gemm = i > 0 ? std::get_if<Gemm>(&forward[i - 1].body) : nullptr;
  return gemm && gemm->bias;
}

// The bias of a product whose result goes to the heads, in a kernel of its own.
Op qkv_bias(const Op& op, const Gemm& g) {
  Op bias = op;
  bias.name = "qkv_bias";
  bias.saved = Bytes{};
  bias.body = Vector{.kind = VectorKind::add, .rows = g.m, .width = g.n, .activation = g.activation};
  return bias;
}
// Results of all heads side by side.
Op merge_heads(const Op& op, const Gemm& g) {
  const double elements = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.batch);
  const model::ElementFormat element = model::element_format(g.activation);
  Op merge = op;
  merge.name = "merge_heads";
  merge.saved = Bytes{};
  merge.body = Copy{.read_elements = elements, .write_elements = elements, .from = element, .to = element};
  return merge;
}

}  // namespace

void use_framework_kernels(const Graph& ideal, Graph& forward) {
  forward.clear();
  for (const Op& op : ideal) {
    const Vector* v = vector_of(op);
    if (v && v->kind == VectorKind::mask) continue;  // softmax does without
    if (v && v->kind == VectorKind::add && op.layer_kind >= 0 && !forward.empty() && drops(forward.back())) {
      std::get<Vector>(forward.back().body).reads += v->reads - 1;  // one kernel with the dropout before it
      continue;
    }
    forward.push_back(op);
    if (const auto* gemm = std::get_if<Gemm>(&op.body)) {
      if (gemm->bias && multiplies_to_heads(op.name)) forward.push_back(qkv_bias(op, *gemm));
      if (op.name == "weighted_sum") forward.push_back(merge_heads(op, *gemm));
    } else if (v && v->kind == VectorKind::softmax) {
      std::get<Vector>(forward.back().body).reads = 0.5;
    } else if (v && v->kind == VectorKind::cross_entropy) {
      Vector& loss = std::get<Vector>(forward.back().body);
      loss.reads = tensors(loss, 22);
      loss.writes = tensors(loss, 16);
      forward.back().launches = 6;
    }
  }
}

std::optional<KernelChain> framework_derivative(const Graph& forward, std::size_t i, const std::optional<Vector>& ideal,
                                                bool adds_residual) {
  const Vector& v = std::get<Vector>(forward[i].body);
  KernelChain d{.body = ideal.value_or(v), .launches = 0};
  const auto kernel = [&](double reads, double writes) {
    if (d.launches++ == 0) d.body.reads = d.body.writes = 0;
    d.body.reads += reads;
    d.body.writes += writes;
  };
  switch (v.kind) {
    case VectorKind::add:
      if (forward[i].name != "qkv_bias") return std::nullopt;
      kernel(1, 0);
      kernel(1, 1);
      kernel(2. / 3, 2. / 3);
      break;
    case VectorKind::add_rms_norm:
    case VectorKind::rms_norm:
    case VectorKind::add_layer_norm:
    case VectorKind::layer_norm:
      kernel(2, 1);
      kernel(2, 0);
      if (adds_residual) kernel(2, 1);
      break;
    case VectorKind::dropout:
      kernel(1 + tensors(v, 1), 1);
      if (adds_bias(forward, i)) kernel(1, 0);
      break;
    case VectorKind::activation:
      kernel(2, 1);
      if (adds_bias(forward, i)) kernel(1, 0);
      break;
    case VectorKind::softmax: kernel(1, 1); break;
    case VectorKind::cross_entropy:
      kernel(tensors(v, 4), tensors(v, 4));
      kernel(tensors(v, 4), 1);
      break;
    default:
      if (!ideal) return std::nullopt;
      d.launches = 1;
  }
  return d;
}

}  // namespace llmperf::graph
