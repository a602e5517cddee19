#include "replay/cpu/gemm_operation.h"

#include <fmt/format.h>

#include <cmath>

#include "replay/cpu/fill.h"
#include "replay/cpu/onednn_gemm.h"
#include "replay/cpu/openblas_gemm.h"

namespace llmperf::replay::cpu {
namespace {

// Types of a product, or why it cannot be run.
std::variant<GemmPlan, Unavailable> plan_of(Dtype dtype, const calibrate::GemmShape& shape) {
  GemmPlan plan{.shape = shape};
  const auto k = static_cast<double>(shape.k);
  const bool quantised = dtype == Dtype::int8 || shape.weights == "w8a8";
  if (!shape.weights.empty() && shape.weights != "w8a8") {
    return Unavailable{fmt::format("no product here reads weights stored as {}", shape.weights)};
  }
  if (dtype == Dtype::fp32) {
    plan.output = Element::f32;
  } else if (dtype == Dtype::bf16 || dtype == Dtype::int8) {
    plan.output = Element::bf16;
  } else {
    return Unavailable{fmt::format("no product of {} here: fp32, bf16 and int8 only", name(dtype))};
  }
  plan.input = quantised ? Element::s8 : plan.output;
  if (quantised) plan.scale = static_cast<float>(1 / (127.0 * 127.0 * std::sqrt(k)));
  return plan;
}

bool library_for(const Workshop& shop, const GemmPlan& plan, Gemm library) {
  if (shop.gemm != Gemm::best) return shop.gemm == library;
  if (plan.shape.m <= kStreamRows) return false;
  return library == (plan.input == Element::f32 ? shop.best_fp32 : Gemm::onednn);
}

}  // namespace

GemmOperation::GemmOperation(const Workshop& shop, const GemmPlan& plan, std::int64_t filled_copies)
    : Operation(plan.copies), plan_(plan), division_(plan.shape, shop.pool->threads()) {
  const calibrate::GemmShape& s = plan.shape;
  const std::int64_t weights = s.batch * s.n * s.k;
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.k)));
  x_ = filled(*shop.pool, plan.input, s.batch * s.m * s.k, 1, {.operand = 0});
  w_ = filled(*shop.pool, plan.input, weights, filled_copies, {.operand = 1, .scale = scale});
  w_stride_ = whole_lines(weights * bytes_of(plan.input));
  y_ = zeroed(*shop.pool, s.batch * s.m * s.n * bytes_of(plan.output));
}

std::vector<float> GemmOperation::read() const {
  std::vector<float> result;
  append_floats(result, y_.data(), plan_.output, plan_.shape.batch * plan_.shape.m * plan_.shape.n);
  return result;
}

Operated make_gemm(const Workshop& shop, Dtype dtype, const calibrate::GemmShape& shape, std::int64_t asked) {
  if (shape.ranks > 1) return Unavailable{"no kernel here is a product and a collective in one"};
  auto planned = plan_of(dtype, shape);
  if (auto* reason = std::get_if<Unavailable>(&planned)) return std::move(*reason);
  auto& plan = std::get<GemmPlan>(planned);
  const auto x = bytes_of_tensor({shape.batch, shape.m, shape.k}, Element::f32);
  const auto w = bytes_of_tensor({shape.batch, shape.n, shape.k}, plan.input);
  const auto y = bytes_of_tensor({shape.batch, shape.m, shape.n}, Element::f32);
  if (!x || !w || !y) return Unavailable{"not a shape that fits in any memory"};
  const auto copies = shop.copies(asked, *w, 2 * (*x + *y));
  if (const auto* reason = std::get_if<Unavailable>(&copies)) return *reason;
  plan.copies = std::get<std::int64_t>(copies);

  std::string why_not;
  if (library_for(shop, plan, Gemm::openblas)) {
    if (auto made = make_openblas_gemm(shop, plan, why_not)) return made;
    if (shop.gemm == Gemm::openblas) return Unavailable{why_not};
  }
  if (library_for(shop, plan, Gemm::onednn)) {
    if (auto made = make_onednn_gemm(shop, plan, why_not)) return made;
    if (shop.gemm == Gemm::onednn) return Unavailable{why_not};
  }
  return make_own_gemm(shop, plan);
}

}  // namespace llmperf::replay::cpu
