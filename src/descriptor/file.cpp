#include "base/file.h"

#include <filesystem>

#include "base/error.h"
#include "descriptor/node.h"

namespace llmperf::descriptor {
namespace {

[[noreturn]] void fail(const std::string& path, std::string message, std::string hint = {}) {
  throw Error(ErrorKind::bad_input, {{{path, 0, 0}, std::move(message), std::move(hint)}});
}

}  // namespace

std::string read_text_file(const std::string& path, std::size_t max_bytes) {
  const auto limit = static_cast<std::int64_t>(max_bytes);
  const RegularFile file(path, limit);
  // The size is only a forecast: the file may grow meanwhile, and those of /proc say 0.
  std::string text;
  char chunk[16 * 1024];
  for (;;) {
    const std::int64_t got = file.read_some(static_cast<std::int64_t>(text.size()), chunk);
    if (got == 0) return text;
    text.append(chunk, static_cast<std::size_t>(got));
    if (text.size() > max_bytes) file.fail_too_large(limit);
  }
}

Document parse_file(const std::string& path, const JsonRules& rules) {
  const bool json = path.ends_with(".json");
  if (!json && !path.ends_with(".yaml") && !path.ends_with(".yml")) {
    std::error_code ignored;
    const std::filesystem::file_status status = std::filesystem::status(path, ignored);
    if (std::filesystem::is_directory(status)) fail(path, "is a directory, not a file");
    if (std::filesystem::is_other(status)) fail(path, "is not a regular file");
    fail(path, "unknown kind of file", "accepted extensions: .yaml, .yml, .json; for models also .gguf");
  }
  if (json) return parse_json(read_text_file(path, rules.max_bytes), path, rules);
  return parse_yaml(read_text_file(path), path);
}

}  // namespace llmperf::descriptor
