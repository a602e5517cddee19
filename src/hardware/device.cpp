#include "hardware/device.h"

#include "hardware/names.h"

namespace llmperf::hardware {
namespace {

// That type's figure; with several, the one that accumulates in fp32, which is what inference kernels use.
const Peak* find_exact(const std::vector<Peak>& peaks, Engine engine, Dtype dtype) {
  const Peak* found = nullptr;
  for (const Peak& peak : peaks) {
    if (peak.engine != engine || peak.dtype != dtype) continue;
    if (peak.accumulate == Dtype::fp32) return &peak;
    if (found == nullptr) found = &peak;
  }
  return found;
}

}  // namespace

const MemoryLevel* Device::last_level_cache() const {
  if (memory.size() < 2) return nullptr;
  const MemoryLevel& level = memory[memory.size() - 2];
  return level.per_tile ? nullptr : &level;
}

const Peak* Device::find_peak(Engine engine, Dtype dtype) const {
  const Peak* exact = find_exact(peaks, engine, dtype);
  if (exact != nullptr || engine == Engine::matrix) return exact;
  return find_exact(peaks, engine, Dtype::fp32);
}

const Peak* Device::fastest_peak(Dtype dtype) const {
  const Peak* found = nullptr;
  for (const Peak& peak : peaks) {
    if (peak.engine != Engine::matrix || peak.dtype != dtype) continue;
    if (found == nullptr || peak.rate > found->rate) found = &peak;
  }
  return found;
}

std::string_view name(Provenance provenance) { return kProvenanceNames[static_cast<std::size_t>(provenance)]; }
std::string_view name(DeviceKind kind) { return kDeviceKindNames[static_cast<std::size_t>(kind)]; }
std::string_view name(Topology topology) { return kTopologyNames[static_cast<std::size_t>(topology)]; }
std::string_view name(Engine engine) { return kEngineNames[static_cast<std::size_t>(engine)]; }

}  // namespace llmperf::hardware
