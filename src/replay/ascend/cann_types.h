// What CANN's C interface is made of, declared here so that nothing of CANN is needed to build. Facts of CANN 8.1's
// headers; check/cann_check.cpp compares them with the headers of the CANN at hand (option LLMPERF_CANN).
//
// Enums keep their values and their size (a C int). Structs that only CANN looks into keep their global names, which is
// what makes a pointer to one the same type here and in CANN's headers.
#pragma once

#include <cstdint>

struct aclTensor;
struct aclScalar;
struct aclTensorList;
struct aclIntArray;
struct aclOpExecutor;

namespace llmperf::replay::ascend::cann {

using Status = std::int32_t;  // aclError, aclnnStatus, HcclResult: 0 is success
using Stream = void*;
using Event = void*;
using GraphHandle = void*;  // aclmdlRI
using Comm = void*;         // HcclComm

inline constexpr Status kSuccess = 0;

enum class DataType : int {
  fp32 = 0,
  fp16 = 1,
  int8 = 2,
  int32 = 3,
  uint8 = 4,
  int64 = 9,
  boolean = 12,
  bf16 = 27,
  int4 = 29,
};
enum class Format : int { nd = 2 };
enum class MallocPolicy : int { huge_first = 0 };
enum class MemcpyKind : int { host_to_device = 1, device_to_host = 2, device_to_device = 3 };
enum class MemAttr : int { hbm = 1 };
enum class DeviceInfo : int { ai_cores = 0, vector_cores = 1, l2_size = 2 };
enum class CaptureMode : int { global = 0 };
enum class HcclDataType : int { int8 = 0, int32 = 2, fp16 = 3, fp32 = 4, bf16 = 11 };
enum class HcclReduceOp : int { sum = 0 };

inline constexpr std::uint32_t kEventSync = 0x1;      // other streams can wait for it
inline constexpr std::uint32_t kEventTimeLine = 0x8;  // it has a time stamp

struct HcclRootInfo {
  char internal[4108];
};
inline constexpr int kCommNameLength = 128;

// The second phase of every op.
using Launch = Status(void* workspace, std::uint64_t workspace_size, aclOpExecutor* executor, Stream stream);

}  // namespace llmperf::replay::ascend::cann
