// Slots of inputs and outputs are those of the operators' definitions in CANN.
#include "import/ascend_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/text.h"
#include "import/attention.h"
#include "import/matmul.h"

namespace llmperf::import {
namespace {

using graph::VectorKind;

// "MatMulV3" is a version of "MatMul".
std::string_view without_version(std::string_view type) {
  const std::size_t v = type.rfind('V');
  const bool version = v != std::string_view::npos && v > 0 && v + 1 < type.size() &&
                       type.find_first_not_of("0123456789", v + 1) == std::string_view::npos;
  return version ? type.substr(0, v) : type;
}

// A slot, or an absent tensor where the list is shorter.
const Tensor& slot(const std::vector<Tensor>& list, std::size_t i) {
  static const Tensor kAbsent;
  return i < list.size() ? list[i] : kAbsent;
}

Mapped matmul(const AscendKernel& k) {
  const Tensor& out = slot(k.outputs, 0);
  const std::optional<Dtype> dtype = slot(k.inputs, 0).element.dtype;
  if (dtype != slot(k.inputs, 1).element.dtype) return "operands of different types";
  return gemm_row(slot(k.inputs, 0), slot(k.inputs, 1), out.shape, dtype);
}

// Both operands in int8, the result scaled to 16 bits on its way out.
Mapped quantised_matmul(const AscendKernel& k) {
  const Tensor& out = slot(k.outputs, 0);
  const bool int8 = slot(k.inputs, 0).element.dtype == Dtype::int8 && slot(k.inputs, 1).element.dtype == Dtype::int8;
  if (!int8) return "operands are not int8";
  if (out.element.dtype != Dtype::fp16 && out.element.dtype != Dtype::bf16) return "result is not scaled";
  return gemm_row(slot(k.inputs, 0), slot(k.inputs, 1), out.shape, out.element.dtype, "w8a8");
}

// Weights of 8 or 4 bits, unpacked to the type of the activations. The scales, [k / group, n], say the group.
Mapped weight_quantised_matmul(const AscendKernel& k) {
  Tensor weights = slot(k.inputs, 1);
  const Tensor& scales = slot(k.inputs, 2);
  const Tensor& out = slot(k.outputs, 0);
  std::string scheme = "int8";
  if (weights.element.dtype == Dtype::int32 && !weights.shape.empty()) {  // eight of 4 bits in each
    weights.shape.back() *= 8;
    weights.element = element_type("int4");
  }
  const std::optional<Product> p = find_product(slot(k.inputs, 0), weights, out.shape);
  if (p && weights.element.dtype == Dtype::int4) {
    const std::optional<std::int64_t> all = elements(scales);
    if (!all || *all % p->n != 0 || *all == p->n || p->k % (*all / p->n) != 0) return "group of the weights unknown";
    scheme = fmt::format("w4a16-g{}", p->k / (*all / p->n));
  } else if (p && weights.element.dtype != Dtype::int8) {
    return "weights are not int8 or int4";
  }
  return gemm_row(slot(k.inputs, 0), weights, out.shape, slot(k.inputs, 0).element.dtype, scheme);
}

const Tensor* if_present(const Tensor& tensor) { return tensor.shape.empty() ? nullptr : &tensor; }

Mapped training_attention(const AscendKernel& k) {
  return attention_row({.query = slot(k.inputs, 0),
                        .key = slot(k.inputs, 1),
                        .statistics = if_present(slot(k.outputs, 0)),
                        .mask = if_present(slot(k.inputs, 6))});
}

Mapped inference_attention(const AscendKernel& k) {
  // Where there is a block table keys are in pages of a pool.
  const Tensor& table = slot(k.inputs, without_version(k.type) == "IncreFlashAttention" ? 13 : 14);
  if (table.shape.size() == 2 && table.element.dtype == Dtype::int32) return "keys are in pages";
  const Tensor& statistics = slot(k.outputs, 1);
  return attention_row({.query = slot(k.inputs, 0),
                        .key = slot(k.inputs, 1),
                        .statistics = statistics.shape.size() == 4 ? &statistics : nullptr,
                        .mask = if_present(slot(k.inputs, 4))});
}

// One tensor [.., heads, head_dim], or queries and keys that differ in the axis of their heads.
Mapped rope(const AscendKernel& k) {
  const Tensor& q = slot(k.inputs, 0);
  Mapped row = vector_row(VectorKind::rope, q);
  if (!row.row || without_version(k.type) != "ApplyRotaryPosEmb") return row;
  const Tensor& keys = slot(k.inputs, 1);
  const std::optional<std::int64_t> all = elements(keys);
  if (!all) return kNoShapes;
  if (q.shape.size() != keys.shape.size() || q.shape.back() != keys.shape.back()) return kOtherShapes;
  auto& shape = std::get<calibrate::VectorShape>(row.row->shape);
  shape.tokens += *all / keys.shape.back();
  for (std::size_t i = 0; i + 1 < q.shape.size(); ++i) {
    if (q.shape[i] == keys.shape[i]) continue;
    if (shape.heads > 0) return kOtherShapes;
    shape.heads = q.shape[i];
    shape.kv_heads = keys.shape[i];
  }
  return row;
}

Mapped scatter(const AscendKernel& k) {
  // The cache itself is not read: the updates are, and are written.
  const Tensor& updates = slot(k.inputs, 2);
  const std::array<const Tensor*, 2> both = {&updates, &updates};
  return elementwise_row(both);
}

// An input without a shape is a scalar or absent: nothing to read either way. A result without one is not known.
Mapped elementwise(const AscendKernel& k) {
  std::vector<const Tensor*> all;
  for (const Tensor& t : k.inputs) {
    if (!t.shape.empty()) all.push_back(&t);
  }
  for (const Tensor& t : k.outputs) all.push_back(&t);
  return k.outputs.empty() ? Mapped(kNoShapes) : elementwise_row(all);
}

Mapped binary(VectorKind kind, const AscendKernel& k) {
  const std::array<const Tensor*, 2> inputs = {&slot(k.inputs, 0), &slot(k.inputs, 1)};
  return binary_row(kind, inputs, slot(k.outputs, 0));
}
Mapped add(const AscendKernel& k) { return binary(VectorKind::add, k); }
Mapped multiply(const AscendKernel& k) { return binary(VectorKind::multiply, k); }
Mapped gather(const AscendKernel& k) { return gather_row(slot(k.inputs, 0), slot(k.inputs, 1), slot(k.outputs, 0)); }
Mapped cache(const AscendKernel& k) { return cache_row(slot(k.inputs, 0)); }
Mapped no_op(const AscendKernel&) { return kNoSuchOp; }
Mapped joined(const AscendKernel&) { return "a product and a collective in one"; }

// The first input walked in rows; gated ones, whose input is two halves, by their result.
template <VectorKind Kind>
Mapped rows_of_input(const AscendKernel& k) {
  return vector_row(Kind, slot(k.inputs, 0));
}
template <VectorKind Kind>
Mapped rows_of_output(const AscendKernel& k) {
  return vector_row(Kind, slot(k.outputs, 0));
}

struct Rule {
  std::string_view type;  // without a version ("V3") at its end
  Mapped (*map)(const AscendKernel& kernel);
};
constexpr Rule kRules[] = {
    {"MatMul", matmul},
    {"BatchMatMul", matmul},
    {"QuantBatchMatmul", quantised_matmul},
    {"WeightQuantBatchMatmul", weight_quantised_matmul},
    {"GroupedMatmul", no_op},
    {"MatmulAllReduce", joined},
    {"MatmulReduceScatter", joined},
    {"AllGatherMatmul", joined},
    {"FlashAttentionScore", training_attention},
    {"PromptFlashAttention", inference_attention},
    {"IncreFlashAttention", inference_attention},
    {"FusedInferAttentionScore", inference_attention},
    {"RmsNorm", rows_of_input<VectorKind::rms_norm>},
    {"AddRmsNorm", rows_of_input<VectorKind::add_rms_norm>},
    {"InplaceAddRmsNorm", rows_of_input<VectorKind::add_rms_norm>},
    {"LayerNorm", rows_of_input<VectorKind::layer_norm>},
    {"AddLayerNorm", rows_of_input<VectorKind::add_layer_norm>},
    {"SwiGlu", rows_of_output<VectorKind::gated_activation>},
    {"GeGlu", rows_of_output<VectorKind::gated_activation>},
    {"Silu", rows_of_input<VectorKind::activation>},
    {"Swish", rows_of_input<VectorKind::activation>},
    {"Gelu", rows_of_input<VectorKind::activation>},
    {"FastGelu", rows_of_input<VectorKind::activation>},
    {"Relu", rows_of_input<VectorKind::activation>},
    {"Softmax", rows_of_input<VectorKind::softmax>},
    {"Add", add},
    {"Mul", multiply},
    {"RotaryMul", rope},
    {"RotaryPositionEmbedding", rope},
    {"ApplyRotaryPosEmb", rope},
    {"Gather", gather},
    {"Embedding", gather},
    {"ScatterUpdate", scatter},
    {"Scatter", scatter},
    {"ReshapeAndCache", cache},
};

// One pass over tensors whose bytes all cross the memory bus.
constexpr std::string_view kElementwise[] = {
    "Abs",          "Adds",      "AscendQuant",  "BroadcastTo", "Cast",      "ClipByValue", "ConcatD",    "Concat",
    "Cos",          "Div",       "DynamicQuant", "Equal",       "Exp",       "Fill",        "Fills",      "Greater",
    "GreaterEqual", "Identity",  "InplaceAdd",   "Less",        "LessEqual", "LogicalAnd",  "LogicalNot", "LogicalOr",
    "MaskedFill",   "Maximum",   "Minimum",      "Muls",        "Neg",       "NotEqual",    "Pow",        "RealDiv",
    "Reciprocal",   "ReduceMax", "ReduceMean",   "ReduceMeanD", "ReduceSum", "ReduceSumD",  "Rsqrt",      "Select",
    "Sigmoid",      "Sin",       "Sqrt",         "Square",      "Sub",       "Tanh",        "TensorMove", "Tile",
    "TransData",    "Transpose", "TransposeD",   "ZerosLike"};

}  // namespace

Class ascend_class(std::string_view core, std::string_view type) {
  const std::string kind = to_lower(type);
  if (core.find("AI_CPU") != std::string_view::npos || core == "AICPU" || core.starts_with("HOST")) return Class::host;
  const bool hcom = kind.starts_with("hcom") || kind.starts_with("hccl");
  if (hcom || core == "HCCL" || core == "COMMUNICATION") return Class::communication;
  const std::string_view plain = without_version(type);
  for (const Rule& rule : kRules) {
    // A product joined with a collective waits for its peers, too.
    if (rule.map == joined && rule.type == plain) return Class::communication;
  }
  const bool cores = core.starts_with("AI_CORE") || core.starts_with("AI_VECTOR_CORE") || core.starts_with("AIC") ||
                     core.starts_with("AIV") || core.starts_with("MIX_AI");
  return cores || core.empty() ? Class::kernel : Class::other;
}

Mapped ascend_row(const AscendKernel& kernel) {
  const bool shapes =
      std::any_of(kernel.inputs.begin(), kernel.inputs.end(), [](const Tensor& t) { return t.known(); });
  const std::string_view type = without_version(kernel.type);
  for (const Rule& rule : kRules) {
    if (rule.type == type) return shapes || rule.map == no_op || rule.map == joined ? rule.map(kernel) : kNoShapes;
  }
  const bool known = std::find(std::begin(kElementwise), std::end(kElementwise), type) != std::end(kElementwise);
  return known ? elementwise(kernel) : kNoSuchOp;
}

}  // namespace llmperf::import
