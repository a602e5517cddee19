// Which call of CANN each op is, its operands as operands.h says, and the constraints of the call. All throw Refusal
// when the op cannot be run: a function that this CANN lacks, a constraint that the shape breaks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/dtype.h"
#include "calibrate/op_row.h"
#include "replay/ascend/op.h"

namespace llmperf::replay::ascend {

// How often an operand of that size is there: `asked`, or, of 0, as often as exceeds twice the cache.
class Rotation {
 public:
  Rotation(std::int64_t asked, std::int64_t cache_bytes) : asked_(asked), cache_bytes_(cache_bytes) {}
  std::int64_t copies(std::size_t bytes) const;

 private:
  std::int64_t asked_;
  std::int64_t cache_bytes_;
};

// aclnnMatmul, aclnnBatchMatMul; weights int8, w8a16 and w4a16: aclnnWeightQuantBatchMatmulV2; w8a8 and int8:
// aclnnQuantMatmulV4, else V5, else V3.
std::unique_ptr<Part> make_gemm(Device& device, const calibrate::GemmShape& shape, Dtype dtype, Rotation rotation);

// aclnnFusedInferAttentionScoreV3, else V2, else the first; without any aclnnPromptFlashAttentionV3, V2 (several
// queries per sequence) or aclnnIncreFlashAttentionV4, V3 (one).
std::unique_ptr<Part> make_attention(Device& device, const calibrate::AttentionShape& shape, Dtype dtype,
                                     Rotation rotation);

// aclnnRmsNorm, aclnnAddRmsNorm, aclnnApplyRotaryPosEmb (V2 where the heads are not of 128), aclnnSwiGlu, aclnnSilu,
// aclnnAdd, aclnnMul.
std::unique_ptr<Part> make_vector(Device& device, const calibrate::VectorShape& shape, Dtype dtype);
// aclnnEmbedding.
std::unique_ptr<Part> make_gather(Device& device, const calibrate::GatherShape& shape, Dtype dtype, Rotation rotation);
// aclnnInplaceScatterUpdate, for keys and for values.
std::unique_ptr<Part> make_cache_write(Device& device, const calibrate::CacheShape& shape, Dtype dtype);

// HcclAllReduce, HcclAllGather, HcclReduceScatter, HcclAlltoAll.
std::unique_ptr<Op> make_collective(RankGroup& group, const calibrate::CollectiveShape& shape, Dtype dtype);
// What the shape must hold before there is a group for it.
void require_collective(const cann::Functions& cann, const calibrate::CollectiveShape& shape, Dtype dtype);

// aclnnMatmulAllReduce: every rank r has x [m, k] (operand 2 r) and w [n, k] (operand 2 r + 1, scaled as of gemm); the
// result is the sum of all x w^T, as rank 0 has it.
struct MatmulAllReduceShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t ranks = 1;
};
std::unique_ptr<Op> make_matmul_all_reduce(RankGroup& group, const MatmulAllReduceShape& shape, Dtype dtype);
void require_matmul_all_reduce(const cann::Functions& cann, const MatmulAllReduceShape& shape, Dtype dtype);

// Throws Refusal unless all of the sizes are positive.
void require_positive(std::initializer_list<std::int64_t> sizes, const char* op);

}  // namespace llmperf::replay::ascend
