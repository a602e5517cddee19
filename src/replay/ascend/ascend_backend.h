// A Huawei Ascend NPU through CANN, whose libraries are loaded at run time.
#pragma once

#include <memory>

#include "replay/backend.h"

namespace llmperf::replay::ascend {

// Throws Error(failed) saying which library was not found and where it was looked for, or what CANN refused.
std::unique_ptr<Backend> make_ascend_backend(int device);

}  // namespace llmperf::replay::ascend
