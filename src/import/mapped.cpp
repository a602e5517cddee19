#include "import/mapped.h"

#include <fmt/format.h>

#include <algorithm>

namespace llmperf::import {
namespace {

using calibrate::OpRow;
using calibrate::VectorShape;
using graph::VectorKind;

std::string op_name(VectorKind kind) { return fmt::format("{}{}", calibrate::kVectorPrefix, graph::name(kind)); }

// Rows and columns of a tensor that is walked in rows of its last dimension.
std::optional<VectorShape> rows_of(VectorKind kind, const Tensor& x) {
  const std::optional<std::int64_t> all = elements(x);
  if (!all) return std::nullopt;
  const std::int64_t width = x.shape.back();
  return VectorShape{.layer = std::string(graph::name(kind)), .tokens = *all / width, .width = width};
}

}  // namespace

Mapped vector_row(VectorKind kind, const Tensor& x) {
  std::optional<VectorShape> shape = rows_of(kind, x);
  if (!shape) return kNoShapes;
  if (!x.element.dtype) return kNoElementType;
  return OpRow{op_name(kind), *x.element.dtype, std::move(*shape)};
}

Mapped binary_row(VectorKind kind, std::span<const Tensor* const> inputs, const Tensor& out) {
  const bool alike = std::all_of(inputs.begin(), inputs.end(), [&](const Tensor* t) {
    return t->shape == out.shape && t->element.dtype == out.element.dtype;
  });
  if (alike) return vector_row(kind, out);
  std::vector<const Tensor*> all(inputs.begin(), inputs.end());
  all.push_back(&out);
  return elementwise_row(all);
}

Mapped elementwise_row(std::span<const Tensor* const> tensors) {
  const Tensor* largest = nullptr;
  Bytes total;
  for (const Tensor* t : tensors) {
    const std::optional<Bytes> size = bytes(*t);
    if (!size) return kNoShapes;
    total += *size;
    // Of equals the last one: the result.
    if (largest == nullptr || *elements(*t) >= *elements(*largest)) largest = t;
  }
  if (largest == nullptr) return kNoShapes;
  Mapped row = vector_row(VectorKind::elementwise, *largest);
  if (row.row) std::get<VectorShape>(row.row->shape).bytes = total;
  return row;
}

Mapped gather_row(const Tensor& table, const Tensor& indices, const Tensor& out) {
  const std::optional<std::int64_t> rows = elements(indices);
  const std::optional<std::int64_t> all = elements(out);
  const std::optional<std::int64_t> kept = elements(table);
  if (!rows || !all || !kept) return kNoShapes;
  const std::int64_t width = *kept / table.shape.front();
  // Another axis than the first is picked from, or one element of each row.
  if (width < 2 || *all != *rows * width) return "not rows of a table";
  const std::optional<Dtype> dtype = table.element.dtype;
  if (dtype != Dtype::fp16 && dtype != Dtype::bf16 && dtype != Dtype::fp32) return kNoElementType;
  return OpRow{"gather", *dtype, calibrate::GatherShape{*rows, width, table.shape.front()}};
}

Mapped cache_row(const Tensor& keys) {
  if (!elements(keys)) return kNoShapes;
  if (keys.shape.size() < 3) return "heads are not in the shapes";
  if (!keys.element.dtype) return kNoElementType;
  const std::size_t last = keys.shape.size() - 1;
  return OpRow{"kv_write", *keys.element.dtype,
               calibrate::CacheShape{*product(keys.shape, 0, last - 1), keys.shape[last - 1], keys.shape[last]}};
}

}  // namespace llmperf::import
