#include "replay/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"

namespace llmperf::replay {
namespace {

// Of a part of LD_LIBRARY_PATH that is empty or no whole path, where it leads from the current folder, and only where
// libraries lie there: anybody may have put them there. An empty part at the end, which is common, harms nobody else.
std::optional<std::string> libraries_nearby() {
  const char* variable = std::getenv("LD_LIBRARY_PATH");
  std::string path = variable == nullptr ? "" : variable;
  std::replace(path.begin(), path.end(), ';', ':');
  for (const std::string_view part : path.empty() ? std::vector<std::string_view>() : split(path, ':')) {
    if (part.starts_with('/')) continue;
    const std::string folder = part.empty() ? "." : std::string(part);
    std::error_code ignored;
    for (std::filesystem::directory_iterator file(folder, ignored), end; file != end; file.increment(ignored)) {
      const std::string name = file->path().filename().string();
      if (name.find(".so") != std::string::npos || name == "glibc-hwcaps") return folder + '/' + name;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Library> Library::open(std::span<const std::string> names, std::span<const std::string> folders,
                                     std::vector<std::string>& problems) {
  const auto attempt = [&](const std::string& path) -> std::optional<Library> {
    // Global, because libraries of one kit take each other's symbols without linking them.
    if (void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL)) return Library(handle, path);
    const char* reason = dlerror();
    problems.emplace_back(reason ? reason : path + ": cannot be loaded");
    return std::nullopt;
  };
  if (const auto nearby = libraries_nearby()) {
    problems.push_back(*nearby +
                       ": LD_LIBRARY_PATH leads the loader to the current folder, and no library is loaded so");
    return std::nullopt;
  }
  for (const std::string& folder : folders) {
    if (!folder.starts_with('/')) {
      problems.push_back(folder + ": not looked into, because it is no whole path");
      continue;
    }
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
