#include "import/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/integer.h"
#include "base/text.h"

namespace llmperf::import {
namespace {

struct NamedType {
  std::string_view names;  // without the prefixes dt_ and c10::, in small letters
  double bits;
  std::optional<Dtype> dtype = std::nullopt;
};
constexpr NamedType kTypes[] = {
    {"bf16|bfloat16|bfp16", 16, Dtype::bf16},
    {"float16|fp16|half", 16, Dtype::fp16},
    {"float|float32|fp32", 32, Dtype::fp32},
    {"double|float64|fp64", 64, Dtype::fp64},
    {"int8|signed char|char", 8, Dtype::int8},
    {"int4", 4, Dtype::int4},
    {"int32|int", 32, Dtype::int32},
    {"bool", 8, Dtype::boolean},
    {"fp8|float8_e4m3fn|float8_e5m2|f8e4m3|f8e5m2|fp8_e4m3|fp8_e5m2|float8_e4m3|float8_e4m3fnuz|float8_e5m2fnuz", 8,
     Dtype::fp8},
    {"uint8|unsigned char|byte", 8},
    {"int16|short|short int|uint16", 16},
    {"uint32", 32},
    {"int64|uint64|long|long int|complex64", 64},
};

}  // namespace

bool is_among(std::string_view name, std::string_view names) {
  for (std::size_t at = names.find(name); at != std::string_view::npos; at = names.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || names[at - 1] == '|') && (end == names.size() || names[end] == '|')) return true;
  }
  return false;
}

ElementType element_type(std::string_view name) {
  const std::string lower = to_lower(name);
  std::string_view text = lower;
  for (const std::string_view prefix : {"dt_", "c10::"}) {
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  }
  for (const NamedType& type : kTypes) {
    if (is_among(text, type.names)) return {type.dtype, type.bits};
  }
  return {};
}

std::optional<std::int64_t> product(const Shape& shape, std::size_t from, std::size_t to) {
  std::int64_t result = 1;
  for (std::size_t i = from; i < to; ++i) {
    if (shape[i] <= 0 || shape[i] > kMostElements / result) return std::nullopt;
    result *= shape[i];
  }
  return result;
}

std::optional<std::int64_t> elements(const Tensor& tensor) {
  if (tensor.shape.empty()) return std::nullopt;
  return product(tensor.shape, 0, tensor.shape.size());
}

std::optional<Bytes> bytes(const Tensor& tensor) {
  const std::optional<std::int64_t> count = elements(tensor);
  if (!count || tensor.element.bits <= 0) return std::nullopt;
  return Bytes{std::ceil(static_cast<double>(*count) * tensor.element.bits / 8)};
}

void make_logical(Tensor& tensor, std::string_view format) {
  Shape& s = tensor.shape;
  if (format != "FRACTAL_NZ" || s.size() < 4) return;  // with fewer dimensions it is the logical shape already
  const std::int64_t column_block = s[s.size() - 1];
  const std::int64_t row_block = s[s.size() - 2];
  const std::optional<std::int64_t> rows = product({s[s.size() - 3], row_block}, 0, 2);
  const std::optional<std::int64_t> columns = product({s[s.size() - 4], column_block}, 0, 2);
  s.resize(s.size() - 4);
  s.push_back(rows.value_or(0));
  s.push_back(columns.value_or(0));
  tensor.row_block = row_block;
  tensor.column_block = column_block;
}

namespace {

using graph::VectorKind;
using measure::VectorShape;

// Rows and columns of a tensor that is walked in rows of its last dimension.
std::optional<VectorShape> rows_of(VectorKind kind, const Tensor& x) {
  const std::optional<std::int64_t> all = elements(x);
  if (!all) return std::nullopt;
  const std::int64_t width = x.shape.back();
  return VectorShape{.layer = std::string(graph::name(kind)), .tokens = *all / width, .width = width};
}

}  // namespace

Mapped vector_row(VectorKind kind, const Tensor& x) {
  std::optional<VectorShape> shape = rows_of(kind, x);
  if (!shape) return kNoShapes;
  if (!x.element.dtype) return kNoElementType;
  return measure::row_of(*x.element.dtype, std::move(*shape));
}

Mapped binary_row(VectorKind kind, std::span<const Tensor* const> inputs, const Tensor& out) {
  const bool alike = std::all_of(inputs.begin(), inputs.end(), [&](const Tensor* t) {
    return t->shape == out.shape && t->element.dtype == out.element.dtype;
  });
  if (alike) return vector_row(kind, out);
  std::vector<const Tensor*> all(inputs.begin(), inputs.end());
  all.push_back(&out);
  return elementwise_row(all);
}

Mapped elementwise_row(std::span<const Tensor* const> tensors) {
  const Tensor* largest = nullptr;
  Bytes total;
  for (const Tensor* t : tensors) {
    const std::optional<Bytes> size = bytes(*t);
    if (!size) return kNoShapes;
    total += *size;
    // Of equals the last one: the result.
    if (largest == nullptr || *elements(*t) >= *elements(*largest)) largest = t;
  }
  if (largest == nullptr) return kNoShapes;
  Mapped row = vector_row(VectorKind::elementwise, *largest);
  if (row.row) std::get<VectorShape>(row.row->shape).bytes = total;
  return row;
}

Mapped gather_row(const Tensor& table, const Tensor& indices, const Tensor& out) {
  const std::optional<std::int64_t> rows = elements(indices);
  const std::optional<std::int64_t> all = elements(out);
  const std::optional<std::int64_t> kept = elements(table);
  if (!rows || !all || !kept) return kNoShapes;
  const std::int64_t width = *kept / table.shape.front();
  // Another axis than the first is picked from, or one element of each row.
  if (width < 2 || *all != *rows * width) return "not rows of a table";
  const std::optional<Dtype> dtype = table.element.dtype;
  if (dtype != Dtype::fp16 && dtype != Dtype::bf16 && dtype != Dtype::fp32) return kNoElementType;
  return measure::row_of(*dtype, measure::GatherShape{*rows, width, table.shape.front()});
}

Mapped cache_row(const Tensor& keys) {
  if (!elements(keys)) return kNoShapes;
  if (keys.shape.size() < 3) return "heads are not in the shapes";
  if (!keys.element.dtype) return kNoElementType;
  const std::size_t last = keys.shape.size() - 1;
  return measure::row_of(*keys.element.dtype, measure::CacheShape{*product(keys.shape, 0, last - 1),
                                                                  keys.shape[last - 1], keys.shape[last]});
}

// ---- Two operands of two dimensions each can be combined in four ways. The result says m and n; whichever dimension
// of a is not m and whichever of b is not n must then be the same, k. That leaves at most one product: when a is square
// both readings of it give the same k.

namespace {

// One dimension of an operand. A padded one is only known up to its block.
struct Dimension {
  std::int64_t size;
  std::int64_t block;

  bool is(std::int64_t wanted) const {
    return size == wanted || (block > 1 && wanted > 0 && size == divide_up(wanted, block) * block);
  }
};

// The inner dimension: the exact one of the two, where one is exact.
std::optional<std::int64_t> inner(const Dimension& a, const Dimension& b) {
  if (a.block <= 1 && b.is(a.size)) return a.size;
  if (b.block <= 1 && a.is(b.size)) return b.size;
  return a.size == b.size ? std::optional(a.size) : std::nullopt;
}

std::optional<std::int64_t> find_inner(const Dimension (&a)[2], const Dimension (&b)[2], std::int64_t m, std::int64_t n,
                                       bool a_may_turn) {
  for (const int ka : {1, 0}) {
    if (ka == 0 && !a_may_turn) break;
    if (!a[1 - ka].is(m)) continue;
    for (const int kb : {0, 1}) {
      if (!b[1 - kb].is(n)) continue;
      if (const auto k = inner(a[ka], b[kb])) return k;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Product> find_product(const Tensor& a, const Tensor& b, const Shape& out) {
  const std::size_t ra = a.shape.size();
  const std::size_t rb = b.shape.size();
  const std::size_t ro = out.size();
  if (ra < 2 || rb < 2 || ro < 2 || !elements(a) || !elements(b) || !product(out, 0, ro)) return std::nullopt;
  const std::int64_t lead_a = *product(a.shape, 0, ra - 2);
  const std::int64_t lead_b = *product(b.shape, 0, rb - 2);
  const std::int64_t lead = *product(out, 0, ro - 2);
  const std::int64_t n = out.back();
  const Dimension in_b[2] = {{b.shape[rb - 2], b.row_block}, {b.shape[rb - 1], b.column_block}};
  if (lead_b == 1 && a.row_block <= 1) {
    const Dimension in_a[2] = {{lead_a * a.shape[ra - 2], 1}, {a.shape[ra - 1], a.column_block}};
    const std::int64_t m = lead * out[ro - 2];
    if (const auto k = find_inner(in_a, in_b, m, n, lead_a == 1)) return Product{m, n, *k, 1};
  }
  if ((lead_a != lead && lead_a != 1) || (lead_b != lead && lead_b != 1)) return std::nullopt;
  const Dimension in_a[2] = {{a.shape[ra - 2], a.row_block}, {a.shape[ra - 1], a.column_block}};
  const std::int64_t m = out[ro - 2];
  if (const auto k = find_inner(in_a, in_b, m, n, true)) return Product{m, n, *k, lead};
  return std::nullopt;
}

Mapped gemm_row(const Tensor& a, const Tensor& b, const Shape& out, std::optional<Dtype> dtype,
                const std::string& weights) {
  if (a.shape.empty() || b.shape.empty() || out.empty()) return kNoShapes;
  const std::optional<Product> p = find_product(a, b, out);
  if (!p) return kNoProduct;
  if (!dtype) return kNoElementType;
  return measure::row_of(*dtype, measure::GemmShape{p->m, p->n, p->k, p->batch, weights});
}

// ---- Every layout that the shapes could be in is tried. The shapes determine the op when all readings that make sense
// are the same one.

namespace {

using measure::AttentionShape;
using measure::Phase;

// Where the dimensions of a layout stand; heads of 3-dimensional layouts are folded into the last one.
struct Layout {
  std::size_t rank;
  std::size_t batch;
  std::size_t tokens;
  std::optional<std::size_t> heads;
};
constexpr Layout kHeadMajor{4, 0, 2, 1};
constexpr Layout kTokenMajor{4, 0, 1, 2};
constexpr Layout kFoldedBatch{3, 0, 1, std::nullopt};
constexpr Layout kFoldedTokens{3, 1, 0, std::nullopt};

// A mask of queries against keys, or the triangle of 2048 that stands for any causal one.
bool is_mask(const Tensor* mask, std::int64_t q_len, std::int64_t kv_len) {
  constexpr std::int64_t kCompressed = 2048;
  if (mask == nullptr || mask->shape.size() < 2) return false;
  const std::int64_t rows = mask->shape[mask->shape.size() - 2];
  const std::int64_t columns = mask->shape.back();
  return (rows == q_len && columns == kv_len) || (rows == kCompressed && columns == kCompressed);
}

// The heads that folded layouts leave out: of the statistics, which must agree with the rest.
std::optional<std::int64_t> heads_of(const Tensor* statistics, std::int64_t batch, std::int64_t q_len) {
  if (statistics == nullptr || statistics->shape.size() != 4) return std::nullopt;
  const Shape& s = statistics->shape;
  return s[0] == batch && s[2] == q_len && s[1] > 0 ? std::optional(s[1]) : std::nullopt;
}

std::optional<AttentionShape> read(const Layout& layout, const AttentionTensors& t) {
  const Shape& q = t.query.shape;
  const Shape& k = t.key.shape;
  AttentionShape a;
  a.batch = q[layout.batch];
  a.q_len = q[layout.tokens];
  a.kv_len = k[layout.tokens];
  if (k[layout.batch] != a.batch) return std::nullopt;
  const std::optional<std::int64_t> heads = heads_of(t.statistics, a.batch, a.q_len);
  if (layout.heads) {
    a.heads = q[*layout.heads];
    a.kv_heads = k[*layout.heads];
    a.head_dim = q.back();
    if (k.back() != a.head_dim || (t.statistics != nullptr && heads != a.heads)) return std::nullopt;
  } else {
    if (!heads || q.back() % *heads != 0) return std::nullopt;
    a.heads = *heads;
    a.head_dim = q.back() / *heads;
    if (k.back() % a.head_dim != 0) return std::nullopt;
    a.kv_heads = k.back() / a.head_dim;
  }
  if (a.heads % a.kv_heads != 0) return std::nullopt;
  a.phase = a.q_len == 1 ? Phase::decode : Phase::prefill;
  a.causal = a.q_len == 1 || t.causal.value_or(is_mask(t.mask, a.q_len, a.kv_len));
  if (a.causal && a.q_len > a.kv_len) return std::nullopt;
  return a;
}

bool positive(const Tensor& t) { return elements(t).has_value(); }

}  // namespace

Mapped attention_row(const AttentionTensors& t, HeadLayout layout) {
  const std::size_t rank = t.query.shape.size();
  if (!positive(t.query) || !positive(t.key)) return kNoShapes;
  if (!t.query.element.dtype) return kNoElementType;
  if (rank != t.key.shape.size() || rank < 3 || rank > 4) return "keys are in pages, or lengths not in the shapes";
  std::vector<AttentionShape> readings;
  for (const Layout& candidate : {kHeadMajor, kTokenMajor, kFoldedBatch, kFoldedTokens}) {
    if (candidate.rank != rank) continue;
    if (layout == HeadLayout::head_major && candidate.tokens != kHeadMajor.tokens) continue;
    if (layout == HeadLayout::token_major && candidate.tokens != kTokenMajor.tokens) continue;
    const std::optional<AttentionShape> reading = read(candidate, t);
    if (reading && std::find(readings.begin(), readings.end(), *reading) == readings.end()) {
      readings.push_back(*reading);
    }
  }
  if (readings.empty() && t.statistics != nullptr && t.statistics->shape.size() == 3) {
    return "lengths are not in the shapes";  // sequences of all lengths behind each other
  }
  if (readings.empty()) return rank == 3 ? "heads are not in the shapes" : "shapes are no attention";
  // With a mask of the right size, a reading that fits it is the one.
  if (readings.size() > 1 && t.mask != nullptr) {
    std::erase_if(readings, [&](const AttentionShape& a) { return !is_mask(t.mask, a.q_len, a.kv_len); });
  }
  if (readings.size() != 1) return "layout is not in the shapes";
  return measure::row_of(*t.query.element.dtype, readings.front());
}

}  // namespace llmperf::import
