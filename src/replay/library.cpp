#include "replay/library.h"

#include <dlfcn.h>

namespace llmperf::replay {

std::optional<Library> Library::open(std::span<const std::string> names, std::span<const std::string> folders,
                                     std::vector<std::string>& problems) {
  const auto attempt = [&](const std::string& path) -> std::optional<Library> {
    // Global, because libraries of one kit take each other's symbols without linking them.
    if (void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL)) return Library(handle, path);
    const char* reason = dlerror();
    problems.emplace_back(reason ? reason : path + ": cannot be loaded");
    return std::nullopt;
  };
  for (const std::string& folder : folders) {
    for (const std::string& name : names) {
      if (auto library = attempt(folder + '/' + name)) return library;
    }
  }
  for (const std::string& name : names) {
    if (auto library = attempt(name)) return library;
  }
  return std::nullopt;
}

Library::~Library() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* Library::address(const char* symbol) const { return dlsym(handle_, symbol); }

}  // namespace llmperf::replay
