#include "replay/cpu/gemm_operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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

GemmPlan plan_of(Dtype dtype, const calibrate::GemmShape& shape) {
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

namespace {

bool library_for(const Workshop& shop, const GemmPlan& plan, Gemm library) {
  if (shop.gemm != Gemm::best) return shop.gemm == library;
  if (plan.shape.m <= kStreamRows) return false;
  return library == (plan.input == Element::f32 ? shop.best_fp32 : Gemm::onednn);
}

}  // namespace

void GemmScratch::reserve(ThreadPool& pool, std::int64_t floats) {
  if (floats <= stride_) return;
  stride_ = whole_lines(floats * 4) / 4;
  memory_ = zeroed(pool, pool.threads() * stride_ * 4);
}

GemmOperation::GemmOperation(const Workshop& shop, const GemmPlan& plan, std::int64_t filled_copies)
    : Operation(plan.copies), plan_(plan), division_(plan.shape, shop.pool->threads()) {
  if (!plan_.scratch) plan_.scratch = std::make_shared<GemmScratch>();
  const calibrate::GemmShape& s = plan.shape;
  const std::int64_t weights = s.batch * s.n * s.k;
  x_ = filled(*shop.pool, plan.input, s.batch * s.m * s.k, 1, {.operand = 0});
  w_ = filled(*shop.pool, plan.input, weights, filled_copies, plan.weights);
  w_stride_ = whole_lines(weights * bytes_of(plan.input));
  y_ = zeroed(*shop.pool, s.batch * s.m * s.n * bytes_of(plan.output));
}

std::vector<float> GemmOperation::read() const {
  return to_floats(y_.data(), plan_.output, plan_.shape.batch * plan_.shape.m * plan_.shape.n);
}

ProductArgs GemmOperation::product(const GemmPiece& piece, std::int64_t b, std::int64_t turn) const {
  const calibrate::GemmShape& s = plan_.shape;
  const std::int64_t element = bytes_of(plan_.input);
  return {.x = reinterpret_cast<const float*>(x_.data() + (b * s.m + piece.m.first) * s.k * element),
          .x_stride = s.k,
          .w = w(turn) + (b * s.n + piece.n.first) * s.k * element,
          .w_element = plan_.input,
          .w_stride = s.k,
          .y = y_.data() + ((b * s.m + piece.m.first) * s.n + piece.n.first) * bytes_of(plan_.output),
          .y_element = plan_.output,
          .y_stride = s.n,
          .m = piece.m.size(),
          .n = piece.n.size(),
          .k = s.k,
          .scale = plan_.scale};
}

Operated make_gemm(const Workshop& shop, Dtype dtype, const calibrate::GemmShape& shape, std::int64_t asked) {
  GemmPlan plan = plan_of(dtype, shape);
  const auto x = bytes_of_tensor({shape.batch, shape.m, shape.k}, Element::f32);
  const auto w = bytes_of_tensor({shape.batch, shape.n, shape.k}, plan.input);
  const auto y = bytes_of_tensor({shape.batch, shape.m, shape.n}, Element::f32);
  plan.copies = shop.copies(asked, w, 2 * (x + y));
  return make_product(shop, plan);
}

std::unique_ptr<GemmOperation> make_product(const Workshop& shop, const GemmPlan& plan) {
  for (const auto& [library, make] :
       {std::pair{Gemm::openblas, &make_openblas_gemm}, std::pair{Gemm::onednn, &make_onednn_gemm}}) {
    if (!library_for(shop, plan, library)) continue;
    try {
      return make(shop, plan);
    } catch (const Refusal&) {
      if (shop.gemm == library) throw;
    }
  }
  return make_own_gemm(shop, plan);
}

// ---- Products by this project's kernels and Eigen. The weights stay [n, k] as they come. Every thread computes its
// columns alone, so the result does not depend on who is faster.
//
//  * Few rows (decode): bound by reading the weights. Each thread converts x to floats for itself, which is small, and
//    streams its rows of w.
//  * Many rows of floats: Eigen's blocked product on the thread's piece.
//  * Many rows of bf16 or int8: the thread converts a panel of w that fits the second level cache, multiplies it and
//    converts the result. Integers of 8 bits multiply exactly in floats; their sums are rounded like those of bf16.

namespace {

class StreamedGemm final : public GemmOperation {
 public:
  StreamedGemm(const Workshop& shop, const GemmPlan& plan)
      : GemmOperation(shop, plan, plan.copies), kernels_(shop.kernels) {
    if (plan.input != Element::f32) scratch().reserve(*shop.pool, plan.shape.m * plan.shape.k);
  }

  void execute(const Team& team, std::int64_t turn) override {
    const calibrate::GemmShape& s = plan().shape;
    const GemmPiece piece = division().piece(team.thread);
    for (std::int64_t b = piece.batch.first; b < piece.batch.last; ++b) {
      ProductArgs args = product(piece, b, turn);
      if (plan().input != Element::f32) {
        float* own = scratch().of(team.thread);
        kernels_->widen(x() + b * s.m * s.k * bytes_of(plan().input), plan().input, own, s.m * s.k);
        args.x = own + piece.m.first * s.k;
      }
      kernels_->stream_product(args);
    }
  }

 private:
  const Kernels* kernels_;
};

class BlockedGemm final : public GemmOperation {
 public:
  BlockedGemm(const Workshop& shop, const GemmPlan& plan)
      : GemmOperation(shop, plan, plan.copies), kernels_(shop.kernels) {
    scratch().reserve(*shop.pool, kProductScratch);
  }

  void execute(const Team& team, std::int64_t turn) override {
    const GemmPiece piece = division().piece(team.thread);
    if (piece.empty()) return;
    for (std::int64_t b = piece.batch.first; b < piece.batch.last; ++b) {
      kernels_->blocked_product(product(piece, b, turn), scratch().of(team.thread));
    }
  }

 private:
  const Kernels* kernels_;
};

class ConvertedGemm final : public GemmOperation {
 public:
  ConvertedGemm(const Workshop& shop, const GemmPlan& plan)
      : GemmOperation(shop, plan, plan.copies), kernels_(shop.kernels) {
    const calibrate::GemmShape& s = plan.shape;
    panel_ = std::clamp<std::int64_t>(kPanelFloats / s.k / kPanelGrain * kPanelGrain, kPanelGrain, kMaxPanel);
    const std::int64_t products = whole_lines(s.m * panel_ * 4) / 4;
    x_floats_ = zeroed(*shop.pool, s.batch * s.m * s.k * 4);
    // Eigen's blocks, the panel [panel, k], its products [m, panel].
    scratch().reserve(*shop.pool, kProductScratch + whole_lines(panel_ * s.k * 4) / 4 + products);
  }

  void execute(const Team& team, std::int64_t turn) override {
    const calibrate::GemmShape& s = plan().shape;
    const std::int64_t element = bytes_of(plan().input);
    const Range share = part_of(s.batch * s.m * s.k, 1024, team.thread, team.threads);
    kernels_->widen(x() + share.first * element, plan().input, x_floats_.as<float>() + share.first, share.size());
    team.wait();
    const GemmPiece piece = division().piece(team.thread);
    if (piece.m.size() == 0) return;
    for (std::int64_t b = piece.batch.first; b < piece.batch.last; ++b) {
      for (std::int64_t n = piece.n.first; n < piece.n.last; n += panel_) {
        multiply_panel(team.thread, turn, b, piece.m, {n, std::min(n + panel_, piece.n.last)});
      }
    }
  }

 private:
  static constexpr std::int64_t kPanelFloats = 1 << 18;  // 1 MiB
  static constexpr std::int64_t kPanelGrain = 48;
  static constexpr std::int64_t kMaxPanel = 480;

  void multiply_panel(int thread, std::int64_t turn, std::int64_t b, Range m, Range n) {
    const calibrate::GemmShape& s = plan().shape;
    float* blocks = scratch().of(thread);
    float* weights = blocks + kProductScratch;
    float* products = weights + whole_lines(panel_ * s.k * 4) / 4;
    const ProductArgs stored = product({{}, m, n}, b, turn);
    ProductArgs floats = stored;
    floats.x = x_floats_.as<float>() + (b * s.m + m.first) * s.k;
    floats.w = weights;
    floats.y = products;
    floats.y_stride = n.size();
    floats.w_element = floats.y_element = Element::f32;
    floats.scale = 1;
    kernels_->widen(stored.w, plan().input, weights, n.size() * s.k);
    kernels_->blocked_product(floats, blocks);
    kernels_->narrow(products, n.size(), stored.y, plan().output, s.n, m.size(), n.size(), plan().scale);
  }

  const Kernels* kernels_;
  std::int64_t panel_ = 0;  // rows of w converted at once
  Buffer x_floats_;         // [batch, m, k]
};

}  // namespace

std::unique_ptr<GemmOperation> make_own_gemm(const Workshop& shop, const GemmPlan& plan) {
  if (plan.shape.m <= kStreamRows) return std::make_unique<StreamedGemm>(shop, plan);
  if (plan.input == Element::f32 && plan.output == Element::f32) return std::make_unique<BlockedGemm>(shop, plan);
  return std::make_unique<ConvertedGemm>(shop, plan);
}

}  // namespace llmperf::replay::cpu
