// What an NPU says of itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "replay/ascend/cann.h"
#include "replay/backend.h"

namespace llmperf::replay::ascend {

struct NpuFacts {
  std::string soc;  // "Ascend910B4"
  std::optional<std::int64_t> cube_cores;
  std::optional<std::int64_t> vector_cores;
  std::optional<std::int64_t> l2_bytes;
  std::optional<std::int64_t> hbm_bytes;
  std::optional<std::string> cann_version;     // as installed: "8.1.RC1"
  std::optional<std::string> runtime_version;  // of AscendCL's interface: "1.14.0"
  int devices = 0;
};

// Of the device that is current on this thread.
NpuFacts read_facts(const cann::Functions& cann, int device);

// The name of the device's file: "ascend-910b4" of Ascend910B4, "ascend-910b4-1" of one with 64 GB, "ascend-310p",
// "ascend-910a"; a chip that no file is known of: its own name in lower case.
std::string device_name(const std::string& soc, std::optional<std::int64_t> hbm_bytes);

Description describe(const cann::Functions& cann, const NpuFacts& facts, int device);

}  // namespace llmperf::replay::ascend
