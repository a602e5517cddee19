#include "replay/ascend/status.h"

#include <algorithm>
#include <iterator>

namespace llmperf::replay::ascend::cann {
namespace {

struct Meaning {
  Status status;
  std::string_view text;
};

constexpr Meaning kRuntime[] = {
    {100000, "ACL_ERROR_INVALID_PARAM: a parameter is not valid"},
    {100001, "ACL_ERROR_UNINITIALIZE: aclInit was not called"},
    {100002, "ACL_ERROR_REPEAT_INITIALIZE: initialised twice"},
    {100037, "ACL_ERROR_REPEAT_FINALIZE: finalised twice"},
    {107000, "ACL_ERROR_RT_PARAM_INVALID: a parameter is not valid"},
    {107001, "ACL_ERROR_RT_INVALID_DEVICEID: no such device"},
    {107002, "ACL_ERROR_RT_CONTEXT_NULL: no device is set on this thread"},
    {107003, "ACL_ERROR_RT_STREAM_CONTEXT: the stream belongs to another device"},
    {107019, "ACL_ERROR_RT_TIMEOUT: not done in time"},
    {107020, "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT: the stream was not done in time"},
    {200000, "ACL_ERROR_BAD_ALLOC: out of memory"},
    {200001, "ACL_ERROR_API_NOT_SUPPORT: not supported by this CANN"},
    {200002, "ACL_ERROR_INVALID_DEVICE: no such device"},
    {207000, "ACL_ERROR_RT_FEATURE_NOT_SUPPORT: not supported by this device"},
    {207001, "ACL_ERROR_RT_MEMORY_ALLOCATION: out of device memory"},
    {207003, "ACL_ERROR_RT_AICORE_OVER_FLOW: overflow in an AI core"},
    {500000, "ACL_ERROR_INTERNAL_ERROR: an error inside CANN"},
    {500003, "ACL_ERROR_RT_FAILURE: the runtime failed"},
    {507000, "ACL_ERROR_RT_INTERNAL_ERROR: an error inside the runtime"},
    {507008, "ACL_ERROR_RT_SOC_VERSION: the chip does not fit the software"},
    {507011, "ACL_ERROR_RT_MODEL_EXECUTE: a graph failed"},
    {507014, "ACL_ERROR_RT_AICORE_TIMEOUT: a kernel did not end in time"},
    {507015, "ACL_ERROR_RT_AICORE_EXCEPTION: a kernel crashed"},
    {507018, "ACL_ERROR_RT_AICPU_EXCEPTION: an AI CPU kernel crashed"},
    {507033, "ACL_ERROR_RT_DEV_SETUP_ERROR: the device could not be set up"},
    {507034, "ACL_ERROR_RT_VECTOR_CORE_TIMEOUT: a vector kernel did not end in time"},
    {507035, "ACL_ERROR_RT_VECTOR_CORE_EXCEPTION: a vector kernel crashed"},
    {507899, "ACL_ERROR_RT_DRV_INTERNAL_ERROR: an error inside the driver"},
    {161001, "ACLNN_ERR_PARAM_NULLPTR: a parameter must not be null"},
    {161002, "ACLNN_ERR_PARAM_INVALID: a parameter is not valid for this op"},
    {361001, "ACLNN_ERR_RUNTIME_ERROR: the runtime failed, or the op does not support this device"},
    {561000, "ACLNN_ERR_INNER: an error inside the op library"},
    {561001, "ACLNN_ERR_INNER_INFERSHAPE_ERROR: shapes do not fit together"},
    {561002, "ACLNN_ERR_INNER_TILING_ERROR: no tiling for this shape"},
    {561003, "ACLNN_ERR_INNER_FIND_KERNEL_ERROR: no kernel for these types and shapes"},
    {561101, "ACLNN_ERR_INNER_CREATE_EXECUTOR: the executor could not be made"},
    {561103, "ACLNN_ERR_INNER_NULLPTR: a null pointer inside the op library"},
    {561107, "ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND: the op package is not found; is ASCEND_OPP_PATH set?"},
    {561112, "ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND: the kernels package is not installed for this chip"},
};
constexpr Meaning kCollectives[] = {
    {1, "HCCL_E_PARA: a parameter is not valid"},
    {2, "HCCL_E_PTR: a pointer is null"},
    {3, "HCCL_E_MEMORY: out of memory"},
    {4, "HCCL_E_INTERNAL: an error inside HCCL"},
    {5, "HCCL_E_NOT_SUPPORT: not supported here"},
    {6, "HCCL_E_NOT_FOUND: a resource was not found"},
    {7, "HCCL_E_UNAVAIL: a resource is not available"},
    {8, "HCCL_E_SYSCALL: a system call failed"},
    {9, "HCCL_E_TIMEOUT: the other ranks did not come in time"},
    {15, "HCCL_E_RUNTIME: the runtime failed"},
    {16, "HCCL_E_DRV: the driver failed"},
    {20, "HCCL_E_AGAIN: to be tried again"},
    {21, "HCCL_E_REMOTE: another rank failed"},
    {22, "HCCL_E_SUSPENDING: the communicator is suspended"},
};

template <std::size_t N>
std::string_view look_up(const Meaning (&table)[N], Status status) {
  const auto* found =
      std::find_if(std::begin(table), std::end(table), [&](const Meaning& entry) { return entry.status == status; });
  return found == std::end(table) ? "unknown code" : found->text;
}

}  // namespace

std::string_view meaning(Status status, std::string_view function) {
  return function.starts_with("Hccl") ? look_up(kCollectives, status) : look_up(kRuntime, status);
}

bool is_refusal(Status status) {
  return (status >= 161000 && status < 162000) || (status >= 561000 && status < 562000);
}

bool is_out_of_memory(Status status) { return status == 207001 || status == 200000; }

}  // namespace llmperf::replay::ascend::cann
