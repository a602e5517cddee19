#include "replay/ascend/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
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
  cann::call(cann, cann.HcclGetRootInfo, &root);
  run([&](int rank) {
    Member& member = *members_[static_cast<std::size_t>(rank)];
    cann::Comm communicator = nullptr;
    cann::call(cann, cann.HcclCommInitRootInfo, static_cast<std::uint32_t>(size()), &root,
               static_cast<std::uint32_t>(rank), &communicator);
    member.communicator = own<Communicator>(cann, communicator);
  });
  run([&](int rank) {
    Member& member = *members_[static_cast<std::size_t>(rank)];
    char name[cann::kCommNameLength] = {};
    cann::call(cann, cann.HcclGetCommName, member.communicator.get(), +name);
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

// What one rank brings to a collective: `all` elements of the full tensor, `share` of each rank.
struct Exchange {
  void* send;
  void* receive;
  std::size_t all;
  std::size_t share;
  cann::HcclDataType type;
  cann::Comm communicator;
};

// HCCL's function of a kind: its name, none for kinds that are not replayed; whether this CANN has it; the call of it.
struct HcclFunction {
  const char* name = nullptr;
  bool available = false;
  std::function<void(const Exchange&, cann::Stream)> call = {};
};
HcclFunction function_of(const cann::Functions& cann, CollectiveKind kind) {
  constexpr auto kSum = cann::HcclReduceOp::sum;
  const auto entry = [](const auto& function, auto call) { return HcclFunction{function.name, bool(function), call}; };
  switch (kind) {
    case CollectiveKind::all_reduce:
      return entry(cann.HcclAllReduce, [&cann](const Exchange& e, cann::Stream stream) {
        cann::call(cann, cann.HcclAllReduce, e.send, e.receive, e.all, e.type, kSum, e.communicator, stream);
      });
    case CollectiveKind::all_gather:
      return entry(cann.HcclAllGather, [&cann](const Exchange& e, cann::Stream stream) {
        cann::call(cann, cann.HcclAllGather, e.send, e.receive, e.share, e.type, e.communicator, stream);
      });
    case CollectiveKind::reduce_scatter:
      return entry(cann.HcclReduceScatter, [&cann](const Exchange& e, cann::Stream stream) {
        cann::call(cann, cann.HcclReduceScatter, e.send, e.receive, e.share, e.type, kSum, e.communicator, stream);
      });
    case CollectiveKind::all_to_all:
      return entry(cann.HcclAlltoAll, [&cann](const Exchange& e, cann::Stream stream) {
        cann::call(cann, cann.HcclAlltoAll, e.send, e.share, e.type, e.receive, e.share, e.type, e.communicator,
                   stream);
      });
    default: return {};
  }
}

void require_communicators(const cann::Functions& cann) {
  require(cann.HcclGetRootInfo && cann.HcclCommInitRootInfo && cann.HcclCommDestroy && cann.HcclGetCommName,
          "libhccl.so, or a function of it, is not in the libraries of this CANN");
}

}  // namespace

void require_collective(const cann::Functions& cann, const CollectiveShape& shape, Dtype dtype) {
  const auto [function, available, call] = function_of(cann, shape.kind);
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
    void* receive = part->operands.allocate(stored_bytes(type, received));
    part->outputs = {{receive, received, type}};
    const Exchange exchange = {
        part->operands.store(values, type), receive, all, share, hccl_type(type), group.communicator(rank)};
    part->call = [call = function_of(device.cann(), shape.kind).call, exchange](cann::Stream stream) {
      call(exchange, stream);
    };
    return part;
  });
}

void require_matmul_all_reduce(const cann::Functions& cann, const calibrate::GemmShape& s, Dtype dtype) {
  constexpr const char* kName = "aclnnMatmulAllReduce";
  needed(cann.aclnnMatmulAllReduce);
  require_communicators(cann);
  half_type(dtype, kName);
  require_positive({s.m, s.n, s.k}, kName);
  require(s.ranks == 1 || s.ranks == 2 || s.ranks == 4 || s.ranks == 8,
          fmt::format("{} takes 1, 2, 4 or 8 ranks, not {}", kName, s.ranks));
}

std::unique_ptr<Op> make_matmul_all_reduce(RankGroup& group, const calibrate::GemmShape& s, Dtype dtype) {
  const DataType type = half_type(dtype, "aclnnMatmulAllReduce");
  return std::make_unique<Op>(group, [&](int rank, Device& device) {
    auto part = std::make_unique<Part>(device);
    Operands& operands = part->operands;
    const auto operand = static_cast<std::uint32_t>(2 * rank);
    const std::vector<float> w = filled(operand + 1, {s.n, s.k}, 1 / std::sqrt(static_cast<double>(s.k)));
    const aclTensor* no_bias = nullptr;
    constexpr std::int64_t kCommTurn = 0;
    constexpr std::int64_t kStreamMode = 1;  // stop at the first failure
    part->add_copy({device, device.cann().aclnnMatmulAllReduce,
                    operands.tensor(filled(operand, {s.m, s.k}), type, {s.m, s.k}),
                    operands.transposed(w, type, {s.n, s.k}), no_bias, group.name(rank).c_str(), "sum", kCommTurn,
                    kStreamMode, part->output(type, {s.m, s.n})});
    return part;
  });
}

}  // namespace llmperf::replay::ascend
