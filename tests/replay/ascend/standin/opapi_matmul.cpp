// Stand-in of libopapi.so: products.
#include <aclnnop/aclnn_batch_matmul.h>
#include <aclnnop/aclnn_matmul.h>
#include <aclnnop/aclnn_quant_matmul_v3.h>
#include <aclnnop/aclnn_quant_matmul_v4.h>
#include <aclnnop/aclnn_quant_matmul_v5.h>
#include <aclnnop/aclnn_weight_quant_batch_matmul_v2.h>

#include "kernel.h"

using namespace standin;

namespace {

int quantized(Checks& checks, const aclTensor* x1, const aclTensor* x2, const aclTensor* scale,
              const aclTensor* per_token, bool transpose1, bool transpose2, const aclTensor* out,
              std::uint64_t* workspace, aclOpExecutor** executor) {
  if (!checks.rank("out", out, kHalf, 2)) return checks.code();
  const std::int64_t m = out->shape[0];
  const std::int64_t n = out->shape[1];
  checks.holds(!transpose1, "x1 transposed is not stood in for");
  if (!checks.tensor("x1", x1, {ACL_INT8}, {m, -1})) return checks.code();
  const std::int64_t k = x1->shape[1];
  if (transpose2) {
    checks.tensor("x2", x2, {ACL_INT8}, {n, k});
  } else {
    checks.tensor("x2", x2, {ACL_INT8}, {k, n});
  }
  checks.holds(k <= 65535 && n <= 65535, "a last dimension is larger than 65535");
  if (per_token != nullptr) checks.tensor("per-token scale", per_token, {ACL_FLOAT}, {m});
  checks.tensor("scale", scale, {ACL_FLOAT, ACL_BF16}, {n});
  if (!checks.good()) return checks.code();
  checks.holds(per_token != nullptr || out->type == ACL_BF16, "fp16 results want a packed scale without one per token");
  std::vector<const aclTensor*> used = {x1, x2, scale, out};
  if (per_token != nullptr) used.push_back(per_token);
  return checks.finish(used, workspace, executor, 0,
                       [=, x = *x1, w = *x2, s = *scale, y = *out, tokens = per_token != nullptr,
                        t = per_token != nullptr ? *per_token : aclTensor{}](Stream&) {
                         for (std::int64_t i = 0; i < m; ++i) {
                           for (std::int64_t j = 0; j < n; ++j) {
                             double sum = 0;
                             for (std::int64_t l = 0; l < k; ++l) {
                               sum += get(x, {i, l}) * (transpose2 ? get(w, {j, l}) : get(w, {l, j}));
                             }
                             put(y, {i, j}, sum * get(s, {j}) * (tokens ? get(t, {i}) : 1));
                           }
                         }
                         return 0;
                       });
}

}  // namespace

extern "C" {

aclnnStatus aclnnMatmulGetWorkspaceSize(const aclTensor* self, const aclTensor* mat2, aclTensor* out, int8_t cube,
                                        uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnMatmul);
  if (!checks.rank("self", self, kFloat, 2)) return checks.code();
  const std::int64_t m = self->shape[0];
  const std::int64_t k = self->shape[1];
  if (!checks.tensor("mat2", mat2, {self->type}, {k, -1})) return checks.code();
  const std::int64_t n = mat2->shape[1];
  checks.tensor("out", out, {self->type}, {m, n});
  checks.holds(cube == 0 || cube == 1 || (cube == 2 && self->type != ACL_BF16) || cube == 3, "cubeMathType");
  return checks.finish({self, mat2, out}, workspace, executor, 4096, [=, a = *self, b = *mat2, y = *out](Stream&) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l) sum += get(a, {i, l}) * get(b, {l, j});
        put(y, {i, j}, sum);
      }
    }
    return 0;
  });
}
STANDIN_LAUNCH(aclnnMatmul)

aclnnStatus aclnnBatchMatMulGetWorkspaceSize(const aclTensor* self, const aclTensor* mat2, aclTensor* out, int8_t cube,
                                             uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnBatchMatMul);
  if (!checks.rank("self", self, kFloat, 3)) return checks.code();
  const std::int64_t batch = self->shape[0];
  const std::int64_t m = self->shape[1];
  const std::int64_t k = self->shape[2];
  if (!checks.tensor("mat2", mat2, {self->type}, {batch, k, -1})) return checks.code();
  const std::int64_t n = mat2->shape[2];
  checks.tensor("out", out, {self->type}, {batch, m, n});
  checks.holds(cube >= 0 && cube <= 3, "cubeMathType");
  return checks.finish({self, mat2, out}, workspace, executor, 0, [=, a = *self, b = *mat2, y = *out](Stream&) {
    for (std::int64_t g = 0; g < batch; ++g) {
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (std::int64_t l = 0; l < k; ++l) sum += get(a, {g, i, l}) * get(b, {g, l, j});
          put(y, {g, i, j}, sum);
        }
      }
    }
    return 0;
  });
}
STANDIN_LAUNCH(aclnnBatchMatMul)

aclnnStatus aclnnWeightQuantBatchMatmulV2GetWorkspaceSize(const aclTensor* x, const aclTensor* weight,
                                                          const aclTensor* scale, const aclTensor* offset,
                                                          const aclTensor* quant_scale, const aclTensor* quant_offset,
                                                          const aclTensor* bias, int group, const aclTensor* y,
                                                          uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnWeightQuantBatchMatmulV2);
  checks.absent("antiquantOffset", offset);
  checks.absent("quantScale", quant_scale);
  checks.absent("quantOffset", quant_offset);
  checks.absent("bias", bias);
  if (!checks.rank("x", x, kHalf, 2)) return checks.code();
  const std::int64_t m = x->shape[0];
  const std::int64_t k = x->shape[1];
  if (!checks.tensor("weight", weight, {ACL_INT8, ACL_INT4}, {k, -1})) return checks.code();
  const std::int64_t n = weight->shape[1];
  checks.tensor("y", y, {x->type}, {m, n});
  checks.holds(n <= 65535 && k <= 65535, "n or k is larger than 65535");
  checks.holds(weight->type != ACL_INT4 || weight->storage.back() % 2 == 0, "int4 with an odd inner axis");
  if (group == 0) {
    checks.tensor("antiquantScale", scale, {x->type}, {n});
  } else {
    checks.holds(group >= 32 && group < k && group % 32 == 0, "antiquantGroupSize");
    checks.tensor("antiquantScale", scale, {x->type}, {group > 0 ? (k + group - 1) / group : -1, n});
  }
  if (!checks.good()) return checks.code();
  return checks.finish(
      {x, weight, scale, y}, workspace, executor, 256, [=, a = *x, w = *weight, s = *scale, out = *y](Stream&) {
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::int64_t l = 0; l < k; ++l) {
              sum += get(a, {i, l}) * get(w, {l, j}) * (group == 0 ? get(s, {j}) : get(s, {l / group, j}));
            }
            put(out, {i, j}, sum);
          }
        }
        return 0;
      });
}
STANDIN_LAUNCH(aclnnWeightQuantBatchMatmulV2)

aclnnStatus aclnnQuantMatmulV3GetWorkspaceSize(const aclTensor* x1, const aclTensor* x2, const aclTensor* scale,
                                               const aclTensor* offset, const aclTensor* bias, bool transpose1,
                                               bool transpose2, const aclTensor* out, uint64_t* workspace,
                                               aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnQuantMatmulV3);
  checks.absent("offset", offset);
  checks.absent("bias", bias);
  return quantized(checks, x1, x2, scale, nullptr, transpose1, transpose2, out, workspace, executor);
}
STANDIN_LAUNCH(aclnnQuantMatmulV3)

aclnnStatus aclnnQuantMatmulV4GetWorkspaceSize(const aclTensor* x1, const aclTensor* x2, const aclTensor* scale,
                                               const aclTensor* offset, const aclTensor* per_token,
                                               const aclTensor* bias, bool transpose1, bool transpose2,
                                               const aclTensor* out, uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnQuantMatmulV4);
  checks.absent("offset", offset);
  checks.absent("bias", bias);
  return quantized(checks, x1, x2, scale, per_token, transpose1, transpose2, out, workspace, executor);
}
STANDIN_LAUNCH(aclnnQuantMatmulV4)

aclnnStatus aclnnQuantMatmulV5GetWorkspaceSize(const aclTensor* x1, const aclTensor* x2, const aclTensor* x1_scale,
                                               const aclTensor* x2_scale, const aclTensor* y_scale,
                                               const aclTensor* x1_offset, const aclTensor* x2_offset,
                                               const aclTensor* y_offset, const aclTensor* bias, bool transpose1,
                                               bool transpose2, int64_t group, aclTensor* out, uint64_t* workspace,
                                               aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnQuantMatmulV5);
  for (const aclTensor* absent : {y_scale, x1_offset, x2_offset, y_offset, bias}) checks.absent("an optional", absent);
  checks.holds(group == 0, "groupSize");
  return quantized(checks, x1, x2, x2_scale, x1_scale, transpose1, transpose2, out, workspace, executor);
}
STANDIN_LAUNCH(aclnnQuantMatmulV5)

}  // extern "C"
