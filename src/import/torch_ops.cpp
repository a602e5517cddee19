// Arguments stand where the operators' schemas have them (native_functions.yaml of PyTorch; bindings of vLLM and of
// flash-attention).
#include "import/torch_ops.h"

#include <algorithm>
#include <array>

#include "base/number.h"
#include "base/text.h"
#include "import/attention.h"
#include "import/matmul.h"

namespace llmperf::import {
namespace {

using calibrate::OpRow;
using graph::VectorKind;

const Tensor& input(const TorchOp& op, std::size_t i) {
  static const Tensor kAbsent;
  return i < op.inputs.size() ? op.inputs[i] : kAbsent;
}

// A flag among the arguments; nothing when the profiler did not record it.
std::optional<bool> flag(const TorchOp& op, std::size_t i) {
  if (i >= op.concrete.size()) return std::nullopt;
  const std::string text = to_lower(trim(op.concrete[i]));
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::nullopt;
}

// The product of two inputs. `turned`: the second is [n, k] (aten::linear).
Mapped product_row(const Tensor& a, const Tensor& b, bool turned) {
  if (!elements(a) || !elements(b)) return kNoShapes;
  if (a.shape.size() < 2 || b.shape.size() < 2) return kNoProduct;
  if (a.element.dtype != b.element.dtype) return "operands of different types";
  const std::size_t last = b.shape.size() - 1;
  const std::int64_t inner = b.shape[turned ? last : last - 1];
  if (a.shape.back() != inner) return kNoProduct;
  Shape out = a.shape;
  if (b.shape.size() > 2) {
    if (a.shape.size() > b.shape.size()) return kOtherShapes;
    out = b.shape;
    out[last - 1] = a.shape[a.shape.size() - 2];
  }
  out.back() = b.shape[turned ? last - 1 : last];
  return gemm_row(a, b, out, a.element.dtype);
}
Mapped mm(const TorchOp& op) { return product_row(input(op, 0), input(op, 1), false); }
Mapped linear(const TorchOp& op) { return product_row(input(op, 0), input(op, 1), true); }
Mapped addmm(const TorchOp& op) { return product_row(input(op, 1), input(op, 2), false); }

// [batch, heads, tokens, head_dim] or [batch, tokens, heads, head_dim]; `Causal`: the argument that says so.
template <HeadLayout Layout, std::size_t Causal>
Mapped attention(const TorchOp& op) {
  const std::optional<bool> causal = flag(op, Causal);
  const Tensor& query = input(op, 0);
  const std::size_t tokens = Layout == HeadLayout::head_major ? 2 : 1;
  if (query.shape.size() != 4) return query.shape.empty() ? kNoShapes : "lengths are not in the shapes";
  if (!causal && query.shape[tokens] != 1) return "causal or not is not in the trace";
  return attention_row({.query = query, .key = input(op, 1), .causal = causal}, Layout);
}

// Sequences of all lengths behind each other have offsets as argument 3.
template <std::size_t Causal>
Mapped packed_attention(const TorchOp& op) {
  if (!input(op, 3).shape.empty()) return "lengths are not in the shapes";
  return attention<HeadLayout::token_major, Causal>(op);
}

template <VectorKind Kind, std::size_t Argument>
Mapped rows_of(const TorchOp& op) {
  return vector_row(Kind, input(op, Argument));
}

// Norms over the last dimension alone; their weight says how many there are.
template <VectorKind Kind>
Mapped norm(const TorchOp& op) {
  const Tensor& weight = input(op, 2);
  if (weight.shape.size() > 1) return kOtherShapes;
  return vector_row(Kind, input(op, 0));
}

// The larger of two shapes that are broadcast, as numpy does; nothing when they are not.
std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

// The result of element-wise work: the inputs broadcast, in the widest of their types.
std::optional<Tensor> result_of(std::span<const Tensor* const> inputs) {
  std::optional<Tensor> out;
  for (const Tensor* t : inputs) {
    if (!out) {
      out = *t;
      continue;
    }
    const std::optional<Shape> shape = broadcast(out->shape, t->shape);
    if (!shape) return std::nullopt;
    if (t->element.bits > out->element.bits) out->element = t->element;
    out->shape = *shape;
  }
  return out;
}

std::vector<const Tensor*> tensors(const TorchOp& op) {
  std::vector<const Tensor*> list;
  for (const Tensor& t : op.inputs) {
    if (!t.shape.empty()) list.push_back(&t);
  }
  return list;
}

Mapped elementwise(const TorchOp& op) {
  std::vector<const Tensor*> all = tensors(op);
  const std::optional<Tensor> out = result_of(all);
  if (!out) return all.empty() ? kNoShapes : kOtherShapes;
  all.push_back(&*out);
  return elementwise_row(all);
}

template <VectorKind Kind>
Mapped binary(const TorchOp& op) {
  const std::vector<const Tensor*> all = tensors(op);
  if (all.size() != 2) return elementwise(op);
  const std::optional<Tensor> out = result_of(all);
  return out ? binary_row(Kind, all, *out) : Mapped(kOtherShapes);
}

// The source is read and the destination written, or the other way about.
Mapped copy(const TorchOp& op) {
  const std::array<const Tensor*, 2> both = {&input(op, 0), &input(op, 1)};
  return elementwise_row(both);
}
Mapped clone(const TorchOp& op) {
  const std::array<const Tensor*, 2> both = {&input(op, 0), &input(op, 0)};
  return elementwise_row(both);
}

Mapped embedding(const TorchOp& op) {
  const Tensor& table = input(op, 0);
  const Tensor& indices = input(op, 1);
  if (table.shape.size() != 2) return kNoShapes;
  Tensor out = table;
  out.shape = indices.shape;
  out.shape.push_back(table.shape.back());
  return gather_row(table, indices, out);
}

// index_select(self, dim, index): rows of the first dimension.
Mapped index_select(const TorchOp& op) {
  if (op.concrete.size() < 2 || trim(op.concrete[1]) != "0") return "not rows of a table";
  TorchOp rows = op;
  rows.inputs = {input(op, 0), input(op, 2)};
  return embedding(rows);
}

// _C::silu_and_mul(out, gate and up): the result is half as wide.
Mapped gated(const TorchOp& op) { return vector_row(VectorKind::gated_activation, input(op, 0)); }

// _C::rotary_embedding(positions, query, key, head_size, …): [tokens, heads x head_size] each.
Mapped rope(const TorchOp& op) {
  const std::optional<std::int64_t> size =
      op.concrete.size() > 3 ? parse_int(trim(op.concrete[3])) : std::optional<std::int64_t>();
  const std::optional<std::int64_t> tokens = elements(input(op, 0));
  const std::optional<std::int64_t> q = elements(input(op, 1));
  const std::optional<std::int64_t> k = elements(input(op, 2));
  if (!tokens || !q || !k || !size || *size <= 0) return kNoShapes;
  if (*size > *q || *q % (*tokens * *size) != 0 || *k % (*tokens * *size) != 0) return kOtherShapes;
  if (!input(op, 1).element.dtype) return kNoElementType;
  return OpRow{"vector:rope", *input(op, 1).element.dtype,
               calibrate::VectorShape{.layer = "rope",
                                      .tokens = (*q + *k) / *size,
                                      .width = *size,
                                      .heads = *q / *tokens / *size,
                                      .kv_heads = *k / *tokens / *size}};
}

Mapped cache(const TorchOp& op) { return cache_row(input(op, 0)); }

struct Rule {
  std::string_view name;  // without the underscore of an operator in place
  Mapped (*map)(const TorchOp& op);
};
constexpr Rule kRules[] = {
    {"aten::mm", mm},
    {"aten::bmm", mm},
    {"aten::matmul", mm},
    {"aten::_int_mm", mm},
    {"aten::_scaled_mm", mm},
    {"aten::linear", linear},
    {"aten::addmm", addmm},
    {"aten::baddbmm", addmm},
    {"aten::_addmm_activation", addmm},
    {"aten::scaled_dot_product_attention", attention<HeadLayout::head_major, 5>},
    {"aten::_scaled_dot_product_flash_attention", attention<HeadLayout::head_major, 4>},
    {"aten::_scaled_dot_product_efficient_attention", attention<HeadLayout::head_major, 6>},
    {"aten::_scaled_dot_product_cudnn_attention", attention<HeadLayout::head_major, 6>},
    {"aten::_flash_attention_forward", packed_attention<8>},
    {"flash_attn::_flash_attn_forward", attention<HeadLayout::token_major, 5>},
    {"aten::layer_norm", norm<VectorKind::layer_norm>},
    {"aten::native_layer_norm", norm<VectorKind::layer_norm>},
    {"aten::rms_norm", norm<VectorKind::rms_norm>},
    {"aten::_fused_rms_norm", norm<VectorKind::rms_norm>},
    {"_C::rms_norm", rows_of<VectorKind::rms_norm, 1>},
    {"_C::fused_add_rms_norm", rows_of<VectorKind::add_rms_norm, 0>},
    {"_C::silu_and_mul", gated},
    {"_C::gelu_and_mul", gated},
    {"_C::gelu_tanh_and_mul", gated},
    {"_C::rotary_embedding", rope},
    {"_C_cache_ops::reshape_and_cache", cache},
    {"_C_cache_ops::reshape_and_cache_flash", cache},
    {"aten::silu", rows_of<VectorKind::activation, 0>},
    {"aten::gelu", rows_of<VectorKind::activation, 0>},
    {"aten::relu", rows_of<VectorKind::activation, 0>},
    {"aten::_softmax", rows_of<VectorKind::softmax, 0>},
    {"aten::softmax", rows_of<VectorKind::softmax, 0>},
    {"aten::add", binary<VectorKind::add>},
    {"aten::mul", binary<VectorKind::multiply>},
    {"aten::embedding", embedding},
    {"aten::index_select", index_select},
    {"aten::copy", copy},
    {"aten::clone", clone},
    {"aten::sub", elementwise},
    {"aten::div", elementwise},
    {"aten::neg", elementwise},
    {"aten::pow", elementwise},
    {"aten::exp", elementwise},
    {"aten::sqrt", elementwise},
    {"aten::rsqrt", elementwise},
    {"aten::sigmoid", elementwise},
    {"aten::tanh", elementwise},
    {"aten::cos", elementwise},
    {"aten::sin", elementwise},
    {"aten::clamp", elementwise},
    {"aten::masked_fill", elementwise},
    {"aten::reciprocal", elementwise},
};

}  // namespace

Mapped torch_row(const TorchOp& op) {
  std::string_view name = op.name;
  if (name.ends_with('_')) name.remove_suffix(1);
  for (const Rule& rule : kRules) {
    if (rule.name == name) return op.inputs.empty() ? kNoShapes : rule.map(op);
  }
  return kNoSuchOp;
}

}  // namespace llmperf::import
