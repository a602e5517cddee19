#include <utility>

#include "base/error.h"
#include "catch.h"
#include "support.h"

namespace llmperf::replay::ascend::constraints_test {

TEST_CASE("what an op's constraints forbid is not available, with the constraint in words") {
  standin().standin_reset();
  {
    const auto npu = backend();
    const std::pair<measure::OpRow, std::string> cases[] = {
        {gemm(0, 4, 4, Dtype::fp16), "gemm: a size is not given"},
        {gemm(4, 4, 4, Dtype::fp8), "aclnnMatmul takes fp16, bf16 and fp32, not fp8"},
        {gemm(4, 4, 4, Dtype::fp16, "mxfp4"), "weights 'mxfp4' are not replayed: int8, w8a8 and w4a16-gN are"},
        {gemm(4, 4, 4, Dtype::fp32, "int8"), "aclnnWeightQuantBatchMatmulV2 takes fp16 and bf16, not fp32"},
        {gemm(4, 4, 5, Dtype::fp16, "w4a16"), "aclnnWeightQuantBatchMatmulV2 packs two int4 to a byte: k must be even"},
        {gemm(4, 5, 64, Dtype::fp16, "w4a16-g32"),
         "aclnnWeightQuantBatchMatmulV2 packs two int4 to a byte: n must be even"},
        {gemm(4, 4, 64, Dtype::fp16, "w4a16-g48"),
         "aclnnWeightQuantBatchMatmulV2 takes groups that are a multiple of 32 and smaller than k, not 48 of 64"},
        {gemm(4, 4, 64, Dtype::fp16, "w4a16-g64"),
         "aclnnWeightQuantBatchMatmulV2 takes groups that are a multiple of 32 and smaller than k, not 64 of 64"},
        {gemm(1, 65536, 2, Dtype::fp16, "int8"), "aclnnWeightQuantBatchMatmulV2 takes n and k up to 65535"},
        {gemm(1, 4, 4, Dtype::fp16, "int8", 2), "aclnnWeightQuantBatchMatmulV2 multiplies one matrix, not 2"},
        {gemm(1, 65536, 2, Dtype::bf16, "w8a8"), "aclnnQuantMatmulV4 takes last dimensions up to 65535"},
        {gemm(1, 4, 4, Dtype::fp32, "w8a8", 2), "aclnnGroupedMatmulV4 takes fp16 and bf16, not fp32"},
        {experts(4, 16, 8, 2, 4, Dtype::fp32), "moe takes fp16 and bf16, not fp32"},
        {experts(4, 16, 8, 2, 4, Dtype::bf16, "int8"), "experts stored as int8 are not replayed: w8a8 are"},
        {experts(4, 16, 8, 5, 4, Dtype::bf16), "its experts cannot be divided so"},
        {experts(4, 16, 8, 2, 1025, Dtype::bf16), "aclnnGroupedMatmulV4 takes up to 1024 groups"},
        {gemm(1, 4, 4, Dtype::fp32, "w8a8"), "aclnnQuantMatmulV4 takes fp16 and bf16, not fp32"},
        {gemm(1 << 20, 4, 1 << 20, Dtype::fp16), "an operand of more than 2^32 elements is not replayed"},
        {gather(3, std::int64_t{1} << 62U, 8, Dtype::fp16), "an operand of more than 2^32 elements is not replayed"},
        {collective("all_reduce", 2, 1e30, Dtype::fp16), "an operand of more than 2^32 elements is not replayed"},
        {attention(1, 4, 4, 2, 2, 24, Dtype::fp16),
         "aclnnFusedInferAttentionScore takes heads of a multiple of 16 elements up to 512, not 24"},
        {attention(1, 4, 4, 2, 2, 16, Dtype::fp32), "aclnnFusedInferAttentionScore takes fp16 and bf16, not fp32"},
        {attention(1, 4, 4, 3, 2, 16, Dtype::fp16),
         "aclnnFusedInferAttentionScore takes 1 to 64 query heads for each key head, not 3 for 2"},
        {attention(1, 4, 4, 512, 512, 16, Dtype::fp16), "aclnnFusedInferAttentionScore takes up to 256 heads, not 512"},
        {attention(1, 4, 3, 2, 2, 16, Dtype::fp16), "4 queries do not follow from 3 keys (columns q_len, kv_len)"},
        {vector("rope", 12, 128, Dtype::fp16),
         "aclnnApplyRotaryPosEmb rotates queries and keys at once: columns heads and kv_heads are needed"},
        {vector("rope", 13, 128, Dtype::fp16, 2, 2), "13 rows are no whole tokens of 2 + 2 heads"},
        {vector("rope", 12, 63, Dtype::fp16, 2, 2), "heads of 63 elements have no halves"},
        {vector("softmax", 3, 8, Dtype::fp16), "the ascend backend has no kernel for vector:softmax"},
        {vector("layer_norm", 3, 8, Dtype::fp16), "the ascend backend has no kernel for vector:layer_norm"},
        {vector("embedding", 3, 0, Dtype::fp16),
         "'embedding' is a lookup in a table of unknown size; write it as gather"},
        {vector("add", 3, 8, Dtype::int8), "vector:add takes fp16, bf16 and fp32, not int8"},
        {gather(3, 8, 0, Dtype::fp16), "gather: the rows of the table are not given (column k)"},
        {cache_write(0, 2, 16, Dtype::fp16), "kv_write: a size is not given"},
        {collective("all_reduce", 8, 64, Dtype::fp16), "8 ranks need 8 NPUs from number 0 on, and there are 4"},
        {collective("all_gather", 4, 12, Dtype::fp16), "HcclAllGather: 6 elements are not dealt evenly among 4 ranks"},
        {collective("all_reduce", 2, 3, Dtype::fp16), "HcclAllReduce: 3 bytes are no whole elements of fp16"},
        {collective("all_reduce", 2, 64, Dtype::int8), "HcclAllReduce takes fp16, bf16 and fp32, not int8"},
    };
    for (const auto& [row, reason] : cases) {
      INFO(measure::describe(row));
      CHECK(refusal(*npu, row) == reason);
    }
  }
  check_clean();
}

TEST_CASE("layers known by name are the kernels that they are") {
  standin().standin_reset();
  {
    const auto npu = backend();
    for (const char* layer : {"act_fn", "layernorm", "final_layernorm", "rotary_emb"}) {
      CHECK(refusal(*npu, vector(layer, 1, 0, Dtype::fp16)) == "");
    }
  }
  check_clean();
}

TEST_CASE("functions that are missing leave their ops out, and only theirs") {
  standin().standin_reset();
  auto cann = functions();
  cann->aclnnMatmul.plan = nullptr;
  cann->aclnnRmsNorm.launch = nullptr;
  cann->aclnnApplyRotaryPosEmbV2.plan = nullptr;
  cann->HcclAllGather.pointer = nullptr;
  cann->aclnnQuantMatmulV4.plan = nullptr;
  cann->aclnnQuantMatmulV5.plan = nullptr;
  cann->aclnnDynamicQuant.plan = nullptr;
  {
    const auto npu = backend(cann);
    CHECK(refusal(*npu, gemm(2, 2, 16, Dtype::fp16)) == "aclnnMatmul is not in the libraries of this CANN");
    CHECK(refusal(*npu, gemm(2, 2, 16, Dtype::fp16, "", 2)) == "");
    CHECK(refusal(*npu, vector("rms_norm", 2, 16, Dtype::fp16)) == "aclnnRmsNorm is not in the libraries of this CANN");
    CHECK(refusal(*npu, vector("rope", 4, 64, Dtype::fp16, 1, 1)) ==
          "aclnnApplyRotaryPosEmb takes heads of 128 elements, not 64");
    CHECK(refusal(*npu, gemm(2, 2, 16, Dtype::fp16, "w8a8")).starts_with("aclnnQuantMatmulV3 takes a plain scale"));
    CHECK(refusal(*npu, gemm(2, 2, 16, Dtype::bf16, "w8a8", 2)) ==
          "aclnnDynamicQuant is not in the libraries of this CANN");
    CHECK(refusal(*npu, gemm(2, 2, 16, Dtype::int8, "", 2)) == "");
    CHECK(refusal(*npu, experts(4, 16, 8, 2, 4, Dtype::bf16)) == "");
    CHECK(refusal(*npu, experts(4, 16, 8, 2, 4, Dtype::bf16, "w8a8")) ==
          "aclnnDynamicQuant is not in the libraries of this CANN");
    CHECK(refusal(*npu, collective("all_gather", 2, 64, Dtype::fp16)) ==
          "HcclAllGather is not in the libraries of this CANN");
    CHECK(refusal(*npu, collective("all_reduce", 2, 64, Dtype::fp16)) == "");
  }
  cann->HcclGetRootInfo.pointer = nullptr;
  {
    const auto npu = backend(cann);
    CHECK(refusal(*npu, collective("all_reduce", 2, 64, Dtype::fp16)) ==
          "libhccl.so, or a function of it, is not in the libraries of this CANN");
  }
  check_clean();
}

TEST_CASE("an op that does not fit in the device's memory is left out") {
  standin().standin_reset();
  standin().standin_set_free_memory(1000);
  {
    const auto npu = backend();
    CHECK(refusal(*npu, gemm(8, 64, 64, Dtype::fp16)) == "the device has no 1 KiB left for an operand");
    CHECK(refusal(*npu, vector("add", 2, 16, Dtype::fp16)) == "");
  }
  check_clean();
}

}  // namespace llmperf::replay::ascend::constraints_test
