#include "descriptor/catalog.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"

namespace llmperf::descriptor {
namespace {

namespace fs = std::filesystem;

std::string_view folder(Kind kind) { return kind == Kind::model ? "models" : "hardware/devices"; }
std::string_view noun(Kind kind) { return kind == Kind::model ? "model" : "hardware"; }

// The folders of LLMPERF_PATH that hold files of this kind.
std::vector<std::string> search_folders(Kind kind) {
  std::vector<std::string> folders;
  const char* path = std::getenv("LLMPERF_PATH");
  for (const std::string_view directory : split(path == nullptr ? "" : path, ':')) {
    if (!directory.empty()) folders.push_back(std::string(directory) + '/' + std::string(folder(kind)));
  }
  return folders;
}

}  // namespace

bool is_path(std::string_view name) {
  constexpr std::array<std::string_view, 4> kExtensions = {".yaml", ".yml", ".json", ".gguf"};
  return name.find('/') != std::string_view::npos ||
         std::any_of(kExtensions.begin(), kExtensions.end(), [name](auto end) { return name.ends_with(end); });
}

std::vector<std::string> names(Kind kind) {
  std::vector<std::string> found;
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.kind == kind) found.emplace_back(file.name);
  }
  for (const std::string& directory : search_folders(kind)) {
    std::error_code ignored;  // a directory of the path that does not exist holds no names
    for (fs::directory_iterator file(directory, ignored), end; file != end; file.increment(ignored)) {
      if (ignored) break;
      if (file->path().extension() == ".yaml") found.push_back(file->path().stem().string());
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Document load(Kind kind, const std::string& name_or_path) {
  if (is_path(name_or_path)) return parse_file(name_or_path);
  for (const std::string& directory : search_folders(kind)) {
    const std::string path = directory + '/' + name_or_path + ".yaml";
    std::error_code ignored;
    if (fs::exists(path, ignored)) return parse_file(path);
  }
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.kind == kind && file.name == name_or_path) return parse_yaml(file.text, std::string(file.path));
  }
  throw Error::bad_input("unknown " + std::string(noun(kind)) + " " + quote(name_or_path),
                         name_hint(name_or_path, names(kind)));
}

}  // namespace llmperf::descriptor
