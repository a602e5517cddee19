// Matrix products from the shapes of their operands, whose transpositions profilers do not write.
#pragma once

#include <optional>

#include "import/mapped.h"

namespace llmperf::import {

struct Product {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  bool operator==(const Product&) const = default;
};

// The one product whose operands are a, [m, k] or [k, m], and b, [k, n] or [n, k], and whose result is out [m, n], with
// leading dimensions that are the same or missing. Leading dimensions of a that all meet one b are rows: m. Nothing
// when the inner dimensions differ or the result is of another shape.
std::optional<Product> find_product(const Tensor& a, const Tensor& b, const Shape& out);

// op "gemm". `weights`: the scheme of b, empty for the type of a. `dtype`: of the result.
Mapped gemm_row(const Tensor& a, const Tensor& b, const Shape& out, std::optional<Dtype> dtype,
                const std::string& weights = {});

}  // namespace llmperf::import
