// Objects of the stand-in of libnnopbase.so, which those of the op libraries look into.
#pragma once

#include <acl/acl.h>
#include <aclnn/acl_meta.h>

#include <functional>
#include <string>
#include <vector>

#include "standin.h"

struct aclTensor {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> storage;
  std::int64_t offset = 0;
  aclDataType type = ACL_DT_UNDEFINED;
  char* data = nullptr;
};
struct aclScalar {
  float value = 0;
};
struct aclIntArray {
  std::vector<std::int64_t> values;
};
struct aclTensorList {
  std::vector<aclTensor*> tensors;
};
struct aclOpExecutor {
  std::string op;
  std::uint64_t workspace = 0;
  bool repeatable = false;
  standin::Task run;
  std::shared_ptr<std::atomic<int>> pending = std::make_shared<std::atomic<int>>(0);
};
