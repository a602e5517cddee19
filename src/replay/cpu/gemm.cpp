#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "replay/cpu/operation.h"

namespace llmperf::replay::cpu {
namespace {

// Edges that kernels like: of vectors of any instruction set and of the blocks that oneDNN packs weights in.
constexpr std::int64_t kColumnGrain = 64;
constexpr std::int64_t kRowGrain = 8;
// Packing one element of an operand takes as long as about that many multiply-adds.
constexpr double kPacking = 16;

double largest(std::int64_t total, std::int64_t grain, int parts) {
  return static_cast<double>(part_of(total, grain, 0, parts).size());
}

}  // namespace

GemmDivision::GemmDivision(const measure::GemmShape& shape, int threads) : shape_(shape), threads_(threads) {
  if (shape.batch >= threads) {
    by_batch_ = true;
    return;
  }
  double best = std::numeric_limits<double>::infinity();
  for (int columns = threads; columns >= 1; --columns) {
    const int rows = threads / columns;
    const double m = largest(shape.m, kRowGrain, rows);
    const double n = largest(shape.n, kColumnGrain, columns);
    const double cost = m * n + kPacking * (m + n);
    if (cost < best) {
      best = cost;
      rows_ = rows;
      columns_ = columns;
    }
  }
}

GemmPiece GemmDivision::piece(int thread) const {
  if (by_batch_) return {part_of(shape_.batch, 1, thread, threads_), {0, shape_.m}, {0, shape_.n}};
  if (thread >= rows_ * columns_) return {};
  return {{0, shape_.batch},
          part_of(shape_.m, kRowGrain, thread / columns_, rows_),
          part_of(shape_.n, kColumnGrain, thread % columns_, columns_)};
}

GemmPlan plan_of(Dtype dtype, const measure::GemmShape& shape) {
  const bool quantised = dtype == Dtype::int8 || shape.weights == "w8a8";
  require(shape.ranks <= 1, "no kernel here is a product and a collective in one");
  require(shape.weights.empty() || shape.weights == "w8a8",
          fmt::format("no product here reads weights stored as {}", shape.weights));
  require(dtype == Dtype::fp32 || dtype == Dtype::bf16 || dtype == Dtype::int8,
          fmt::format("no product of {} here: fp32, bf16 and int8 only", name(dtype)));
  GemmPlan plan{.shape = shape, .output = dtype == Dtype::fp32 ? Element::f32 : Element::bf16};
  plan.input = quantised ? Element::s8 : plan.output;
  plan.weights = {.operand = 1, .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.k)))};
  if (quantised) plan.scale = static_cast<float>(1 / (127.0 * 127.0 * std::sqrt(static_cast<double>(shape.k))));
  return plan;
}

Operated make_gemm(const Workshop& shop, Dtype dtype, const measure::GemmShape& shape, std::int64_t asked) {
  GemmPlan plan = plan_of(dtype, shape);
  const auto x = bytes_of_tensor({shape.batch, shape.m, shape.k}, Element::f32);
  const auto w = bytes_of_tensor({shape.batch, shape.n, shape.k}, plan.input);
  const auto y = bytes_of_tensor({shape.batch, shape.m, shape.n}, Element::f32);
  plan.copies = shop.copies(asked, w, 2 * (x + y));
  return make_product(shop, plan).op;
}

namespace {

// The weights stay [n, k] as they come. Every thread computes its columns alone, so the result does not depend on who
// is faster.
Product make_eigen_product(const Workshop& shop, const GemmPlan& plan) {
  const measure::GemmShape& s = plan.shape;
  const std::int64_t element = bytes_of(plan.input);
  auto op = std::make_unique<Operation>(shop, plan.copies);
  std::byte* x = op->input(plan.input, s.batch * s.m * s.k, {.operand = 0});
  const Rotated w = op->rotated(plan.input, s.batch * s.n * s.k, plan.weights);
  std::byte* y = op->output(plan.output, s.batch * s.m * s.n);
  shop.scratch->reserve(*shop.pool, product_scratch(s.k));
  op->execute = [=, &shop, division = GemmDivision(s, shop.pool->threads())](const Team& team, std::int64_t turn) {
    const GemmPiece piece = division.piece(team.thread);
    if (piece.empty()) return;
    for (std::int64_t b = piece.batch.first; b < piece.batch.last; ++b) {
      const std::int64_t row = b * s.m + piece.m.first;
      shop.kernels->product({.x = x + row * s.k * element,
                             .w = w.at(turn) + (b * s.n + piece.n.first) * s.k * element,
                             .input = plan.input,
                             .y = y + (row * s.n + piece.n.first) * bytes_of(plan.output),
                             .output = plan.output,
                             .y_stride = s.n,
                             .m = piece.m.size(),
                             .n = piece.n.size(),
                             .k = s.k,
                             .scale = plan.scale},
                            shop.scratch->of(team.thread));
    }
  };
  return {std::move(op), x, y};
}

}  // namespace

Product make_product(const Workshop& shop, const GemmPlan& plan) {
  if (shop.gemm == Gemm::onednn) return make_onednn_product(shop, plan);
  // Of few rows the weights are streamed, which Eigen does faster in fp32.
  constexpr std::int64_t kStreamedRows = 2;
  const bool streamed = plan.shape.m <= kStreamedRows && plan.input == Element::f32;
  if (shop.gemm == Gemm::best && !streamed) {
    try {
      return make_onednn_product(shop, plan);
    } catch (const Unavailable&) {  // Eigen can everything
    }
  }
  return make_eigen_product(shop, plan);
}

}  // namespace llmperf::replay::cpu
