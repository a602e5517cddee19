// What the importers of profiles make of one kernel: the op it is a measurement of, or why it is none.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "calibrate/op_row.h"
#include "import/tensor.h"

namespace llmperf::import {

struct Mapped {
  std::optional<calibrate::OpRow> row;
  std::string remark;  // empty when there is a row

  Mapped(calibrate::OpRow r) : row(std::move(r)) {}    // NOLINT(google-explicit-constructor)
  Mapped(std::string why) : remark(std::move(why)) {}  // NOLINT(google-explicit-constructor)
  Mapped(const char* why) : remark(why) {}             // NOLINT(google-explicit-constructor)
};

inline constexpr const char* kNoShapes = "no shapes";
inline constexpr const char* kNoSuchOp = "no such op";
inline constexpr const char* kNoProduct = "shapes do not multiply";
inline constexpr const char* kOtherShapes = "shapes not understood";
inline constexpr const char* kNoElementType = "element type";

// Rows of the `vector:` ops. x: [rows.., width]; `width` of it when that is not its last dimension.
Mapped vector_row(graph::VectorKind kind, const Tensor& x);
// Of two operands that become `out`: `kind` when all have one shape, else elementwise.
Mapped binary_row(graph::VectorKind kind, std::span<const Tensor* const> inputs, const Tensor& out);
// The bytes of all of them; m x n is the largest.
Mapped elementwise_row(std::span<const Tensor* const> tensors);
Mapped gather_row(const Tensor& table, const Tensor& indices, const Tensor& out);
// Keys and values [tokens, kv_heads, head_dim].
Mapped cache_row(const Tensor& keys);

}  // namespace llmperf::import
