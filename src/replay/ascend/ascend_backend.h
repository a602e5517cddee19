// A Huawei Ascend NPU through CANN, whose libraries are loaded at run time.
#pragma once

#include <cstdint>
#include <memory>

#include "replay/backend.h"

namespace llmperf::replay::ascend {

// Throws Error(failed) saying which library was not found and where it was looked for, or what CANN refused.
// `page`: attention reads its cache in pages of as many tokens; 0: each sequence's lies whole.
std::unique_ptr<Backend> make_ascend_backend(int device, std::int64_t page = 0);

}  // namespace llmperf::replay::ascend
