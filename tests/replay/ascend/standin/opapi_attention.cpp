// Stand-in of libopapi.so: attention.
#include <aclnnop/aclnn_fused_infer_attention_score.h>
#include <aclnnop/aclnn_fused_infer_attention_score_v2.h>
#include <aclnnop/aclnn_fused_infer_attention_score_v3.h>
#include <aclnnop/aclnn_fused_infer_attention_score_v4.h>
#include <aclnnop/aclnn_incre_flash_attention_v3.h>
#include <aclnnop/aclnn_incre_flash_attention_v4.h>
#include <aclnnop/aclnn_prompt_flash_attention_v2.h>
#include <aclnnop/aclnn_prompt_flash_attention_v3.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel.h"

using namespace standin;

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct Arguments {
  const aclTensor* query;
  const aclTensor* key;
  const aclTensor* value;
  const aclTensor* mask;
  std::int64_t heads;
  double scale;
  std::int64_t pre_tokens;
  std::int64_t next_tokens;
  const char* layout;
  std::int64_t kv_heads;
  std::int64_t sparse_mode;
  const aclTensor* out;
  const aclIntArray* lengths = nullptr;
  const aclTensor* table = nullptr;
  std::int64_t page = 0;
};

const aclTensor* only(Checks& checks, const aclTensorList* list) {
  if (!checks.holds(list != nullptr && live(list, "tensor list") && list->tensors.size() == 1,
                    "no list of one tensor")) {
    return nullptr;
  }
  return list->tensors.front();
}

void attend(const Arguments& a, const aclTensor& query, const aclTensor& key, const aclTensor& value,
            const aclTensor& mask, const aclTensor& out) {
  const std::int64_t queries = query.shape[1];
  const std::int64_t keys = key.shape[1];
  const std::int64_t width = query.shape[3];
  std::vector<double> weights(static_cast<std::size_t>(keys));
  for (std::int64_t b = 0; b < query.shape[0]; ++b) {
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const std::int64_t kv = h / (a.heads / a.kv_heads);
      for (std::int64_t i = 0; i < queries; ++i) {
        double largest = -kInfinite;
        for (std::int64_t j = 0; j < keys; ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < width; ++d) score += get(query, {b, i, h, d}) * get(key, {b, j, kv, d});
          // The mask's diagonal is that of the last query and the last key.
          const std::int64_t column = std::clamp<std::int64_t>(j - (keys - queries) - i + 1000, 0, 2047);
          const bool hidden = a.sparse_mode == 3 && get(mask, {1000, column}) != 0;
          weights[static_cast<std::size_t>(j)] = hidden ? -kInfinite : score * a.scale;
          largest = std::max(largest, weights[static_cast<std::size_t>(j)]);
        }
        double sum = 0;
        for (double& weight : weights) sum += weight = std::exp(weight - largest);
        for (std::int64_t d = 0; d < width; ++d) {
          double mixed = 0;
          for (std::int64_t j = 0; j < keys; ++j)
            mixed += weights[static_cast<std::size_t>(j)] * get(value, {b, j, kv, d});
          put(out, {b, i, h, d}, mixed / sum);
        }
      }
    }
  }
}

// Keys or values of every sequence out of its pages: [batch, longest, heads, width], as attend() walks them.
aclTensor gathered(const aclTensor& pool, const aclTensor& table, std::int64_t length, std::int64_t heads,
                   std::vector<float>& values) {
  const std::int64_t batch = table.shape[0];
  const std::int64_t page = pool.shape[1];
  const std::int64_t width = pool.shape[2];
  values.assign(static_cast<std::size_t>(batch * length * width), 0.0F);
  for (std::int64_t i = 0; i < batch * length * width; ++i) {
    const std::int64_t token = i / width % length;
    const auto number = static_cast<std::int64_t>(get(table, {i / width / length, token / page}));
    values[static_cast<std::size_t>(i)] = static_cast<float>(get(pool, {number, token % page, i % width}));
  }
  const std::int64_t each = width / heads;
  return {{batch, length, heads, each},
          {length * width, width, each, 1},
          {batch, length, heads, each},
          0,
          ACL_FLOAT,
          reinterpret_cast<char*>(values.data())};
}

int plan_pages(Checks& checks, const Arguments& a, std::uint64_t* workspace, aclOpExecutor** executor) {
  checks.holds(a.layout != nullptr && std::string(a.layout) == "BSND", "another layout than BSND");
  if (!checks.rank("query", a.query, kHalf, 4)) return checks.code();
  const std::int64_t batch = a.query->shape[0];
  const std::int64_t queries = a.query->shape[1];
  const std::int64_t width = a.query->shape[3];
  checks.holds(a.query->shape[2] == a.heads && a.kv_heads > 0 && a.heads % a.kv_heads == 0, "numHeads");
  checks.holds(a.page > 0 && a.page % (queries == 1 ? 16 : 128) == 0 && a.page <= 512, "blockSize");
  checks.holds(a.kv_heads * width <= 65535, "elements of a token");
  checks.tensor("key", a.key, {a.query->type}, {-1, a.page, a.kv_heads * width});
  checks.tensor("value", a.value, {a.query->type}, {-1, a.page, a.kv_heads * width});
  checks.tensor("blockTable", a.table, {ACL_INT32}, {batch, -1});
  checks.tensor("out", a.out, {a.query->type}, {batch, queries, a.heads, width});
  checks.holds(a.lengths != nullptr && live(a.lengths, "int array") &&
                   a.lengths->values.size() == static_cast<std::size_t>(batch),
               "actualSeqLengthsKv");
  if (!checks.good()) return checks.code();
  const std::int64_t length = a.lengths->values.front();
  for (const std::int64_t each : a.lengths->values) checks.holds(each == length, "sequences that are not alike");
  checks.holds(length <= a.table->shape[1] * a.page, "fewer pages than tokens");
  checks.holds(a.sparse_mode == 0 || a.sparse_mode == 3, "sparseMode");
  std::vector<const aclTensor*> used = {a.query, a.key, a.value, a.table, a.out};
  if (a.sparse_mode == 3) {
    checks.tensor("mask", a.mask, {ACL_BOOL, ACL_INT8, ACL_UINT8}, {2048, 2048});
    used.push_back(a.mask);
  } else {
    checks.absent("mask", a.mask);
  }
  if (!checks.good()) return checks.code();
  return checks.finish(used, workspace, executor, 1024,
                       [a, length, q = *a.query, k = *a.key, v = *a.value, t = *a.table,
                        m = a.mask != nullptr ? *a.mask : aclTensor{}, y = *a.out](Stream&) {
                         std::vector<float> keys;
                         std::vector<float> values;
                         const aclTensor all_keys = gathered(k, t, length, a.kv_heads, keys);
                         const aclTensor all_values = gathered(v, t, length, a.kv_heads, values);
                         attend(a, q, all_keys, all_values, m, y);
                         return 0;
                       });
}

int plan(Checks& checks, const Arguments& a, std::uint64_t* workspace, aclOpExecutor** executor) {
  if (a.table != nullptr) return plan_pages(checks, a, workspace, executor);
  checks.absent("actualSeqLengthsKv", a.lengths);
  checks.holds(a.layout != nullptr && std::string(a.layout) == "BSND", "another layout than BSND");
  if (!checks.rank("query", a.query, kHalf, 4)) return checks.code();
  const std::int64_t batch = a.query->shape[0];
  const std::int64_t queries = a.query->shape[1];
  const std::int64_t width = a.query->shape[3];
  checks.holds(a.query->shape[2] == a.heads && a.kv_heads > 0 && a.heads % a.kv_heads == 0, "numHeads");
  checks.holds(width % 16 == 0 && width <= 512, "head size");
  checks.tensor("key", a.key, {a.query->type}, {batch, -1, a.kv_heads, width});
  checks.tensor("value", a.value, {a.query->type}, {batch, -1, a.kv_heads, width});
  checks.tensor("out", a.out, {a.query->type}, {batch, queries, a.heads, width});
  if (!checks.good()) return checks.code();
  checks.holds(a.key->shape == a.value->shape, "keys and values of different shapes");
  checks.holds(a.sparse_mode == 0 || a.sparse_mode == 3, "sparseMode");
  std::vector<const aclTensor*> used = {a.query, a.key, a.value, a.out};
  if (a.sparse_mode == 3) {
    checks.tensor("mask", a.mask, {ACL_BOOL, ACL_INT8, ACL_UINT8}, {2048, 2048});
    checks.holds(queries > 1, "sparseMode with one query");
    used.push_back(a.mask);
  } else {
    checks.absent("mask", a.mask);
    checks.holds(a.pre_tokens >= a.key->shape[1] && a.next_tokens >= a.key->shape[1], "preTokens, nextTokens");
  }
  if (!checks.good()) return checks.code();
  return checks.finish(
      used, workspace, executor, 1024,
      [a, q = *a.query, k = *a.key, v = *a.value, m = a.mask != nullptr ? *a.mask : aclTensor{}, y = *a.out](Stream&) {
        attend(a, q, k, v, m, y);
        return 0;
      });
}

void absent(Checks& checks, std::initializer_list<const void*> arguments) {
  for (const void* argument : arguments) checks.absent("an optional argument", argument);
}

}  // namespace

extern "C" {

aclnnStatus aclnnFusedInferAttentionScoreGetWorkspaceSize(
    const aclTensor* query, const aclTensorList* key, const aclTensorList* value, const aclTensor* pse,
    const aclTensor* mask, const aclIntArray* lengths, const aclIntArray* lengths_kv, const aclTensor* t0,
    const aclTensor* t1, const aclTensor* t2, const aclTensor* t3, const aclTensor* t4, const aclTensor* t5,
    const aclTensor* t6, const aclTensor* t7, const aclTensor* t8, const aclTensor* t9, int64_t heads, double scale,
    int64_t pre, int64_t next, char* layout, int64_t kv_heads, int64_t sparse, int64_t, int64_t page, int64_t,
    bool lse_flag, const aclTensor* out, const aclTensor* lse, uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnFusedInferAttentionScore);
  absent(checks, {pse, lengths, t0, t1, t2, t3, t4, t5, t6, t8, t9, lse});
  checks.holds(!lse_flag, "softmaxLseFlag");
  const aclTensor* k = only(checks, key);
  const aclTensor* v = only(checks, value);
  return plan(checks, {query, k, v, mask, heads, scale, pre, next, layout, kv_heads, sparse, out, lengths_kv, t7, page},
              workspace, executor);
}
STANDIN_LAUNCH(aclnnFusedInferAttentionScore)

aclnnStatus aclnnFusedInferAttentionScoreV2GetWorkspaceSize(
    const aclTensor* query, const aclTensorList* key, const aclTensorList* value, const aclTensor* pse,
    const aclTensor* mask, const aclIntArray* lengths, const aclIntArray* lengths_kv, const aclTensor* t0,
    const aclTensor* t1, const aclTensor* t2, const aclTensor* t3, const aclTensor* t4, const aclTensor* t5,
    const aclTensor* t6, const aclTensor* t7, const aclTensor* t8, const aclTensor* t9, const aclTensor* u0,
    const aclTensor* u1, const aclTensor* u2, const aclTensor* u3, const aclTensor* u4, const aclTensor* u5,
    const aclIntArray* prefix, int64_t heads, double scale, int64_t pre, int64_t next, char* layout, int64_t kv_heads,
    int64_t sparse, int64_t, int64_t page, int64_t, bool lse_flag, int64_t, int64_t, const aclTensor* out,
    const aclTensor* lse, uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnFusedInferAttentionScoreV2);
  absent(checks, {pse, lengths, t0, t1, t2, t3, t4, t5, t6, t8, t9, u0, u1, u2, u3, u4, u5, prefix, lse});
  checks.holds(!lse_flag, "softmaxLseFlag");
  const aclTensor* k = only(checks, key);
  const aclTensor* v = only(checks, value);
  return plan(checks, {query, k, v, mask, heads, scale, pre, next, layout, kv_heads, sparse, out, lengths_kv, t7, page},
              workspace, executor);
}
STANDIN_LAUNCH(aclnnFusedInferAttentionScoreV2)

aclnnStatus aclnnFusedInferAttentionScoreV3GetWorkspaceSize(
    const aclTensor* query, const aclTensorList* key, const aclTensorList* value, const aclTensor* pse,
    const aclTensor* mask, const aclIntArray* lengths, const aclIntArray* lengths_kv, const aclTensor* t0,
    const aclTensor* t1, const aclTensor* t2, const aclTensor* t3, const aclTensor* t4, const aclTensor* t5,
    const aclTensor* t6, const aclTensor* t7, const aclTensor* t8, const aclTensor* t9, const aclTensor* u0,
    const aclTensor* u1, const aclTensor* u2, const aclTensor* u3, const aclTensor* u4, const aclTensor* u5,
    const aclIntArray* prefix, const aclTensor* v0, const aclTensor* v1, const aclTensor* v2, int64_t heads,
    double scale, int64_t pre, int64_t next, char* layout, int64_t kv_heads, int64_t sparse, int64_t, int64_t page,
    int64_t, bool lse_flag, int64_t, int64_t, const aclTensor* out, const aclTensor* lse, uint64_t* workspace,
    aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnFusedInferAttentionScoreV3);
  absent(checks, {pse, lengths, t0, t1, t2, t3, t4, t5, t6, t8, t9, u0, u1, u2, u3, u4, u5, prefix, v0, v1, v2, lse});
  checks.holds(!lse_flag, "softmaxLseFlag");
  const aclTensor* k = only(checks, key);
  const aclTensor* v = only(checks, value);
  return plan(checks, {query, k, v, mask, heads, scale, pre, next, layout, kv_heads, sparse, out, lengths_kv, t7, page},
              workspace, executor);
}
STANDIN_LAUNCH(aclnnFusedInferAttentionScoreV3)

aclnnStatus aclnnFusedInferAttentionScoreV4GetWorkspaceSize(
    const aclTensor* query, const aclTensorList* key, const aclTensorList* value, const aclTensor* pse,
    const aclTensor* mask, const aclIntArray* lengths, const aclIntArray* lengths_kv, const aclTensor* t0,
    const aclTensor* t1, const aclTensor* t2, const aclTensor* t3, const aclTensor* t4, const aclTensor* t5,
    const aclTensor* t6, const aclTensor* t7, const aclTensor* t8, const aclTensor* t9, const aclTensor* u0,
    const aclTensor* u1, const aclTensor* u2, const aclTensor* u3, const aclTensor* u4, const aclTensor* u5,
    const aclIntArray* prefix, const aclTensor* v0, const aclTensor* v1, const aclTensor* v2, const aclTensor* v3,
    const aclTensor* v4, int64_t heads, double scale, int64_t pre, int64_t next, char* layout, int64_t kv_heads,
    int64_t sparse, int64_t, int64_t page, int64_t, bool lse_flag, int64_t, int64_t, int64_t, const aclTensor* out,
    const aclTensor* lse, uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnFusedInferAttentionScoreV4);
  absent(checks,
         {pse, lengths, t0, t1, t2, t3, t4, t5, t6, t8, t9, u0, u1, u2, u3, u4, u5, prefix, v0, v1, v2, v3, v4, lse});
  checks.holds(!lse_flag, "softmaxLseFlag");
  const aclTensor* k = only(checks, key);
  const aclTensor* v = only(checks, value);
  return plan(checks, {query, k, v, mask, heads, scale, pre, next, layout, kv_heads, sparse, out, lengths_kv, t7, page},
              workspace, executor);
}
STANDIN_LAUNCH(aclnnFusedInferAttentionScoreV4)

aclnnStatus aclnnPromptFlashAttentionV2GetWorkspaceSize(
    const aclTensor* query, const aclTensor* key, const aclTensor* value, const aclTensor* pse, const aclTensor* mask,
    const aclIntArray* lengths, const aclIntArray* lengths_kv, const aclTensor* t0, const aclTensor* t1,
    const aclTensor* t2, const aclTensor* t3, const aclTensor* t4, int64_t heads, double scale, int64_t pre,
    int64_t next, char* layout, int64_t kv_heads, int64_t sparse, const aclTensor* out, uint64_t* workspace,
    aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnPromptFlashAttentionV2);
  absent(checks, {pse, lengths, lengths_kv, t0, t1, t2, t3, t4});
  return plan(checks, {query, key, value, mask, heads, scale, pre, next, layout, kv_heads, sparse, out}, workspace,
              executor);
}
STANDIN_LAUNCH(aclnnPromptFlashAttentionV2)

aclnnStatus aclnnPromptFlashAttentionV3GetWorkspaceSize(
    const aclTensor* query, const aclTensor* key, const aclTensor* value, const aclTensor* pse, const aclTensor* mask,
    const aclIntArray* lengths, const aclIntArray* lengths_kv, const aclTensor* t0, const aclTensor* t1,
    const aclTensor* t2, const aclTensor* t3, const aclTensor* t4, int64_t heads, double scale, int64_t pre,
    int64_t next, char* layout, int64_t kv_heads, int64_t sparse, int64_t, const aclTensor* out, uint64_t* workspace,
    aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnPromptFlashAttentionV3);
  absent(checks, {pse, lengths, lengths_kv, t0, t1, t2, t3, t4});
  return plan(checks, {query, key, value, mask, heads, scale, pre, next, layout, kv_heads, sparse, out}, workspace,
              executor);
}
STANDIN_LAUNCH(aclnnPromptFlashAttentionV3)

aclnnStatus aclnnIncreFlashAttentionV3GetWorkspaceSize(
    const aclTensor* query, const aclTensorList* key, const aclTensorList* value, const aclTensor* pse,
    const aclTensor* mask, const aclIntArray* lengths, const aclTensor* t0, const aclTensor* t1, const aclTensor* t2,
    const aclTensor* t3, const aclTensor* t4, const aclTensor* t5, const aclTensor* t6, const aclTensor* t7,
    int64_t heads, double scale, char* layout, int64_t kv_heads, int64_t, int64_t, const aclTensor* out,
    uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnIncreFlashAttentionV3);
  absent(checks, {pse, mask, lengths, t0, t1, t2, t3, t4, t5, t6, t7});
  const aclTensor* k = only(checks, key);
  const aclTensor* v = only(checks, value);
  checks.rank("query", query, kHalf, 4) && checks.holds(query->shape[1] == 1, "more than one query");
  return plan(checks, {query, k, v, nullptr, heads, scale, INT32_MAX, INT32_MAX, layout, kv_heads, 0, out}, workspace,
              executor);
}
STANDIN_LAUNCH(aclnnIncreFlashAttentionV3)

aclnnStatus aclnnIncreFlashAttentionV4GetWorkspaceSize(
    const aclTensor* query, const aclTensorList* key, const aclTensorList* value, const aclTensor* pse,
    const aclTensor* mask, const aclIntArray* lengths, const aclTensor* t0, const aclTensor* t1, const aclTensor* t2,
    const aclTensor* t3, const aclTensor* t4, const aclTensor* t5, const aclTensor* t6, const aclTensor* t7,
    const aclTensor* t8, int64_t heads, double scale, char* layout, int64_t kv_heads, int64_t, int64_t,
    const aclTensor* out, uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnIncreFlashAttentionV4);
  absent(checks, {pse, mask, lengths, t0, t1, t2, t3, t4, t5, t6, t7, t8});
  const aclTensor* k = only(checks, key);
  const aclTensor* v = only(checks, value);
  checks.rank("query", query, kHalf, 4) && checks.holds(query->shape[1] == 1, "more than one query");
  return plan(checks, {query, k, v, nullptr, heads, scale, INT32_MAX, INT32_MAX, layout, kv_heads, 0, out}, workspace,
              executor);
}
STANDIN_LAUNCH(aclnnIncreFlashAttentionV4)

}  // extern "C"
