#include "replay/ascend/cann.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "replay/ascend/status.h"
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
  const auto find = [&](const char* name, auto& pointer) {
    using Function = std::remove_pointer_t<std::remove_reference_t<decltype(pointer)>>;
    for (const Library& library : libraries) {
      pointer = library.find<Function>(name);
      if (pointer != nullptr) return true;
    }
    functions->missing.emplace_back(name);
    return false;
  };
#define LLMPERF_CANN_FIND(name, ...) \
  if (!find(#name, functions->name)) needed.emplace_back(#name);
  LLMPERF_CANN_REQUIRED(LLMPERF_CANN_FIND)
#undef LLMPERF_CANN_FIND
#define LLMPERF_CANN_FIND(name, ...) find(#name, functions->name);
  LLMPERF_CANN_OPTIONAL(LLMPERF_CANN_FIND)
  LLMPERF_CANN_COLLECTIVES(LLMPERF_CANN_FIND)
#undef LLMPERF_CANN_FIND
#define LLMPERF_CANN_FIND(name, ...)                    \
  find(#name "GetWorkspaceSize", functions->name.plan); \
  if (functions->name.plan != nullptr) find(#name, functions->name.launch);
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

std::string describe_failure(const Functions& cann, Status status, const char* function) {
  std::string text = fmt::format("{} failed with {} ({})", function, status, meaning(status, function));
  const char* words = cann.aclGetRecentErrMsg != nullptr ? cann.aclGetRecentErrMsg() : nullptr;
  if (words != nullptr && *words != '\0') text += fmt::format("; CANN says: {}", trim(words));
  return text;
}

void fail(const Functions& cann, Status status, const char* function) {
  throw Error::failed(describe_failure(cann, status, function));
}

void check(const Functions& cann, Status status, const char* function) {
  if (status != kSuccess) fail(cann, status, function);
}

}  // namespace llmperf::replay::ascend::cann
