#include "descriptor/catalog.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "descriptor/packed.h"

namespace llmperf::descriptor {
namespace {

namespace fs = std::filesystem;

const KindOfFile& kind_of_file(Kind kind) { return kKindsOfFiles[static_cast<std::size_t>(kind)]; }

// The folders of LLMPERF_PATH that hold files of this kind.
std::vector<std::string> search_folders(Kind kind) {
  std::vector<std::string> folders;
  const char* path = std::getenv("LLMPERF_PATH");
  for (const std::string_view directory : split(path == nullptr ? "" : path, ':')) {
    if (!directory.empty()) folders.push_back(std::string(directory) + '/' + std::string(kind_of_file(kind).folder));
  }
  return folders;
}

// ---- Names that people type, by rule: any case, blanks for dashes; of a model its id at Hugging Face, whatever the
// organisation, with or without what says how it was tuned; of a device its name, title or an alias, or some of its
// words ("h100", "A100 80GB").

std::vector<std::string> words_of(std::string_view text, std::initializer_list<std::string_view> dropped) {
  std::string lower = to_lower(text);
  std::replace_if(
      lower.begin(), lower.end(), [](char c) { return c == ' ' || c == '_'; }, '-');
  std::vector<std::string> words;
  for (const std::string_view word : split(lower, '-')) {
    if (!word.empty() && std::ranges::find(dropped, word) == dropped.end()) words.emplace_back(word);
  }
  return words;
}

std::vector<std::string> model_words(std::string_view name) {
  return words_of(name.substr(name.find('/') + 1), {"instruct", "chat", "it", "hf", "base", "meta"});
}

// The letters and digits of a model's name: "llama3.1-8b" is llama-3.1-8b.
std::string model_key(std::string_view name) {
  std::string key;
  for (const std::string& word : model_words(name)) {
    std::copy_if(word.begin(), word.end(), std::back_inserter(key), is_letter_or_digit);
  }
  return key;
}

// By its words, else by its letters and digits.
std::vector<std::string_view> models_called(std::string_view name) {
  std::vector<std::string_view> found;
  const auto search = [&](const auto& form) {
    const auto wanted = form(name);
    for (const EmbeddedFile& file : embedded_files()) {
      if (file.kind != Kind::model || wanted.empty() || (!found.empty() && found.back() == file.name)) continue;
      const auto means = [&](std::string_view text) { return !text.empty() && form(text) == wanted; };
      const auto says = [&](std::string_view key, const auto& rule) {
        return std::ranges::any_of(packed_values(file.text, key), rule);
      };
      const auto one_means = [&](std::string_view names) {
        return std::ranges::any_of(split(names, ','), [&](std::string_view one) { return means(trim(one)); });
      };
      if (means(file.name) || says("hf_id", means) || says("aliases", one_means)) found.push_back(file.name);
    }
  };
  search(model_words);
  if (found.empty()) search(model_key);
  return found;
}

// What a repository's name may end with, and which weights that says, if any; longer endings stand before those that
// they end with. Of "-4bit" only MLX's publishers say no more.
constexpr std::string_view kEndings =
    "-fp8-dynamic=fp8-channel -fp8-block=fp8-block128 -fp8-kv=fp8 -fp8=fp8 -awq-int4=awq -int4-awq=awq -awq-4bit=awq "
    "-awq=awq -gptq-int4=gptq -int4-gptq=gptq -gptq-4bit=gptq -gptq-int8=int8 -gptq=gptq -quantized.w4a16=w4a16 "
    "-quantized.w8a8=w8a8 -quantized.w8a16=int8 -w4a16=w4a16 -w8a8=w8a8 -w8a16=int8 -w4a8=w4a8 -int4=w4a16 -int8=int8 "
    "-bnb-4bit=nf4-double -bnb-8bit=int8 -nf4=nf4 -nvfp4=nvfp4 -mxfp4=mxfp4 -mxfp8=mxfp8 -fp4=nvfp4 -bf16=bf16 "
    "-fp16=fp16 "
    "-3bit=mlx-q3 -4bit=mlx-q4 -6bit=mlx-q6 -8bit=mlx-q8 -gguf= -ud= -mlx= -unsloth= -dynamic= -qat= -imatrix=";

// "q4_k_m" of "qwen3-8b-q4_k_m", a GGUF type at the end; else empty.
std::string_view gguf_ending(std::string_view name) {
  constexpr std::size_t kLongest = 8;
  for (std::size_t at = name.find('-'); at != std::string_view::npos; at = name.find('-', at + 1)) {
    const std::string_view type = name.substr(at + 1);
    const std::string_view rest = type.substr(type.starts_with("iq") ? 1 : 0);
    const bool wide = rest.size() > 1 && rest[0] == 'q' && rest[1] >= '1' && rest[1] <= '8';
    if (wide && type.size() <= kLongest && type.find("gguf") == std::string_view::npos) return type;
  }
  return {};
}

// The address of a page at a hub as what is behind its name, "Qwen/Qwen3-8B/tree/main"; empty: it is none.
std::string_view at_hub(std::string_view address) {
  for (const std::string_view start : {"https://", "http://", "www."}) {
    if (address.starts_with(start)) address.remove_prefix(start.size());
  }
  for (const std::string_view hub : {"huggingface.co/", "hf.co/", "hf-mirror.com/", "modelscope.cn/models/"}) {
    if (address.starts_with(hub)) return address.substr(hub.size(), address.find_first_of("?#") - hub.size());
  }
  return {};
}

// "4060ti" of "RTX 4060 Ti", "NVIDIA GeForce RTX 4060 Ti" and "rtx-4060_ti": letters and digits, without the names of
// makers and series in front.
std::string device_key(std::string_view name) {
  constexpr std::string_view kInFront[] = {"nvidia", "geforce", "tesla", "rtx", "amd",   "radeon", "instinct", "rx",
                                           "ryzen",  "intel",   "core",  "arc", "apple", "google", "jetson"};
  std::string key;
  for (const char c : to_lower(name)) {
    if (c == '+') key += "plus";
    if (is_letter_or_digit(c)) key += c;
  }
  for (bool cut = true; cut;) {
    cut = false;
    for (const std::string_view word : kInFront) {
      if (!key.starts_with(word)) continue;
      key.erase(0, word.size());
      cut = true;
    }
  }
  return key;
}

// The size of a device's memory as its board is sold, "24gb" of "24 GB"; empty: its file does not say.
std::string size_of_board(const EmbeddedFile& file) {
  const Node root = unpack(file.text);
  const Node* memory = root.find("memory");
  if (memory == nullptr) return {};
  // The last level's, which is all that a variant's file may have.
  const Node* board = (memory->items.empty() ? *memory : memory->items.back()).find("board");
  return board == nullptr ? "" : board->scalar.substr(0, board->scalar.find(' ')) + "gb";
}

// By its name, title or an alias, with or without the size of its memory ("RTX 4090 24GB").
bool is_called(const EmbeddedFile& file, std::string_view key) {
  const auto means = [&](std::string_view name) {
    const std::string own = device_key(name);
    if (own.empty() || !key.starts_with(own)) return false;
    return key == own || (key.ends_with("gb") && key.substr(own.size()) == size_of_board(file));
  };
  const auto says = [&](std::string_view of) { return std::ranges::any_of(packed_values(file.text, of), means); };
  return means(file.name) || says("title") || says("aliases");
}

// Those that are called so, else devices that have all the words. Of several of these the one that plugs into a board
// of its maker (SXM) is meant, which most are.
std::vector<std::string_view> devices_called(std::string_view name) {
  const std::vector<std::string> words =
      words_of(name, {"nvidia", "geforce", "tesla", "rtx", "amd", "radeon", "instinct", "intel", "google", "gpu"});
  const std::string key = device_key(name);
  std::vector<std::string_view> found;
  std::vector<std::string_view> boards;
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.kind == Kind::device && !key.empty() && is_called(file, key)) found.push_back(file.name);
  }
  if (!found.empty()) return found;
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.kind != Kind::device || words.empty()) continue;
    const std::vector<std::string> own = words_of(file.name, {});
    const auto has = [&](const std::string& word) { return std::ranges::find(own, word) != own.end(); };
    if (!std::ranges::all_of(words, [&](const auto& word) { return has(word) || has("rtx" + word); })) {
      continue;
    }
    found.push_back(file.name);
    if (has("sxm")) boards.push_back(file.name);
  }
  return boards.size() == 1 ? boards : found;
}

// The names nearest to one that nothing has. Of a device also those that are near without maker, series and the size of
// the memory: "7900xtz", "RTX 3080 12GB".
std::string hint_for(Kind kind, std::string_view name) {
  const std::vector<std::string> known = names(kind);
  if (kind == Kind::model) return name_hint(name.substr(name.find('/') + 1), known);
  if (kind != Kind::device || !nearest_names(name, known).empty()) return name_hint(name, known);
  const std::string lower = to_lower(name);
  const std::string key = device_key(lower.substr(0, lower.ends_with("gb") ? lower.find_last_of(" -_") : lower.size()));
  std::vector<std::string> keys;
  for (const std::string& other : known) keys.push_back(device_key(other));
  std::vector<std::string> near;
  for (const std::string& found : nearest_names(key, keys)) {
    near.push_back(quote(known[static_cast<std::size_t>(std::ranges::find(keys, found) - keys.begin())]));
  }
  if (near.empty()) return name_hint(name, known);
  return std::string("did you mean ").append(join(near, " or ")).append("?");
}

std::vector<std::string_view> called(Kind kind, std::string_view name) {
  if (kind == Kind::model) return models_called(read_model_name(name).model);
  return kind == Kind::device ? devices_called(name) : std::vector<std::string_view>();
}

}  // namespace

ModelName read_model_name(std::string_view given) {
  const std::string_view address = at_hub(given);
  constexpr std::size_t kLongest = 255;
  const bool known = address.empty() && !models_called(given).empty();
  if (is_inline(given) || known || given.size() > kLongest) return {std::string(given), {}};
  std::string name(address.empty() ? given : address);
  std::replace(name.begin(), name.end(), ':', '-');  // before a tag
  if (const std::vector<std::string_view> parts = split(name, '/'); !address.empty() && parts.size() > 2) {
    const std::string file = to_lower(parts.back());
    const std::string type(gguf_ending(file.substr(0, file.rfind(".gguf"))));
    name = std::string(parts[0]).append("/").append(parts[1]).append(type.empty() ? "" : "-" + type);
  }
  const std::string lower = to_lower(name);
  const bool mlx = lower.starts_with("mlx-community/") || lower.find("-mlx") != std::string::npos;
  std::string weights;
  bool gguf = false;
  std::size_t end = name.size();
  for (bool cut = true; cut && models_called(std::string_view(name).substr(0, end)).empty();) {
    const std::string_view rest = std::string_view(lower).substr(0, end);
    std::string_view text = gguf_ending(rest);
    std::string_view said = text;
    for (const std::string_view ending : words(kEndings)) {
      const std::size_t sign = ending.find('=');
      if (!text.empty() || !rest.ends_with(ending.substr(0, sign))) continue;
      if (ending.substr(sign + 1).starts_with("mlx") && !mlx) continue;
      text = ending.substr(1, sign - 1);
      said = ending.substr(sign + 1);
    }
    cut = !text.empty();
    if (cut) end -= text.size() + 1;
    gguf = gguf || text == "gguf";
    if (weights.empty()) weights = said;
  }
  name.resize(end);
  // What llama.cpp loads of a repository where its user names none; Qwen's own files have scales per block.
  if (gguf && weights.empty()) weights = "q4_k_m";
  if (weights == "fp8" && lower.starts_with("qwen/")) weights = "fp8-block128";
  return {std::move(name), std::move(weights)};
}

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
    const fs::file_status status = fs::status(path, ignored);
    const auto fail = [&](const char* message, const char* hint = "") {
      throw Error(ErrorKind::bad_input, {{{path, 0, 0}, message, hint}});
    };
    if (fs::is_directory(status)) fail("is a directory, not a file");
    if (fs::is_other(status)) fail("is not a regular file");
    fail("unknown kind of file", "accepted extensions: .yaml, .yml, .json; for models also .gguf");
  }
  if (json) return parse_json(read_text_file(path, rules.max_bytes), path, rules);
  return parse_yaml(read_text_file(path), path);
}

bool is_path(std::string_view name) {
  if (is_inline(name) || !at_hub(name).empty()) return false;
  constexpr std::array<std::string_view, 5> kExtensions = {".yaml", ".yml", ".json", ".gguf", ".csv"};
  if (std::ranges::any_of(kExtensions, [name](auto end) { return name.ends_with(end); })) return true;
  if (name.find('/') == std::string_view::npos) return false;
  // Not an id at a hub, unless there is such a file.
  std::error_code ignored;
  const bool id = std::ranges::count(name, '/') == 1 && name.front() != '.' && name.back() != '/' &&
                  name.front() != '/' && name.front() != '~';
  return !id || fs::exists(name, ignored);
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
      if (file->path().extension() == kind_of_file(kind).extension) found.push_back(file->path().stem().string());
    }
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

namespace {

// Where a name is found: a file of the search path, or an embedded one.
struct Found {
  std::string path;
  const EmbeddedFile* embedded = nullptr;
  bool replaces = false;
};
const EmbeddedFile* built_in_file(Kind kind, std::string_view name) {
  const std::span<const EmbeddedFile> files = embedded_files();
  const auto at =
      std::lower_bound(files.begin(), files.end(), std::pair(kind, name),
                       [](const auto& file, auto wanted) { return std::pair(file.kind, file.name) < wanted; });
  return at != files.end() && at->kind == kind && at->name == name ? &*at : nullptr;
}
Found find(Kind kind, const std::string& name_or_path) {
  if (is_path(name_or_path)) return {name_or_path};
  const EmbeddedFile* built_in = built_in_file(kind, name_or_path);
  for (const std::string& directory : search_folders(kind)) {
    std::string path = directory + '/' + name_or_path + std::string(kind_of_file(kind).extension);
    std::error_code ignored;
    if (fs::exists(path, ignored)) return {std::move(path), nullptr, built_in != nullptr};
  }
  if (built_in != nullptr) return {std::string(built_in->path), built_in};
  const std::vector<std::string_view> meant = called(kind, name_or_path);
  if (meant.size() == 1) return find(kind, std::string(meant.front()));
  if (meant.size() > 1) {
    throw Error::bad_input(quote(name_or_path) + " may be more than one " + std::string(kind_of_file(kind).noun),
                           join(std::vector<std::string>(meant.begin(), meant.end()), ", "));
  }
  std::error_code ignored;
  if (fs::exists(name_or_path, ignored)) {
    throw Error::bad_input("unknown " + std::string(kind_of_file(kind).noun) + " " + quote(name_or_path),
                           "a file or folder of that name here is ./" + name_or_path);
  }
  std::string hint = hint_for(kind, kind == Kind::model ? read_model_name(name_or_path).model : name_or_path);
  const bool id = kind == Kind::model && name_or_path.find('/') != std::string::npos;
  if (id) hint += "; of a model that is not built in give its config.json";
  throw Error::bad_input("unknown " + std::string(kind_of_file(kind).noun) + " " + quote(name_or_path),
                         std::move(hint));
}

constexpr std::string_view kReplacing = ", in place of the built-in file";

void say_source(Document& document) {
  auto& entries = document.root.entries;
  auto at = std::ranges::find_if(entries, [](const Node::Entry& e) { return e.key == "source"; });
  if (at == entries.end()) at = entries.insert(at, {"source", 1, 1, {}});
  at->value.kind = Node::Kind::scalar;
  const std::string own = at->value.scalar.empty() ? "" : "; " + at->value.scalar;
  at->value.scalar = document.file + std::string(kReplacing) + own;
}

}  // namespace

std::string_view replacing(std::string_view source) {
  const std::size_t at = source.find(kReplacing);
  const std::string_view file = source.substr(0, at == std::string_view::npos ? 0 : at);
  const std::size_t before = file.rfind(": ");  // "vllm-v1 of …; kernels: PATH"
  return file.substr(before == std::string_view::npos ? 0 : before + 2);
}

bool is_built_in(Kind kind, const std::string& name) { return find(kind, name).embedded != nullptr; }

Document load(Kind kind, const std::string& name_or_path) {
  const JsonRules rules = kind == Kind::model ? kConfigRules : JsonRules();
  if (is_inline(name_or_path)) return parse_json(name_or_path, "inline.json", rules);
  const Found found = find(kind, name_or_path);
  if (found.embedded) return {found.path, unpack(found.embedded->text)};
  Document document = parse_file(found.path, rules);
  if (found.replaces && kind <= Kind::engine) say_source(document);
  return document;
}

std::vector<std::vector<std::string>> values(Kind kind, const std::string& name,
                                             std::initializer_list<std::string_view> keys) {
  const Found found = find(kind, name);
  const std::string own = found.embedded ? std::string() : pack(parse_file(found.path).root);
  std::vector<std::vector<std::string>> texts;
  for (const std::string_view key : keys) {
    const std::vector<std::string_view> parts = packed_values(found.embedded ? found.embedded->text : own, key);
    texts.emplace_back(parts.begin(), parts.end());
  }
  return texts;
}

Text load_text(Kind kind, const std::string& name_or_path, std::size_t max_bytes) {
  Found found = find(kind, name_or_path);
  std::string text = found.embedded ? std::string(found.embedded->text) : read_text_file(found.path, max_bytes);
  return {std::move(found.path), std::move(text)};
}

}  // namespace llmperf::descriptor
