// Two operands of two dimensions each can be combined in four ways. The result says m and n; whichever dimension of a
// is not m and whichever of b is not n must then be the same, k. That leaves at most one product: when a is square both
// readings of it give the same k.
#include "import/matmul.h"

#include <fmt/format.h>

#include "base/integer.h"

namespace llmperf::import {
namespace {

// One dimension of an operand. A padded one is only known up to its block.
struct Dimension {
  std::int64_t size;
  std::int64_t block;

  bool is(std::int64_t wanted) const {
    return size == wanted || (block > 1 && wanted > 0 && size == divide_up(wanted, block) * block);
  }
};

// The inner dimension: the exact one of the two, where one is exact.
std::optional<std::int64_t> inner(const Dimension& a, const Dimension& b) {
  if (a.block <= 1 && b.is(a.size)) return a.size;
  if (b.block <= 1 && a.is(b.size)) return b.size;
  return a.size == b.size ? std::optional(a.size) : std::nullopt;
}

std::optional<std::int64_t> find_inner(const Dimension (&a)[2], const Dimension (&b)[2], std::int64_t m, std::int64_t n,
                                       bool a_may_turn) {
  for (const int ka : {1, 0}) {
    if (ka == 0 && !a_may_turn) break;
    if (!a[1 - ka].is(m)) continue;
    for (const int kb : {0, 1}) {
      if (!b[1 - kb].is(n)) continue;
      if (const auto k = inner(a[ka], b[kb])) return k;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Product> find_product(const Tensor& a, const Tensor& b, const Shape& out) {
  const std::size_t ra = a.shape.size();
  const std::size_t rb = b.shape.size();
  const std::size_t ro = out.size();
  if (ra < 2 || rb < 2 || ro < 2 || !elements(a) || !elements(b) || !product(out, 0, ro)) return std::nullopt;
  const std::int64_t lead_a = *product(a.shape, 0, ra - 2);
  const std::int64_t lead_b = *product(b.shape, 0, rb - 2);
  const std::int64_t lead = *product(out, 0, ro - 2);
  const std::int64_t n = out.back();
  const Dimension in_b[2] = {{b.shape[rb - 2], b.row_block}, {b.shape[rb - 1], b.column_block}};
  if (lead_b == 1 && a.row_block <= 1) {
    const Dimension in_a[2] = {{lead_a * a.shape[ra - 2], 1}, {a.shape[ra - 1], a.column_block}};
    const std::int64_t m = lead * out[ro - 2];
    if (const auto k = find_inner(in_a, in_b, m, n, lead_a == 1)) return Product{m, n, *k, 1};
  }
  if ((lead_a != lead && lead_a != 1) || (lead_b != lead && lead_b != 1)) return std::nullopt;
  const Dimension in_a[2] = {{a.shape[ra - 2], a.row_block}, {a.shape[ra - 1], a.column_block}};
  const std::int64_t m = out[ro - 2];
  if (const auto k = find_inner(in_a, in_b, m, n, true)) return Product{m, n, *k, lead};
  return std::nullopt;
}

Mapped gemm_row(const Tensor& a, const Tensor& b, const Shape& out, std::optional<Dtype> dtype,
                const std::string& weights) {
  if (a.shape.empty() || b.shape.empty() || out.empty()) return kNoShapes;
  const std::optional<Product> p = find_product(a, b, out);
  if (!p) return kNoProduct;
  if (!dtype) return kNoElementType;
  return calibrate::OpRow{"gemm", *dtype, calibrate::GemmShape{p->m, p->n, p->k, p->batch, weights}};
}

}  // namespace llmperf::import
