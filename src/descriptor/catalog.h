// Built-in data, embedded in the binary, and the search path that overrides it.
//
// A name given to --model or --hw is looked up in this order: a path (it contains '/' or ends in .yaml, .yml, .json,
// .csv or .gguf); then <dir>/models/<name>.yaml, <dir>/hardware/devices/<name>.yaml and so on for each <dir> of
// LLMPERF_PATH (colon-separated); then the embedded files, by their names, else by what people call them: any case,
// `h100`, `RTX 4090`, a device's aliases, ids at Hugging Face, and what is published under such an id with more behind
// it (ModelName). What begins with a brace is no name but the description itself, as JSON.
//
// The `source` of a file of LLMPERF_PATH that has a built-in one's name begins with its path, so that whatever says
// where figures are from says that.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor/node.h"

namespace llmperf::descriptor {

enum class Kind {
  model,
  device,
  runtime,
  engine,
  measurements,
  trace,
  program,
  scenario
};  // measurements and traces of requests are CSV, the rest YAML

// Where files of a kind stand, in the project and under a directory of the search path.
struct KindOfFile {
  std::string_view folder;
  std::string_view extension;
  std::string_view noun;
  bool in_engine = true;  // whether the engine of pages has them
};
inline constexpr KindOfFile kKindsOfFiles[] = {{"models", ".yaml", "model"},
                                               {"hardware/devices", ".yaml", "hardware"},
                                               {"hardware/runtimes", ".yaml", "runtime profile"},
                                               {"hardware/engines", ".yaml", "engine"},
                                               {"hardware/measurements", ".csv", "measurements", false},
                                               {"hardware/traces", ".csv", "trace"},
                                               {"programs", ".yaml", "table for programs", false},
                                               {"scenarios", ".yaml", "scenario", false}};

struct EmbeddedFile {
  Kind kind;
  std::string_view name;  // "qwen-7b"
  std::string_view path;  // "models/qwen-7b.yaml", as shown in diagnostics
  std::string_view text;  // of CSV as it stands, of YAML as packed.h has it
};

// All embedded files, sorted by kind and name. Generated at build time from models/, hardware/, programs/
// and scenarios/.
std::span<const EmbeddedFile> embedded_files();

// Of such a `source` the path; nothing of others.
std::string_view replacing(std::string_view source);
// True when `name` is a description itself: JSON.
inline bool is_inline(std::string_view name) { return name.starts_with('{'); }
// True when `name` means a file rather than a built-in.
bool is_path(std::string_view name);
// What people copy from a hub, taken apart: "Qwen/Qwen3-8B-AWQ", "unsloth/Qwen3-8B-GGUF:Q4_K_M",
// "mlx-community/…-4bit", or the address of such a page. Nothing is taken off a name that is known as it stands.
struct ModelName {
  std::string model;    // "Qwen/Qwen3-8B"
  std::string weights;  // what the rest says of how they are stored: "awq"; empty: nothing
};
ModelName read_model_name(std::string_view given);
// Names known for `kind` (search path and embedded), sorted, unique.
std::vector<std::string> names(Kind kind);
// Whether a name means a built-in file, and none of the search path in its place.
bool is_built_in(Kind kind, const std::string& name);
// The document a name or path means. Throws Error(bad_input): unknown name with the nearest ones, or what parse_file
// throws.
Document load(Kind kind, const std::string& name_or_path);
// What the file of that name has at each of `keys` of its outermost mapping, without the rest being read: a scalar, the
// scalars of a list, or nothing. Throws as load() does.
std::vector<std::vector<std::string>> values(Kind kind, const std::string& name,
                                             std::initializer_list<std::string_view> keys);
// The text of measurements or a trace that a name or path means, and the path to show in messages.
struct Text {
  std::string path;
  std::string text;
};
// Throws Error(bad_input) also for a file beyond `max_bytes`.
Text load_text(Kind kind, const std::string& name_or_path, std::size_t max_bytes = kMaxDescriptorBytes);

}  // namespace llmperf::descriptor
