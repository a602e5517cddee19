#include "replay/ascend/rank_group.h"

#include <fmt/format.h>

#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.h"

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

}  // namespace llmperf::replay::ascend
