#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/integer.h"
#include "replay/ascend/op.h"

namespace llmperf::replay::ascend {
namespace {

using cann::DataType;
using measure::AttentionShape;

// Causal masks are given as their first 2048 rows and columns, one where a query does not see a key; query i sees the
// keys up to kv_len - q_len + i (sparse mode 3).
constexpr std::int64_t kMaskSize = 2048;
constexpr std::int64_t kEverything = std::numeric_limits<std::int32_t>::max();
enum SparseMode : std::int64_t { kNoMask = 0, kCausal = 3 };
constexpr std::int64_t kHighPrecision = 0;

// The interface has the layout's name as char*.
char* layout() {
  static std::array<char, 5> name = {'B', 'S', 'N', 'D', '\0'};
  return name.data();
}

struct Arguments {
  aclTensor* query;
  aclTensor* mask;
  aclTensor* out;
  std::int64_t heads;
  std::int64_t kv_heads;
  double scale;
  std::int64_t next_tokens;
  std::int64_t sparse_mode;
  // In pages: which of them are whose, and how many tokens each sequence has.
  std::int64_t page = 0;
  const aclTensor* table = nullptr;
  const aclIntArray* lengths = nullptr;
};

// One kernel for both phases: it looks at the number of queries itself.
Step fused(Device& device, const Arguments& a, const aclTensorList* keys, const aclTensorList* values) {
  const cann::Functions& cann = device.cann();
  const aclTensor* none = nullptr;
  const aclIntArray* whole = nullptr;  // every sequence has as many queries as its tensor
  if (cann.aclnnFusedInferAttentionScoreV3) {
    return Step(device, cann.aclnnFusedInferAttentionScoreV3, a.query, keys, values, none, a.mask, whole, a.lengths,
                none, none, none, none, none, none, none, a.table, none, none, none, none, none, none, none, none,
                whole, none, none, none, a.heads, a.scale, kEverything, a.next_tokens, layout(), a.kv_heads,
                a.sparse_mode, kHighPrecision, a.page, 0, false, 0, 0, a.out, none);
  }
  if (cann.aclnnFusedInferAttentionScoreV4) {
    return Step(device, cann.aclnnFusedInferAttentionScoreV4, a.query, keys, values, none, a.mask, whole, a.lengths,
                none, none, none, none, none, none, none, a.table, none, none, none, none, none, none, none, none,
                whole, none, none, none, none, none, a.heads, a.scale, kEverything, a.next_tokens, layout(), a.kv_heads,
                a.sparse_mode, kHighPrecision, a.page, 0, false, 0, 0, 0, a.out, none);
  }
  if (cann.aclnnFusedInferAttentionScoreV2) {
    return Step(device, cann.aclnnFusedInferAttentionScoreV2, a.query, keys, values, none, a.mask, whole, a.lengths,
                none, none, none, none, none, none, none, a.table, none, none, none, none, none, none, none, none,
                whole, a.heads, a.scale, kEverything, a.next_tokens, layout(), a.kv_heads, a.sparse_mode,
                kHighPrecision, a.page, 0, false, 0, 0, a.out, none);
  }
  return Step(device, cann.aclnnFusedInferAttentionScore, a.query, keys, values, none, a.mask, whole, a.lengths, none,
              none, none, none, none, none, none, a.table, none, none, a.heads, a.scale, kEverything, a.next_tokens,
              layout(), a.kv_heads, a.sparse_mode, kHighPrecision, a.page, 0, false, a.out, none);
}

Step prompt(Device& device, const Arguments& a, const aclTensor* keys, const aclTensor* values) {
  const cann::Functions& cann = device.cann();
  const aclTensor* none = nullptr;
  const aclIntArray* whole = nullptr;
  if (cann.aclnnPromptFlashAttentionV3) {
    return Step(device, cann.aclnnPromptFlashAttentionV3, a.query, keys, values, none, a.mask, whole, whole, none, none,
                none, none, none, a.heads, a.scale, kEverything, a.next_tokens, layout(), a.kv_heads, a.sparse_mode,
                kHighPrecision, a.out);
  }
  return Step(device, cann.aclnnPromptFlashAttentionV2, a.query, keys, values, none, a.mask, whole, whole, none, none,
              none, none, none, a.heads, a.scale, kEverything, a.next_tokens, layout(), a.kv_heads, a.sparse_mode,
              a.out);
}

Step incremental(Device& device, const Arguments& a, const aclTensorList* keys, const aclTensorList* values) {
  const cann::Functions& cann = device.cann();
  const aclTensor* none = nullptr;
  const aclIntArray* whole = nullptr;
  if (cann.aclnnIncreFlashAttentionV4) {
    return Step(device, cann.aclnnIncreFlashAttentionV4, a.query, keys, values, none, none, whole, none, none, none,
                none, none, none, none, none, none, a.heads, a.scale, layout(), a.kv_heads, 0, kHighPrecision, a.out);
  }
  return Step(device, cann.aclnnIncreFlashAttentionV3, a.query, keys, values, none, none, whole, none, none, none, none,
              none, none, none, none, a.heads, a.scale, layout(), a.kv_heads, 0, kHighPrecision, a.out);
}

aclTensor* causal_mask(Part& part) {
  std::vector<float> mask(static_cast<std::size_t>(kMaskSize * kMaskSize), 0.0F);
  for (std::int64_t row = 0; row < kMaskSize; ++row) {
    std::fill(mask.begin() + row * kMaskSize + row + 1, mask.begin() + (row + 1) * kMaskSize, 1.0F);
  }
  return part.tensor(mask, DataType::boolean, {kMaskSize, kMaskSize});
}

// The values [batch, kv_len, width] in a pool [pages, page, width]: page p of sequence b is number p batch + b, so that
// those of a sequence do not lie behind each other. What is behind a sequence's end is zero.
std::vector<float> in_pages(const std::vector<float>& values, std::int64_t batch, std::int64_t kv_len,
                            std::int64_t page, std::int64_t width) {
  const std::int64_t pages = divide_up(kv_len, page);
  std::vector<float> pool(element_count({pages, batch, page, width}), 0.0F);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t p = 0; p < pages; ++p) {
      const std::int64_t tokens = std::min(page, kv_len - p * page);
      std::copy_n(values.begin() + (b * kv_len + p * page) * width, tokens * width,
                  pool.begin() + (p * batch + b) * page * width);
    }
  }
  return pool;
}

}  // namespace

std::unique_ptr<Part> make_attention(Device& device, const AttentionShape& s, Dtype dtype, Rotation rotation,
                                     std::int64_t page) {
  const cann::Functions& cann = device.cann();
  require(s.window == 0 && s.kv_dtype.empty(), "windows and caches of another type are not replayed");
  require_positive({s.batch, s.q_len, s.kv_len, s.heads, s.kv_heads, s.head_dim}, "attention");
  const bool one_query = s.q_len == 1;
  const bool any_fused = cann.aclnnFusedInferAttentionScoreV3 || cann.aclnnFusedInferAttentionScoreV4 ||
                         cann.aclnnFusedInferAttentionScoreV2 || cann.aclnnFusedInferAttentionScore;
  const bool any_other = one_query ? cann.aclnnIncreFlashAttentionV4 || cann.aclnnIncreFlashAttentionV3
                                   : cann.aclnnPromptFlashAttentionV3 || cann.aclnnPromptFlashAttentionV2;
  const std::string other = one_query ? "aclnnIncreFlashAttention" : "aclnnPromptFlashAttention";
  require(any_fused || any_other,
          fmt::format("neither aclnnFusedInferAttentionScore nor {}V{} is in the libraries of this CANN", other,
                      one_query ? "4" : "3"));
  const std::int64_t page_step = one_query ? 16 : 128;
  constexpr std::int64_t kLargestPage = 512;
  constexpr std::int64_t kWidestPage = 65535;
  if (page > 0) {
    require(any_fused, "of attention only aclnnFusedInferAttentionScore takes pages");
    require(page % page_step == 0 && page <= kLargestPage,
            fmt::format("aclnnFusedInferAttentionScore takes pages of a multiple of {} tokens up to {} for {}, not {}",
                        page_step, kLargestPage, one_query ? "one query" : "several queries", page));
    require(s.kv_heads * s.head_dim <= kWidestPage,
            fmt::format("aclnnFusedInferAttentionScore takes pages of up to {} elements of a token", kWidestPage));
  }
  const std::string name = any_fused ? "aclnnFusedInferAttentionScore" : other;
  const DataType type = half_type(dtype, name);
  require(s.head_dim % 16 == 0 && s.head_dim <= 512,
          fmt::format("{} takes heads of a multiple of 16 elements up to 512, not {}", name, s.head_dim));
  require(s.heads <= 256, fmt::format("{} takes up to 256 heads, not {}", name, s.heads));
  require(s.heads % s.kv_heads == 0 && s.heads / s.kv_heads <= 64,
          fmt::format("{} takes 1 to 64 query heads for each key head, not {} for {}", name, s.heads, s.kv_heads));
  require(!s.causal || s.kv_len >= s.q_len,
          fmt::format("{} queries do not follow from {} keys (columns q_len, kv_len)", s.q_len, s.kv_len));
  require(s.batch <= 65536, fmt::format("{} takes up to 65536 sequences, not {}", name, s.batch));

  auto part = std::make_unique<Part>(device);
  const Shape queries = {s.batch, s.q_len, s.heads, s.head_dim};
  const Shape cached = {s.batch, s.kv_len, s.kv_heads, s.head_dim};
  // The last query sees every key: alone it needs no mask.
  const bool masked = s.causal && !one_query;
  Arguments arguments = {part->tensor(filled(0, queries), type, queries),
                         masked ? causal_mask(*part) : nullptr,
                         part->output(type, queries),
                         s.heads,
                         s.kv_heads,
                         1 / std::sqrt(static_cast<double>(s.head_dim)),
                         masked ? 0 : kEverything,
                         masked ? kCausal : kNoMask};
  std::vector<float> keys = filled(1, cached);
  std::vector<float> values = filled(2, cached);
  Shape stored = cached;
  if (page > 0) {
    const std::int64_t width = s.kv_heads * s.head_dim;
    const std::int64_t pages = divide_up(s.kv_len, page);
    keys = in_pages(keys, s.batch, s.kv_len, page, width);
    values = in_pages(values, s.batch, s.kv_len, page, width);
    stored = {pages * s.batch, page, width};
    std::vector<float> table(element_count({s.batch, pages}));
    for (std::int64_t i = 0; i < s.batch * pages; ++i) {
      const std::int64_t sequence = i / pages;
      table[static_cast<std::size_t>(i)] = static_cast<float>(i % pages * s.batch + sequence);
    }
    arguments.page = page;
    arguments.table = part->tensor(table, DataType::int32, {s.batch, pages});
    arguments.lengths = part->array(std::vector<std::int64_t>(static_cast<std::size_t>(s.batch), s.kv_len));
  }
  const std::int64_t copies = rotation.copies(2 * stored_bytes(type, keys.size()));
  for (std::int64_t i = 0; i < copies; ++i) {
    if (any_fused || one_query) {
      const aclTensorList* k = part->list(keys, type, stored);
      const aclTensorList* v = part->list(values, type, stored);
      part->add_copy(any_fused ? fused(device, arguments, k, v) : incremental(device, arguments, k, v));
    } else {
      const aclTensor* k = part->tensor(keys, type, cached);
      part->add_copy(prompt(device, arguments, k, part->tensor(values, type, cached)));
    }
  }
  return part;
}

}  // namespace llmperf::replay::ascend
