#include "catch.h"
#include "descriptor/node.h"
#include "hardware/device.h"
#include "replay/cpu/machine.h"

namespace llmperf::replay::cpu::describe_device_test {

TEST_CASE("this machine's description is a device file whose figures are measured and possible") {
  const std::string text = describe_device({.threads = 1});
  INFO(text);
  const hardware::Device device = hardware::parse_device(descriptor::parse_yaml(text, "described.yaml"));
  CHECK(device.name == device_name(read_machine().model));
  CHECK(device.kind == hardware::DeviceKind::cpu);
  CHECK(device.cores == 1);
  for (const hardware::Peak& peak : device.peaks) {
    CHECK(peak.provenance == hardware::Provenance::measured);
    CHECK(peak.rate.value > 1e7);
    CHECK(peak.rate.value < 1e14);
  }
  // Narrower types are there only where they are faster instructions of their own.
  CHECK(device.find_peak(hardware::Engine::vector, Dtype::fp32) != nullptr);
  CHECK(device.find_peak(hardware::Engine::matrix, Dtype::fp32) == nullptr);
  CHECK(device.memory.size() == read_machine().caches.size() + 1);
  CHECK(device.dram().bandwidth_provenance == hardware::Provenance::measured);
  REQUIRE(device.dram().capacity);
  REQUIRE(device.dram().bandwidth);
  CHECK(device.dram().bandwidth->value > 1e7);
}

}  // namespace llmperf::replay::cpu::describe_device_test
