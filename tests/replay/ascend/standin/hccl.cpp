// Stand-in of libhccl.so: ranks are threads, collectives meet in the tasks of their streams.
#include <hccl/hccl.h>

#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "hccl_group.h"
#include "kernel.h"

namespace standin {
namespace {

struct Round {
  std::map<int, std::vector<double>> brought;
  int left = 0;
};
struct Comm {
  std::string group;
  Membership member;
  int device = -1;
  int next_round = 0;
  std::shared_ptr<std::atomic<int>> pending = std::make_shared<std::atomic<int>>(0);
};
struct Group {
  std::set<int> joined;
  std::set<int> devices;
  std::map<int, Membership> members;  // by device
};
// Guarded by state_mutex(), as what tasks wait for is.
std::map<std::string, Group>& groups() {
  static auto& all = *new std::map<std::string, Group>;
  return all;
}
std::map<std::pair<std::string, int>, Round>& rounds() {
  static auto& all = *new std::map<std::pair<std::string, int>, Round>;
  return all;
}

aclDataType plain(HcclDataType type) {
  return type == HCCL_DATA_TYPE_FP16 ? ACL_FLOAT16 : type == HCCL_DATA_TYPE_BFP16 ? ACL_BF16 : ACL_FLOAT;
}

using Combine = std::vector<double> (*)(const std::vector<std::vector<double>>& all, int rank, std::size_t count);

HcclResult collective(const char* function, const void* send, std::uint64_t sent, void* receive, std::uint64_t received,
                      HcclDataType type, HcclComm handle, aclrtStream stream, std::uint64_t count, Combine combine) {
  if (!live(handle, "communicator")) {
    violation(std::string(function) + " with a communicator that is not there");
    return HCCL_E_PARA;
  }
  auto* comm = static_cast<Comm*>(handle);
  if (current_device() != comm->device) {
    violation(std::string(function) + " on another device's thread");
    return HCCL_E_PARA;
  }
  const aclDataType element = plain(type);
  const std::size_t size = size_of(element);
  if (!is_device_memory(send, sent * size) || !is_device_memory(receive, received * size)) {
    violation(std::string(function) + " with buffers that are too small");
    return HCCL_E_PARA;
  }
  const int round = comm->next_round++;
  const int code = enqueue(
      stream, function,
      [=, pending = Pending(comm->pending), group = comm->group, member = comm->member](Stream& on) {
        std::vector<double> mine(sent);
        for (std::size_t i = 0; i < sent; ++i) mine[i] = load(static_cast<const char*>(send) + i * size, element);
        std::vector<std::vector<double>> all;
        if (const int failed = gather(on, group, member, round, mine, all)) return failed;
        for (const auto& other : all) {
          if (other.size() != mine.size()) {
            violation(std::string(function) + ": ranks bring different counts");
            return 507018;
          }
        }
        const std::vector<double> result = combine(all, member.rank, count);
        for (std::size_t i = 0; i < received; ++i) store(static_cast<char*>(receive) + i * size, element, result.at(i));
        return 0;
      },
      true);
  return code == 0 ? HCCL_SUCCESS : HCCL_E_INTERNAL;
}

}  // namespace

Membership membership(const std::string& name, int device) {
  const std::lock_guard lock(state_mutex());
  const auto group = groups().find(name);
  if (group == groups().end()) return {};
  const auto member = group->second.members.find(device);
  return member == group->second.members.end() ? Membership{} : member->second;
}

int gather(Stream& stream, const std::string& group, Membership member, int number, const std::vector<double>& mine,
           std::vector<std::vector<double>>& all) {
  const std::pair key(group, number);
  {
    const std::lock_guard lock(state_mutex());
    rounds()[key].brought[member.rank] = mine;
  }
  changed();
  const bool met = wait(
      stream, [&] { return static_cast<int>(rounds()[key].brought.size()) == member.ranks; }, patience_ms());
  const std::lock_guard lock(state_mutex());
  if (!met) return 507018;
  Round& round = rounds()[key];
  for (const auto& [rank, values] : round.brought) all.push_back(values);
  if (++round.left == member.ranks) rounds().erase(key);
  return 0;
}

int exchange(Stream& stream, const std::string& group, Membership member, int round, const std::vector<double>& mine,
             std::vector<double>& sum) {
  std::vector<std::vector<double>> all;
  if (const int code = gather(stream, group, member, round, mine, all)) return code;
  sum.assign(mine.size(), 0.0);
  for (const auto& values : all) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values.at(i);
  }
  return 0;
}

}  // namespace standin

using namespace standin;
#define ENTER(function) \
  if (const int injected = enter(#function)) return static_cast<HcclResult>(injected)

extern "C" {

HcclResult HcclGetRootInfo(HcclRootInfo* info) {
  ENTER(HcclGetRootInfo);
  static std::atomic<int> next = 0;
  const std::string name = "group" + std::to_string(next++);
  std::memset(info->internal, 0, sizeof info->internal);
  std::memcpy(info->internal, name.data(), name.size());
  return HCCL_SUCCESS;
}
HcclResult HcclCommInitRootInfo(uint32_t ranks, const HcclRootInfo* info, uint32_t rank, HcclComm* handle) {
  ENTER(HcclCommInitRootInfo);
  const std::string name = info->internal;
  const int device = current_device();
  if (device < 0 || rank >= ranks) {
    violation("HcclCommInitRootInfo on a thread without a device");
    return HCCL_E_PARA;
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms());
  {
    const std::lock_guard lock(state_mutex());
    Group& group = groups()[name];
    group.joined.insert(static_cast<int>(rank));
    group.devices.insert(device);
    group.members[device] = {static_cast<int>(rank), static_cast<int>(ranks)};
  }
  // Every rank is a thread of its own: one that came twice would wait for itself.
  while (true) {
    {
      const std::lock_guard lock(state_mutex());
      if (groups()[name].joined.size() == ranks && groups()[name].devices.size() == ranks) break;
    }
    if (std::chrono::steady_clock::now() > until) return HCCL_E_TIMEOUT;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  auto* comm = new Comm;
  comm->group = name;
  comm->member = {static_cast<int>(rank), static_cast<int>(ranks)};
  comm->device = device;
  born(comm, "communicator");
  *handle = comm;
  return HCCL_SUCCESS;
}
HcclResult HcclCommDestroy(HcclComm handle) {
  const int injected = enter("HcclCommDestroy");
  if (!dies(handle, "communicator", "HcclCommDestroy")) return HCCL_E_PARA;
  auto* comm = static_cast<Comm*>(handle);
  if (*comm->pending > 0) violation("HcclCommDestroy while a collective is queued");
  delete comm;
  return static_cast<HcclResult>(injected);
}
HcclResult HcclGetCommName(HcclComm handle, char* name) {
  ENTER(HcclGetCommName);
  if (!live(handle, "communicator")) return HCCL_E_PARA;
  std::strncpy(name, static_cast<Comm*>(handle)->group.c_str(), COMM_NAME_MAX_LENGTH - 1);
  return HCCL_SUCCESS;
}
HcclResult HcclAllReduce(void* send, void* receive, uint64_t count, HcclDataType type, HcclReduceOp op, HcclComm comm,
                         aclrtStream stream) {
  ENTER(HcclAllReduce);
  if (op != HCCL_REDUCE_SUM) violation("HcclAllReduce: only sums are stood in for");
  return collective("HcclAllReduce", send, count, receive, count, type, comm, stream, count,
                    [](const std::vector<std::vector<double>>& all, int, std::size_t n) {
                      std::vector<double> sum(n, 0.0);
                      for (const auto& values : all) {
                        for (std::size_t i = 0; i < n; ++i) sum[i] += values[i];
                      }
                      return sum;
                    });
}
HcclResult HcclAllGather(void* send, void* receive, uint64_t count, HcclDataType type, HcclComm comm,
                         aclrtStream stream) {
  ENTER(HcclAllGather);
  const auto ranks = live(comm, "communicator") ? static_cast<uint64_t>(static_cast<Comm*>(comm)->member.ranks) : 1;
  return collective("HcclAllGather", send, count, receive, count * ranks, type, comm, stream, count,
                    [](const std::vector<std::vector<double>>& all, int, std::size_t) {
                      std::vector<double> joined;
                      for (const auto& values : all) joined.insert(joined.end(), values.begin(), values.end());
                      return joined;
                    });
}
HcclResult HcclReduceScatter(void* send, void* receive, uint64_t count, HcclDataType type, HcclReduceOp op,
                             HcclComm comm, aclrtStream stream) {
  ENTER(HcclReduceScatter);
  if (op != HCCL_REDUCE_SUM) violation("HcclReduceScatter: only sums are stood in for");
  const auto ranks = live(comm, "communicator") ? static_cast<uint64_t>(static_cast<Comm*>(comm)->member.ranks) : 1;
  return collective("HcclReduceScatter", send, count * ranks, receive, count, type, comm, stream, count,
                    [](const std::vector<std::vector<double>>& all, int rank, std::size_t n) {
                      std::vector<double> sum(n, 0.0);
                      for (const auto& values : all) {
                        for (std::size_t i = 0; i < n; ++i) sum[i] += values[static_cast<std::size_t>(rank) * n + i];
                      }
                      return sum;
                    });
}
HcclResult HcclAlltoAll(const void* send, uint64_t send_count, HcclDataType send_type, const void* receive,
                        uint64_t receive_count, HcclDataType receive_type, HcclComm comm, aclrtStream stream) {
  ENTER(HcclAlltoAll);
  if (send_count != receive_count || send_type != receive_type) violation("HcclAlltoAll: sent is not received");
  const auto ranks = live(comm, "communicator") ? static_cast<uint64_t>(static_cast<Comm*>(comm)->member.ranks) : 1;
  return collective("HcclAlltoAll", send, send_count * ranks, const_cast<void*>(receive), receive_count * ranks,
                    send_type, comm, stream, send_count,
                    [](const std::vector<std::vector<double>>& all, int rank, std::size_t n) {
                      std::vector<double> joined;
                      for (const auto& values : all) {
                        for (std::size_t i = 0; i < n; ++i)
                          joined.push_back(values[static_cast<std::size_t>(rank) * n + i]);
                      }
                      return joined;
                    });
}

}  // extern "C"
