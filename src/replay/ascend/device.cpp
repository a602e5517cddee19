#include "replay/ascend/device.h"

namespace llmperf::replay::ascend {
namespace {
constexpr std::int32_t kPatienceMs = 600'000;
constexpr std::int32_t kPatienceAfterErrorMs = 10'000;
}  // namespace

Device::Device(const cann::Functions& cann, int id)
    : cann_(cann), current_(cann, id), stream_(make_stream(cann)), control_(make_stream(cann)) {}

void Device::write(void* to, std::span<const std::byte> from) const {
  if (from.empty()) return;
  cann::check(cann_, cann_.aclrtMemcpy(to, from.size(), from.data(), from.size(), cann::MemcpyKind::host_to_device),
              "aclrtMemcpy");
}

std::vector<float> Device::read(const void* from, std::size_t count, cann::DataType type) const {
  std::vector<std::byte> stored(stored_bytes(type, count));
  if (stored.empty()) return {};
  cann::check(cann_,
              cann_.aclrtMemcpy(stored.data(), stored.size(), from, stored.size(), cann::MemcpyKind::device_to_host),
              "aclrtMemcpy");
  return decode(stored, type);
}

void Device::reserve_workspace(std::size_t bytes) {
  if (bytes <= workspace_bytes_) return;
  workspace_.reset();
  workspace_bytes_ = 0;
  workspace_ = make_memory(cann_, bytes);
  workspace_bytes_ = bytes;
}

void Device::synchronize() const {
  if (cann_.aclrtSynchronizeStreamWithTimeout != nullptr) {
    cann::check(cann_, cann_.aclrtSynchronizeStreamWithTimeout(stream(), kPatienceMs),
                "aclrtSynchronizeStreamWithTimeout");
  } else {
    cann::check(cann_, cann_.aclrtSynchronizeStream(stream()), "aclrtSynchronizeStream");
  }
}

void Device::abandon() const noexcept {
  if (cann_.aclrtStreamAbort != nullptr) cann_.aclrtStreamAbort(stream());
  if (cann_.aclrtSynchronizeStreamWithTimeout != nullptr) {
    cann_.aclrtSynchronizeStreamWithTimeout(stream(), kPatienceAfterErrorMs);
  } else {
    cann_.aclrtSynchronizeStream(stream());
  }
}

}  // namespace llmperf::replay::ascend
