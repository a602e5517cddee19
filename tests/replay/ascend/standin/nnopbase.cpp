// Stand-in of libnnopbase.so: tensors and executors.
#include "nnopbase.h"

using namespace standin;

extern "C" {

aclTensor* aclCreateTensor(const int64_t* view, uint64_t view_count, aclDataType type, const int64_t* strides,
                           int64_t offset, aclFormat format, const int64_t* storage, uint64_t storage_count,
                           void* data) {
  if (enter("aclCreateTensor") != 0) return nullptr;
  auto* tensor = new aclTensor{
      {view, view + view_count}, {strides, strides + view_count}, {storage, storage + storage_count}, offset, type,
      static_cast<char*>(data)};
  if (format != ACL_FORMAT_ND) violation("aclCreateTensor: only ND is stood in for");
  std::int64_t last = offset;
  std::int64_t stored = 1;
  for (std::size_t i = 0; i < tensor->shape.size(); ++i) last += (tensor->shape[i] - 1) * tensor->strides[i];
  for (const std::int64_t size : tensor->storage) stored *= size;
  if (last >= stored) violation("aclCreateTensor: the view reaches beyond what is stored");
  const std::int64_t bits = type == ACL_INT4                          ? 4
                            : type == ACL_INT64 || type == ACL_UINT64 ? 64
                            : type == ACL_FLOAT || type == ACL_INT32  ? 32
                            : type == ACL_FLOAT16 || type == ACL_BF16 ? 16
                                                                      : 8;
  if (!is_device_memory(data, static_cast<std::size_t>((stored * bits + 7) / 8))) {
    violation("aclCreateTensor: the data is not all in device memory");
  }
  born(tensor, "tensor");
  return tensor;
}
aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  const int injected = enter("aclDestroyTensor");
  if (!dies(tensor, "tensor", "aclDestroyTensor")) return 161002;
  delete tensor;
  return injected;
}
aclScalar* aclCreateScalar(void* value, aclDataType type) {
  if (enter("aclCreateScalar") != 0) return nullptr;
  if (type != ACL_FLOAT) violation("aclCreateScalar: only ACL_FLOAT is stood in for");
  auto* scalar = new aclScalar{*static_cast<float*>(value)};
  born(scalar, "scalar");
  return scalar;
}
aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  const int injected = enter("aclDestroyScalar");
  if (!dies(scalar, "scalar", "aclDestroyScalar")) return 161002;
  delete scalar;
  return injected;
}
aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  if (enter("aclCreateIntArray") != 0) return nullptr;
  auto* array = new aclIntArray{{value, value + size}};
  born(array, "int array");
  return array;
}
aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
  const int injected = enter("aclDestroyIntArray");
  if (!dies(array, "int array", "aclDestroyIntArray")) return 161002;
  delete array;
  return injected;
}
// A list owns its tensors.
aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
  if (enter("aclCreateTensorList") != 0) return nullptr;
  auto* list = new aclTensorList;
  for (uint64_t i = 0; i < size; ++i) {
    if (!dies(value[i], "tensor", "aclCreateTensorList")) continue;
    list->tensors.push_back(const_cast<aclTensor*>(value[i]));
    born(value[i], "list tensor");
  }
  born(list, "tensor list");
  return list;
}
aclnnStatus aclDestroyTensorList(const aclTensorList* list) {
  const int injected = enter("aclDestroyTensorList");
  if (!dies(list, "tensor list", "aclDestroyTensorList")) return 161002;
  for (const aclTensor* tensor : list->tensors) {
    dies(tensor, "list tensor", "aclDestroyTensorList");
    delete tensor;
  }
  delete list;
  return injected;
}
aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  if (const int injected = enter("aclSetAclOpExecutorRepeatable")) return injected;
  if (!live(executor, "executor")) {
    violation("aclSetAclOpExecutorRepeatable of an executor that is not there");
    return 561103;
  }
  if (!repeatable_allowed()) return 561000;
  executor->repeatable = true;
  return 0;
}
aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  const int injected = enter("aclDestroyAclOpExecutor");
  if (!dies(executor, "executor", "aclDestroyAclOpExecutor")) return 561103;
  if (*executor->pending > 0) violation("aclDestroyAclOpExecutor of " + executor->op + " while it is queued");
  delete executor;
  return injected;
}

}  // extern "C"
