// NPUs: elements as they store them, what CANN makes and wants back, one device, and a group of several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "replay/ascend/cann.h"
#include "replay/backend.h"
#include "replay/operands.h"
#include "replay/thread_pool.h"

namespace llmperf::replay::ascend {

// Round to nearest, ties to even; what is too large becomes infinite.
std::uint16_t to_fp16(float value);
float from_fp16(std::uint16_t bits);

// Bytes of that many elements; two of int4 share one.
std::size_t stored_bytes(cann::DataType type, std::size_t count);
// Integers are rounded to the nearest; of two int4 in a byte the first has the lower half.
std::vector<std::byte> encode(std::span<const float> values, cann::DataType type);
std::vector<float> decode(std::span<const std::byte> stored, cann::DataType type);

// fp16, bf16 and fp32, which is all that ops compute in; Unavailable of others, naming `op`.
cann::DataType float_type(Dtype dtype, const std::string& op);
// Without fp32 too, which kernels of large language models do not take.
cann::DataType half_type(Dtype dtype, const std::string& op);

using Shape = std::vector<std::int64_t>;

// Of a tensor of that shape. Unavailable of more than 2^32, which neither the host nor the device is asked for.
std::size_t element_count(const Shape& shape);

// fill_value(operand, i) * scale + offset (operands.h) for every element of that shape.
std::vector<float> filled(std::uint32_t operand, const Shape& shape, double scale = 1, double offset = 0);

// ---- Everything that CANN makes and wants back, owned. Destroying one never throws: an error of a destroying function
// can only be another sign of what failed before.

template <auto Function>
struct Destroy {
  const cann::Functions* cann = nullptr;
  template <class T>
  void operator()(T* object) const noexcept {
    if (cann->*Function) (cann->*Function)(object);
  }
};
template <class T, auto Function>
using Owned = std::unique_ptr<T, Destroy<Function>>;

using Stream = Owned<void, &cann::Functions::aclrtDestroyStream>;
using Event = Owned<void, &cann::Functions::aclrtDestroyEvent>;
using Memory = Owned<void, &cann::Functions::aclrtFree>;
using Tensor = Owned<aclTensor, &cann::Functions::aclDestroyTensor>;
using TensorList = Owned<aclTensorList, &cann::Functions::aclDestroyTensorList>;  // and the tensors in it
using IntArray = Owned<aclIntArray, &cann::Functions::aclDestroyIntArray>;
using Scalar = Owned<aclScalar, &cann::Functions::aclDestroyScalar>;
using Executor = Owned<aclOpExecutor, &cann::Functions::aclDestroyAclOpExecutor>;
using Graph = Owned<void, &cann::Functions::aclmdlRIDestroy>;
using Communicator = Owned<void, &cann::Functions::HcclCommDestroy>;

template <class Handle>
Handle own(const cann::Functions& cann, typename Handle::pointer object) {
  return Handle(object, typename Handle::deleter_type{&cann});
}

// CANN of this process, from aclInit to aclFinalize; where another part of the process initialised it, that part
// finalises it.
class Runtime {
 public:
  explicit Runtime(const cann::Functions& cann);
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

 private:
  const cann::Functions& cann_;
  bool finalize_ = false;
};

// A device that is current on the thread that made this, which is also the thread that destroys it.
class CurrentDevice {
 public:
  CurrentDevice(const cann::Functions& cann, int id);
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();
  int id() const { return id_; }

 private:
  const cann::Functions& cann_;
  int id_;
};

Stream make_stream(const cann::Functions& cann);
Event make_event(const cann::Functions& cann, std::uint32_t flags);
// Throws Unavailable when it does not fit.
Memory make_memory(const cann::Functions& cann, std::size_t bytes);

// ---- One NPU, current on the thread that made this object: its streams, the memory of workspaces, copies to and from
// it.

class Device {
 public:
  Device(const cann::Functions& cann, int id);

  const cann::Functions& cann() const { return cann_; }
  int id() const { return current_.id(); }
  cann::Stream stream() const { return stream_.get(); }    // what is timed runs here
  cann::Stream control() const { return control_.get(); }  // what starts it is recorded here

  Memory allocate(std::size_t bytes) const { return make_memory(cann_, bytes); }
  void write(void* to, std::span<const std::byte> from) const;
  std::vector<float> read(const void* from, std::size_t count, cann::DataType type) const;

  // Ops of one stream run one after the other, so one workspace, as large as the largest asked for, does for all. Only
  // while nothing runs.
  void reserve_workspace(std::size_t bytes);
  void* workspace() const { return workspace_.get(); }

  // Until everything on stream() is done. Throws when it failed, or is not done after ten minutes.
  void synchronize() const;
  // After an error: what is still queued is dropped where CANN can do that, else awaited for a while.
  void abandon() const noexcept;

 private:
  const cann::Functions& cann_;
  CurrentDevice current_;
  Stream stream_;
  Stream control_;
  Memory workspace_;
  std::size_t workspace_bytes_ = 0;
};

// ---- The devices that a collective is over: one thread for each of them, as HCCL wants, with the device current on it
// and its communicator. The first is the thread that calls.

class RankGroup {
 public:
  // Devices first.id() to first.id() + ranks - 1, connected. Throws what the first rank to fail threw; the others have
  // given up by then (HCCL waits for missing ranks for its own connection timeout). Throws Error(failed) where there
  // cannot be a thread for each.
  RankGroup(Device& first, int ranks);
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;
  ~RankGroup();

  int size() const { return pool_.threads(); }
  cann::Comm communicator(int rank) const { return members_[static_cast<std::size_t>(rank)].communicator.get(); }
  // The name by which ops that communicate take the group.
  const std::string& name(int rank) const { return members_[static_cast<std::size_t>(rank)].name; }

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
  };

  explicit RankGroup(int ranks);
  void run(const std::function<void(int rank)>& job);

  ThreadPool pool_;
  std::vector<Member> members_;
};

}  // namespace llmperf::replay::ascend
