// Stand-in of libopapi.so: mixtures of experts, and the quantisation of what goes into their products.
#include <aclnnop/aclnn_dynamic_quant.h>
#include <aclnnop/aclnn_grouped_matmul_v4.h>
#include <aclnnop/aclnn_moe_finalize_routing_v2.h>
#include <aclnnop/aclnn_moe_gating_top_k_softmax_v2.h>
#include <aclnnop/aclnn_moe_init_routing_v2.h>

#include <algorithm>
#include <cmath>

#include "kernel.h"

using namespace standin;

namespace {

const aclTensor* only(Checks& checks, const char* name, const aclTensorList* list) {
  const bool one = list != nullptr && live(list, "tensor list") && list->tensors.size() == 1;
  return checks.holds(one, std::string(name) + " is no list of one tensor") ? list->tensors.front() : nullptr;
}

}  // namespace

extern "C" {

aclnnStatus aclnnGroupedMatmulV4GetWorkspaceSize(
    const aclTensorList* x, const aclTensorList* weight, const aclTensorList* bias, const aclTensorList* scale,
    const aclTensorList* offset, const aclTensorList* antiquant_scale, const aclTensorList* antiquant_offset,
    const aclTensorList* per_token, const aclTensor* groups, const aclTensorList* activation_input,
    const aclTensorList* activation_scale, const aclTensorList* activation_offset, int64_t split, int64_t group_type,
    int64_t list_type, int64_t activation, aclTensorList* out, aclTensorList* activation_out, aclTensorList* scale_out,
    uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnGroupedMatmulV4);
  for (const aclTensorList* absent :
       {bias, offset, antiquant_scale, antiquant_offset, activation_input, activation_scale, activation_offset}) {
    checks.absent("an optional list", absent);
  }
  checks.absent("activationFeatureOut", activation_out);
  checks.absent("dynQuantScaleOut", scale_out);
  checks.holds((split == 2 || split == 3) && group_type == 0 && list_type == 0 && activation == 0,
               "splitItem, groupType, groupListType, actType");
  const aclTensor* a = only(checks, "x", x);
  const aclTensor* w = only(checks, "weight", weight);
  const aclTensor* y = only(checks, "out", out);
  if (!checks.good() || !checks.rank("x", a, {ACL_FLOAT16, ACL_BF16, ACL_INT8}, 2)) return checks.code();
  const bool int8 = a->type == ACL_INT8;
  const std::int64_t rows = a->shape[0];
  const std::int64_t k = a->shape[1];
  if (!checks.tensor("weight", w, {a->type}, {-1, k, -1})) return checks.code();
  const std::int64_t experts = w->shape[0];
  const std::int64_t n = w->shape[2];
  checks.holds(w->strides[2] == 1, "weights seen transposed are not stood in for");
  checks.tensor("groupList", groups, {ACL_INT64}, {experts});
  if (!checks.tensor("out", y, kHalf, {rows, n})) return checks.code();
  checks.holds(int8 || y->type == a->type, "out has another type than x");
  std::vector<const aclTensor*> used = {a, w, groups, y};
  const aclTensor* columns = nullptr;
  const aclTensor* tokens = nullptr;
  if (int8) {
    columns = only(checks, "scale", scale);
    tokens = only(checks, "perTokenScale", per_token);
    if (!checks.good()) return checks.code();
    checks.tensor("scale", columns, {y->type == ACL_BF16 ? ACL_BF16 : ACL_FLOAT}, {experts, n});
    checks.tensor("perTokenScale", tokens, {ACL_FLOAT}, {rows});
    used.push_back(columns);
    used.push_back(tokens);
  } else {
    checks.absent("scale", scale);
    checks.absent("perTokenScale", per_token);
  }
  if (!checks.good()) return checks.code();
  return checks.finish(used, workspace, executor, 2048,
                       [=, in = *a, m = *w, g = *groups, o = *y, c = int8 ? *columns : aclTensor{},
                        t = int8 ? *tokens : aclTensor{}](Stream&) {
                         std::int64_t row = 0;
                         for (std::int64_t e = 0; e < experts; ++e) {
                           const auto end = static_cast<std::int64_t>(get(g, {e}));
                           if (end < row || end > rows) return 507015;
                           for (; row < end; ++row) {
                             for (std::int64_t j = 0; j < n; ++j) {
                               double sum = 0;
                               for (std::int64_t l = 0; l < k; ++l) sum += get(in, {row, l}) * get(m, {e, l, j});
                               put(o, {row, j}, int8 ? sum * get(c, {e, j}) * get(t, {row}) : sum);
                             }
                           }
                         }
                         return row == rows ? 0 : 507015;
                       });
}
STANDIN_LAUNCH(aclnnGroupedMatmulV4)

aclnnStatus aclnnDynamicQuantGetWorkspaceSize(const aclTensor* x, const aclTensor* smooth, const aclTensor* y,
                                              const aclTensor* scale, uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnDynamicQuant);
  checks.absent("smoothScales", smooth);
  if (!checks.rank("x", x, kHalf, 2)) return checks.code();
  checks.tensor("yOut", y, {ACL_INT8}, {x->shape[0], x->shape[1]});
  checks.tensor("scaleOut", scale, {ACL_FLOAT}, {x->shape[0]});
  if (!checks.good()) return checks.code();
  return checks.finish({x, y, scale}, workspace, executor, 0, [=, a = *x, o = *y, s = *scale](Stream&) {
    for (std::int64_t row = 0; row < a.shape[0]; ++row) {
      double largest = 0;
      for (std::int64_t i = 0; i < a.shape[1]; ++i) largest = std::max(largest, std::fabs(get(a, {row, i})));
      const double step = largest > 0 ? largest / 127 : 1;
      for (std::int64_t i = 0; i < a.shape[1]; ++i) put(o, {row, i}, get(a, {row, i}) / step);
      put(s, {row}, step);
    }
    return 0;
  });
}
STANDIN_LAUNCH(aclnnDynamicQuant)

// Of equal ones the first, as sorts that keep the order have it.
aclnnStatus aclnnMoeGatingTopKSoftmaxV2GetWorkspaceSize(const aclTensor* x, const aclTensor* finished, int64_t k,
                                                        int64_t renorm, bool with_softmax, const aclTensor* y,
                                                        const aclTensor* experts, const aclTensor* softmax,
                                                        uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnMoeGatingTopKSoftmaxV2);
  checks.absent("finished", finished);
  checks.absent("softmaxResultOut", softmax);
  checks.holds(!with_softmax && renorm == 1, "renorm, outputSoftmaxResultFlag");
  if (!checks.rank("x", x, kFloat, 2)) return checks.code();
  const std::int64_t tokens = x->shape[0];
  const std::int64_t all = x->shape[1];
  checks.holds(k >= 1 && k <= all && k <= 1024, "k");
  checks.tensor("yOut", y, {x->type}, {tokens, k});
  checks.tensor("expertIdxOut", experts, {ACL_INT32}, {tokens, k});
  if (!checks.good()) return checks.code();
  return checks.finish({x, y, experts}, workspace, executor, 64, [=, a = *x, o = *y, e = *experts](Stream&) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::vector<std::int64_t> order;
      for (std::int64_t i = 0; i < all; ++i) order.push_back(i);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t l, std::int64_t r) {
        return get(a, {t, l}) > get(a, {t, r});
      });
      double sum = 0;
      for (std::int64_t j = 0; j < k; ++j) sum += std::exp(get(a, {t, order[static_cast<std::size_t>(j)]}));
      for (std::int64_t j = 0; j < k; ++j) {
        const std::int64_t expert = order[static_cast<std::size_t>(j)];
        put(o, {t, j}, std::exp(get(a, {t, expert})) / sum);
        put(e, {t, j}, static_cast<double>(expert));
      }
    }
    return 0;
  });
}
STANDIN_LAUNCH(aclnnMoeGatingTopKSoftmaxV2)

// expandedRowIdx: where row t k + j, token t's pick j, stands among the rows that are sorted by expert.
aclnnStatus aclnnMoeInitRoutingV2GetWorkspaceSize(const aclTensor* x, const aclTensor* picks, int64_t active,
                                                  int64_t capacity, int64_t experts, int64_t drop_pad,
                                                  int64_t count_flag, bool before_capacity, const aclTensor* expanded,
                                                  const aclTensor* places, const aclTensor* counts,
                                                  const aclTensor* before, uint64_t* workspace,
                                                  aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnMoeInitRoutingV2);
  checks.absent("expertTokensBeforeCapacityOut", before);
  checks.holds(active == 0 && capacity == 0 && drop_pad == 0 && !before_capacity, "rows that are dropped");
  checks.holds(count_flag == 1 && experts > 0, "expertTokensCountOrCumsumFlag");
  if (!checks.rank("x", x, kFloat, 2)) return checks.code();
  const std::int64_t tokens = x->shape[0];
  const std::int64_t width = x->shape[1];
  if (!checks.tensor("expertIdx", picks, {ACL_INT32}, {tokens, -1})) return checks.code();
  const std::int64_t rows = tokens * picks->shape[1];
  checks.tensor("expandedXOut", expanded, {x->type}, {rows, width});
  checks.tensor("expandedRowIdxOut", places, {ACL_INT32}, {rows});
  checks.tensor("expertTokensCountOrCumsumOut", counts, {ACL_INT32}, {experts});
  if (!checks.good()) return checks.code();
  return checks.finish({x, picks, expanded, places, counts}, workspace, executor, 256,
                       [=, a = *x, p = *picks, o = *expanded, at = *places, c = *counts](Stream&) {
                         std::int64_t place = 0;
                         for (std::int64_t e = 0; e < experts; ++e) {
                           for (std::int64_t row = 0; row < rows; ++row) {
                             if (static_cast<std::int64_t>(get(p, row)) != e) continue;
                             const std::int64_t token = row / p.shape[1];
                             for (std::int64_t i = 0; i < width; ++i) put(o, {place, i}, get(a, {token, i}));
                             put(at, {row}, static_cast<double>(place++));
                           }
                           put(c, {e}, static_cast<double>(place));
                         }
                         return place == rows ? 0 : 507015;
                       });
}
STANDIN_LAUNCH(aclnnMoeInitRoutingV2)

aclnnStatus aclnnMoeFinalizeRoutingV2GetWorkspaceSize(const aclTensor* expanded, const aclTensor* places,
                                                      const aclTensor* x1, const aclTensor* x2, const aclTensor* bias,
                                                      const aclTensor* scales, const aclTensor* picks, int64_t drop_pad,
                                                      const aclTensor* out, uint64_t* workspace,
                                                      aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnMoeFinalizeRoutingV2);
  for (const aclTensor* absent : {x1, x2, bias, picks}) checks.absent("an optional", absent);
  checks.holds(drop_pad == 0 || drop_pad == 2, "dropPadMode");
  if (!checks.rank("expandedX", expanded, kFloat, 2)) return checks.code();
  const std::int64_t rows = expanded->shape[0];
  const std::int64_t width = expanded->shape[1];
  checks.tensor("expandedRowIdx", places, {ACL_INT32}, {rows});
  if (!checks.tensor("out", out, {expanded->type}, {-1, width})) return checks.code();
  const std::int64_t tokens = out->shape[0];
  checks.tensor("scales", scales, {expanded->type}, {tokens, -1});
  if (!checks.good()) return checks.code();
  const std::int64_t k = scales->shape[1];
  checks.holds(tokens * k == rows, "rows of scales");
  if (!checks.good()) return checks.code();
  return checks.finish(
      {expanded, places, scales, out}, workspace, executor, 0,
      [=, a = *expanded, p = *places, s = *scales, o = *out](Stream&) {
        // Pick by pick for MoeInitRouting, token by token for its second version.
        const bool by_token = drop_pad == 2;
        for (std::int64_t t = 0; t < tokens; ++t) {
          for (std::int64_t i = 0; i < width; ++i) {
            double sum = 0;
            for (std::int64_t j = 0; j < k; ++j) {
              sum += get(s, {t, j}) *
                     get(a, {static_cast<std::int64_t>(get(p, {by_token ? t * k + j : j * tokens + t})), i});
            }
            put(o, {t, i}, sum);
          }
        }
        return 0;
      });
}
STANDIN_LAUNCH(aclnnMoeFinalizeRoutingV2)

}  // extern "C"
