#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

#include "replay/ascend/op.h"

namespace llmperf::replay::ascend {

RankGroup::RankGroup(int ranks) : pool_(ranks), members_(static_cast<std::size_t>(ranks)) {}

RankGroup::~RankGroup() {
  pool_.run([&](const Team& team) {
    Member& member = members_[static_cast<std::size_t>(team.thread)];
    member.communicator.reset();
    member.own.reset();
  });
}

// What fails here is destroyed like what is whole.
RankGroup::RankGroup(Device& first, int ranks) : RankGroup(ranks) {
  const cann::Functions& cann = first.cann();
  members_.front().device = &first;
  // Devices before communicators: a rank that cannot get its device must not leave others waiting for it.
  run([&](int rank) {
    if (rank == 0) return;
    Member& member = members_[static_cast<std::size_t>(rank)];
    member.own = std::make_unique<Device>(cann, first.id() + rank);
    member.device = member.own.get();
  });
  cann::HcclRootInfo root{};
  cann::call(cann, cann.HcclGetRootInfo, &root);
  run([&](int rank) {
    Member& member = members_[static_cast<std::size_t>(rank)];
    cann::Comm communicator = nullptr;
    cann::call(cann, cann.HcclCommInitRootInfo, static_cast<std::uint32_t>(size()), &root,
               static_cast<std::uint32_t>(rank), &communicator);
    member.communicator = own<Communicator>(cann, communicator);
  });
  run([&](int rank) {
    Member& member = members_[static_cast<std::size_t>(rank)];
    char name[cann::kCommNameLength] = {};
    cann::call(cann, cann.HcclGetCommName, member.communicator.get(), +name);
    member.name.assign(name, strnlen(name, sizeof name));
  });
}

void RankGroup::run(const std::function<void(int rank)>& job) {
  std::mutex mutex;
  std::exception_ptr first_error;
  pool_.run([&](const Team& team) {
    try {
      job(team.thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first_error) first_error = std::current_exception();
    }
  });
  if (first_error) std::rethrow_exception(first_error);
}

void RankGroup::on_each(const std::function<void(int rank, Device& device)>& job) {
  run([&](int rank) { job(rank, *members_[static_cast<std::size_t>(rank)].device); });
}

void RankGroup::on_each_quietly(const std::function<void(int rank, Device& device)>& job) noexcept {
  try {
    on_each(job);
  } catch (...) {  // what failed first is being thrown already
  }
}

namespace {

using cann::DataType;
using graph::CollectiveKind;
using measure::CollectiveShape;

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

// HCCL's function of a kind, none for kinds that are not replayed, and whether this CANN has it.
std::pair<const char*, bool> function_of(const cann::Functions& cann, CollectiveKind kind) {
  const auto found = [](const auto& function) { return std::pair{function.name, bool(function)}; };
  switch (kind) {
    case CollectiveKind::all_reduce: return found(cann.HcclAllReduce);
    case CollectiveKind::all_gather: return found(cann.HcclAllGather);
    case CollectiveKind::reduce_scatter: return found(cann.HcclReduceScatter);
    case CollectiveKind::all_to_all: return found(cann.HcclAlltoAll);
    default: return {};
  }
}

void require_communicators(const cann::Functions& cann) {
  require(cann.HcclGetRootInfo && cann.HcclCommInitRootInfo && cann.HcclCommDestroy && cann.HcclGetCommName,
          "libhccl.so, or a function of it, is not in the libraries of this CANN");
}

}  // namespace

void require_collective(const cann::Functions& cann, const CollectiveShape& shape, Dtype dtype) {
  const auto [function, available] = function_of(cann, shape.kind);
  require(function != nullptr, "only all_reduce, all_gather, reduce_scatter and all_to_all are replayed");
  require_communicators(cann);
  require(available, fmt::format("{} is not in the libraries of this CANN", function));
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
    const std::vector<float> values = filled(static_cast<std::uint32_t>(rank), {static_cast<std::int64_t>(sent)});
    void* receive = part->allocate(stored_bytes(type, received));
    part->outputs = {{receive, received, type}};
    void* send = part->store(values, type);
    part->call = [=, &cann = device.cann(), kind = shape.kind, of = hccl_type(type),
                  among = group.communicator(rank)](cann::Stream stream) {
      constexpr auto kSum = cann::HcclReduceOp::sum;
      switch (kind) {
        case CollectiveKind::all_reduce:
          return cann::call(cann, cann.HcclAllReduce, send, receive, all, of, kSum, among, stream);
        case CollectiveKind::all_gather:
          return cann::call(cann, cann.HcclAllGather, send, receive, share, of, among, stream);
        case CollectiveKind::reduce_scatter:
          return cann::call(cann, cann.HcclReduceScatter, send, receive, share, of, kSum, among, stream);
        default: return cann::call(cann, cann.HcclAlltoAll, send, share, of, receive, share, of, among, stream);
      }
    };
    return part;
  });
}

void require_matmul_all_reduce(const cann::Functions& cann, const measure::GemmShape& s, Dtype dtype) {
  constexpr const char* kName = "aclnnMatmulAllReduce";
  needed(cann.aclnnMatmulAllReduce);
  require_communicators(cann);
  half_type(dtype, kName);
  require_positive({s.m, s.n, s.k}, kName);
  require(s.ranks == 1 || s.ranks == 2 || s.ranks == 4 || s.ranks == 8,
          fmt::format("{} takes 1, 2, 4 or 8 ranks, not {}", kName, s.ranks));
}

std::unique_ptr<Op> make_matmul_all_reduce(RankGroup& group, const measure::GemmShape& s, Dtype dtype) {
  const DataType type = half_type(dtype, "aclnnMatmulAllReduce");
  return std::make_unique<Op>(group, [&](int rank, Device& device) {
    auto part = std::make_unique<Part>(device);
    const auto operand = static_cast<std::uint32_t>(2 * rank);
    const std::vector<float> w = filled(operand + 1, {s.n, s.k}, 1 / std::sqrt(static_cast<double>(s.k)));
    const aclTensor* no_bias = nullptr;
    constexpr std::int64_t kCommTurn = 0;
    constexpr std::int64_t kStreamMode = 1;  // stop at the first failure
    part->add_copy({device, device.cann().aclnnMatmulAllReduce,
                    part->tensor(filled(operand, {s.m, s.k}), type, {s.m, s.k}), part->transposed(w, type, {s.n, s.k}),
                    no_bias, group.name(rank).c_str(), "sum", kCommTurn, kStreamMode, part->output(type, {s.m, s.n})});
    return part;
  });
}

}  // namespace llmperf::replay::ascend
