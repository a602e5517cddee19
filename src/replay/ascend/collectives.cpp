#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "replay/ascend/ops.h"
#include "replay/ascend/rank_group.h"

namespace llmperf::replay::ascend {
namespace {

using calibrate::CollectiveShape;
using cann::DataType;
using graph::CollectiveKind;

cann::HcclDataType hccl_type(DataType type) {
  switch (type) {
    case DataType::fp16: return cann::HcclDataType::fp16;
    case DataType::bf16: return cann::HcclDataType::bf16;
    default: return cann::HcclDataType::fp32;
  }
}

std::size_t elements(const CollectiveShape& shape, Dtype dtype) {
  return static_cast<std::size_t>(std::llround(shape.bytes.value / bytes_per_element(dtype)));
}

const char* function_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce: return "HcclAllReduce";
    case CollectiveKind::all_gather: return "HcclAllGather";
    case CollectiveKind::reduce_scatter: return "HcclReduceScatter";
    case CollectiveKind::all_to_all: return "HcclAlltoAll";
    default: return nullptr;
  }
}

bool available(const cann::Functions& cann, CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce: return cann.HcclAllReduce != nullptr;
    case CollectiveKind::all_gather: return cann.HcclAllGather != nullptr;
    case CollectiveKind::reduce_scatter: return cann.HcclReduceScatter != nullptr;
    case CollectiveKind::all_to_all: return cann.HcclAlltoAll != nullptr;
    default: return false;
  }
}

void require_communicators(const cann::Functions& cann) {
  require(cann.HcclGetRootInfo != nullptr && cann.HcclCommInitRootInfo != nullptr && cann.HcclCommDestroy != nullptr &&
              cann.HcclGetCommName != nullptr,
          "libhccl.so, or a function of it, is not in the libraries of this CANN");
}

}  // namespace

void require_collective(const cann::Functions& cann, const CollectiveShape& shape, Dtype dtype) {
  const char* function = function_of(shape.kind);
  require(function != nullptr, "only all_reduce, all_gather, reduce_scatter and all_to_all are replayed");
  require_communicators(cann);
  require(available(cann, shape.kind), fmt::format("{} is not in the libraries of this CANN", function));
  float_type(dtype, function);
  require_positive({shape.ranks, static_cast<std::int64_t>(std::min(shape.bytes.value, 1e18))}, function);
  const double count = shape.bytes.value / bytes_per_element(dtype);
  element_count({static_cast<std::int64_t>(std::min(count, 1e18))});
  require(count == std::floor(count),
          fmt::format("{}: {:.0f} bytes are no whole elements of {}", function, shape.bytes.value, name(dtype)));
  require(shape.kind == CollectiveKind::all_reduce || std::fmod(count, static_cast<double>(shape.ranks)) == 0,
          fmt::format("{}: {:.0f} elements are not dealt evenly among {} ranks", function, count, shape.ranks));
}

std::unique_ptr<Op> make_collective(RankGroup& group, const CollectiveShape& shape, Dtype dtype) {
  const DataType type = float_type(dtype, "HCCL");
  const std::size_t all = elements(shape, dtype);
  const std::size_t share = all / static_cast<std::size_t>(shape.ranks);
  const bool gathers = shape.kind == CollectiveKind::all_gather;
  const bool scatters = shape.kind == CollectiveKind::reduce_scatter;
  const std::size_t sent = gathers ? share : all;
  const std::size_t received = scatters ? share : all;
  return std::make_unique<Op>(group, [&](int rank, Device& device) {
    auto part = std::make_unique<Part>(device);
    void* send = part->operands.store(filled(static_cast<std::uint32_t>(rank), sent), type);
    void* receive = part->operands.allocate(stored_bytes(type, received));
    part->outputs = {{receive, received, type}};
    const cann::Functions& cann = device.cann();
    part->call = [&cann, kind = shape.kind, send, receive, all, share, type = hccl_type(type),
                  communicator = group.communicator(rank)](cann::Stream stream) {
      constexpr auto kSum = cann::HcclReduceOp::sum;
      cann::Status status = cann::kSuccess;
      switch (kind) {
        case CollectiveKind::all_reduce:
          status = cann.HcclAllReduce(send, receive, all, type, kSum, communicator, stream);
          break;
        case CollectiveKind::all_gather:
          status = cann.HcclAllGather(send, receive, share, type, communicator, stream);
          break;
        case CollectiveKind::reduce_scatter:
          status = cann.HcclReduceScatter(send, receive, share, type, kSum, communicator, stream);
          break;
        default: status = cann.HcclAlltoAll(send, share, type, receive, share, type, communicator, stream); break;
      }
      cann::check(cann, status, function_of(kind));
    };
    return part;
  });
}

void require_matmul_all_reduce(const cann::Functions& cann, const MatmulAllReduceShape& s, Dtype dtype) {
  constexpr const char* kName = "aclnnMatmulAllReduce";
  needed(cann.aclnnMatmulAllReduce);
  require_communicators(cann);
  half_type(dtype, kName);
  require_positive({s.m, s.n, s.k}, kName);
  require(s.ranks == 1 || s.ranks == 2 || s.ranks == 4 || s.ranks == 8,
          fmt::format("{} takes 1, 2, 4 or 8 ranks, not {}", kName, s.ranks));
}

std::unique_ptr<Op> make_matmul_all_reduce(RankGroup& group, const MatmulAllReduceShape& s, Dtype dtype) {
  const DataType type = half_type(dtype, "aclnnMatmulAllReduce");
  const std::size_t count = element_count({s.m, s.n});
  return std::make_unique<Op>(group, [&](int rank, Device& device) {
    auto part = std::make_unique<Part>(device);
    Operands& operands = part->operands;
    const auto operand = static_cast<std::uint32_t>(2 * rank);
    void* x = operands.store(filled(operand, element_count({s.m, s.k})), type);
    void* w =
        operands.store(filled(operand + 1, element_count({s.n, s.k}), 1 / std::sqrt(static_cast<double>(s.k))), type);
    void* y = operands.allocate(stored_bytes(type, count));
    aclTensor* input = operands.tensor(x, type, {s.m, s.k});
    aclTensor* weights = operands.transposed(w, type, {s.n, s.k});
    aclTensor* output = operands.tensor(y, type, {s.m, s.n});
    const aclTensor* no_bias = nullptr;
    constexpr std::int64_t kCommTurn = 0;
    constexpr std::int64_t kStreamMode = 1;  // stop at the first failure
    part->copies.emplace_back().push_back(step(device, device.cann().aclnnMatmulAllReduce, input, weights, no_bias,
                                               group.name(rank).c_str(), "sum", kCommTurn, kStreamMode, output));
    part->outputs = {{y, count, type}};
    return part;
  });
}

}  // namespace llmperf::replay::ascend
