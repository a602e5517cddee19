#include "replay/ascend/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "replay/ascend/op.h"

namespace llmperf::replay::ascend {

std::unique_ptr<RankGroup> RankGroup::make(Device& first, int ranks) {
  std::unique_ptr<RankGroup> group(new RankGroup(first, ranks));
  group->connect(first);
  return group;
}

RankGroup::RankGroup(Device& first, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) members_.push_back(std::make_unique<Member>());
  members_.front()->device = &first;
  for (int rank = 1; rank < ranks; ++rank) {
    Member& member = *members_[static_cast<std::size_t>(rank)];
    try {
      member.thread = std::thread([this, &member] { work(member); });
    } catch (const std::system_error& error) {
      stop();
      throw Error::failed(fmt::format("cannot start a thread for each of {} ranks: {}", ranks, error.code().message()));
    }
  }
}

RankGroup::~RankGroup() {
  try {
    run([&](int rank) {
      Member& member = *members_[static_cast<std::size_t>(rank)];
      member.communicator.reset();
      member.own.reset();
    });
  } catch (...) {  // nothing of it throws
  }
  stop();
}

void RankGroup::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (const auto& member : members_) {
    if (member->thread.joinable()) member->thread.join();
  }
}

void RankGroup::connect(Device& first) {
  const cann::Functions& cann = first.cann();
  // Devices before communicators: a rank that cannot get its device must not leave others waiting for it.
  run([&](int rank) {
    if (rank == 0) return;
    Member& member = *members_[static_cast<std::size_t>(rank)];
    member.own = std::make_unique<Device>(cann, first.id() + rank);
    member.device = member.own.get();
  });
  cann::HcclRootInfo root{};
  cann::check(cann, cann.HcclGetRootInfo(&root), "HcclGetRootInfo");
  run([&](int rank) {
    Member& member = *members_[static_cast<std::size_t>(rank)];
    cann::Comm communicator = nullptr;
    cann::check(cann,
                cann.HcclCommInitRootInfo(static_cast<std::uint32_t>(size()), &root, static_cast<std::uint32_t>(rank),
                                          &communicator),
                "HcclCommInitRootInfo");
    member.communicator = own<Communicator>(cann, communicator);
  });
  run([&](int rank) {
    Member& member = *members_[static_cast<std::size_t>(rank)];
    char name[cann::kCommNameLength] = {};
    cann::check(cann, cann.HcclGetCommName(member.communicator.get(), name), "HcclGetCommName");
    member.name.assign(name, strnlen(name, sizeof name));
  });
}

void RankGroup::work(Member& member) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || member.job; });
    if (!member.job) return;
    const std::function<void()> job = std::exchange(member.job, nullptr);
    lock.unlock();
    job();
    lock.lock();
    --busy_;
    changed_.notify_all();
  }
}

void RankGroup::run(const std::function<void(int rank)>& job) {
  const auto guarded = [&](int rank) {
    try {
      job(rank);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!first_error_) first_error_ = std::current_exception();
    }
  };
  {
    const std::lock_guard lock(mutex_);
    for (int rank = 1; rank < size(); ++rank) {
      members_[static_cast<std::size_t>(rank)]->job = [&guarded, rank] { guarded(rank); };
      ++busy_;
    }
  }
  changed_.notify_all();
  guarded(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return busy_ == 0; });
  if (const std::exception_ptr error = std::exchange(first_error_, nullptr)) std::rethrow_exception(error);
}

void RankGroup::on_each(const std::function<void(int rank, Device& device)>& job) {
  run([&](int rank) { job(rank, *members_[static_cast<std::size_t>(rank)]->device); });
}

void RankGroup::on_each_quietly(const std::function<void(int rank, Device& device)>& job) noexcept {
  try {
    on_each(job);
  } catch (...) {  // what failed first is being thrown already
  }
}

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
