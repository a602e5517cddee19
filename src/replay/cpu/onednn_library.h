// oneDNN's C functions, found when the library is loaded. For onednn_*.cpp where its headers are (LLMPERF_HAVE_ONEDNN).
#pragma once

#include <dnnl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "replay/library.h"

namespace llmperf::replay::cpu {

// clang-format off
#define LLMPERF_ONEDNN_FUNCTIONS(X)                                                                            \
  X(version) X(engine_create) X(engine_destroy) X(stream_create) X(stream_destroy)                             \
  X(memory_desc_init_by_strides) X(memory_desc_get_size) X(memory_create) X(memory_destroy)                    \
  X(matmul_desc_init) X(primitive_attr_create) X(primitive_attr_destroy) X(primitive_attr_set_output_scales)   \
  X(primitive_attr_set_scratchpad_mode) X(primitive_desc_create) X(primitive_desc_destroy)                     \
  X(primitive_desc_query) X(primitive_desc_query_md) X(reorder_primitive_desc_create)                          \
  X(primitive_create) X(primitive_destroy) X(primitive_execute)
// clang-format on

struct OneDnn {
  Library library;
// NOLINTNEXTLINE(bugprone-macro-parentheses): names cannot stand in parentheses here
#define LLMPERF_ONEDNN_MEMBER(name) decltype(&dnnl_##name) name = nullptr;
  LLMPERF_ONEDNN_FUNCTIONS(LLMPERF_ONEDNN_MEMBER)
#undef LLMPERF_ONEDNN_MEMBER
  // Of the OpenMP runtime that oneDNN divides its work with; null when it uses another.
  void (*omp_set_num_threads)(int) = nullptr;
  int (*omp_get_max_threads)() = nullptr;
};

struct LoadedOneDnn {
  std::optional<OneDnn> library;
  std::string why_not;
};
// Never unloaded.
const LoadedOneDnn& loaded_onednn();

// oneDNN uses one thread of its own, the caller, while this lives: OpenMP counts for every thread apart.
class OneThread {
 public:
  explicit OneThread(const OneDnn& dnn) : dnn_(dnn) {
    if (dnn_.omp_set_num_threads == nullptr) return;
    before_ = dnn_.omp_get_max_threads();
    dnn_.omp_set_num_threads(1);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  ~OneThread() {
    if (dnn_.omp_set_num_threads != nullptr) dnn_.omp_set_num_threads(before_);
  }

 private:
  const OneDnn& dnn_;
  int before_ = 1;
};

// A oneDNN object, destroyed by the function that oneDNN has for its kind.
template <class Object>
using Handle = std::unique_ptr<Object, dnnl_status_t (*)(Object*)>;

// Throws what a failed call was, for the maker of a product to turn into a reason.
struct OneDnnFailure {
  std::string what;
};
inline void check(dnnl_status_t status, const char* call) {
  if (status == dnnl_success) return;
  const char* meaning = status == dnnl_unimplemented       ? "not implemented for this processor, types and shape"
                        : status == dnnl_out_of_memory     ? "out of memory"
                        : status == dnnl_invalid_arguments ? "invalid arguments"
                                                           : "failed";
  throw OneDnnFailure{std::string(call) + ": " + meaning + " (status " + std::to_string(static_cast<int>(status)) +
                      ")"};
}
// create(pointer to the object, arguments...), checked and owned.
template <class Object, class Create, class... Arguments>
Handle<Object> make_handle(const char* call, dnnl_status_t (*destroy)(Object*), Create create,
                           Arguments&&... arguments) {
  Object* object = nullptr;
  check(create(&object, std::forward<Arguments>(arguments)...), call);
  return {object, destroy};
}

}  // namespace llmperf::replay::cpu
