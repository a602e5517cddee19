// Slots of inputs and outputs are those of the operators' definitions in CANN.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/csv.h"
#include "import/collector.h"
#include "import/kernels.h"

namespace llmperf::import {
namespace {

using graph::VectorKind;

// "MatMulV3" and "MatMulV3AiCore" are versions of "MatMul", "ReshapeAndCacheNdKernel" (of ATB) is one of
// "ReshapeAndCache".
std::string_view without_version(std::string_view type) {
  const auto drop = [&](std::string_view ending) {
    const bool there = type.size() > ending.size() && type.ends_with(ending);
    if (there) type.remove_suffix(ending.size());
    return there;
  };
  static_cast<void>(drop("AiCore") || drop("Aicore"));
  if (type.find('_') == std::string_view::npos && drop("Kernel")) static_cast<void>(drop("Nd") || drop("Nz"));
  const std::size_t v = type.rfind('V');
  const bool version = v != std::string_view::npos && v > 0 && v + 1 < type.size() &&
                       type.find_first_not_of("0123456789", v + 1) == std::string_view::npos;
  return version ? type.substr(0, v) : type;
}

// A slot, or an absent tensor where the list is shorter.
const Tensor& slot(const std::vector<Tensor>& list, std::size_t i) {
  static const Tensor kAbsent;
  return i < list.size() ? list[i] : kAbsent;
}

Mapped matmul(const AscendKernel& k) {
  const Tensor& out = slot(k.outputs, 0);
  const std::optional<Dtype> dtype = slot(k.inputs, 0).element.dtype;
  if (dtype != slot(k.inputs, 1).element.dtype) return "operands of different types";
  return gemm_row(slot(k.inputs, 0), slot(k.inputs, 1), out.shape, dtype);
}

// Both operands in int8, the result scaled to 16 bits on its way out; sums that a kernel behind it scales are a product
// of int8 alone.
Mapped quantised_matmul(const AscendKernel& k) {
  const Tensor& out = slot(k.outputs, 0);
  const bool int8 = slot(k.inputs, 0).element.dtype == Dtype::int8 && slot(k.inputs, 1).element.dtype == Dtype::int8;
  if (!int8) return "operands are not int8";
  if (out.element.dtype == Dtype::int32) {
    return gemm_row(slot(k.inputs, 0), slot(k.inputs, 1), out.shape, Dtype::int8);
  }
  if (out.element.dtype != Dtype::fp16 && out.element.dtype != Dtype::bf16) return "result is not scaled";
  return gemm_row(slot(k.inputs, 0), slot(k.inputs, 1), out.shape, out.element.dtype, "w8a8");
}

// Weights of 8 or 4 bits, unpacked to the type of the activations. The scales, [k / group, n] for each of the experts,
// say the group.
Mapped unpacked(const Tensor& x, Tensor weights, const Tensor& scales, const Tensor& out, std::int64_t experts = 1) {
  std::string scheme = "int8";
  if (weights.element.dtype == Dtype::int32 && !weights.shape.empty()) {  // eight of 4 bits in each
    weights.shape.back() *= 8;
    weights.element = element_type("int4");
  }
  const std::optional<Product> p = find_product(x, weights, out.shape);
  if (p && weights.element.dtype == Dtype::int4) {
    const std::int64_t all = elements(scales).value_or(0) / experts;
    if (all <= p->n || all % p->n != 0 || p->k % (all / p->n) != 0) return "group of the weights unknown";
    scheme = fmt::format("w4a16-g{}", p->k / (all / p->n));
  } else if (p && weights.element.dtype != Dtype::int8) {
    return "weights are not int8 or int4";
  }
  return gemm_row(x, weights, out.shape, x.element.dtype, scheme);
}
Mapped weight_quantised_matmul(const AscendKernel& k) {
  return unpacked(slot(k.inputs, 0), slot(k.inputs, 1), slot(k.inputs, 2), slot(k.outputs, 0));
}

// x [m, k] and the weights of all experts, [experts, k, n] or [experts, n, k]. Which rows are whose is in memory: they
// are taken to be dealt evenly.
Mapped grouped_matmul(const AscendKernel& k) {
  const Tensor& x = slot(k.inputs, 0);
  Tensor weights = slot(k.inputs, 1);
  const Tensor& out = slot(k.outputs, 0);
  if (!elements(x) || !elements(weights)) return kNoShapes;
  if (x.shape.size() != 2 || weights.shape.size() != 3) return kOtherShapes;  // a tensor for each expert
  const std::int64_t experts = weights.shape.front();
  weights.shape.erase(weights.shape.begin());
  const bool wide = x.element.dtype == Dtype::fp16 || x.element.dtype == Dtype::bf16;
  Mapped row = wide && weights.element.dtype != x.element.dtype
                   ? unpacked(x, weights, slot(k.inputs, 5), out, experts)
                   : (wide ? matmul : quantised_matmul)({k.type, {x, weights}, k.outputs});
  if (!row.row) return row;
  auto& gemm = std::get<measure::GemmShape>(row.row->shape);
  gemm.batch = std::min(experts, gemm.m);
  gemm.m = divide_up(gemm.m, gemm.batch);
  return row;
}

// The same of gate and up, with the activation and its quantisation on the way out: results are half as wide, in int8.
// Where the weights stand differs from version to version.
Mapped grouped_matmul_swiglu_quant(const AscendKernel& k) {
  const auto weights =
      std::find_if(k.inputs.begin(), k.inputs.end(), [](const Tensor& t) { return t.shape.size() == 3; });
  if (weights == k.inputs.end() || !elements(slot(k.outputs, 0))) return kNoShapes;
  Tensor out = slot(k.outputs, 0);
  out.shape.back() *= 2;
  out.element = element_type("DT_BF16");  // what scaled results would be in
  return grouped_matmul({k.type, {slot(k.inputs, 0), *weights}, {out}});
}

// The same of what goes down, with the sum of every token's results: there are as many of those as tokens.
Mapped grouped_matmul_finalize(const AscendKernel& k) {
  const Tensor& x = slot(k.inputs, 0);
  Tensor out = slot(k.outputs, 0);
  if (!elements(x) || !elements(out)) return kNoShapes;
  out.shape = {x.shape.front(), out.shape.back()};
  out.element = element_type("DT_BF16");
  return grouped_matmul({k.type, {x, slot(k.inputs, 1)}, {out}});
}

// x [m, batch, k] or [batch, m, k], of which the batch is moved to where the weights [batch, k, n] have it, and the
// result back: [m, batch, n] or [m, batch * n].
Mapped transposed_batch_matmul(const AscendKernel& k) {
  const Tensor& x = slot(k.inputs, 0);
  const Tensor& w = slot(k.inputs, 1);
  const std::optional<std::int64_t> out = elements(slot(k.outputs, 0));
  if (!elements(x) || !elements(w) || !out) return kNoShapes;
  if (x.shape.size() != 3 || w.shape.size() != 3) return kOtherShapes;
  if (x.element.dtype != w.element.dtype) return "operands of different types";
  if (!x.element.dtype) return kNoElementType;
  const std::int64_t batch = w.shape[0];
  const std::int64_t inner = w.shape[1];
  const std::int64_t m = x.shape[0] * x.shape[1] / batch;
  const bool fits = (x.shape[0] == batch || x.shape[1] == batch) && x.shape[2] == inner &&
                    *out == product({m, batch, w.shape[2]}, 0, 3);
  if (!fits) return kNoProduct;
  return measure::row_of(*x.element.dtype, measure::GemmShape{m, w.shape[2], inner, batch});
}

Mapped prolog_row(std::int64_t tokens, std::int64_t heads, Dtype dtype, bool int8) {
  return measure::row_of(dtype, measure::LatentShape{.phase = measure::Phase::decode,
                                                     .batch = tokens,
                                                     .q_len = 1,
                                                     .kv_len = 1,
                                                     .heads = heads,
                                                     .part = measure::LatentShape::Part::prolog,
                                                     .weights = int8 ? "w8a8" : ""});
}

// What comes before latent attention of new tokens, of DeepSeek-V3's widths: the op has no others.
Mapped mla_prolog(const AscendKernel& k) {
  const Tensor& x = slot(k.inputs, 0);
  using L = measure::LatentShape;
  const Tensor& up = slot(k.inputs, 3);  // [heads, head, latent]
  const std::optional<std::int64_t> all = elements(x);
  if (!all || !elements(up)) return kNoShapes;
  const std::int64_t heads = up.shape.front();
  const std::pair<std::size_t, Shape> expected[] = {{1, {L::kHidden, L::kQueryLatent}},
                                                    {2, {L::kQueryLatent, heads * (L::kHead + L::kRotary)}},
                                                    {3, {heads, L::kHead, L::kLatent}},
                                                    {4, {L::kHidden, L::kLatent + L::kRotary}}};
  for (const auto& [input, shape] : expected) {
    if (slot(k.inputs, input).shape != shape || x.shape.back() != L::kHidden) return "widths of another model";
  }
  const std::optional<Dtype> dtype = up.element.dtype;
  const bool int8 = x.element.dtype == Dtype::int8;
  for (const std::size_t input : {0U, 1U, 2U, 4U}) {
    if (slot(k.inputs, input).element.dtype != (int8 ? Dtype::int8 : dtype)) return "operands of different types";
  }
  if (!dtype) return kNoElementType;
  return prolog_row(*all / x.shape.back(), heads, *dtype, int8);
}

// The same of ATB, where x [tokens, hidden] is quantised inside and both products with it are one.
Mapped mla_preprocess(const AscendKernel& k) {
  using L = measure::LatentShape;
  const Tensor& x = slot(k.inputs, 0);
  if (!elements(x)) return kNoShapes;
  const auto up = std::find_if(k.inputs.begin(), k.inputs.end(), [](const Tensor& t) {
    return t.shape.size() == 3 && t.shape[1] == L::kHead && t.shape[2] == L::kLatent;
  });
  if (x.shape.back() != L::kHidden || up == k.inputs.end()) return "widths of another model";
  if (!x.element.dtype) return kNoElementType;
  return prolog_row(*elements(x) / L::kHidden, up->shape[0], *x.element.dtype,
                    slot(k.inputs, 1).element.dtype == Dtype::int8);
}

// Every rank's tokens, x [tokens, hidden], go to the experts that are picked for them, expert_ids [tokens, topk], or
// come back from there: expand_x [rows, hidden]. Dispatched ones may be quantised on their way out.
Mapped exchange(const AscendKernel& k) {
  const Tensor& x = slot(k.inputs, 0);
  const std::optional<std::int64_t> copies = elements(slot(k.inputs, 1));
  if (!elements(x) || !copies) return kNoShapes;
  if (!k.ranks) return "ranks not in the file: `ranks`";
  const bool out = without_version(k.type) == "MoeDistributeDispatch";
  const ElementType element = out ? slot(k.outputs, 0).element : x.element;
  const double sent = static_cast<double>(*copies) * static_cast<double>(x.shape.back()) * element.bits / 8;
  return collective_row("all_to_all", *k.ranks, sent, element.dtype);
}

const Tensor* if_present(const Tensor& tensor) { return tensor.shape.empty() ? nullptr : &tensor; }

Mapped training_attention(const AscendKernel& k) {
  return attention_row({.query = slot(k.inputs, 0),
                        .key = slot(k.inputs, 1),
                        .statistics = if_present(slot(k.outputs, 0)),
                        .mask = if_present(slot(k.inputs, 6))});
}

// Sequences that are alike behind each other: queries [tokens, heads, head_dim], and keys of as many tokens or more.
// How many there are, if the file says it; else --kv-len does.
struct Sequences {
  std::optional<std::int64_t> count;
  bool causal = false;
};

Mapped alike_sequences(const AscendKernel& k, const Tensor& query, const Tensor& key, std::int64_t rotary,
                       const Sequences& sequences) {
  using L = measure::LatentShape;
  constexpr std::int64_t kMostHeads = 256;  // of FusedInferAttentionScore; and of what a head has
  constexpr std::int64_t kWidest = 512;
  if (!elements(query) || !elements(key)) return kNoShapes;
  if (!query.element.dtype) return kNoElementType;
  if (query.shape.size() != 3 || key.shape.size() != 3) return "heads are not in the shapes";
  const std::int64_t heads = query.shape[1];
  const std::int64_t width = query.shape[2];
  const std::int64_t kv_heads = key.shape[1];
  if (heads == 1 || heads > kMostHeads || width > kWidest) return "heads are not in the shapes";
  if (key.shape[2] != width || heads % kv_heads != 0) return kOtherShapes;
  std::int64_t batch = sequences.count.value_or(0);
  if (k.kv_len && key.shape[0] % *k.kv_len == 0) {
    const std::int64_t fitting = key.shape[0] / *k.kv_len;
    batch = batch == 0 || batch == fitting ? fitting : 0;
  } else if (batch != 1) {
    batch = 0;
  }
  if (batch == 0 || query.shape[0] % batch != 0) return "lengths are not in the shapes: `kv-len`";
  const std::int64_t q_len = query.shape[0] / batch;
  const std::int64_t kv_len = key.shape[0] / batch;
  if (q_len > kv_len) return "lengths are not in the shapes: `kv-len`";
  if (kv_heads == heads && width + rotary == L::kHead + L::kRotary) {
    return measure::row_of(*query.element.dtype, L{measure::Phase::prefill, batch, q_len, kv_len, heads});
  }
  if (rotary > 0) return kOtherShapes;
  const bool one = q_len == 1;
  return measure::row_of(*query.element.dtype,
                         measure::AttentionShape{one ? measure::Phase::decode : measure::Phase::prefill, batch, q_len,
                                                 kv_len, heads, kv_heads, width, one || sequences.causal});
}

// New tokens of every sequence of the table, [sequences, heads, head_dim] or with a dimension for several of a sequence
// on either side of the heads, or all behind each other, [tokens, heads, head_dim]: then each sequence has as many. On
// pages of a pool [pages, tokens of a page, kv_heads * head_dim], or with heads in a dimension of their own on either
// side of the tokens, or stored as [pages, kv_heads, head_dim / c, tokens, c]. Pages hold a multiple of 16 tokens. The
// table, [sequences, pages], is as long as the longest may get.
Mapped paged_attention(const AscendKernel& k, const Tensor& pool, const Tensor& table, bool masked) {
  constexpr std::int64_t kPageStep = 16;
  if (!k.kv_len) return "keys are in pages: `kv-len`";
  const Tensor& query = slot(k.inputs, 0);
  if (!elements(query) || !elements(pool) || !elements(table)) return kNoShapes;
  if (!query.element.dtype || !pool.element.dtype) return kNoElementType;
  Shape q = query.shape;
  const Shape& p = pool.shape;
  const std::int64_t sequences = table.shape[0];
  std::int64_t q_len = 1;
  if (q.size() == 4 && (q[1] == 1 || q[2] == 1)) q.erase(q.begin() + (q[1] == 1 ? 1 : 2));
  if (q.size() == 3 && q[1] != 1 && q[0] % sequences == 0) {
    q_len = q[0] / sequences;
    q[0] = sequences;
  }
  if (q.size() != 3 || q[0] != sequences || q_len > *k.kv_len) return "lengths are not in the shapes";
  if (q[1] == 1) return "heads are not in the shapes";  // folded into the last dimension
  std::optional<std::int64_t> kv_heads;
  std::int64_t page = 0;
  const auto try_reading = [&](std::int64_t tokens, std::int64_t heads) {
    if (tokens % kPageStep != 0 || q[1] % heads != 0) return true;
    const bool first = !kv_heads || kv_heads == heads;
    kv_heads = heads;
    page = tokens;
    return first;
  };
  bool one = true;
  if (p.size() == 3 && p[2] % q[2] == 0) one = try_reading(p[1], p[2] / q[2]);
  if (p.size() == 4 && p[3] == q[2]) one = try_reading(p[1], p[2]) && try_reading(p[2], p[1]);
  if (p.size() == 5 && p[2] * p[4] == q[2]) one = try_reading(p[3], p[1]);
  if (!one) return "layout is not in the shapes";
  if (!kv_heads) return kOtherShapes;
  if (divide_up(*k.kv_len, page) > table.shape[1]) return "fewer tokens than `kv-len` in its pages";
  const std::string cache = pool.element.dtype == query.element.dtype ? "" : std::string(name(*pool.element.dtype));
  if (*kv_heads == 1 && q[2] == measure::LatentShape::kLatent) {
    return measure::row_of(*query.element.dtype,
                           measure::LatentShape{measure::Phase::decode, q[0], q_len, *k.kv_len, q[1], cache});
  }
  return measure::row_of(*query.element.dtype,
                         measure::AttentionShape{q_len == 1 ? measure::Phase::decode : measure::Phase::prefill, q[0],
                                                 q_len, *k.kv_len, q[1], *kv_heads, q[2], q_len == 1 || masked, cache});
}

bool is_table(const Tensor& t) { return t.shape.size() == 2 && t.element.dtype == Dtype::int32; }

Mapped inference_attention(const AscendKernel& k) {
  const bool fused = without_version(k.type) == "FusedInferAttentionScore";
  const Tensor& table = slot(k.inputs, fused ? 14 : 13);
  const Tensor& mask = slot(k.inputs, 4);
  if (is_table(table)) return paged_attention(k, slot(k.inputs, 1), table, mask.shape.size() >= 2);
  const Tensor& statistics = slot(k.outputs, 1);
  const Tensor& lengths = slot(k.inputs, fused ? 6 : 5);  // one for each sequence, or one for all
  const Tensor& query = slot(k.inputs, 0);
  const bool behind_each_other = lengths.shape.size() == 1 && query.shape.size() == 3 && statistics.shape.size() != 4;
  if (behind_each_other) {
    const Tensor& rotary = slot(k.inputs, 24);
    return alike_sequences(k, query, slot(k.inputs, 1), rotary.shape.empty() ? 0 : rotary.shape.back(),
                           {lengths.shape[0], mask.shape.size() >= 2});
  }
  return attention_row({.query = query,
                        .key = slot(k.inputs, 1),
                        .statistics = statistics.shape.size() == 4 ? &statistics : nullptr,
                        .mask = if_present(mask)});
}

// Of ATB (PagedAttention, PagedMultiLatentAttention): queries, perhaps what of them is rotated, pools, and the first
// table of integers behind them.
Mapped atb_attention(const AscendKernel& k) {
  const bool latent = k.type.starts_with("PagedMultiLatent");
  const auto table = std::find_if(k.inputs.begin(), k.inputs.end(), is_table);
  return table == k.inputs.end() ? Mapped(kNoShapes)
                                 : paged_attention(k, slot(k.inputs, latent ? 2 : 1), *table, false);
}
// Of ATB over prompts: queries, keys and values behind each other, causal, and how long they are on the host.
Mapped atb_prompt(const AscendKernel& k) {
  return alike_sequences(k, slot(k.inputs, 0), slot(k.inputs, 1), 0, {std::nullopt, true});
}
// Queries, what of them is rotated, keys, what of them is rotated, values.
Mapped atb_latent_prompt(const AscendKernel& k) {
  const Tensor& rotary = slot(k.inputs, 1);
  return alike_sequences(k, slot(k.inputs, 0), slot(k.inputs, 2), rotary.shape.empty() ? 0 : rotary.shape.back(),
                         {std::nullopt, true});
}

// One tensor [.., heads, head_dim], or queries and keys that differ in the axis of their heads.
Mapped rope(const AscendKernel& k) {
  const Tensor& q = slot(k.inputs, 0);
  Mapped row = vector_row(VectorKind::rope, q);
  const bool both = without_version(k.type) == "ApplyRotaryPosEmb" || k.type == "_triton_rope";
  if (!row.row || !both) return row;
  const Tensor& keys = slot(k.inputs, 1);
  const std::optional<std::int64_t> all = elements(keys);
  if (!all) return kNoShapes;
  if (q.shape.size() != keys.shape.size() || q.shape.back() != keys.shape.back()) return kOtherShapes;
  auto& shape = std::get<measure::VectorShape>(row.row->shape);
  shape.tokens += *all / keys.shape.back();
  for (std::size_t i = 0; i + 1 < q.shape.size(); ++i) {
    if (q.shape[i] == keys.shape[i]) continue;
    if (shape.heads > 0) return kOtherShapes;
    shape.heads = q.shape[i];
    shape.kv_heads = keys.shape[i];
  }
  return row;
}

// Of ATB: [tokens, heads x head_dim] of queries and of keys, and cosines [tokens, head_dim].
Mapped folded_rope(const AscendKernel& k) {
  const Tensor& q = slot(k.inputs, 0);
  const Tensor& keys = slot(k.inputs, 1);
  const Tensor& cosines = slot(k.inputs, 2);
  if (!elements(q) || !elements(keys) || !elements(cosines)) return kNoShapes;
  if (!q.element.dtype) return kNoElementType;
  const std::int64_t width = cosines.shape.back();
  if (q.shape.size() != 2 || keys.shape.size() != 2 || q.shape[0] != keys.shape[0] || q.shape[1] % width != 0 ||
      keys.shape[1] % width != 0) {
    return kOtherShapes;
  }
  const std::int64_t heads = q.shape[1] / width;
  const std::int64_t kv_heads = keys.shape[1] / width;
  return measure::row_of(*q.element.dtype,
                         measure::VectorShape{"rope", q.shape[0] * (heads + kv_heads), width, heads, kv_heads, {}});
}

// The cache itself is not read: the updates are, and are written.
template <std::size_t Updates>
Mapped into_cache(const AscendKernel& k) {
  const Tensor& updates = slot(k.inputs, Updates);
  const std::array<const Tensor*, 2> both = {&updates, &updates};
  return elementwise_row(both);
}

// A tensor without a shape is a scalar or absent: nothing to move either way. Without the first result, nothing is
// known.
Mapped elementwise(const AscendKernel& k) {
  std::vector<const Tensor*> all;
  for (const std::vector<Tensor>* list : {&k.inputs, &k.outputs}) {
    for (const Tensor& t : *list) {
      if (!t.shape.empty()) all.push_back(&t);
    }
  }
  return slot(k.outputs, 0).shape.empty() ? Mapped(kNoShapes) : elementwise_row(all);
}

// A part of the input, moved: as much is read as written.
Mapped moved(const AscendKernel& k) {
  const std::array<const Tensor*, 2> both = {&slot(k.outputs, 0), &slot(k.outputs, 0)};
  return elementwise_row(both);
}

Mapped binary(VectorKind kind, const AscendKernel& k) {
  if (slot(k.inputs, 0).shape.empty() != slot(k.inputs, 1).shape.empty()) return elementwise(k);  // with a scalar
  const std::array<const Tensor*, 2> inputs = {&slot(k.inputs, 0), &slot(k.inputs, 1)};
  return binary_row(kind, inputs, slot(k.outputs, 0));
}
Mapped add(const AscendKernel& k) { return binary(VectorKind::add, k); }
Mapped multiply(const AscendKernel& k) { return binary(VectorKind::multiply, k); }
Mapped gather(const AscendKernel& k) { return gather_row(slot(k.inputs, 0), slot(k.inputs, 1), slot(k.outputs, 0)); }
Mapped cache(const AscendKernel& k) { return cache_row(slot(k.inputs, 0)); }
Mapped joined(const AscendKernel&) { return "a product and a collective in one"; }
Mapped unsized(const AscendKernel&) { return "no sizes"; }

// The first input walked in rows; gated ones, whose input is two halves, by their result.
template <VectorKind Kind>
Mapped rows_of_input(const AscendKernel& k) {
  return vector_row(Kind, slot(k.inputs, 0));
}
template <VectorKind Kind>
Mapped rows_of_output(const AscendKernel& k) {
  return vector_row(Kind, slot(k.outputs, 0));
}

struct KernelRule {
  std::string_view types;  // without a version ("V3") at its end
  Mapped (*map)(const AscendKernel& kernel);
};
constexpr KernelRule kKernelRules[] = {
    {"MatMul|MatMulCommon|BatchMatMul|BatchMatMulNd", matmul},
    {"TransposeBatchMatMul", transposed_batch_matmul},
    {"QuantBatchMatmul", quantised_matmul},
    {"WeightQuantBatchMatmul", weight_quantised_matmul},
    {"GroupedMatmul", grouped_matmul},
    {"GroupedMatmulSwigluQuant", grouped_matmul_swiglu_quant},
    {"GroupedMatmulFinalizeRouting", grouped_matmul_finalize},
    {"MoeDistributeDispatch|MoeDistributeCombine", exchange},
    {"MlaProlog", mla_prolog},
    {"mla_preprocess_0_mix_aic|MlaPreprocess", mla_preprocess},
    {"MatmulAllReduce|MatmulReduceScatter|AllGatherMatmul|MatmulAllReduceAddRmsNorm|InplaceMatmulAllReduceAddRmsNorm|"
     "QuantMatmulAllReduce|WeightQuantMatmulAllReduce|GroupedMatMulAlltoAllv|AlltoAllvGroupedMatMul|"
     "AlltoAllAllGatherBatchMatMul|BatchMatMulReduceScatterAlltoAll|DispatchFFNCombine|DispatchGmmCombineDecode|"
     "FusedDeepMoe",
     joined},
    {"MoeDistributeCombineAddRmsNorm|DispatchLayout|NotifyDispatch|CamMoeDispatchNormal|CamMoeCombineNormal|"
     "MoeDispatchNormal|MoeCombineNormal",
     unsized},
    {"FlashAttentionScore", training_attention},
    {"PromptFlashAttention|IncreFlashAttention|FusedInferAttentionScore", inference_attention},
    {"PagedAttention|PagedAttentionMask|PagedMultiLatentAttention|PagedMultiLatentAttentionCombineCacheMask|"
     "PagedMultiLatentAttentionSplitCacheMask",
     atb_attention},
    {"UnpadFlashAttention|UnpadFlashAttentionBF16", atb_prompt},
    {"RINGMLAPrefill|RINGMLAPrefillBF16", atb_latent_prompt},
    {"RmsNorm", rows_of_input<VectorKind::rms_norm>},
    {"AddRmsNorm|InplaceAddRmsNorm|AddRmsNormBias", rows_of_input<VectorKind::add_rms_norm>},
    {"LayerNorm", rows_of_input<VectorKind::layer_norm>},
    {"AddLayerNorm", rows_of_input<VectorKind::add_layer_norm>},
    {"SwiGlu|GeGlu", rows_of_output<VectorKind::gated_activation>},
    {"Silu|Swish|Gelu|FastGelu|Relu", rows_of_input<VectorKind::activation>},
    {"Softmax", rows_of_input<VectorKind::softmax>},
    {"ArgMax|ArgMaxWithValue", rows_of_input<VectorKind::sampling>},
    {"Add", add},
    {"Mul", multiply},
    {"RotaryMul|RotaryPositionEmbedding|ApplyRotaryPosEmb|_triton_rope|_triton_rope_siso", rope},
    {"AtbRope", folded_rope},
    {"Gather|Embedding", gather},
    {"ScatterUpdate|Scatter|ScatterNdUpdate", into_cache<2>},
    {"KvRmsNormRopeCache|QkvRmsNormRopeCache|ScatterPaCache", into_cache<0>},
    {"ReshapeAndCache|ScatterPaKvCache", cache},
    {"AsStrided|BroadcastTo|GatherElements|Index|Pack|Pad|PagedCacheLoad|RepeatInterleave|Slice|Split|SplitD|"
     "StridedSlice|Tile|ViewCopy",
     moved},
    // One pass over tensors whose bytes all cross the memory bus.
    {"Abs|AddRmsNormDynamicQuant|AddRmsNormQuant|Adds|AscendDequant|AscendQuant|AttentionUpdate|Cast|ClipByValue|"
     "Concat|ConcatD|Cos|DequantSwigluQuant|Div|DynamicBlockQuant|DynamicQuant|Equal|Exp|Fill|Fills|FloorDiv|FloorMod|"
     "Greater|GreaterEqual|Identity|InplaceAdd|InplacePartialRotaryMul|InterleaveRope|Less|LessEqual|Log|LogicalAnd|"
     "LogicalNot|LogicalOr|MaskedFill|Maximum|Minimum|MoeFinalizeRouting|MoeGatingTopK|MoeGatingTopKSoftmax|"
     "MoeInitRouting|MoeInitRoutingCustom|MoeInitRoutingQuant|MoeReRouting|MoeTokenPermute|MoeTokenUnpermute|Muls|Neg|"
     "NotEqual|Pow|RealDiv|Reciprocal|ReduceMax|ReduceMean|ReduceMeanD|ReduceSum|ReduceSumD|RmsNormDynamicQuant|"
     "RmsNormQuant|RopeWithSinCosCache|Rsqrt|Select|Sigmoid|Sin|Sqrt|Square|Sub|SwigluGroupQuant|SwiGluQuant|Tanh|"
     "TensorMove|TransData|Transpose|TransposeD|ZerosLike",
     elementwise},
};

// ---- What stays without a row for a reason that is no fault of the file.

constexpr Group kGradients = {"gradients, optimisers", "measurements have no op for what only training runs"};
constexpr Group kSampler = {"sampling", "sorts, draws and masks of a sampler, which an estimate has as one op"};
constexpr Group kBookkeeping = {"indices, masks, scalars", "integers, or no shape at all: not what a model computes"};
constexpr Group kFused = {"fused, without shapes", "a compiler's kernel, whose tensors it tells no profiler"};
constexpr Group kImpossible = {"contradictory shapes", "no product has them: the file's own"};
constexpr Group kOnCpu = {"on a CPU", "AI_CPU or the host ran it"};
constexpr Group kBesideCores = {"beside the cores", "waits, copies, draws of random numbers"};

constexpr std::string_view kSamplers =
    "ApplyTopKTopP|ApplyTopKTopPCustom|Cumsum|CumsumCube|DSARandomNormal|DSARandomUniform|Exponential|Multinomial|"
    "MultinomialWithReplacement|RejectSampler|Sort|StatelessRandomUniform|TopK|TopKPSampleTransform|TopKTopPSample";
constexpr std::string_view kIndexing =
    "Arange|GatherNd|Histogram|IndexFill|IndexPut|LinearIndex|MaskedSelect|MemSet|NonZero|OneHot|OnesLike|Range|"
    "ScatterElements|ScatterNd|Shape|Zeros";

// Whether the name of a compiler's kernel, words joined by underscores, has one of them.
bool has_word(std::string_view type, std::string_view words) {
  const std::vector<std::string_view> parts = split(type, '_');
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return is_among(part, words); });
}
// "split_qkv_rmsnorm_rope_kernel", "triton_poi_fused_add_mul_0".
bool is_compiled(std::string_view type) {
  return type.find('_') != std::string_view::npos && type == to_lower(type) && !type.starts_with("hcom");
}
// More than one pass, or who knows how many.
constexpr std::string_view kManyPasses =
    "mm|bmm|gemm|matmul|dot|attention|attn|flash|fwd|bwd|chunk|delta|gdn|recurrent|scan|conv|conv1d|linear|moe|"
    "experts|mla|prefill|decode";
constexpr std::string_view kSamplerWords =
    "sample|sampler|sampling|sampled|rejection|greedy|topk|topp|bonus|penalties|penalty|recovered|expand|bincount";

// Of compilers' kernels: one pass over the tensors that are known.
Mapped compiled(const AscendKernel& k) {
  if (has_word(k.type, kManyPasses)) return kNoSuchOp;
  return elementwise(k);
}

const Group* ascend_group(std::string_view name, Class of, const std::string& remark) {
  if (of == Class::host) return &kOnCpu;
  if (of == Class::other) return &kBesideCores;
  if (of != Class::kernel) return nullptr;
  const std::string_view type = without_version(name);
  const bool rule = std::any_of(std::begin(kKernelRules), std::end(kKernelRules), [&](const KernelRule& r) {
    // Those whose tensors may be integers or scalars as well.
    const bool any = r.map == elementwise || r.map == moved || r.map == add || r.map == multiply || r.map == gather ||
                     r.map == into_cache<2>;
    return any && is_among(type, r.types);
  });
  if (remark == kNoProduct) return &kImpossible;
  if (type.find("Grad") != std::string_view::npos || type.starts_with("Apply")) {
    return is_among(type, kSamplers) ? &kSampler : &kGradients;
  }
  if (is_among(type, kSamplers) || (is_compiled(name) && has_word(name, kSamplerWords))) return &kSampler;
  if (is_among(type, kIndexing)) return &kBookkeeping;
  const bool small = remark == kNoElementType || remark == kNoShapes || remark == "not rows of a table";
  if (small && rule) return &kBookkeeping;
  if (is_compiled(name) && remark == kNoShapes) return &kFused;
  return nullptr;
}

}  // namespace

Class ascend_class(std::string_view core, std::string_view type) {
  const std::string kind = to_lower(type);
  if (core.find("AI_CPU") != std::string_view::npos || core == "AICPU" || core.starts_with("HOST")) return Class::host;
  // HCCL's own kernels on the vector cores: AivKernel.
  const bool hcom = kind.starts_with("hcom") || kind.starts_with("hccl") || kind.starts_with("aivkernel");
  if (hcom || core == "HCCL" || core == "COMMUNICATION") return Class::communication;
  const std::string_view plain = without_version(type);
  for (const KernelRule& rule : kKernelRules) {
    // A product joined with a collective waits for its peers, too.
    const bool waits = rule.map == joined || rule.map == exchange || rule.map == unsized;
    if (waits && is_among(plain, rule.types)) return Class::communication;
  }
  const bool cores = core.starts_with("AI_CORE") || core.starts_with("AI_VECTOR_CORE") || core.starts_with("AIC") ||
                     core.starts_with("AIV") || core.starts_with("MIX_AI");
  return cores || core.empty() ? Class::kernel : Class::other;
}

namespace {

Mapped row_of(const AscendKernel& kernel) {
  const bool shapes =
      std::any_of(kernel.inputs.begin(), kernel.inputs.end(), [](const Tensor& t) { return t.known(); });
  const std::string_view type = without_version(kernel.type);
  for (const KernelRule& rule : kKernelRules) {
    const bool shapeless = rule.map == joined || rule.map == unsized || rule.map == elementwise;
    if (is_among(type, rule.types)) return shapes || shapeless ? rule.map(kernel) : kNoShapes;
  }
  return is_compiled(kernel.type) ? compiled(kernel) : kNoSuchOp;
}

}  // namespace

Mapped ascend_row(const AscendKernel& kernel, Class of) {
  Mapped row = of == Class::host ? Mapped("runs on a CPU") : of == Class::other ? Mapped("no kernel") : row_of(kernel);
  if (of == Class::communication) {
    const bool sized = row.row && std::holds_alternative<measure::CollectiveShape>(row.row->shape);
    if (!sized && (row.row || row.remark == kNoSuchOp)) row = "no sizes";
  }
  if (!row.row) row.group = ascend_group(kernel.type, of, row.remark);
  return row;
}

namespace {

using descriptor::CsvCell;
using descriptor::CsvReader;
using descriptor::Problems;

// Profilers quote shapes once more inside the quoted field, and end numbers with a TAB.
std::string_view bare(std::string_view text) {
  text = trim(text);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = trim(text.substr(1, text.size() - 2));
  return text;
}
bool missing(std::string_view text) { return text.empty() || text == "N/A" || text == "n/a" || text == "NULL"; }

class AscendCsv {
 public:
  AscendCsv(std::string_view text, const Options& options, Problems& problems, Collector& into)
      : reader_(text, problems), options_(&options), problems_(&problems), into_(&into) {}

  void read() {
    read_rows(
        reader_, *problems_, [&] { return read_header(); }, [&] { duration_ ? read_execution() : read_total(); });
  }

 private:
  using Column = std::optional<std::size_t>;
  struct TensorColumns {
    Column shapes, types, formats;
  };

  // Where the first column stands that has one of the names: msprof's, torch_npu's, that of op_statistic.csv.
  Column find(std::initializer_list<std::string_view> names) const {
    const std::vector<CsvCell>& cells = reader_.cells();
    const auto found = std::find_if(cells.begin(), cells.end(), [&](const CsvCell& c) {
      return std::find(names.begin(), names.end(), bare(c.text)) != names.end();
    });
    return found == cells.end() ? Column() : Column(static_cast<std::size_t>(found - cells.begin()));
  }
  std::string_view text(Column c) const {
    const std::string_view content = c ? bare(reader_.cells()[*c].text) : std::string_view();
    return missing(content) ? std::string_view() : content;
  }
  bool read_header() {
    type_ = find({"OP Type", "Type"});
    core_ = find({"Task Type", "Accelerator Core", "Core Type"});
    duration_ = find({"Task Duration(us)", "Duration(us)"});
    inputs_ = {find({"Input Shapes"}), find({"Input Data Types"}), find({"Input Formats"})};
    outputs_ = {find({"Output Shapes"}), find({"Output Data Types"}), find({"Output Formats"})};
    executions_ = find({"Count"});
    total_ = find({"Total Time(us)"});
    if (type_ && (duration_ || (executions_ && total_))) return true;
    problems_->add(reader_.line(), 1,
                   type_ ? "no column 'Task Duration(us)' or 'Duration(us)'" : "no column 'OP Type' or 'Type'",
                   "read are op_summary_*.csv and op_statistic*.csv of msprof and kernel_details.csv of torch_npu");
    return false;
  }

  // Nothing to report where the profiler has no time.
  std::optional<Seconds> time(Column c) {
    const std::string_view content = text(c);
    if (content.empty()) return Seconds{0};
    return read_microseconds(content, reader_.line(), reader_.cells()[*c].column, *problems_);
  }

  void read_execution() {
    const std::optional<Seconds> duration = time(duration_);
    if (!duration) return;
    const std::string type(text(type_));
    Execution e{.type = type.empty() ? "N/A" : type,
                .of = ascend_class(text(core_), type),
                .time = *duration,
                .mapped = kNoShapes,
                .line = reader_.line()};
    const AscendKernel kernel{.type = type,
                              .inputs = tensors(inputs_),
                              .outputs = tensors(outputs_),
                              .ranks = options_->ranks,
                              .kv_len = options_->kv_len};
    e.mapped = ascend_row(kernel, e.of);
    // A file that says nothing of shapes does not say that there are none.
    const bool silent = !inputs_.shapes || bare(reader_.cells()[*inputs_.shapes].text) == "N/A";
    if (silent && e.mapped.group == &kBookkeeping && e.mapped.remark == kNoShapes) e.mapped.group = nullptr;
    into_->add(e);
  }

  void read_total() {
    const std::optional<Seconds> total = time(total_);
    const std::optional<std::int64_t> count = parse_int(text(executions_));
    if (!count || *count < 0 || *count > kMostElements) {
      problems_->add(reader_.line(), reader_.cells()[*executions_].column,
                     fmt::format("not a count: {}", quote(text(executions_))));
      return;
    }
    if (!total) return;
    const std::string type(text(type_));
    into_->add({.type = type,
                .of = ascend_class(text(core_), type),
                .time = *total,
                .mapped = "totals only, no shapes",
                .line = reader_.line(),
                .count = *count});
  }

  std::vector<Tensor> tensors(const TensorColumns& columns) {
    std::vector<Tensor> list;
    const std::string_view all = text(columns.shapes);
    if (all.empty()) return list;
    const std::vector<std::string_view> type = split(text(columns.types), ';');
    const std::vector<std::string_view> format = split(text(columns.formats), ';');
    for (const std::string_view slot : split(all, ';')) {
      Tensor t;
      t.shape = shape(trim(slot), reader_.cells()[*columns.shapes]);
      const std::size_t i = list.size();
      if (i < type.size()) t.element = element_type(trim(type[i]));
      if (i < format.size()) make_logical(t, trim(format[i]));
      list.push_back(std::move(t));
    }
    return list;
  }

  // "1,4096"; empty for an absent tensor, N/A and shapes that are not known (-1).
  Shape shape(std::string_view slot, const CsvCell& where) {
    Shape result;
    if (missing(slot)) return result;
    for (const std::string_view part : split(slot, ',')) {
      const std::optional<std::int64_t> size = parse_int(trim(part));
      if (!size) {
        problems_->add(reader_.line(), where.column, fmt::format("not a shape: {}", quote(slot)));
        return {};
      }
      if (*size < 0) return {};
      result.push_back(*size);
    }
    return result;
  }

  CsvReader reader_;
  const Options* options_;
  Problems* problems_;
  Collector* into_;
  Column type_, core_, duration_, executions_, total_;
  TensorColumns inputs_, outputs_;
};

}  // namespace

void read_ascend_csv(std::string_view text, const Options& options, Problems& problems, Collector& into) {
  AscendCsv(text, options, problems, into).read();
}

}  // namespace llmperf::import
