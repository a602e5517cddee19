#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/integer.h"
#include "base/number.h"
#include "replay/ascend/op.h"

namespace llmperf::replay::ascend {
namespace {

using calibrate::GemmShape;
using cann::DataType;

// A scheme in which the weights are stored.
struct Weights {
  enum class Kind : unsigned char { plain, weight_only, quantized } kind = Kind::plain;
  int bits = 16;
  std::int64_t group = 0;  // 0: one scale per column
};

Weights parse_weights(const std::string& scheme, Dtype dtype) {
  using Kind = Weights::Kind;
  if (scheme == "w8a8" || (scheme.empty() && dtype == Dtype::int8)) return {Kind::quantized, 8, 0};
  if (scheme.empty()) return {};
  if (scheme == "int8" || scheme == "w8a16") return {Kind::weight_only, 8, 0};
  if (scheme == "int4" || scheme == "w4a16") return {Kind::weight_only, 4, 0};
  constexpr std::string_view kGrouped = "w4a16-g";
  if (scheme.starts_with(kGrouped)) {
    if (const auto group = parse_int(scheme.substr(kGrouped.size())); group && *group > 0) {
      return {Kind::weight_only, 4, *group};
    }
  }
  if (const auto type = parse_dtype(scheme); type && *type == dtype) return {};
  throw Refusal{fmt::format("weights '{}' are not replayed: int8, w8a8 and w4a16-gN are", scheme)};
}

// Of 8 bits, or of 4 where 7 is the largest.
std::vector<float> integers(std::uint32_t operand, const Shape& shape, double largest) {
  std::vector<float> values = filled(operand, shape, largest);
  for (float& value : values) value = std::round(value);
  return values;
}

double column_scale(std::int64_t k) { return 1 / std::sqrt(static_cast<double>(k)); }

std::unique_ptr<Part> make_plain(Device& device, const GemmShape& s, Dtype dtype, Rotation rotation) {
  const cann::Functions& cann = device.cann();
  const bool batched = s.batch > 1;
  const char* name = batched ? "aclnnBatchMatMul" : "aclnnMatmul";
  const auto& op = needed(batched ? cann.aclnnBatchMatMul : cann.aclnnMatmul);
  const DataType type = float_type(dtype, name);
  auto part = std::make_unique<Part>(device);
  Operands& operands = part->operands;
  const auto shape = [&](std::int64_t rows, std::int64_t columns) {
    return batched ? Shape{s.batch, rows, columns} : Shape{rows, columns};
  };
  const std::vector<float> w = filled(1, shape(s.n, s.k), column_scale(s.k));
  aclTensor* input = operands.tensor(filled(0, shape(s.m, s.k)), type, shape(s.m, s.k));
  aclTensor* output = part->output(type, shape(s.m, s.n));
  const std::int64_t copies = rotation.copies(stored_bytes(type, w.size()));
  for (std::int64_t i = 0; i < copies; ++i) {
    constexpr std::int8_t kKeepType = 0;
    // Rows of the weights are columns of the product: seen transposed, as frameworks pass them.
    part->add_copy({device, op, input, operands.transposed(w, type, shape(s.n, s.k)), output, kKeepType});
  }
  return part;
}

std::unique_ptr<Part> make_weight_only(Device& device, const GemmShape& s, Dtype dtype, const Weights& scheme,
                                       Rotation rotation) {
  constexpr const char* kName = "aclnnWeightQuantBatchMatmulV2";
  constexpr std::int64_t kLargest = 65535;
  const auto& op = needed(device.cann().aclnnWeightQuantBatchMatmulV2);
  const DataType type = half_type(dtype, kName);
  require(s.batch == 1, fmt::format("{} multiplies one matrix, not {}", kName, s.batch));
  require(s.n <= kLargest && s.k <= kLargest, fmt::format("{} takes n and k up to {}", kName, kLargest));
  const std::int64_t group = scheme.group;
  // Per column the kernel prefers [n, k] seen transposed, per group [k, n].
  const bool transposed = group == 0;
  if (scheme.bits == 4) {
    require((transposed ? s.k : s.n) % 2 == 0,
            fmt::format("{} packs two int4 to a byte: {} must be even", kName, transposed ? "k" : "n"));
  }
  require(group == 0 || (group >= 32 && group % 32 == 0 && group < s.k),
          fmt::format("{} takes groups that are a multiple of 32 and smaller than k, not {} of {}", kName, group, s.k));

  auto part = std::make_unique<Part>(device);
  Operands& operands = part->operands;
  const DataType stored_type = scheme.bits == 8 ? DataType::int8 : DataType::int4;
  const double largest = scheme.bits == 8 ? 127 : 7;
  std::vector<float> w = integers(1, {s.n, s.k}, largest);
  if (!transposed) {
    std::vector<float> turned(w.size());
    for (std::int64_t n = 0; n < s.n; ++n) {
      for (std::int64_t k = 0; k < s.k; ++k) {
        turned[static_cast<std::size_t>(k * s.n + n)] = w[static_cast<std::size_t>(n * s.k + k)];
      }
    }
    w = std::move(turned);
  }
  const Shape scale_shape = group == 0 ? Shape{s.n} : Shape{divide_up(s.k, group), s.n};
  const std::vector<float> scales(element_count(scale_shape), static_cast<float>(column_scale(s.k) / largest));
  aclTensor* input = operands.tensor(filled(0, {s.m, s.k}), type, {s.m, s.k});
  aclTensor* output = part->output(type, {s.m, s.n});
  const std::int64_t copies = rotation.copies(stored_bytes(stored_type, w.size()));
  for (std::int64_t i = 0; i < copies; ++i) {
    aclTensor* weights =
        transposed ? operands.transposed(w, stored_type, {s.n, s.k}) : operands.tensor(w, stored_type, {s.k, s.n});
    aclTensor* scale = operands.tensor(scales, type, scale_shape);
    const aclTensor* none = nullptr;
    part->add_copy({device, op, input, weights, scale, none, none, none, none, static_cast<int>(group), output});
  }
  return part;
}

std::unique_ptr<Part> make_quantized(Device& device, const GemmShape& s, Dtype dtype, Rotation rotation) {
  const cann::Functions& cann = device.cann();
  constexpr std::int64_t kLargest = 65535;
  const bool v4 = static_cast<bool>(cann.aclnnQuantMatmulV4);
  const bool v5 = !v4 && static_cast<bool>(cann.aclnnQuantMatmulV5);
  if (!v4 && !v5) needed(cann.aclnnQuantMatmulV3);
  const char* name = v4 ? "aclnnQuantMatmulV4" : v5 ? "aclnnQuantMatmulV5" : "aclnnQuantMatmulV3";
  require(s.batch == 1, fmt::format("{} is replayed on one matrix, not {}", name, s.batch));
  require(s.n <= kLargest && s.k <= kLargest, fmt::format("{} takes last dimensions up to {}", name, kLargest));
  // The results of a row with dtype int8 are stored in 16 bits.
  const DataType type = half_type(dtype == Dtype::int8 ? Dtype::fp16 : dtype, name);
  require(
      v4 || v5 || type == DataType::bf16,
      "aclnnQuantMatmulV3 takes a plain scale for bf16 results only, and V4 and V5 are not in the libraries of this "
      "CANN");

  auto part = std::make_unique<Part>(device);
  Operands& operands = part->operands;
  const std::vector<float> w = integers(1, {s.n, s.k}, 127);
  const double x_scale = 1.0 / 127;
  const double w_scale = column_scale(s.k) / 127;
  aclTensor* input = operands.tensor(integers(0, {s.m, s.k}, 127), DataType::int8, {s.m, s.k});
  aclTensor* output = part->output(type, {s.m, s.n});
  const auto scales = [&](std::int64_t count, double value) {
    const std::vector<float> all(element_count({count}), static_cast<float>(value));
    return operands.tensor(all, DataType::fp32, {count});
  };
  // V3 has no scale per token: it becomes part of the other one.
  aclTensor* per_token = v4 || v5 ? scales(s.m, x_scale) : nullptr;
  aclTensor* scale = scales(s.n, v4 || v5 ? w_scale : w_scale * x_scale);
  const aclTensor* none = nullptr;
  const std::int64_t copies = rotation.copies(w.size());
  for (std::int64_t i = 0; i < copies; ++i) {
    aclTensor* weights = operands.tensor(w, DataType::int8, {s.n, s.k});
    constexpr std::int64_t kNoGroups = 0;
    if (v4) {
      part->add_copy(
          {device, cann.aclnnQuantMatmulV4, input, weights, scale, none, per_token, none, false, true, output});
    } else if (v5) {
      part->add_copy({device, cann.aclnnQuantMatmulV5, input, weights, per_token, scale, none, none, none, none, none,
                      false, true, kNoGroups, output});
    } else {
      part->add_copy({device, cann.aclnnQuantMatmulV3, input, weights, scale, none, none, false, true, output});
    }
  }
  return part;
}

}  // namespace

std::int64_t Rotation::copies(std::size_t bytes) const {
  if (asked_ > 0) return asked_;
  // Operands so small that hundreds of them fit in the cache: more copies cost executors, and measure little.
  constexpr std::int64_t kMost = 256;
  const auto size = std::max<std::int64_t>(static_cast<std::int64_t>(bytes), 1);
  return std::clamp<std::int64_t>(2 * cache_bytes_ / size + 1, 1, kMost);
}

void require_positive(std::initializer_list<std::int64_t> sizes, const char* op) {
  for (const std::int64_t size : sizes) require(size > 0, fmt::format("{}: a size is not given", op));
}

std::unique_ptr<Part> make_gemm(Device& device, const GemmShape& shape, Dtype dtype, Rotation rotation) {
  require_positive({shape.m, shape.n, shape.k, shape.batch}, "gemm");
  const Weights weights = parse_weights(shape.weights, dtype);
  switch (weights.kind) {
    case Weights::Kind::plain: return make_plain(device, shape, dtype, rotation);
    case Weights::Kind::weight_only: return make_weight_only(device, shape, dtype, weights, rotation);
    case Weights::Kind::quantized: return make_quantized(device, shape, dtype, rotation);
  }
  return nullptr;
}

}  // namespace llmperf::replay::ascend
