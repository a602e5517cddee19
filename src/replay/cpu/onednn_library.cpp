#ifdef LLMPERF_HAVE_ONEDNN

#include "replay/cpu/onednn_library.h"

#include <array>
#include <type_traits>
#include <vector>

#include "base/text.h"

namespace llmperf::replay::cpu {
namespace {

LoadedOneDnn load() {
  // The C interface changed from version to version: only the one of the headers will do.
  const std::array<std::string, 2> names = {"libdnnl.so." + std::to_string(DNNL_VERSION_MAJOR), "libdnnl.so"};
  std::vector<std::string> problems;
  auto library = Library::open(names, {}, problems);
  if (!library) return {.library = std::nullopt, .why_not = join(problems, "; ")};
  OneDnn dnn{.library = std::move(*library)};
  const char* missing = nullptr;
#define LLMPERF_ONEDNN_FIND(name)                                                        \
  dnn.name = dnn.library.find<std::remove_pointer_t<decltype(dnn.name)>>("dnnl_" #name); \
  if (dnn.name == nullptr) missing = "dnnl_" #name;
  LLMPERF_ONEDNN_FUNCTIONS(LLMPERF_ONEDNN_FIND)
#undef LLMPERF_ONEDNN_FIND
  if (missing != nullptr) return {.library = std::nullopt, .why_not = dnn.library.path() + " lacks " + missing};
  if (dnn.version()->major != DNNL_VERSION_MAJOR) {
    return {.library = std::nullopt,
            .why_not = dnn.library.path() + " is of version " + std::to_string(dnn.version()->major) + ", not " +
                       std::to_string(DNNL_VERSION_MAJOR)};
  }
  dnn.omp_set_num_threads = dnn.library.find<void(int)>("omp_set_num_threads");
  dnn.omp_get_max_threads = dnn.library.find<int()>("omp_get_max_threads");
  if (dnn.omp_get_max_threads == nullptr) dnn.omp_set_num_threads = nullptr;
  return {.library = std::move(dnn), .why_not = {}};
}

}  // namespace

const LoadedOneDnn& loaded_onednn() {
  static const auto* const library = new LoadedOneDnn(load());
  return *library;
}

}  // namespace llmperf::replay::cpu

#endif
