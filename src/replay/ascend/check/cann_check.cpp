// Compiled where LLMPERF_CANN names an installed CANN: its own headers say whether the declarations in cann.h
// are its. Nothing of this file runs.
#ifdef LLMPERF_CANN_CHECK
#include <acl/acl.h>
#include <aclnn/acl_meta.h>
#include <hccl/hccl.h>

#include <cstddef>
#include <type_traits>

#include "replay/ascend/cann.h"

namespace llmperf::replay::ascend::cann {

// What of a type decides how it is passed: enums are the integer they are stored as, what pointers point to loses const
// (headers of CANN differ in it), structs that are known are their size.
template <std::size_t Size>
struct Blob {};
template <class T, class = void>
struct Complete : std::false_type {};
template <class T>
struct Complete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {};

template <class T>
struct Passed {
  static auto of() {
    if constexpr (std::is_enum_v<T>) {
      return std::type_identity<std::make_signed_t<std::underlying_type_t<T>>>{};
    } else if constexpr (std::is_class_v<T>) {
      if constexpr (Complete<T>::value) {
        return std::type_identity<Blob<sizeof(T)>>{};
      } else {
        return std::type_identity<T>{};
      }
    } else {
      return std::type_identity<T>{};
    }
  }
  using type = typename decltype(of())::type;
};
template <class T>
struct Passed<T*> {
  using type = typename Passed<std::remove_cv_t<T>>::type*;
};
template <class R, class... A>
struct Passed<R(A...)> {
  using type = typename Passed<R>::type(typename Passed<A>::type...);
};
template <class Ours, class Theirs>
inline constexpr bool kSame =
    std::is_same_v<typename Passed<std::remove_pointer_t<Ours>>::type, typename Passed<Theirs>::type>;

#define LLMPERF_SAME(name, ...) \
  static_assert(kSame<decltype(Functions::name.pointer), decltype(::name)>, "CANN declares " #name " otherwise");
LLMPERF_CANN_REQUIRED(LLMPERF_SAME)
LLMPERF_CANN_COLLECTIVES(LLMPERF_SAME)
LLMPERF_CANN_OPTIONAL(LLMPERF_SAME)

#define LLMPERF_SAME_OP(name)                                                                                         \
  static_assert(llmperf::replay::ascend::cann::kSame<decltype(llmperf::replay::ascend::cann::Functions::name.plan),   \
                                                     decltype(::name##GetWorkspaceSize)>,                             \
                "CANN declares " #name "GetWorkspaceSize otherwise");                                                 \
  static_assert(llmperf::replay::ascend::cann::kSame<decltype(llmperf::replay::ascend::cann::Functions::name.launch), \
                                                     decltype(::name)>,                                               \
                "CANN declares " #name " otherwise");

#define LLMPERF_VALUE(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs), #theirs)
LLMPERF_VALUE(DataType::fp32, ACL_FLOAT);
LLMPERF_VALUE(DataType::fp16, ACL_FLOAT16);
LLMPERF_VALUE(DataType::int8, ACL_INT8);
LLMPERF_VALUE(DataType::int32, ACL_INT32);
LLMPERF_VALUE(DataType::uint8, ACL_UINT8);
LLMPERF_VALUE(DataType::int64, ACL_INT64);
LLMPERF_VALUE(DataType::boolean, ACL_BOOL);
LLMPERF_VALUE(DataType::bf16, ACL_BF16);
LLMPERF_VALUE(DataType::int4, ACL_INT4);
LLMPERF_VALUE(Format::nd, ACL_FORMAT_ND);
LLMPERF_VALUE(MallocPolicy::huge_first, ACL_MEM_MALLOC_HUGE_FIRST);
LLMPERF_VALUE(MemcpyKind::host_to_device, ACL_MEMCPY_HOST_TO_DEVICE);
LLMPERF_VALUE(MemcpyKind::device_to_host, ACL_MEMCPY_DEVICE_TO_HOST);
LLMPERF_VALUE(MemcpyKind::device_to_device, ACL_MEMCPY_DEVICE_TO_DEVICE);
LLMPERF_VALUE(MemAttr::hbm, ACL_HBM_MEM);
LLMPERF_VALUE(DeviceInfo::ai_cores, ACL_DEVICE_INFO_AI_CORE_NUM);
LLMPERF_VALUE(DeviceInfo::vector_cores, ACL_DEVICE_INFO_VECTOR_CORE_NUM);
LLMPERF_VALUE(DeviceInfo::l2_size, ACL_DEVICE_INFO_L2_SIZE);
LLMPERF_VALUE(CaptureMode::global, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
LLMPERF_VALUE(HcclDataType::int8, HCCL_DATA_TYPE_INT8);
LLMPERF_VALUE(HcclDataType::int32, HCCL_DATA_TYPE_INT32);
LLMPERF_VALUE(HcclDataType::fp16, HCCL_DATA_TYPE_FP16);
LLMPERF_VALUE(HcclDataType::fp32, HCCL_DATA_TYPE_FP32);
LLMPERF_VALUE(HcclDataType::bf16, HCCL_DATA_TYPE_BFP16);
LLMPERF_VALUE(HcclReduceOp::sum, HCCL_REDUCE_SUM);
LLMPERF_VALUE(kEventSync, ACL_EVENT_SYNC);
LLMPERF_VALUE(kEventTimeLine, ACL_EVENT_TIME_LINE);
LLMPERF_VALUE(kCommNameLength, COMM_NAME_MAX_LENGTH);
static_assert(sizeof(HcclRootInfo) == sizeof(::HcclRootInfo));

}  // namespace llmperf::replay::ascend::cann

// Ops that this CANN has, a pair of lines for each header (cmake/cann_check.cmake): older ones lack some, newer ones
// may drop some.
#include "cann_ops.inc"
#endif  // LLMPERF_CANN_CHECK
