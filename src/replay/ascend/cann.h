// CANN's C interface: what it is made of, its functions, and how they are looked up in its shared libraries when the
// backend is made. Declared here so that nothing of CANN is needed to build: facts of CANN 8.1's headers, which
// check/cann_check.cpp compares with the headers of the CANN at hand (option LLMPERF_CANN).
//
// Enums keep their values and their size (a C int). Structs that only CANN looks into keep their global names, which is
// what makes a pointer to one the same type here and in CANN's headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// ---- The functions that are called, each declared once: the tables make the pointers below, look them up (cann.cpp)
// and compare them with CANN's own headers (check/cann_check.cpp). X(name, type of the function).

// Without these nothing runs.
#define LLMPERF_CANN_REQUIRED(X)                                                                                 \
  X(aclInit, Status(const char*))                                                                                \
  X(aclFinalize, Status())                                                                                       \
  X(aclrtGetSocName, const char*())                                                                              \
  X(aclrtGetDeviceCount, Status(std::uint32_t*))                                                                 \
  X(aclrtSetDevice, Status(std::int32_t))                                                                        \
  X(aclrtResetDevice, Status(std::int32_t))                                                                      \
  X(aclrtCreateStream, Status(Stream*))                                                                          \
  X(aclrtDestroyStream, Status(Stream))                                                                          \
  X(aclrtSynchronizeStream, Status(Stream))                                                                      \
  X(aclrtStreamWaitEvent, Status(Stream, Event))                                                                 \
  X(aclrtMalloc, Status(void**, std::size_t, MallocPolicy))                                                      \
  X(aclrtFree, Status(void*))                                                                                    \
  X(aclrtMemcpy, Status(void*, std::size_t, const void*, std::size_t, MemcpyKind))                               \
  X(aclrtCreateEventWithFlag, Status(Event*, std::uint32_t))                                                     \
  X(aclrtRecordEvent, Status(Event, Stream))                                                                     \
  X(aclrtEventElapsedTime, Status(float*, Event, Event))                                                         \
  X(aclrtDestroyEvent, Status(Event))                                                                            \
  X(aclCreateTensor, aclTensor*(const std::int64_t*, std::uint64_t, DataType, const std::int64_t*, std::int64_t, \
                                Format, const std::int64_t*, std::uint64_t, void*))                              \
  X(aclDestroyTensor, Status(const aclTensor*))                                                                  \
  X(aclCreateTensorList, aclTensorList*(const aclTensor* const*, std::uint64_t))                                 \
  X(aclDestroyTensorList, Status(const aclTensorList*))                                                          \
  X(aclCreateScalar, aclScalar*(void*, DataType))                                                                \
  X(aclDestroyScalar, Status(const aclScalar*))

// Newer than the oldest CANN, or only asked for facts.
#define LLMPERF_CANN_OPTIONAL(X)                                              \
  X(aclGetRecentErrMsg, const char*())                                        \
  X(aclrtGetVersion, Status(std::int32_t*, std::int32_t*, std::int32_t*))     \
  X(aclGetDeviceCapability, Status(std::uint32_t, DeviceInfo, std::int64_t*)) \
  X(aclrtGetMemInfo, Status(MemAttr, std::size_t*, std::size_t*))             \
  X(aclrtSynchronizeStreamWithTimeout, Status(Stream, std::int32_t))          \
  X(aclrtStreamAbort, Status(Stream))                                         \
  X(aclmdlRICaptureBegin, Status(Stream, CaptureMode))                        \
  X(aclmdlRICaptureEnd, Status(Stream, GraphHandle*))                         \
  X(aclmdlRIExecuteAsync, Status(GraphHandle, Stream))                        \
  X(aclmdlRIDestroy, Status(GraphHandle))                                     \
  X(aclCreateIntArray, aclIntArray*(const std::int64_t*, std::uint64_t))      \
  X(aclDestroyIntArray, Status(const aclIntArray*))                           \
  X(aclSetAclOpExecutorRepeatable, Status(aclOpExecutor*))                    \
  X(aclDestroyAclOpExecutor, Status(aclOpExecutor*))

#define LLMPERF_CANN_COLLECTIVES(X)                                                                   \
  X(HcclGetRootInfo, Status(HcclRootInfo*))                                                           \
  X(HcclCommInitRootInfo, Status(std::uint32_t, const HcclRootInfo*, std::uint32_t, Comm*))           \
  X(HcclCommDestroy, Status(Comm))                                                                    \
  X(HcclGetCommName, Status(Comm, char*))                                                             \
  X(HcclAllReduce, Status(void*, void*, std::uint64_t, HcclDataType, HcclReduceOp, Comm, Stream))     \
  X(HcclAllGather, Status(void*, void*, std::uint64_t, HcclDataType, Comm, Stream))                   \
  X(HcclReduceScatter, Status(void*, void*, std::uint64_t, HcclDataType, HcclReduceOp, Comm, Stream)) \
  X(HcclAlltoAll,                                                                                     \
    Status(const void*, std::uint64_t, HcclDataType, const void*, std::uint64_t, HcclDataType, Comm, Stream))

// Ops, X(name, header, arguments): the header that declares it, aclnnop/aclnn_HEADER.h, and the arguments of the first
// phase, without the two that all of them end with (workspace size and executor). Long runs of optional tensors are
// written as LLMPERF_CANN_TENSORS_n.
#define LLMPERF_CANN_TENSORS_2 const aclTensor*, const aclTensor*
#define LLMPERF_CANN_TENSORS_3 LLMPERF_CANN_TENSORS_2, const aclTensor*
#define LLMPERF_CANN_TENSORS_5 LLMPERF_CANN_TENSORS_3, LLMPERF_CANN_TENSORS_2
#define LLMPERF_CANN_LISTS_2 const aclTensorList*, const aclTensorList*
#define LLMPERF_CANN_LISTS_3 LLMPERF_CANN_LISTS_2, const aclTensorList*
#define LLMPERF_CANN_ARRAYS_2 const aclIntArray*, const aclIntArray*
// query, key, value, shift, mask, lengths of queries and of keys: how every attention over lists starts.
#define LLMPERF_CANN_FIA_START const aclTensor*, LLMPERF_CANN_LISTS_2, LLMPERF_CANN_TENSORS_2, LLMPERF_CANN_ARRAYS_2
// heads, scale, tokens before and after, layout, kv heads, sparse mode, inner precision, block size, antiquant mode,
// whether softmax's logarithm is wanted.
#define LLMPERF_CANN_FIA_ATTRIBUTES                                                                                \
  std::int64_t, double, std::int64_t, std::int64_t, char*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, \
      std::int64_t, bool

#define LLMPERF_CANN_OPS(X)                                                                                            \
  X(aclnnMatmul, matmul, LLMPERF_CANN_TENSORS_2, aclTensor*, std::int8_t)                                              \
  X(aclnnBatchMatMul, batch_matmul, LLMPERF_CANN_TENSORS_2, aclTensor*, std::int8_t)                                   \
  X(aclnnWeightQuantBatchMatmulV2, weight_quant_batch_matmul_v2, LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_2, int,  \
    const aclTensor*)                                                                                                  \
  X(aclnnQuantMatmulV4, quant_matmul_v4, LLMPERF_CANN_TENSORS_3, LLMPERF_CANN_TENSORS_3, bool, bool, const aclTensor*) \
  X(aclnnQuantMatmulV5, quant_matmul_v5, LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_3, const aclTensor*, bool, bool, \
    std::int64_t, aclTensor*)                                                                                          \
  X(aclnnQuantMatmulV3, quant_matmul_v3, LLMPERF_CANN_TENSORS_5, bool, bool, const aclTensor*)                         \
  X(aclnnFusedInferAttentionScoreV3, fused_infer_attention_score_v3, LLMPERF_CANN_FIA_START, LLMPERF_CANN_TENSORS_5,   \
    LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_3, LLMPERF_CANN_TENSORS_3, const aclIntArray*,                        \
    LLMPERF_CANN_TENSORS_3, LLMPERF_CANN_FIA_ATTRIBUTES, std::int64_t, std::int64_t, LLMPERF_CANN_TENSORS_2)           \
  X(aclnnFusedInferAttentionScoreV4, fused_infer_attention_score_v4, LLMPERF_CANN_FIA_START, LLMPERF_CANN_TENSORS_5,   \
    LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_3, LLMPERF_CANN_TENSORS_3, const aclIntArray*,                        \
    LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_FIA_ATTRIBUTES, std::int64_t, std::int64_t, std::int64_t,                     \
    LLMPERF_CANN_TENSORS_2)                                                                                            \
  X(aclnnFusedInferAttentionScoreV2, fused_infer_attention_score_v2, LLMPERF_CANN_FIA_START, LLMPERF_CANN_TENSORS_5,   \
    LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_3, LLMPERF_CANN_TENSORS_3, const aclIntArray*,                        \
    LLMPERF_CANN_FIA_ATTRIBUTES, std::int64_t, std::int64_t, LLMPERF_CANN_TENSORS_2)                                   \
  X(aclnnFusedInferAttentionScore, fused_infer_attention_score, LLMPERF_CANN_FIA_START, LLMPERF_CANN_TENSORS_5,        \
    LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_FIA_ATTRIBUTES, LLMPERF_CANN_TENSORS_2)                                       \
  X(aclnnPromptFlashAttentionV3, prompt_flash_attention_v3, LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_ARRAYS_2,             \
    LLMPERF_CANN_TENSORS_5, std::int64_t, double, std::int64_t, std::int64_t, char*, std::int64_t, std::int64_t,       \
    std::int64_t, const aclTensor*)                                                                                    \
  X(aclnnPromptFlashAttentionV2, prompt_flash_attention_v2, LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_ARRAYS_2,             \
    LLMPERF_CANN_TENSORS_5, std::int64_t, double, std::int64_t, std::int64_t, char*, std::int64_t, std::int64_t,       \
    const aclTensor*)                                                                                                  \
  X(aclnnIncreFlashAttentionV4, incre_flash_attention_v4, const aclTensor*, LLMPERF_CANN_LISTS_2,                      \
    LLMPERF_CANN_TENSORS_2, const aclIntArray*, LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_3, const aclTensor*,      \
    std::int64_t, double, char*, std::int64_t, std::int64_t, std::int64_t, const aclTensor*)                           \
  X(aclnnIncreFlashAttentionV3, incre_flash_attention_v3, const aclTensor*, LLMPERF_CANN_LISTS_2,                      \
    LLMPERF_CANN_TENSORS_2, const aclIntArray*, LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_3, std::int64_t, double,  \
    char*, std::int64_t, std::int64_t, std::int64_t, const aclTensor*)                                                 \
  X(aclnnRmsNorm, rms_norm, LLMPERF_CANN_TENSORS_2, double, LLMPERF_CANN_TENSORS_2)                                    \
  X(aclnnAddRmsNorm, add_rms_norm, LLMPERF_CANN_TENSORS_3, double, LLMPERF_CANN_TENSORS_3)                             \
  X(aclnnApplyRotaryPosEmb, apply_rotary_pos_emb, aclTensor*, aclTensor*, LLMPERF_CANN_TENSORS_2, std::int64_t)        \
  X(aclnnApplyRotaryPosEmbV2, apply_rotary_pos_emb_v2, aclTensor*, aclTensor*, LLMPERF_CANN_TENSORS_2, std::int64_t,   \
    char*)                                                                                                             \
  X(aclnnInplaceScatterUpdate, scatter_update, aclTensor*, LLMPERF_CANN_TENSORS_2, std::int64_t)                       \
  X(aclnnSwiGlu, swi_glu, const aclTensor*, std::int64_t, const aclTensor*)                                            \
  X(aclnnSilu, silu, const aclTensor*, aclTensor*)                                                                     \
  X(aclnnAdd, add, LLMPERF_CANN_TENSORS_2, const aclScalar*, aclTensor*)                                               \
  X(aclnnMul, mul, LLMPERF_CANN_TENSORS_2, aclTensor*)                                                                 \
  X(aclnnEmbedding, embedding, LLMPERF_CANN_TENSORS_3)                                                                 \
  X(aclnnMatmulAllReduce, matmul_all_reduce, LLMPERF_CANN_TENSORS_3, const char*, const char*, std::int64_t,           \
    std::int64_t, const aclTensor*)                                                                                    \
  X(aclnnGroupedMatmulV4, grouped_matmul_v4, LLMPERF_CANN_LISTS_3, LLMPERF_CANN_LISTS_3, LLMPERF_CANN_LISTS_2,         \
    const aclTensor*, LLMPERF_CANN_LISTS_3, std::int64_t, std::int64_t, std::int64_t, std::int64_t, aclTensorList*,    \
    aclTensorList*, aclTensorList*)                                                                                    \
  X(aclnnDynamicQuant, dynamic_quant, LLMPERF_CANN_TENSORS_2, LLMPERF_CANN_TENSORS_2)                                  \
  X(aclnnMoeGatingTopKSoftmaxV2, moe_gating_top_k_softmax_v2, LLMPERF_CANN_TENSORS_2, std::int64_t, std::int64_t,      \
    bool, LLMPERF_CANN_TENSORS_3)                                                                                      \
  X(aclnnMoeInitRoutingV2, moe_init_routing_v2, LLMPERF_CANN_TENSORS_2, std::int64_t, std::int64_t, std::int64_t,      \
    std::int64_t, std::int64_t, bool, LLMPERF_CANN_TENSORS_2, LLMPERF_CANN_TENSORS_2)                                  \
  X(aclnnMoeFinalizeRoutingV2, moe_finalize_routing_v2, LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_2, std::int64_t,  \
    const aclTensor*)

// A function by its name, which errors tell; false where CANN does not have it.
template <class Signature>
struct Function;
template <class Result, class... Arguments>
struct Function<Result(Arguments...)> {
  const char* name = nullptr;
  Result (*pointer)(Arguments...) = nullptr;
  Result operator()(Arguments... arguments) const { return pointer(arguments...); }
  explicit operator bool() const { return pointer != nullptr; }
};

// The two phases of an op. `plan` validates the arguments and says how large a workspace the launch needs.
template <class... Arguments>
struct Op {
  using Plan = Status(Arguments..., std::uint64_t*, aclOpExecutor**);
  const char* name = nullptr;
  Plan* plan = nullptr;
  Launch* launch = nullptr;
  explicit operator bool() const { return plan != nullptr && launch != nullptr; }
};

struct Functions {
#define LLMPERF_CANN_MEMBER(name, ...) Function<__VA_ARGS__> name = {#name};
  LLMPERF_CANN_REQUIRED(LLMPERF_CANN_MEMBER)
  LLMPERF_CANN_OPTIONAL(LLMPERF_CANN_MEMBER)
  LLMPERF_CANN_COLLECTIVES(LLMPERF_CANN_MEMBER)
#undef LLMPERF_CANN_MEMBER
#define LLMPERF_CANN_MEMBER(name, header, ...) Op<__VA_ARGS__> name = {#name};
  LLMPERF_CANN_OPS(LLMPERF_CANN_MEMBER)
#undef LLMPERF_CANN_MEMBER

  std::vector<std::string> libraries;  // as opened
  std::vector<std::string> missing;    // functions that are in none of them

  bool repeatable_executors() const { return aclSetAclOpExecutorRepeatable && aclDestroyAclOpExecutor; }
  bool graphs() const { return aclmdlRICaptureBegin && aclmdlRICaptureEnd && aclmdlRIExecuteAsync && aclmdlRIDestroy; }
};

// Folders that CANN's libraries are looked for in, before the loader's own: of $ASCEND_HOME_PATH, of
// $ASCEND_TOOLKIT_HOME, and where its installers put it.
std::vector<std::string> library_folders();

// Every function is looked for in every library. Throws Error(failed) that names the library that was not found, with
// all folders, or the function without which nothing runs. The libraries stay loaded until the process ends: threads
// that CANN starts outlive aclFinalize.
std::shared_ptr<const Functions> load(std::span<const std::string> folders);

// The function's name, the code that it returned and its meaning, and what CANN says of it.
std::string describe_failure(const Functions& cann, Status status, std::string_view function);
// Nothing when the call succeeded; else throws Error(failed) with that.
void check(const Functions& cann, Status status, std::string_view function);
// Calls and checks.
template <class... Parameters, class... Arguments>
void call(const Functions& cann, const Function<Status(Parameters...)>& function, Arguments... arguments) {
  check(cann, function(arguments...), function.name);
}

// The first phase of an op did not take its arguments, or the op's kernels are not installed: nothing is broken, the op
// cannot be run here.
bool is_refusal(Status status);
bool is_out_of_memory(Status status);

}  // namespace llmperf::replay::ascend::cann
