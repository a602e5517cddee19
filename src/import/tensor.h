// The tensors of a kernel as profilers write them: shapes, element types and storage formats in lists of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/units.h"

namespace llmperf::import {

using Shape = std::vector<std::int64_t>;

struct ElementType {
  std::optional<Dtype> dtype;  // nothing for types that measurements have no name for (int64, uint8 …)
  double bits = 0;             // 0: not known
};
// Of Ascend ("DT_BF16", "FLOAT", "INT8"), of PyTorch ("c10::BFloat16", "long int", "BFloat16", "float32") and of
// nccl-tests and hccl_test ("half", "fp32", "bfp16"), in either case of letters.
ElementType element_type(std::string_view name);

// An empty shape: the tensor is absent, or a scalar; profilers write both alike.
struct Tensor {
  Shape shape;
  ElementType element;
  // The last two dimensions are known up to a multiple of these (blocks of a fractal storage format): [3072, 12288].
  std::int64_t row_block = 1;
  std::int64_t column_block = 1;

  bool known() const { return !shape.empty() && element.bits > 0; }
};

inline constexpr std::int64_t kMostElements = 1'000'000'000'000'000;

// Product of dimensions `from` to `to` (all: the number of elements). Nothing when one is not positive or the product
// is larger than any tensor.
std::optional<std::int64_t> product(const Shape& shape, std::size_t from, std::size_t to);
std::optional<std::int64_t> elements(const Tensor& tensor);  // nothing for an absent one, too
std::optional<Bytes> bytes(const Tensor& tensor);

// The logical shape of a tensor in that format: FRACTAL_NZ stores [rows, columns] as [columns / c, rows / r, r, c].
// Others stay as they are.
void make_logical(Tensor& tensor, std::string_view format);

}  // namespace llmperf::import
