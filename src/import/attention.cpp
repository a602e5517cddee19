// Every layout that the shapes could be in is tried. The shapes determine the op when all readings that make sense are
// the same one.
#include "import/attention.h"

#include <algorithm>

namespace llmperf::import {
namespace {

using calibrate::AttentionShape;
using calibrate::Phase;

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
  const AttentionShape& a = readings.front();
  return calibrate::OpRow{a.phase == Phase::decode ? "attention_decode" : "attention_prefill", *t.query.element.dtype,
                          a};
}

}  // namespace llmperf::import
