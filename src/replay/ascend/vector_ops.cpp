#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/integer.h"
#include "replay/ascend/op.h"
#include "replay/operands.h"

namespace llmperf::replay::ascend {
namespace {

using cann::DataType;
using graph::VectorKind;
using measure::VectorShape;

// The shape of a layer known by name, as the kind of kernel that it is.
VectorShape resolved(VectorShape shape, VectorKind& kind) {
  if (const measure::VectorOp* op = measure::vector_op(shape.layer)) {
    kind = op->kind;
    return shape;
  }
  const measure::KnownLayer* layer = measure::known_layer(shape.layer);
  require(layer != nullptr, fmt::format("no op 'vector:{}' is known", shape.layer));
  require(layer->kind != VectorKind::add,
          fmt::format("'{}' is a lookup in a table of unknown size; write it as gather", shape.layer));
  kind = layer->kind;
  shape.width = layer->width;
  if (kind == VectorKind::rope) {
    // 32 heads of queries and 8 of keys (op_row.cpp), all of 128 elements.
    shape.heads = 32;
    shape.kv_heads = 8;
    shape.width = layer->width / (shape.heads + shape.kv_heads);
    shape.tokens *= shape.heads + shape.kv_heads;
  }
  return shape;
}

std::unique_ptr<Part> make_rope(Device& device, const VectorShape& s, Dtype dtype) {
  const cann::Functions& cann = device.cann();
  const std::int64_t width = s.width;
  constexpr std::int64_t kFirstVersionWidth = 128;
  const bool first = width == kFirstVersionWidth && cann.aclnnApplyRotaryPosEmb;
  const bool second = !first && cann.aclnnApplyRotaryPosEmbV2;
  const DataType type = float_type(dtype, "aclnnApplyRotaryPosEmb");
  require(s.heads > 0 && s.kv_heads > 0,
          "aclnnApplyRotaryPosEmb rotates queries and keys at once: columns heads and kv_heads are needed");
  require(width % 2 == 0, fmt::format("heads of {} elements have no halves", width));
  require(s.tokens % (s.heads + s.kv_heads) == 0,
          fmt::format("{} rows are no whole tokens of {} + {} heads", s.tokens, s.heads, s.kv_heads));
  if (!first && !second) {
    needed(cann.aclnnApplyRotaryPosEmb);
    throw Unavailable{
        fmt::format("aclnnApplyRotaryPosEmb takes heads of {} elements, not {}", kFirstVersionWidth, width)};
  }

  auto part = std::make_unique<Part>(device);
  const std::int64_t tokens = s.tokens / (s.heads + s.kv_heads);
  const auto rotated = [&](std::uint32_t operand, std::int64_t heads) {
    const std::vector<float> values = filled(operand, {tokens, heads, width});
    void* data = part->store(values, type);
    part->outputs.push_back({data, values.size(), type});
    part->overwritten.push_back({data, encode(values, type)});  // in place
    return part->tensor(data, type, {1, tokens, heads, width});
  };
  aclTensor* queries = rotated(0, s.heads);
  aclTensor* keys = rotated(1, s.kv_heads);
  std::vector<float> cosines(static_cast<std::size_t>(tokens * width));
  std::vector<float> sines(cosines.size());
  for (std::int64_t token = 0; token < tokens; ++token) {
    for (std::int64_t i = 0; i < width; ++i) {
      const double half = static_cast<double>(i % (width / 2));
      const double angle = static_cast<double>(token) * std::pow(kRopeBase, -2 * half / static_cast<double>(width));
      cosines[static_cast<std::size_t>(token * width + i)] = static_cast<float>(std::cos(angle));
      sines[static_cast<std::size_t>(token * width + i)] = static_cast<float>(std::sin(angle));
    }
  }
  aclTensor* cosine = part->tensor(cosines, type, {1, tokens, 1, width});
  aclTensor* sine = part->tensor(sines, type, {1, tokens, 1, width});
  constexpr std::int64_t kBsnd = 1;
  if (first) {
    part->add_copy({device, cann.aclnnApplyRotaryPosEmb, queries, keys, cosine, sine, kBsnd});
  } else {
    static std::array<char, 5> mode = {'h', 'a', 'l', 'f', '\0'};
    part->add_copy({device, cann.aclnnApplyRotaryPosEmbV2, queries, keys, cosine, sine, kBsnd, mode.data()});
  }
  return part;
}

}  // namespace

std::unique_ptr<Part> make_vector(Device& device, const VectorShape& shape, Dtype dtype) {
  const cann::Functions& cann = device.cann();
  VectorKind kind{};
  const VectorShape s = resolved(shape, kind);
  require_positive({s.tokens, s.width}, "vector");
  if (kind == VectorKind::rope) return make_rope(device, s, dtype);
  const DataType type = float_type(dtype, fmt::format("vector:{}", s.layer));
  const Shape rows = {s.tokens, s.width};
  auto part = std::make_unique<Part>(device);
  const auto input = [&](std::uint32_t operand) { return part->tensor(filled(operand, rows), type, rows); };
  const auto output = [&] { return part->output(type, rows); };
  const auto gamma = [&](std::uint32_t operand) {
    return part->tensor(filled(operand, {s.width}, 1.0 / 8, 1), type, {s.width});
  };
  // What norms leave besides.
  const auto inverse_deviation = [&] {
    void* data = part->allocate(stored_bytes(DataType::fp32, static_cast<std::size_t>(s.tokens)));
    return part->tensor(data, DataType::fp32, {s.tokens, 1});
  };
  switch (kind) {
    case VectorKind::rms_norm:
      part->add_copy({device, needed(cann.aclnnRmsNorm), input(0), gamma(1), kEpsilon, output(), inverse_deviation()});
      break;
    case VectorKind::add_rms_norm:
      part->add_copy({device, needed(cann.aclnnAddRmsNorm), input(0), input(1), gamma(2), kEpsilon, output(),
                      inverse_deviation(), output()});
      break;
    case VectorKind::add:
      part->add_copy({device, needed(cann.aclnnAdd), input(0), input(1), part->scalar(1), output()});
      break;
    case VectorKind::multiply: part->add_copy({device, needed(cann.aclnnMul), input(0), input(1), output()}); break;
    case VectorKind::activation: part->add_copy({device, needed(cann.aclnnSilu), input(0), output()}); break;
    case VectorKind::gated_activation: {
      const auto gate_and_up = [&](const Shape& both) { return part->tensor(filled(0, both), type, both); };
      constexpr std::int64_t kLast = -1;
      part->add_copy({device, needed(cann.aclnnSwiGlu), gate_and_up({s.tokens, 2 * s.width}), kLast, output()});
      break;
    }
    default: throw Unavailable{fmt::format("the ascend backend has no kernel for vector:{}", s.layer)};
  }
  return part;
}

std::unique_ptr<Part> make_gather(Device& device, const measure::GatherShape& s, Dtype dtype, Rotation rotation) {
  require_positive({s.rows, s.width}, "gather");
  require(s.table > 0, "gather: the rows of the table are not given (column k)");
  const auto& op = needed(device.cann().aclnnEmbedding);
  const DataType type = float_type(dtype, "aclnnEmbedding");
  auto part = std::make_unique<Part>(device);
  std::vector<float> numbers(element_count({s.rows}));
  // fp32 holds the number of every row of a table of 2^24 rows.
  constexpr std::int64_t kMostRows = std::int64_t{1} << 24U;
  require(s.table <= kMostRows, fmt::format("gather is replayed on tables of up to {} rows", kMostRows));
  for (std::int64_t row = 0; row < s.rows; ++row) {
    numbers[static_cast<std::size_t>(row)] = static_cast<float>(gathered_row(row, s.table));
  }
  aclTensor* indices = part->tensor(numbers, DataType::int64, {s.rows});
  aclTensor* output = part->output(type, {s.rows, s.width});
  const std::vector<float> table = filled(0, {s.table, s.width});
  const std::int64_t copies = rotation.copies(stored_bytes(type, table.size()));
  for (std::int64_t i = 0; i < copies; ++i) {
    part->add_copy({device, op, part->tensor(table, type, {s.table, s.width}), indices, output});
  }
  return part;
}

std::unique_ptr<Part> make_cache_write(Device& device, const measure::CacheShape& s, Dtype dtype) {
  require_positive({s.tokens, s.kv_heads, s.head_dim}, "kv_write");
  const auto& op = needed(device.cann().aclnnInplaceScatterUpdate);
  const DataType type = dtype == Dtype::int8 ? DataType::int8 : float_type(dtype, "aclnnInplaceScatterUpdate");
  constexpr std::int64_t kBlock = 128;  // caches are allocated in blocks of tokens
  const std::int64_t places = divide_up(s.tokens, kBlock) * kBlock;
  auto part = std::make_unique<Part>(device);
  const std::vector<float> first_place = {0};
  aclTensor* indices = part->tensor(first_place, DataType::int64, {1});
  std::vector<Step>& steps = part->copies.emplace_back();
  for (const std::uint32_t operand : {0U, 1U}) {
    const double scale = type == DataType::int8 ? 127 : 1;
    const std::vector<float> zeros(element_count({places, s.kv_heads, s.head_dim}), 0.0F);
    void* cache = part->store(zeros, type);
    const std::vector<float> update = filled(operand, {s.tokens, s.kv_heads, s.head_dim}, scale);
    aclTensor* cached = part->tensor(cache, type, {1, places, s.kv_heads, s.head_dim});
    aclTensor* updates = part->tensor(update, type, {1, s.tokens, s.kv_heads, s.head_dim});
    constexpr std::int64_t kTokens = 1;  // axis of [sequence, token, head, element]
    steps.push_back({device, op, cached, indices, updates, kTokens});
    part->outputs.push_back({cache, update.size(), type});
  }
  return part;
}

}  // namespace llmperf::replay::ascend
