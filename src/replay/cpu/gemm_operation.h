// How the products of an op are divided among threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/op_row.h"
#include "replay/cpu/operation.h"
#include "replay/cpu/thread_pool.h"

namespace llmperf::replay::cpu {

// The results that one thread computes: [m, n] of products `batch`.
struct GemmPiece {
  Range batch;
  Range m;
  Range n;
  bool empty() const { return batch.size() == 0 || m.size() == 0 || n.size() == 0; }
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

// ---- A product [m, k] x [n, k]^T as one library or another computes it. What all have in common: the operands, who
// computes which part, and reading the result.

// Memory of each thread for the time of a product.
class GemmScratch {
 public:
  // At least `floats` for each thread, which may lie elsewhere than before.
  void reserve(ThreadPool& pool, std::int64_t floats);
  float* of(int thread) const { return memory_.as<float>() + thread * stride_; }

 private:
  Buffer memory_;
  std::int64_t stride_ = 0;
};

struct GemmPlan {
  calibrate::GemmShape shape;
  Element input = Element::f32;   // of x and w
  Element output = Element::f32;  // of y
  float scale = 1;                // of the result: of quantised operands, the product of their scales
  std::int64_t copies = 1;
  Fill weights = {};                          // how w is filled
  bool joined = false;                        // y() is asked for: threads may else leave their pieces apart
  std::shared_ptr<GemmScratch> scratch = {};  // of products that run one after the other; null: the product's own
};

class GemmOperation : public Operation {
 public:
  // filled_copies: of the plan's copies, how many are filled; the others are for repack() to make.
  GemmOperation(const Workshop& shop, const GemmPlan& plan, std::int64_t filled_copies);
  std::vector<float> read() const override;
  const Buffer* rotated() const override { return &w_; }
  // Of a single product, for an op that it is a part of: where x lies, and after an execution the result, [m, n].
  std::byte* x() const { return x_.data(); }
  virtual std::byte* y() const { return y_.data(); }

 protected:
  const GemmPlan& plan() const { return plan_; }
  const GemmDivision& division() const { return division_; }
  GemmScratch& scratch() const { return *plan_.scratch; }
  // Weights of copy turn % copies: [batch, n, k].
  const std::byte* w(std::int64_t turn) const { return w_.data() + turn % copies() * w_stride_; }
  // Product b of a piece, of the operands as they are stored: x is of floats only where the plan's input is.
  ProductArgs product(const GemmPiece& piece, std::int64_t b, std::int64_t turn) const;
  // Replaces the weights: by as many copies in a form of the library's own, `stride` bytes apart.
  void repack(Buffer w, std::int64_t stride) {
    w_ = std::move(w);
    w_stride_ = stride;
  }

 private:
  GemmPlan plan_;
  GemmDivision division_;
  Buffer x_;
  Buffer w_;
  std::int64_t w_stride_;
  Buffer y_;
};

// The types of a product. Refusal where there is none of them.
GemmPlan plan_of(Dtype dtype, const calibrate::GemmShape& shape);
// By the library that the workshop names.
std::unique_ptr<GemmOperation> make_product(const Workshop& shop, const GemmPlan& plan);

// By this project's kernels: streamed for few rows, blocked by Eigen for many.
std::unique_ptr<GemmOperation> make_own_gemm(const Workshop& shop, const GemmPlan& plan);

// ---- Products by libraries, which are loaded when the first is asked for: of fp32 by OpenBLAS, of fp32, bf16 and int8
// by oneDNN. Refusal where there is no such library or it has no such product.

// A library, or why there is none.
template <class Functions>
struct Loaded {
  std::optional<Functions> library;
  std::string why_not;
};

// "OpenBLAS 0.3.21 (libopenblas.so.0, Haswell kernels)", "oneDNN 2.6.3 (libdnnl.so.2)"; empty with the reason in
// `why_not` where there is none.
std::string openblas_name(std::string& why_not);
std::string onednn_name(std::string& why_not);
std::unique_ptr<GemmOperation> make_openblas_gemm(const Workshop& shop, const GemmPlan& plan);
std::unique_ptr<GemmOperation> make_onednn_gemm(const Workshop& shop, const GemmPlan& plan);

}  // namespace llmperf::replay::cpu
