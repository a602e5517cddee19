#include <array>

#include "base/error.h"
#include "catch.h"
#include "support.h"

namespace llmperf::replay::ascend::results_test {
namespace {

const std::vector<measure::OpRow>& every_op() {
  static const std::vector<measure::OpRow> rows = {
      gemm(3, 5, 16, Dtype::fp16),
      gemm(4, 8, 32, Dtype::bf16),
      gemm(2, 7, 9, Dtype::fp32),
      gemm(2, 4, 8, Dtype::fp16, "", 3),
      gemm(3, 6, 64, Dtype::fp16, "int8"),
      gemm(3, 6, 64, Dtype::bf16, "w8a16"),
      gemm(2, 5, 32, Dtype::fp16, "w4a16"),
      gemm(2, 6, 96, Dtype::bf16, "w4a16-g32"),
      gemm(3, 5, 32, Dtype::bf16, "w8a8"),
      gemm(3, 5, 32, Dtype::int8),
      gemm(3, 5, 32, Dtype::bf16, "w8a8", 4),
      gemm(2, 6, 16, Dtype::int8, "", 3),
      experts(5, 16, 8, 2, 6, Dtype::bf16),
      experts(3, 32, 16, 3, 4, Dtype::fp16, "", 2),
      experts(1, 16, 8, 1, 6, Dtype::fp16),
      experts(5, 32, 16, 2, 3, Dtype::bf16, "w8a8"),
      attention(2, 5, 5, 4, 2, 16, Dtype::fp16),
      attention(1, 3, 7, 4, 1, 32, Dtype::bf16),
      attention(1, 3, 7, 2, 2, 16, Dtype::bf16, false),
      attention(3, 1, 9, 4, 2, 16, Dtype::fp16),
      vector("rms_norm", 3, 24, Dtype::fp16),
      vector("rms_norm", 2, 16, Dtype::fp32),
      vector("add_rms_norm", 3, 24, Dtype::bf16),
      vector("rope", 15, 128, Dtype::fp16, 4, 1),
      vector("rope", 12, 64, Dtype::bf16, 2, 2),
      vector("gated_activation", 3, 10, Dtype::bf16),
      vector("activation", 3, 10, Dtype::fp16),
      vector("add", 3, 10, Dtype::fp32),
      vector("multiply", 3, 10, Dtype::fp16),
      gather(5, 12, 40, Dtype::bf16),
      cache_write(6, 2, 16, Dtype::fp16),
      collective("all_reduce", 4, 64, Dtype::fp16),
      collective("all_gather", 2, 64, Dtype::bf16),
      collective("reduce_scatter", 4, 128, Dtype::fp32),
      collective("all_to_all", 2, 64, Dtype::fp16),
      collective("all_reduce", 1, 64, Dtype::fp16),
  };
  return rows;
}

// Activations that the device quantises lose half a step of 127. Experts round what is between their products too.
double tolerance_of(const measure::OpRow& row) {
  const auto* gemm = std::get_if<measure::GemmShape>(&row.shape);
  if (gemm != nullptr && gemm->weights == "w8a8") return 1e-2;
  const auto* experts = std::get_if<measure::ExpertsShape>(&row.shape);
  if (experts == nullptr) return tolerance(row.dtype);
  return experts->weights.empty() ? 2 * tolerance(row.dtype) : 2e-2;
}

void check_result(NpuBackend& on, const measure::OpRow& row) {
  INFO(measure::describe(row));
  const auto op = prepared(on, row, 2);
  CHECK(relative_error(on.result(*op), expected(row)) < tolerance_of(row));
}

}  // namespace

TEST_CASE("every op computes what operands.h says") {
  standin().standin_reset();
  {
    const auto npu = backend();
    for (const measure::OpRow& row : every_op()) check_result(*npu, row);
  }
  check_clean();
}

TEST_CASE("the result is the same after the op was run, also where it works in place") {
  standin().standin_reset();
  {
    const auto npu = backend();
    for (const measure::OpRow& row : every_op()) {
      INFO(measure::describe(row));
      const auto op = prepared(*npu, row, 2);
      Prepared* const sequence[] = {op.get()};
      CHECK(npu->run(sequence, 3).value >= 0);
      CHECK(relative_error(npu->result(*op), expected(row)) < tolerance_of(row));
    }
  }
  check_clean();
}

TEST_CASE("executors that cannot be used again are made anew for every launch") {
  standin().standin_reset();
  standin().standin_set_repeatable(0);
  {
    const auto npu = backend();
    for (const measure::OpRow& row : every_op()) {
      const auto op = prepared(*npu, row, 2);
      Prepared* const sequence[] = {op.get(), op.get()};
      npu->run(sequence, 3);
      check_result(*npu, row);
    }
  }
  check_clean();
}

TEST_CASE("a CANN without repeatable executors, graphs, abort and timeouts does") {
  auto old = functions();
  old->aclSetAclOpExecutorRepeatable.pointer = nullptr;
  old->aclDestroyAclOpExecutor.pointer = nullptr;
  old->aclmdlRICaptureBegin.pointer = nullptr;
  old->aclrtStreamAbort.pointer = nullptr;
  old->aclrtSynchronizeStreamWithTimeout.pointer = nullptr;
  old->aclGetRecentErrMsg.pointer = nullptr;
  old->aclGetDeviceCapability.pointer = nullptr;
  old->aclrtGetMemInfo.pointer = nullptr;
  old->aclrtGetVersion.pointer = nullptr;
  standin().standin_reset();
  {
    const auto npu = backend(old);
    const auto first = prepared(*npu, gemm(3, 5, 16, Dtype::fp16), 2);
    const auto second = prepared(*npu, vector("add", 3, 10, Dtype::fp16));
    Prepared* const sequence[] = {first.get(), second.get()};
    npu->run(sequence, 2);
    CHECK_FALSE(npu->ran_as_graph());
    check_result(*npu, collective("all_reduce", 2, 64, Dtype::fp16));
  }
  CHECK(violations().find("still there at aclFinalize: executor") != std::string::npos);
  // Those that were planned and not launched: there is no function that takes them back.
  CHECK(standin().standin_live_objects() == standin().standin_violations());
  standin().standin_forget_objects();
}

TEST_CASE("older attention and quantised products are taken where newer ones are missing") {
  const auto without = [](auto... missing) {
    auto cann = functions();
    ((((*cann).*missing).launch = nullptr), ...);
    return cann;
  };
  using F = cann::Functions;
  const measure::OpRow prefill = attention(1, 3, 7, 4, 1, 32, Dtype::bf16);
  const measure::OpRow decode = attention(3, 1, 9, 4, 2, 16, Dtype::fp16);
  const measure::OpRow w8a8 = gemm(3, 5, 32, Dtype::bf16, "w8a8");
  const auto check = [&](std::shared_ptr<cann::Functions> cann, const measure::OpRow& row, const char* function) {
    standin().standin_reset();
    {
      const auto npu = backend(std::move(cann));
      check_result(*npu, row);
    }
    CHECK(standin().standin_count(function) > 0);
    check_clean();
  };
  constexpr auto kFia = &F::aclnnFusedInferAttentionScore;
  constexpr auto kFia2 = &F::aclnnFusedInferAttentionScoreV2;
  constexpr auto kFia4 = &F::aclnnFusedInferAttentionScoreV4;
  constexpr auto kFia3 = &F::aclnnFusedInferAttentionScoreV3;
  check(functions(), prefill, "aclnnFusedInferAttentionScoreV3");
  check(functions(), decode, "aclnnFusedInferAttentionScoreV3");
  check(without(kFia3), prefill, "aclnnFusedInferAttentionScoreV4");
  check(without(kFia3), decode, "aclnnFusedInferAttentionScoreV4");
  check(without(kFia3, kFia4), prefill, "aclnnFusedInferAttentionScoreV2");
  check(without(kFia3, kFia4, kFia2), decode, "aclnnFusedInferAttentionScore");
  check(without(kFia3, kFia4, kFia2, kFia), prefill, "aclnnPromptFlashAttentionV3");
  check(without(kFia3, kFia4, kFia2, kFia), decode, "aclnnIncreFlashAttentionV4");
  check(without(kFia3, kFia4, kFia2, kFia, &F::aclnnPromptFlashAttentionV3), prefill, "aclnnPromptFlashAttentionV2");
  check(without(kFia3, kFia4, kFia2, kFia, &F::aclnnIncreFlashAttentionV4), decode, "aclnnIncreFlashAttentionV3");
  check(functions(), w8a8, "aclnnQuantMatmulV4");
  check(functions(), w8a8, "aclnnDynamicQuant");
  check(functions(), gemm(3, 5, 32, Dtype::bf16, "w8a8", 2), "aclnnGroupedMatmulV4");
  check(without(&F::aclnnQuantMatmulV4), w8a8, "aclnnQuantMatmulV5");
  check(without(&F::aclnnQuantMatmulV4, &F::aclnnQuantMatmulV5), w8a8, "aclnnQuantMatmulV3");
}

TEST_CASE("attention on pages is that on sequences that lie whole") {
  for (const int missing : {0, 1, 2, 3}) {
    auto cann = functions();
    if (missing > 0) cann->aclnnFusedInferAttentionScoreV3.launch = nullptr;
    if (missing > 1) cann->aclnnFusedInferAttentionScoreV4.launch = nullptr;
    if (missing > 2) cann->aclnnFusedInferAttentionScoreV2.launch = nullptr;
    standin().standin_reset();
    {
      const auto npu = backend(cann, 16);
      check_result(*npu, attention(3, 1, 37, 4, 2, 16, Dtype::fp16));  // two pages of 16 and one of 5
      check_result(*npu, attention(2, 1, 32, 4, 1, 32, Dtype::bf16));  // whole pages
    }
    {
      const auto npu = backend(cann, 128);
      check_result(*npu, attention(2, 3, 200, 4, 2, 16, Dtype::bf16));  // several new tokens
      check_result(*npu, attention(1, 5, 5, 2, 2, 16, Dtype::bf16));    // less than a page
    }
    check_clean();
  }
  standin().standin_reset();
  {
    auto cann = functions();
    cann->aclnnFusedInferAttentionScoreV3.launch = nullptr;
    cann->aclnnFusedInferAttentionScoreV4.launch = nullptr;
    cann->aclnnFusedInferAttentionScoreV2.launch = nullptr;
    cann->aclnnFusedInferAttentionScore.launch = nullptr;
    CHECK(refusal(*backend(cann, 16), attention(3, 1, 37, 4, 2, 16, Dtype::fp16)) ==
          "of attention only aclnnFusedInferAttentionScore takes pages");
    CHECK(refusal(*backend(functions(), 24), attention(3, 1, 37, 4, 2, 16, Dtype::fp16)) ==
          "aclnnFusedInferAttentionScore takes pages of a multiple of 16 tokens up to 512 for one query, not 24");
    CHECK(
        refusal(*backend(functions(), 16), attention(3, 2, 37, 4, 2, 16, Dtype::fp16)) ==
        "aclnnFusedInferAttentionScore takes pages of a multiple of 128 tokens up to 512 for several queries, not 16");
    CHECK(refusal(*backend(functions(), 16), attention(1, 1, 3, 256, 256, 512, Dtype::fp16)) ==
          "aclnnFusedInferAttentionScore takes pages of up to 65535 elements of a token");
    auto old = functions();
    old->aclCreateIntArray.pointer = nullptr;
    CHECK(refusal(*backend(old, 16), attention(3, 1, 37, 4, 2, 16, Dtype::fp16)) ==
          "aclCreateIntArray is not in the libraries of this CANN");
  }
  check_clean();
}

TEST_CASE("a product that is summed over ranks") {
  standin().standin_reset();
  {
    const auto npu = backend();
    const auto row = [](std::int64_t ranks) {
      return measure::OpRow{"matmul_all_reduce", Dtype::fp16,
                            measure::GemmShape{.m = 3, .n = 4, .k = 16, .ranks = ranks}};
    };
    for (const std::int64_t ranks : {2, 4}) {
      auto made = npu->prepare(row(ranks), 1);
      auto& op = *std::get<std::unique_ptr<Prepared>>(made);
      Prepared* const sequence[] = {&op};
      npu->run(sequence, 3);
      std::vector<double> sum(12, 0.0);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const std::vector<float> x = filled(2 * rank, {48});
        const std::vector<float> w = filled(2 * rank + 1, {64}, 0.25);
        for (std::size_t i = 0; i < 12; ++i) {
          for (std::size_t l = 0; l < 16; ++l) {
            sum[i] += static_cast<double>(x[i / 4 * 16 + l]) * static_cast<double>(w[i % 4 * 16 + l]);
          }
        }
      }
      CHECK(relative_error(npu->result(op), sum) < 2e-3);
    }
    const auto refused = npu->prepare(row(3), 1);
    CHECK(std::get<Unavailable>(refused).reason == "aclnnMatmulAllReduce takes 1, 2, 4 or 8 ranks, not 3");
  }
  check_clean();
}

}  // namespace llmperf::replay::ascend::results_test
