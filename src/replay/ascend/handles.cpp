#include "replay/ascend/handles.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "replay/ascend/refusal.h"
#include "replay/ascend/status.h"

namespace llmperf::replay::ascend {

Runtime::Runtime(const cann::Functions& cann) : cann_(cann) {
  constexpr cann::Status kInitialisedBefore = 100002;
  const cann::Status status = cann.aclInit(nullptr);
  if (status == kInitialisedBefore) return;
  cann::check(cann, status, "aclInit");
  finalize_ = true;
}

Runtime::~Runtime() {
  if (finalize_) cann_.aclFinalize();
}

CurrentDevice::CurrentDevice(const cann::Functions& cann, int id) : cann_(cann), id_(id) {
  cann::check(cann, cann.aclrtSetDevice(id), "aclrtSetDevice");
}

CurrentDevice::~CurrentDevice() { cann_.aclrtResetDevice(id_); }

Stream make_stream(const cann::Functions& cann) {
  cann::Stream stream = nullptr;
  cann::check(cann, cann.aclrtCreateStream(&stream), "aclrtCreateStream");
  return own<Stream>(cann, stream);
}

Event make_event(const cann::Functions& cann, std::uint32_t flags) {
  cann::Event event = nullptr;
  cann::check(cann, cann.aclrtCreateEventWithFlag(&event, flags), "aclrtCreateEventWithFlag");
  return own<Event>(cann, event);
}

Memory make_memory(const cann::Functions& cann, std::size_t bytes) {
  void* memory = nullptr;
  const cann::Status status =
      cann.aclrtMalloc(&memory, std::max<std::size_t>(bytes, 1), cann::MallocPolicy::huge_first);
  if (cann::is_out_of_memory(status)) {
    throw Refusal{fmt::format("the device has no {} left for an operand",
                              format_bytes_binary(Bytes{static_cast<double>(bytes)}))};
  }
  cann::check(cann, status, "aclrtMalloc");
  return own<Memory>(cann, memory);
}

}  // namespace llmperf::replay::ascend
