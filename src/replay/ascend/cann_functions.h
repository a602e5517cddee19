// The functions of CANN that are called, each declared once: the tables below make the pointers (cann.h), look them up
// (cann.cpp) and compare them with CANN's own headers (check/cann_check.cpp). X(name, type of the function).
#pragma once

#include <cstddef>
#include <cstdint>

#include "replay/ascend/cann_types.h"

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

// Ops: the arguments of the first phase, without the two that all of them end with (workspace size and executor). Long
// runs of optional tensors are written as LLMPERF_CANN_TENSORS_n.
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

#define LLMPERF_CANN_OPS(X)                                                                                           \
  X(aclnnMatmul, LLMPERF_CANN_TENSORS_2, aclTensor*, std::int8_t)                                                     \
  X(aclnnBatchMatMul, LLMPERF_CANN_TENSORS_2, aclTensor*, std::int8_t)                                                \
  X(aclnnWeightQuantBatchMatmulV2, LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_2, int, const aclTensor*)             \
  X(aclnnQuantMatmulV4, LLMPERF_CANN_TENSORS_3, LLMPERF_CANN_TENSORS_3, bool, bool, const aclTensor*)                 \
  X(aclnnQuantMatmulV5, LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_3, const aclTensor*, bool, bool, std::int64_t,   \
    aclTensor*)                                                                                                       \
  X(aclnnQuantMatmulV3, LLMPERF_CANN_TENSORS_5, bool, bool, const aclTensor*)                                         \
  X(aclnnFusedInferAttentionScoreV3, LLMPERF_CANN_FIA_START, LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_5,          \
    LLMPERF_CANN_TENSORS_3, LLMPERF_CANN_TENSORS_3, const aclIntArray*, LLMPERF_CANN_TENSORS_3,                       \
    LLMPERF_CANN_FIA_ATTRIBUTES, std::int64_t, std::int64_t, LLMPERF_CANN_TENSORS_2)                                  \
  X(aclnnFusedInferAttentionScoreV4, LLMPERF_CANN_FIA_START, LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_5,          \
    LLMPERF_CANN_TENSORS_3, LLMPERF_CANN_TENSORS_3, const aclIntArray*, LLMPERF_CANN_TENSORS_5,                       \
    LLMPERF_CANN_FIA_ATTRIBUTES, std::int64_t, std::int64_t, std::int64_t, LLMPERF_CANN_TENSORS_2)                    \
  X(aclnnFusedInferAttentionScoreV2, LLMPERF_CANN_FIA_START, LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_5,          \
    LLMPERF_CANN_TENSORS_3, LLMPERF_CANN_TENSORS_3, const aclIntArray*, LLMPERF_CANN_FIA_ATTRIBUTES, std::int64_t,    \
    std::int64_t, LLMPERF_CANN_TENSORS_2)                                                                             \
  X(aclnnFusedInferAttentionScore, LLMPERF_CANN_FIA_START, LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_5,            \
    LLMPERF_CANN_FIA_ATTRIBUTES, LLMPERF_CANN_TENSORS_2)                                                              \
  X(aclnnPromptFlashAttentionV3, LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_ARRAYS_2, LLMPERF_CANN_TENSORS_5, std::int64_t, \
    double, std::int64_t, std::int64_t, char*, std::int64_t, std::int64_t, std::int64_t, const aclTensor*)            \
  X(aclnnPromptFlashAttentionV2, LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_ARRAYS_2, LLMPERF_CANN_TENSORS_5, std::int64_t, \
    double, std::int64_t, std::int64_t, char*, std::int64_t, std::int64_t, const aclTensor*)                          \
  X(aclnnIncreFlashAttentionV4, const aclTensor*, LLMPERF_CANN_LISTS_2, LLMPERF_CANN_TENSORS_2, const aclIntArray*,   \
    LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_3, const aclTensor*, std::int64_t, double, char*, std::int64_t,      \
    std::int64_t, std::int64_t, const aclTensor*)                                                                     \
  X(aclnnIncreFlashAttentionV3, const aclTensor*, LLMPERF_CANN_LISTS_2, LLMPERF_CANN_TENSORS_2, const aclIntArray*,   \
    LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_3, std::int64_t, double, char*, std::int64_t, std::int64_t,          \
    std::int64_t, const aclTensor*)                                                                                   \
  X(aclnnRmsNorm, LLMPERF_CANN_TENSORS_2, double, LLMPERF_CANN_TENSORS_2)                                             \
  X(aclnnAddRmsNorm, LLMPERF_CANN_TENSORS_3, double, LLMPERF_CANN_TENSORS_3)                                          \
  X(aclnnApplyRotaryPosEmb, aclTensor*, aclTensor*, LLMPERF_CANN_TENSORS_2, std::int64_t)                             \
  X(aclnnApplyRotaryPosEmbV2, aclTensor*, aclTensor*, LLMPERF_CANN_TENSORS_2, std::int64_t, char*)                    \
  X(aclnnInplaceScatterUpdate, aclTensor*, LLMPERF_CANN_TENSORS_2, std::int64_t)                                      \
  X(aclnnSwiGlu, const aclTensor*, std::int64_t, const aclTensor*)                                                    \
  X(aclnnSilu, const aclTensor*, aclTensor*)                                                                          \
  X(aclnnAdd, LLMPERF_CANN_TENSORS_2, const aclScalar*, aclTensor*)                                                   \
  X(aclnnMul, LLMPERF_CANN_TENSORS_2, aclTensor*)                                                                     \
  X(aclnnEmbedding, LLMPERF_CANN_TENSORS_3)                                                                           \
  X(aclnnMatmulAllReduce, LLMPERF_CANN_TENSORS_3, const char*, const char*, std::int64_t, std::int64_t,               \
    const aclTensor*)                                                                                                 \
  X(aclnnGroupedMatmulV4, LLMPERF_CANN_LISTS_3, LLMPERF_CANN_LISTS_3, LLMPERF_CANN_LISTS_2, const aclTensor*,         \
    LLMPERF_CANN_LISTS_3, std::int64_t, std::int64_t, std::int64_t, std::int64_t, aclTensorList*, aclTensorList*,     \
    aclTensorList*)                                                                                                   \
  X(aclnnDynamicQuant, LLMPERF_CANN_TENSORS_2, LLMPERF_CANN_TENSORS_2)                                                \
  X(aclnnMoeGatingTopKSoftmaxV2, LLMPERF_CANN_TENSORS_2, std::int64_t, std::int64_t, bool, LLMPERF_CANN_TENSORS_3)    \
  X(aclnnMoeInitRoutingV2, LLMPERF_CANN_TENSORS_2, std::int64_t, std::int64_t, std::int64_t, std::int64_t,            \
    std::int64_t, bool, LLMPERF_CANN_TENSORS_2, LLMPERF_CANN_TENSORS_2)                                               \
  X(aclnnMoeFinalizeRoutingV2, LLMPERF_CANN_TENSORS_5, LLMPERF_CANN_TENSORS_2, std::int64_t, const aclTensor*)
