#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/integer.h"
#include "base/number.h"
#include "replay/ascend/op.h"

namespace llmperf::replay::ascend {
namespace {

using cann::DataType;
using measure::GemmShape;

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
  throw Unavailable{fmt::format("weights '{}' are not replayed: int8, w8a8 and w4a16-gN are", scheme)};
}

// Of 8 bits, or of 4 where 7 is the largest.
std::vector<float> integers(std::uint32_t operand, const Shape& shape, double largest) {
  std::vector<float> values = filled(operand, shape, largest);
  for (float& value : values) value = std::round(value);
  return values;
}

double column_scale(std::int64_t k) { return 1 / std::sqrt(static_cast<double>(k)); }

// Of each of `matrices` [n, k] the transposed.
std::vector<float> turned(std::span<const float> w, std::int64_t matrices, std::int64_t n, std::int64_t k) {
  std::vector<float> result(w.size());
  for (std::int64_t m = 0; m < matrices; ++m) {
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < k; ++j) {
        result[static_cast<std::size_t>((m * k + j) * n + i)] = w[static_cast<std::size_t>((m * n + i) * k + j)];
      }
    }
  }
  return result;
}

std::unique_ptr<Part> make_plain(Device& device, const GemmShape& s, Dtype dtype, Rotation rotation) {
  const cann::Functions& cann = device.cann();
  const bool batched = s.batch > 1;
  const char* name = batched ? "aclnnBatchMatMul" : "aclnnMatmul";
  const auto& op = needed(batched ? cann.aclnnBatchMatMul : cann.aclnnMatmul);
  const DataType type = float_type(dtype, name);
  auto part = std::make_unique<Part>(device);
  const auto shape = [&](std::int64_t rows, std::int64_t columns) {
    return batched ? Shape{s.batch, rows, columns} : Shape{rows, columns};
  };
  const std::vector<float> w = filled(1, shape(s.n, s.k), column_scale(s.k));
  aclTensor* input = part->tensor(filled(0, shape(s.m, s.k)), type, shape(s.m, s.k));
  aclTensor* output = part->output(type, shape(s.m, s.n));
  const std::int64_t copies = rotation.copies(stored_bytes(type, w.size()));
  for (std::int64_t i = 0; i < copies; ++i) {
    constexpr std::int8_t kKeepType = 0;
    // Rows of the weights are columns of the product: seen transposed, as frameworks pass them.
    part->add_copy({device, op, input, part->transposed(w, type, shape(s.n, s.k)), output, kKeepType});
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
  const DataType stored_type = scheme.bits == 8 ? DataType::int8 : DataType::int4;
  const double largest = scheme.bits == 8 ? 127 : 7;
  std::vector<float> w = integers(1, {s.n, s.k}, largest);
  if (!transposed) {
    w = turned(w, 1, s.n, s.k);
  }
  const Shape scale_shape = group == 0 ? Shape{s.n} : Shape{divide_up(s.k, group), s.n};
  const std::vector<float> scales(element_count(scale_shape), static_cast<float>(column_scale(s.k) / largest));
  aclTensor* input = part->tensor(filled(0, {s.m, s.k}), type, {s.m, s.k});
  aclTensor* output = part->output(type, {s.m, s.n});
  const std::int64_t copies = rotation.copies(stored_bytes(stored_type, w.size()));
  for (std::int64_t i = 0; i < copies; ++i) {
    aclTensor* weights =
        transposed ? part->transposed(w, stored_type, {s.n, s.k}) : part->tensor(w, stored_type, {s.k, s.n});
    aclTensor* scale = part->tensor(scales, type, scale_shape);
    const aclTensor* none = nullptr;
    part->add_copy({device, op, input, weights, scale, none, none, none, none, static_cast<int>(group), output});
  }
  return part;
}

// The rows [rows, k] of a product of int8, and a scale of each. Activations of 16 bits are quantised by the device, by
// a launch before every product's; those of a row of type int8 are there in int8.
struct QuantizedRows {
  void* values;
  void* scales;
  std::function<void(std::vector<Step>&)> quantize;
};
QuantizedRows quantized_rows(Part& part, std::int64_t rows, std::int64_t k, Dtype dtype, DataType type) {
  std::vector<float> x = integers(0, {rows, k}, 127);
  if (dtype == Dtype::int8) {
    const std::vector<float> scales(element_count({rows}), 1.0F / 127);
    return {part.store(x, DataType::int8), part.store(scales, DataType::fp32), [](std::vector<Step>&) {}};
  }
  const auto& op = needed(part.device.cann().aclnnDynamicQuant);
  for (float& value : x) value /= 127;
  void* values = part.allocate(x.size());
  void* scales = part.allocate(stored_bytes(DataType::fp32, element_count({rows})));
  aclTensor* wide = part.tensor(x, type, {rows, k});
  aclTensor* narrow = part.tensor(values, DataType::int8, {rows, k});
  aclTensor* steps_of_rows = part.tensor(scales, DataType::fp32, {rows});
  const aclTensor* none = nullptr;
  return {values, scales, [&device = part.device, &op, wide, narrow, steps_of_rows, none](std::vector<Step>& steps) {
            steps.push_back({device, op, wide, none, narrow, steps_of_rows});
          }};
}

// As many rows for each.
std::unique_ptr<Part> make_grouped(Device& device, const GemmShape& s, Dtype dtype, Rotation rotation) {
  const DataType type = half_type(dtype == Dtype::int8 ? Dtype::fp16 : dtype, "aclnnGroupedMatmulV4");
  const Grouped shape{s.batch, s.batch * s.m, s.n, s.k};
  auto part = std::make_unique<Part>(device);
  const QuantizedRows x = quantized_rows(*part, shape.rows, s.k, dtype, type);
  const std::size_t results = element_count({shape.rows, s.n});
  void* out = part->allocate(stored_bytes(type, results));
  part->outputs.push_back({out, results, type});
  std::vector<float> last_rows;
  for (std::int64_t e = 1; e <= s.batch; ++e) last_rows.push_back(static_cast<float>(e * s.m));
  const std::int64_t copies = rotation.copies(element_count({s.batch, s.n, s.k}));
  for (std::int64_t i = 0; i < copies; ++i) {
    std::vector<Step>& steps = part->copies.emplace_back();
    x.quantize(steps);
    steps.push_back(grouped_product(*part, shape, {x.values, x.scales, out, last_rows}, 1, column_scale(s.k), type));
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
  require(s.n <= kLargest && s.k <= kLargest, fmt::format("{} takes last dimensions up to {}", name, kLargest));
  // The results of a row with dtype int8 are stored in 16 bits.
  const DataType type = half_type(dtype == Dtype::int8 ? Dtype::fp16 : dtype, name);
  require(
      v4 || v5 || type == DataType::bf16,
      "aclnnQuantMatmulV3 takes a plain scale for bf16 results only, and V4 and V5 are not in the libraries of this "
      "CANN");

  auto part = std::make_unique<Part>(device);
  const std::vector<float> w = integers(1, {s.n, s.k}, 127);
  const double x_scale = 1.0 / 127;
  const double w_scale = column_scale(s.k) / 127;
  // V3 has no scale per row: what is there in int8, by one scale, becomes part of the other one.
  const bool per_row = v4 || v5;
  const QuantizedRows x = quantized_rows(*part, s.m, s.k, per_row ? dtype : Dtype::int8, type);
  aclTensor* input = part->tensor(x.values, DataType::int8, {s.m, s.k});
  aclTensor* output = part->output(type, {s.m, s.n});
  const auto scales = [&](std::int64_t count, double value) {
    const std::vector<float> all(element_count({count}), static_cast<float>(value));
    return part->tensor(all, DataType::fp32, {count});
  };
  aclTensor* per_token = per_row ? part->tensor(x.scales, DataType::fp32, {s.m}) : nullptr;
  aclTensor* scale = scales(s.n, per_row ? w_scale : w_scale * x_scale);
  const aclTensor* none = nullptr;
  const std::int64_t copies = rotation.copies(w.size());
  for (std::int64_t i = 0; i < copies; ++i) {
    aclTensor* weights = part->tensor(w, DataType::int8, {s.n, s.k});
    constexpr std::int64_t kNoGroups = 0;
    std::vector<Step>& steps = part->copies.emplace_back();
    x.quantize(steps);
    if (v4) {
      steps.push_back(
          {device, cann.aclnnQuantMatmulV4, input, weights, scale, none, per_token, none, false, true, output});
    } else if (v5) {
      steps.push_back({device, cann.aclnnQuantMatmulV5, input, weights, per_token, scale, none, none, none, none, none,
                       false, true, kNoGroups, output});
    } else {
      steps.push_back({device, cann.aclnnQuantMatmulV3, input, weights, scale, none, none, false, true, output});
    }
  }
  return part;
}

}  // namespace

Step grouped_product(Part& part, const Grouped& s, const GroupedOperands& given, std::uint32_t operand, double scale,
                     DataType type) {
  constexpr std::int64_t kOneResult = 3;  // splitItem: results are in one tensor
  constexpr std::int64_t kByRows = 0;     // groupType
  constexpr std::int64_t kLastRows = 0;   // groupListType: the last row of each group, counted from 1
  constexpr std::int64_t kNoActivation = 0;
  const auto& op = needed(part.device.cann().aclnnGroupedMatmulV4);
  const bool int8 = given.x_scales != nullptr;
  const DataType stored = int8 ? DataType::int8 : type;
  const Shape weights = {s.experts, s.n, s.k};
  const std::vector<float> w =
      turned(int8 ? integers(operand, weights, 127) : filled(operand, weights, scale), s.experts, s.n, s.k);
  const aclTensorList* none = nullptr;
  const aclTensorList* x = part.list(given.x, stored, {s.rows, s.k});
  const aclTensorList* matrices = part.list(w, stored, {s.experts, s.k, s.n});
  const aclTensorList* scales = none;
  const aclTensorList* x_scales = none;
  if (int8) {
    // Of results in bf16 the scales are too.
    const DataType scale_type = type == DataType::bf16 ? DataType::bf16 : DataType::fp32;
    const std::vector<float> all(element_count({s.experts, s.n}), static_cast<float>(scale / 127));
    scales = part.list(all, scale_type, {s.experts, s.n});
    x_scales = part.list(given.x_scales, DataType::fp32, {s.rows});
  }
  const aclTensor* groups = part.tensor(given.last_rows, DataType::int64, {s.experts});
  aclTensorList* out = part.list(given.out, type, {s.rows, s.n});
  aclTensorList* no_result = nullptr;
  return Step(part.device, op, x, matrices, none, scales, none, none, none, x_scales, groups, none, none, none,
              kOneResult, kByRows, kLastRows, kNoActivation, out, no_result, no_result);
}

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
    case Weights::Kind::quantized:
      return (shape.batch > 1 ? make_grouped : make_quantized)(device, shape, dtype, rotation);
  }
  return nullptr;
}

}  // namespace llmperf::replay::ascend
