// Products by the libraries that are installed, and what is said where one is not or cannot.
#include "base/error.h"
#include "catch.h"
#include "check.h"
#include "replay/cpu/cpu_backend.h"
#include "replay/cpu/operation.h"

namespace llmperf::replay::cpu::libraries_test {
namespace {

using measure::ExpertsShape;
using measure::GemmShape;

bool has_onednn() {
  std::string why_not;
  return !onednn_name(why_not).empty();
}

void check_products(Backend& backend, Dtype dtype) {
  for (const std::int64_t m : {1, 3, 17, 70}) {
    check_op(backend, {"gemm", dtype, GemmShape{.m = m, .n = 101, .k = 67}});
  }
  check_op(backend, {"gemm", dtype, GemmShape{.m = 300, .n = 3, .k = 8}});
  check_op(backend, {"gemm", dtype, GemmShape{.m = 19, .n = 40, .k = 24, .batch = 3}});
  check_op(backend, {"gemm", dtype, GemmShape{.m = 9, .n = 130, .k = 64, .batch = 1}});
  if (dtype == Dtype::int8) return;
  check_op(backend, {"moe", dtype, ExpertsShape{.m = 45, .hidden = 200, .inter = 150, .topk = 2, .experts = 4}});
}

}  // namespace

TEST_CASE("oneDNN multiplies fp32, and bf16 and int8 where it can on this processor") {
  if (!has_onednn()) {
    CHECK_THROWS_AS(make_cpu_backend({.threads = 1, .gemm = Gemm::onednn}), Error);
    return;
  }
  for (const int threads : {0, 1}) {
    const auto backend = make_cpu_backend({.threads = threads, .gemm = Gemm::onednn});
    check_products(*backend, Dtype::fp32);
    for (const Dtype dtype : {Dtype::bf16, Dtype::int8}) {
      const auto made = backend->prepare({"gemm", dtype, GemmShape{.m = 16, .n = 16, .k = 16}}, 1);
      if (const auto* reason = std::get_if<Unavailable>(&made)) {
        CHECK_THAT(reason->reason, Catch::Contains("implemented for this processor"));
      } else {
        check_products(*backend, dtype);
      }
    }
  }
}

TEST_CASE("the best library for each type multiplies right") {
  const auto backend = make_cpu_backend();
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::int8}) check_products(*backend, dtype);
}

TEST_CASE("the library that multiplies is named with its version") {
  const auto products = [](Gemm gemm) {
    for (const auto& [fact, value] : make_cpu_backend({.threads = 1, .gemm = gemm})->describe().facts) {
      if (fact == "products") return value;
    }
    return std::string();
  };
  CHECK_THAT(products(Gemm::eigen), Catch::StartsWith("Eigen 3.") && Catch::EndsWith(")"));
  CHECK_THAT(products(Gemm::best), Catch::StartsWith(has_onednn() ? "oneDNN 2." : "Eigen 3."));
}

}  // namespace llmperf::replay::cpu::libraries_test
