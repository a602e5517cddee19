#include "replay/cpu/gemm_division.h"

#include <limits>

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

GemmDivision::GemmDivision(const calibrate::GemmShape& shape, int threads) : shape_(shape), threads_(threads) {
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

}  // namespace llmperf::replay::cpu
