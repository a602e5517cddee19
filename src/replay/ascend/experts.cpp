#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "replay/ascend/op.h"

namespace llmperf::replay::ascend {
namespace {

using cann::DataType;
using measure::ExpertsShape;

// What a token's experts are chosen by: all of its picks score alike, so that each weighs 1 / topk.
std::vector<float> logits(const ExpertsShape& s) {
  constexpr float kPicked = 8;
  std::vector<float> scores(element_count({s.m, s.experts}), 0.0F);
  for (std::int64_t row = 0; row < s.m * s.topk; ++row) {
    scores[static_cast<std::size_t>(row / s.topk * s.experts + row % s.experts)] = kPicked;
  }
  return scores;
}

// Rows of experts, dealt round robin, are behind each other: where those of each end.
std::vector<float> last_rows(const ExpertsShape& s) {
  std::vector<float> ends;
  std::int64_t end = 0;
  for (std::int64_t e = 0; e < s.experts; ++e) {
    end += (s.m * s.topk - e + s.experts - 1) / s.experts;
    ends.push_back(static_cast<float>(end));
  }
  return ends;
}

}  // namespace

std::unique_ptr<Part> make_experts(Device& device, const ExpertsShape& s, Dtype dtype, Rotation rotation) {
  const cann::Functions& cann = device.cann();
  require_positive({s.m, s.hidden, s.inter, s.topk, s.experts, s.tp, s.ep}, "moe");
  const bool int8 = s.weights == "w8a8";
  const DataType type = half_type(dtype, "moe");
  require(int8 || s.weights.empty(), fmt::format("experts stored as {} are not replayed: w8a8 are", s.weights));
  require(s.ep == 1, "aclnnMoeInitRoutingV2 takes all experts, not those of one rank");
  require(s.distribution.empty() || s.distribution == "balanced", "experts are replayed with evenly dealt rows");
  require(measure::has_gate(s), "experts without a gate are not replayed");
  require(s.topk <= s.experts && s.inter % s.tp == 0, "its experts cannot be divided so");
  constexpr std::int64_t kMostExperts = 1024;
  require(s.experts <= kMostExperts, fmt::format("aclnnGroupedMatmulV4 takes up to {} groups", kMostExperts));
  const auto& gating = needed(cann.aclnnMoeGatingTopKSoftmaxV2);
  const auto& routing = needed(cann.aclnnMoeInitRoutingV2);
  const auto& finalize = needed(cann.aclnnMoeFinalizeRoutingV2);
  const auto& activation = needed(cann.aclnnSwiGlu);
  const auto& quantize = cann.aclnnDynamicQuant;
  if (int8) needed(quantize);

  const std::int64_t width = s.inter / s.tp;
  const std::int64_t rows = s.m * s.topk;
  auto part = std::make_unique<Part>(device);
  const aclTensor* none = nullptr;
  const auto scratch = [&](DataType of, const Shape& shape) {
    return part->allocate(stored_bytes(of, element_count(shape)));
  };
  const std::vector<float> ends = last_rows(s);
  aclTensor* scores = part->tensor(logits(s), type, {s.m, s.experts});
  aclTensor* x = part->tensor(filled(0, {s.m, s.hidden}), type, {s.m, s.hidden});
  aclTensor* shares = part->tensor(scratch(type, {s.m, s.topk}), type, {s.m, s.topk});
  aclTensor* picks = part->tensor(scratch(DataType::int32, {s.m, s.topk}), DataType::int32, {s.m, s.topk});
  aclTensor* places = part->tensor(scratch(DataType::int32, {rows}), DataType::int32, {rows});
  aclTensor* counts = part->tensor(scratch(DataType::int32, {s.experts}), DataType::int32, {s.experts});
  void* dealt = scratch(type, {rows, s.hidden});
  void* both = scratch(type, {rows, 2 * width});
  void* gated = scratch(type, {rows, width});
  void* done = scratch(type, {rows, s.hidden});
  // Of each product its input in int8, and the scales of its rows.
  void* narrow = int8 ? scratch(DataType::int8, {rows, std::max(s.hidden, width)}) : nullptr;
  void* scales = int8 ? scratch(DataType::fp32, {rows}) : nullptr;
  aclTensor* output = part->output(type, {s.m, s.hidden});

  const double bytes = int8 ? 1 : 2;
  const std::int64_t copies = rotation.copies(
      static_cast<std::size_t>(bytes * 3 * static_cast<double>(element_count({s.experts, s.hidden, width}))));
  for (std::int64_t i = 0; i < copies; ++i) {
    std::vector<Step>& steps = part->copies.emplace_back();
    const auto product = [&](const Grouped& shape, void* from, void* to, std::uint32_t operand, double scale) {
      if (int8) {
        steps.push_back({device, quantize, part->tensor(from, type, {rows, shape.k}), none,
                         part->tensor(narrow, DataType::int8, {rows, shape.k}),
                         part->tensor(scales, DataType::fp32, {rows})});
      }
      steps.push_back(grouped_product(*part, shape, {int8 ? narrow : from, scales, to, ends}, operand, scale, type));
    };
    constexpr std::int64_t kAfterChoice = 1;  // renorm: softmax over the experts that were picked
    constexpr std::int64_t kAll = 0;          // activeNum, expertCapacity, dropPadMode: none is dropped
    constexpr std::int64_t kCumulative = 1;   // of the counts of rows
    // dropPadMode: none is dropped, and the places are in the order of MoeInitRoutingV2, not in that of the first one.
    constexpr std::int64_t kTokenByToken = 2;
    steps.push_back({device, gating, scores, none, s.topk, kAfterChoice, false, shares, picks, none});
    steps.push_back({device, routing, x, picks, kAll, kAll, s.experts, kAll, kCumulative, false,
                     part->tensor(dealt, type, {rows, s.hidden}), places, counts, none});
    product({s.experts, rows, 2 * width, s.hidden}, dealt, both, 1, 1 / std::sqrt(static_cast<double>(s.hidden)));
    constexpr std::int64_t kLast = -1;
    steps.push_back({device, activation, part->tensor(both, type, {rows, 2 * width}), kLast,
                     part->tensor(gated, type, {rows, width})});
    product({s.experts, rows, s.hidden, width}, gated, done, 2, 1 / std::sqrt(static_cast<double>(width)));
    steps.push_back({device, finalize, part->tensor(done, type, {rows, s.hidden}), places, none, none, none, shares,
                     none, kTokenByToken, output});
  }
  return part;
}

}  // namespace llmperf::replay::ascend
