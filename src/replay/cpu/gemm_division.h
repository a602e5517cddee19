// How the products of an op are divided among threads.
#pragma once

#include <cstdint>

#include "calibrate/op_row.h"
#include "replay/cpu/thread_pool.h"

namespace llmperf::replay::cpu {

// The results that one thread computes: [m, n] of products `batch`.
struct GemmPiece {
  Range batch;
  Range m;
  Range n;
};

class GemmDivision {
 public:
  GemmDivision(const calibrate::GemmShape& shape, int threads);
  GemmPiece piece(int thread) const;  // may be empty
  // Slabs of columns: pieces that read different weights. Slab s is the columns of piece s for s < slabs().
  int slabs() const { return columns_; }
  int slab_of(int thread) const { return thread % columns_; }

 private:
  calibrate::GemmShape shape_;
  int threads_;
  bool by_batch_ = false;
  int rows_ = 1;     // parts of m
  int columns_ = 1;  // parts of n
};

}  // namespace llmperf::replay::cpu
