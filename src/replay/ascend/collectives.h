// The devices that a collective is over: one thread for each of them, as HCCL wants, with the device current on it and
// its communicator. The first is the thread that calls.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "replay/ascend/device.h"

namespace llmperf::replay::ascend {

class RankGroup {
 public:
  // Devices first.id() to first.id() + ranks - 1, connected. Throws what the first rank to fail threw; the others have
  // given up by then (HCCL waits for missing ranks for its own connection timeout). Throws Error(failed) where there
  // cannot be a thread for each.
  static std::unique_ptr<RankGroup> make(Device& first, int ranks);
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;
  ~RankGroup();

  int size() const { return static_cast<int>(members_.size()); }
  cann::Comm communicator(int rank) const { return members_[static_cast<std::size_t>(rank)]->communicator.get(); }
  // The name by which ops that communicate take the group.
  const std::string& name(int rank) const { return members_[static_cast<std::size_t>(rank)]->name; }

  // `job` on every rank's thread at the same time; returns when all are done. Throws what was thrown first: what other
  // ranks threw later usually follows from it.
  void on_each(const std::function<void(int rank, Device& device)>& job);
  void on_each_quietly(const std::function<void(int rank, Device& device)>& job) noexcept;

 private:
  struct Member {
    std::unique_ptr<Device> own;  // of other ranks than the first
    Device* device = nullptr;
    Communicator communicator;
    std::string name;
    std::function<void()> job;
    std::thread thread;
  };

  RankGroup(Device& first, int ranks);
  void connect(Device& first);
  void work(Member& member);
  void stop();
  void run(const std::function<void(int rank)>& job);

  std::mutex mutex_;
  std::condition_variable changed_;
  int busy_ = 0;
  bool stop_ = false;
  std::exception_ptr first_error_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace llmperf::replay::ascend
