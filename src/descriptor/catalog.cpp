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

struct Folder {
  std::string_view path;
  std::string_view extension;
  std::string_view noun;
};
constexpr Folder kFolders[] = {{"models", ".yaml", "model"},
                               {"hardware/devices", ".yaml", "hardware"},
                               {"hardware/runtimes", ".yaml", "runtime profile"},
                               {"hardware/measurements", ".csv", "measurements"},
                               {"programs", ".yaml", "table for programs"},
                               {"scenarios", ".yaml", "scenario"}};
const Folder& folder(Kind kind) { return kFolders[static_cast<std::size_t>(kind)]; }

// The folders of LLMPERF_PATH that hold files of this kind.
std::vector<std::string> search_folders(Kind kind) {
  std::vector<std::string> folders;
  const char* path = std::getenv("LLMPERF_PATH");
  for (const std::string_view directory : split(path == nullptr ? "" : path, ':')) {
    if (!directory.empty()) folders.push_back(std::string(directory) + '/' + std::string(folder(kind).path));
  }
  return folders;
}

}  // namespace

bool is_path(std::string_view name) {
  constexpr std::array<std::string_view, 5> kExtensions = {".yaml", ".yml", ".json", ".gguf", ".csv"};
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
      if (file->path().extension() == folder(kind).extension) found.push_back(file->path().stem().string());
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

namespace {

// Where a name is found: a file of the search path, or an embedded one.
struct Found {
  std::string path;
  const EmbeddedFile* embedded = nullptr;
};
Found find(Kind kind, const std::string& name_or_path) {
  if (is_path(name_or_path)) return {name_or_path};
  for (const std::string& directory : search_folders(kind)) {
    std::string path = directory + '/' + name_or_path + std::string(folder(kind).extension);
    std::error_code ignored;
    if (fs::exists(path, ignored)) return {std::move(path)};
  }
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.kind == kind && file.name == name_or_path) return {std::string(file.path), &file};
  }
  throw Error::bad_input("unknown " + std::string(folder(kind).noun) + " " + quote(name_or_path),
                         name_hint(name_or_path, names(kind)));
}

}  // namespace

Document load(Kind kind, const std::string& name_or_path) {
  const Found found = find(kind, name_or_path);
  if (found.embedded) return parse_yaml(found.embedded->text, found.path);
  return parse_file(found.path, kind == Kind::model ? kConfigRules : JsonRules());
}

Text load_text(Kind kind, const std::string& name_or_path) {
  Found found = find(kind, name_or_path);
  std::string text = found.embedded ? std::string(found.embedded->text) : read_text_file(found.path);
  return {std::move(found.path), std::move(text)};
}

}  // namespace llmperf::descriptor
