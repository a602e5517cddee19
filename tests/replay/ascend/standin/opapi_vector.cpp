// Stand-in of libopapi.so: norms, activations, rotation, lookups, and the product that is summed over ranks. Without
// STANDIN_REDUCED: the reduced variant lacks some.
#include <aclnnop/aclnn_add.h>
#include <aclnnop/aclnn_add_rms_norm.h>
#include <aclnnop/aclnn_apply_rotary_pos_emb.h>
#include <aclnnop/aclnn_apply_rotary_pos_emb_v2.h>
#include <aclnnop/aclnn_embedding.h>
#include <aclnnop/aclnn_matmul_all_reduce.h>
#include <aclnnop/aclnn_mul.h>
#include <aclnnop/aclnn_rms_norm.h>
#include <aclnnop/aclnn_scatter_update.h>
#include <aclnnop/aclnn_silu.h>
#include <aclnnop/aclnn_swi_glu.h>

#include <cmath>

#include "hccl_group.h"
#include "kernel.h"

using namespace standin;

namespace {

double silu(double x) { return x / (1 + std::exp(-x)); }

int rotate(Checks& checks, aclTensor* query, aclTensor* key, const aclTensor* cosine, const aclTensor* sine,
           std::int64_t layout, std::uint64_t* workspace, aclOpExecutor** executor) {
  checks.holds(layout == 1, "layout");
  if (!checks.rank("query", query, kFloat, 4)) return checks.code();
  const std::int64_t batch = query->shape[0];
  const std::int64_t tokens = query->shape[1];
  const std::int64_t width = query->shape[3];
  checks.tensor("key", key, {query->type}, {batch, tokens, -1, width});
  checks.tensor("cos", cosine, {query->type}, {batch, tokens, 1, width});
  checks.tensor("sin", sine, {query->type}, {batch, tokens, 1, width});
  if (!checks.good()) return checks.code();
  return checks.finish(
      {query, key, cosine, sine}, workspace, executor, 0, [=, q = *query, k = *key, c = *cosine, s = *sine](Stream&) {
        const std::int64_t half = width / 2;
        for (const aclTensor& x : {q, k}) {
          for (std::int64_t b = 0; b < batch; ++b) {
            for (std::int64_t t = 0; t < tokens; ++t) {
              for (std::int64_t h = 0; h < x.shape[2]; ++h) {
                for (std::int64_t i = 0; i < half; ++i) {
                  const double low = get(x, {b, t, h, i});
                  const double high = get(x, {b, t, h, i + half});
                  put(x, {b, t, h, i}, low * get(c, {b, t, 0, i}) - high * get(s, {b, t, 0, i}));
                  put(x, {b, t, h, i + half}, high * get(c, {b, t, 0, i + half}) + low * get(s, {b, t, 0, i + half}));
                }
              }
            }
          }
        }
        return 0;
      });
}

void norm(const aclTensor& x, const aclTensor& gamma, double epsilon, const aclTensor& y, const aclTensor& rstd) {
  const std::int64_t rows = x.shape[0];
  const std::int64_t width = x.shape[1];
  for (std::int64_t row = 0; row < rows; ++row) {
    double squares = 0;
    for (std::int64_t i = 0; i < width; ++i) squares += get(x, {row, i}) * get(x, {row, i});
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(width) + epsilon);
    for (std::int64_t i = 0; i < width; ++i) put(y, {row, i}, get(x, {row, i}) * inverse * get(gamma, {i}));
    put(rstd, {row, 0}, inverse);
  }
}

template <class F>
int elementwise(Checks& checks, const aclTensor* x, const aclTensor* y, const aclTensor* out, std::uint64_t* workspace,
                aclOpExecutor** executor, F function) {
  if (!checks.rank("self", x, kFloat, 2)) return checks.code();
  checks.tensor("other", y, {x->type}, {x->shape[0], x->shape[1]});
  checks.tensor("out", out, {x->type}, {x->shape[0], x->shape[1]});
  if (!checks.good()) return checks.code();
  return checks.finish({x, y, out}, workspace, executor, 0, [=, a = *x, b = *y, o = *out](Stream&) {
    for (std::int64_t i = 0; i < elements(o); ++i) put(o, i, function(get(a, i), get(b, i)));
    return 0;
  });
}

}  // namespace

extern "C" {

aclnnStatus aclnnRmsNormGetWorkspaceSize(const aclTensor* x, const aclTensor* gamma, double epsilon, const aclTensor* y,
                                         const aclTensor* rstd, uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnRmsNorm);
  if (!checks.rank("x", x, kFloat, 2)) return checks.code();
  checks.tensor("gamma", gamma, {x->type, ACL_FLOAT}, {x->shape[1]});
  checks.tensor("yOut", y, {x->type}, {x->shape[0], x->shape[1]});
  checks.tensor("rstdOut", rstd, {ACL_FLOAT}, {x->shape[0], 1});
  if (!checks.good()) return checks.code();
  return checks.finish({x, gamma, y, rstd}, workspace, executor, 0,
                       [=, a = *x, g = *gamma, o = *y, r = *rstd](Stream&) {
                         norm(a, g, epsilon, o, r);
                         return 0;
                       });
}
STANDIN_LAUNCH(aclnnRmsNorm)

aclnnStatus aclnnAddRmsNormGetWorkspaceSize(const aclTensor* x1, const aclTensor* x2, const aclTensor* gamma,
                                            double epsilon, const aclTensor* y, const aclTensor* rstd,
                                            const aclTensor* sum, uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnAddRmsNorm);
  if (!checks.rank("x1", x1, kFloat, 2)) return checks.code();
  checks.tensor("x2", x2, {x1->type}, {x1->shape[0], x1->shape[1]});
  checks.tensor("gamma", gamma, {x1->type}, {x1->shape[1]});
  checks.tensor("yOut", y, {x1->type}, {x1->shape[0], x1->shape[1]});
  checks.tensor("rstdOut", rstd, {ACL_FLOAT}, {x1->shape[0], 1});
  checks.tensor("xOut", sum, {x1->type}, {x1->shape[0], x1->shape[1]});
  if (!checks.good()) return checks.code();
  return checks.finish({x1, x2, gamma, y, rstd, sum}, workspace, executor, 128,
                       [=, a = *x1, b = *x2, g = *gamma, o = *y, r = *rstd, s = *sum](Stream&) {
                         for (std::int64_t i = 0; i < elements(s); ++i) put(s, i, get(a, i) + get(b, i));
                         norm(s, g, epsilon, o, r);
                         return 0;
                       });
}
STANDIN_LAUNCH(aclnnAddRmsNorm)

aclnnStatus aclnnApplyRotaryPosEmbGetWorkspaceSize(aclTensor* query, aclTensor* key, const aclTensor* cosine,
                                                   const aclTensor* sine, int64_t layout, uint64_t* workspace,
                                                   aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnApplyRotaryPosEmb);
  if (checks.rank("query", query, kFloat, 4)) checks.holds(query->shape[3] == 128, "heads of another size than 128");
  return rotate(checks, query, key, cosine, sine, layout, workspace, executor);
}
STANDIN_LAUNCH(aclnnApplyRotaryPosEmb)

aclnnStatus aclnnApplyRotaryPosEmbV2GetWorkspaceSize(aclTensor* query, aclTensor* key, const aclTensor* cosine,
                                                     const aclTensor* sine, int64_t layout, char* mode,
                                                     uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnApplyRotaryPosEmbV2);
  checks.holds(mode != nullptr && std::string(mode) == "half", "rotaryMode");
  return rotate(checks, query, key, cosine, sine, layout, workspace, executor);
}
STANDIN_LAUNCH(aclnnApplyRotaryPosEmbV2)

aclnnStatus aclnnInplaceScatterUpdateGetWorkspaceSize(aclTensor* data, const aclTensor* indices,
                                                      const aclTensor* updates, int64_t axis, uint64_t* workspace,
                                                      aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnInplaceScatterUpdate);
  const std::initializer_list<aclDataType> types = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_INT8};
  if (!checks.rank("data", data, types, 4) || !checks.holds(axis == 1, "axis")) return checks.code();
  const std::vector<std::int64_t>& shape = data->shape;
  checks.tensor("indices", indices, {ACL_INT64, ACL_INT32}, {shape[0]});
  checks.tensor("updates", updates, {data->type}, {shape[0], -1, shape[2], shape[3]});
  if (!checks.good()) return checks.code();
  checks.holds(updates->shape[1] <= shape[1], "more updates than places");
  return checks.finish({data, indices, updates}, workspace, executor, 0,
                       [=, d = *data, index = *indices, u = *updates](Stream&) {
                         for (std::int64_t i = 0; i < elements(u); ++i) {
                           const std::int64_t e = i % u.shape[3];
                           const std::int64_t h = i / u.shape[3] % u.shape[2];
                           const std::int64_t t = i / u.shape[3] / u.shape[2] % u.shape[1];
                           const std::int64_t b = i / u.shape[3] / u.shape[2] / u.shape[1];
                           put(d, {b, t + static_cast<std::int64_t>(get(index, {b})), h, e}, get(u, i));
                         }
                         return 0;
                       });
}
STANDIN_LAUNCH(aclnnInplaceScatterUpdate)

aclnnStatus aclnnSwiGluGetWorkspaceSize(const aclTensor* x, int64_t dim, const aclTensor* out, uint64_t* workspace,
                                        aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnSwiGlu);
  if (!checks.rank("x", x, kFloat, 2) || !checks.holds(dim == -1 || dim == 1, "dim")) return checks.code();
  checks.holds(x->shape[1] % 2 == 0, "an odd number of columns");
  const std::int64_t width = x->shape[1] / 2;
  checks.tensor("out", out, {x->type}, {x->shape[0], width});
  if (!checks.good()) return checks.code();
  return checks.finish({x, out}, workspace, executor, 0, [=, a = *x, o = *out](Stream&) {
    for (std::int64_t row = 0; row < a.shape[0]; ++row) {
      for (std::int64_t i = 0; i < width; ++i) put(o, {row, i}, silu(get(a, {row, i})) * get(a, {row, i + width}));
    }
    return 0;
  });
}
STANDIN_LAUNCH(aclnnSwiGlu)

aclnnStatus aclnnSiluGetWorkspaceSize(const aclTensor* x, aclTensor* out, uint64_t* workspace,
                                      aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnSilu);
  return elementwise(checks, x, x, out, workspace, executor, [](double a, double) { return silu(a); });
}
STANDIN_LAUNCH(aclnnSilu)

aclnnStatus aclnnMulGetWorkspaceSize(const aclTensor* x, const aclTensor* y, aclTensor* out, uint64_t* workspace,
                                     aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnMul);
  return elementwise(checks, x, y, out, workspace, executor, [](double a, double b) { return a * b; });
}
STANDIN_LAUNCH(aclnnMul)

aclnnStatus aclnnAddGetWorkspaceSize(const aclTensor* x, const aclTensor* y, const aclScalar* alpha, aclTensor* out,
                                     uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnAdd);
  if (!checks.holds(live(alpha, "scalar"), "no alpha")) return checks.code();
  return elementwise(checks, x, y, out, workspace, executor,
                     [factor = alpha->value](double a, double b) { return a + factor * b; });
}
STANDIN_LAUNCH(aclnnAdd)

aclnnStatus aclnnEmbeddingGetWorkspaceSize(const aclTensor* weight, const aclTensor* indices, const aclTensor* out,
                                           uint64_t* workspace, aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnEmbedding);
  if (!checks.rank("weight", weight, kFloat, 2) || !checks.rank("indices", indices, {ACL_INT64, ACL_INT32}, 1)) {
    return checks.code();
  }
  checks.tensor("out", out, {weight->type}, {indices->shape[0], weight->shape[1]});
  if (!checks.good()) return checks.code();
  return checks.finish({weight, indices, out}, workspace, executor, 0,
                       [=, w = *weight, index = *indices, o = *out](Stream&) {
                         for (std::int64_t row = 0; row < o.shape[0]; ++row) {
                           const auto from = static_cast<std::int64_t>(get(index, {row}));
                           if (from < 0 || from >= w.shape[0]) return 507015;
                           for (std::int64_t i = 0; i < o.shape[1]; ++i) put(o, {row, i}, get(w, {from, i}));
                         }
                         return 0;
                       });
}
STANDIN_LAUNCH(aclnnEmbedding)

aclnnStatus aclnnMatmulAllReduceGetWorkspaceSize(const aclTensor* x1, const aclTensor* x2, const aclTensor* bias,
                                                 const char* group, const char* reduce, int64_t turn, int64_t mode,
                                                 const aclTensor* output, uint64_t* workspace,
                                                 aclOpExecutor** executor) {
  STANDIN_PLAN(aclnnMatmulAllReduce);
  checks.absent("bias", bias);
  checks.holds(group != nullptr && *group != '\0', "no group");
  checks.holds(reduce != nullptr && std::string(reduce) == "sum", "reduceOp");
  checks.holds(turn == 0 && mode == 1, "commTurn, streamMode");
  if (!checks.rank("x1", x1, kHalf, 2)) return checks.code();
  const std::int64_t m = x1->shape[0];
  const std::int64_t k = x1->shape[1];
  if (!checks.tensor("x2", x2, {x1->type}, {k, -1})) return checks.code();
  const std::int64_t n = x2->shape[1];
  checks.tensor("output", output, {x1->type}, {m, n});
  const Membership member = membership(group, current_device());
  checks.holds(member.ranks > 0, "a group that the device is not in");
  checks.holds(member.ranks == 1 || member.ranks == 2 || member.ranks == 4 || member.ranks == 8, "number of ranks");
  if (!checks.good()) return checks.code();
  return checks.finish(
      {x1, x2, output}, workspace, executor, 512,
      [=, a = *x1, b = *x2, y = *output, name = std::string(group), round = std::make_shared<int>(0)](Stream& stream) {
        std::vector<double> product(static_cast<std::size_t>(m * n), 0.0);
        for (std::int64_t i = 0; i < m * n; ++i) {
          for (std::int64_t l = 0; l < k; ++l) {
            product[static_cast<std::size_t>(i)] += get(a, {i / n, l}) * get(b, {l, i % n});
          }
        }
        std::vector<double> sum;
        // A number of rounds of its own: HCCL's collectives count theirs.
        const std::string turn_of = name + "/product";
        const int code = exchange(stream, turn_of, member, (*round)++, product, sum);
        for (std::int64_t i = 0; code == 0 && i < m * n; ++i) put(y, i, sum[static_cast<std::size_t>(i)]);
        return code;
      });
}
STANDIN_LAUNCH(aclnnMatmulAllReduce)

}  // extern "C"
