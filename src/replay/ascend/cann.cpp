#include "replay/ascend/cann.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "replay/library.h"

namespace llmperf::replay::ascend::cann {
namespace {

// One part of CANN: the names its library has or had, all of which may be there at once.
struct Part {
  std::vector<std::string> names;
  bool needed;
};

std::vector<Part> parts() {
  return {{{"libascendcl.so", "libacl_rt.so"}, true},
          {{"libnnopbase.so"}, true},
          {{"libopapi.so", "libopapi_math.so", "libopapi_nn.so", "libopapi_transformer.so", "libopapi_cv.so"}, true},
          {{"libhccl.so", "libhcomm.so"}, false}};
}

// What the loader said of files that are there: of the others there is nothing to say but that they are not.
std::vector<std::string> of_existing(const std::vector<std::string>& problems) {
  std::vector<std::string> found;
  for (const std::string& line : problems) {
    std::error_code ignored;
    if (std::filesystem::exists(line.substr(0, line.find(": ")), ignored)) found.push_back(line);
  }
  return found;
}

// Never destroyed: see load().
std::vector<Library>& opened() {
  static auto& libraries = *new std::vector<Library>;
  return libraries;
}

}  // namespace

std::vector<std::string> library_folders() {
  std::vector<std::string> folders;
  for (const char* variable : {"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"}) {
    if (const char* home = std::getenv(variable); home != nullptr && *home != '\0') {
      folders.push_back(std::string(home) + "/lib64");
    }
  }
  for (const char* home : {"/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/latest"}) {
    folders.push_back(std::string(home) + "/lib64");
  }
  return folders;
}

std::shared_ptr<const Functions> load(std::span<const std::string> folders) {
  std::vector<Library> libraries;
  for (const Part& part : parts()) {
    std::vector<std::string> problems;
    bool found = false;
    for (const std::string& name : part.names) {
      if (auto library = Library::open({&name, 1}, folders, problems)) {
        libraries.push_back(std::move(*library));
        found = true;
      }
    }
    if (part.needed && !found) {
      const std::vector<std::string> looked_in(folders.begin(), folders.end());
      std::string hint = "is CANN installed, and its set_env.sh sourced? It sets ASCEND_HOME_PATH";
      for (const std::string& line : of_existing(problems)) hint += "\n  the loader says: " + line;
      throw Error::failed(fmt::format("CANN's library {} was not found in {} or where the loader looks by itself",
                                      part.names.front(), join(looked_in, ", ")),
                          hint);
    }
  }

  auto functions = std::make_shared<Functions>();
  std::vector<std::string> needed;
  const auto find = [&](const std::string& name, auto*& pointer) {
    for (const Library& library : libraries) {
      pointer = library.find<std::remove_pointer_t<std::remove_reference_t<decltype(pointer)>>>(name.c_str());
      if (pointer != nullptr) return true;
    }
    functions->missing.push_back(name);
    return false;
  };
#define LLMPERF_CANN_FIND(name, ...) \
  if (!find(#name, functions->name.pointer)) needed.emplace_back(#name);
  LLMPERF_CANN_REQUIRED(LLMPERF_CANN_FIND)
#undef LLMPERF_CANN_FIND
#define LLMPERF_CANN_FIND(name, ...) find(#name, functions->name.pointer);
  LLMPERF_CANN_OPTIONAL(LLMPERF_CANN_FIND)
  LLMPERF_CANN_COLLECTIVES(LLMPERF_CANN_FIND)
#undef LLMPERF_CANN_FIND
#define LLMPERF_CANN_FIND(name, header, ...) \
  if (find(#name "GetWorkspaceSize", functions->name.plan)) find(#name, functions->name.launch);
  LLMPERF_CANN_OPS(LLMPERF_CANN_FIND)
#undef LLMPERF_CANN_FIND

  for (const Library& library : libraries) functions->libraries.push_back(library.path());
  if (!needed.empty()) {
    throw Error::failed(fmt::format("{} not in CANN's libraries ({})",
                                    needed.size() == 1 ? needed.front() + " is" : join(needed, ", ") + " are",
                                    join(functions->libraries, ", ")));
  }
  for (Library& library : libraries) opened().push_back(std::move(library));
  return functions;
}

namespace {

struct Meaning {
  Status status;
  std::string_view text;
};

// Of a code its name in CANN's headers and what it says.
constexpr Meaning kMeanings[] = {
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
    // What HCCL's functions return; of others such small numbers would mean something else.
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

}  // namespace

bool is_refusal(Status status) {
  return (status >= 161000 && status < 162000) || (status >= 561000 && status < 562000);
}

bool is_out_of_memory(Status status) { return status == 207001 || status == 200000; }

std::string describe_failure(const Functions& cann, Status status, std::string_view function) {
  const auto* found = std::find_if(std::begin(kMeanings), std::end(kMeanings), [&](const Meaning& m) {
    return m.status == status && m.text.starts_with("HCCL") == function.starts_with("Hccl");
  });
  const std::string_view meaning = found == std::end(kMeanings) ? "unknown code" : found->text;
  std::string text = fmt::format("{} failed with {} ({})", function, status, meaning);
  const char* words = cann.aclGetRecentErrMsg ? cann.aclGetRecentErrMsg() : nullptr;
  if (words != nullptr && *words != '\0') text += fmt::format("; CANN says: {}", trim(words));
  return text;
}

void check(const Functions& cann, Status status, std::string_view function) {
  if (status != kSuccess) throw Error::failed(describe_failure(cann, status, function));
}

}  // namespace llmperf::replay::ascend::cann
