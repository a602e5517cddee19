// Everything that CANN makes and wants back, owned. Destroying one never throws: an error of a destroying function can
// only be another sign of what failed before.
#pragma once

#include <memory>

#include "replay/ascend/cann.h"

namespace llmperf::replay::ascend {

template <auto Function>
struct Destroy {
  const cann::Functions* cann = nullptr;
  template <class T>
  void operator()(T* object) const noexcept {
    if (cann->*Function != nullptr) (cann->*Function)(object);
  }
};
template <class T, auto Function>
using Owned = std::unique_ptr<T, Destroy<Function>>;

using Stream = Owned<void, &cann::Functions::aclrtDestroyStream>;
using Event = Owned<void, &cann::Functions::aclrtDestroyEvent>;
using Memory = Owned<void, &cann::Functions::aclrtFree>;
using Tensor = Owned<aclTensor, &cann::Functions::aclDestroyTensor>;
using TensorList = Owned<aclTensorList, &cann::Functions::aclDestroyTensorList>;  // and the tensors in it
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
// Throws Refusal (refusal.h) when it does not fit.
Memory make_memory(const cann::Functions& cann, std::size_t bytes);

}  // namespace llmperf::replay::ascend
