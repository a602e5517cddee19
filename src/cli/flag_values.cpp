#include "cli/flag_values.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "base/dtype.h"
#include "base/text.h"
#include "cli/backends.h"
#include "cost/collective.h"
#include "descriptor/catalog.h"
#include "hardware/runtime.h"
#include "import/import.h"
#include "model/gguf_mix.h"
#include "model/quantization.h"
#include "model/video_shape.h"
#include "replay/sweep.h"

namespace llmperf::cli {
namespace {

using Names = std::vector<std::string>;
using Sort = FlagValues::Sort;

Names words(std::string_view text) {
  Names names;
  for (const std::string_view name : split(text, ' ')) names.emplace_back(name);
  return names;
}

Names operator+(Names names, const Names& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

// What stands behind `key` at the start of a line; the text alone, since reading all files takes longer than a user
// waits for a completion.
Names lines_of(descriptor::Kind kind, const std::string& file, std::string_view key) {
  Names found;
  const descriptor::Text text = descriptor::load_text(kind, file);
  for (const std::string_view line : split(text.text, '\n')) {
    if (line.starts_with(key)) found.emplace_back(trim(line.substr(key.size())));
  }
  return found;
}

Names models() { return descriptor::names(descriptor::Kind::model); }
Names devices() { return descriptor::names(descriptor::Kind::device); }
Names runtime_files() { return descriptor::names(descriptor::Kind::runtime); }
Names scenarios() { return descriptor::names(descriptor::Kind::scenario); }
Names measurements() { return descriptor::names(descriptor::Kind::measurements); }

Names runtimes() {
  std::set<std::string> names = {"none"};
  for (const std::string& file : runtime_files()) {
    for (const std::string& name : lines_of(descriptor::Kind::runtime, file, "name:")) names.insert(name);
  }
  return {names.begin(), names.end()};
}

Names hosts() {
  Names names;
  for (const std::string& file : devices()) {
    const Names kinds = lines_of(descriptor::Kind::device, file, "kind:");
    if (kinds == Names{"cpu"} || kinds == Names{"soc"}) names.push_back(file);
  }
  return names;
}

Names gguf_types() {
  Names names;
  for (const model::GgufFileType& type : model::gguf_file_types()) names.push_back(std::string(type.name));
  return names;
}

Names weights() { return model::weight_scheme_names() + gguf_types(); }
Names precisions() { return words("w16kv16 w8kv16 w4kv16 all-gguf") + weights(); }

Names options() {
  Names names = words("all none") + hardware::runtime_option_names(hardware::Workload::language);
  for (const std::string& name : hardware::runtime_option_names(hardware::Workload::video)) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  const Names on(names.begin() + 2, names.end());
  for (const std::string& name : on) names.push_back("no_" + name);
  return names;
}

Names eras() {
  Names names;
  for (const model::GgufEra era : model::gguf_eras()) names.emplace_back(model::name(era));
  return names;
}

Names dtypes() { return {dtype_names().begin(), dtype_names().end()}; }
Names resolutions() { return model::video_resolutions(); }

// Of map-collective: in its spelling.
Names algorithms() {
  Names names;
  for (int i = static_cast<int>(cost::Algorithm::ring); i <= static_cast<int>(cost::Algorithm::direct); ++i) {
    std::string name(cost::name(static_cast<cost::Algorithm>(i)));
    std::replace(name.begin(), name.end(), ' ', '-');
    names.push_back(name);
  }
  return names;
}

Names backends() { return backend_names(); }
Names sources() { return import::source_names(); }
Names sweeps() { return replay::sweep_names(); }

struct Rule {
  std::string_view command;  // by its name; empty: every one
  std::string_view option;   // "--hw", or the name of an argument
  Sort sort;
  Names (*names)() = nullptr;
  std::string_view list = {};  // where they are few and fixed
};
// The first that matches.
constexpr Rule kRules[] = {
    {"limits", "--model", Sort::items, models},
    {"limits", "--weights", Sort::items, precisions},
    {"", "--model", Sort::paths, models},
    {"", "--draft", Sort::paths, models},
    {"import", "--hw", Sort::paths, devices},
    {"", "--hw", Sort::paths, devices},
    {"", "--host", Sort::paths, hosts},
    {"", "--runtime", Sort::paths, runtimes},
    {"", "--weights", Sort::words, weights},
    {"", "--kv", Sort::words, model::kv_scheme_names},
    {"", "--cache-type-k", Sort::words, model::kv_scheme_names},
    {"", "--cache-type-v", Sort::words, model::kv_scheme_names},
    {"", "--activations", Sort::words, nullptr, "bf16 fp16 fp32"},
    {"", "--options", Sort::items, options},
    {"compare", "--with", Sort::items, options},
    {"", "--execution", Sort::words, nullptr, "eager graph static-graph dynamic-graph"},
    {"gemm", "--tile-model", Sort::words, nullptr, "default published"},
    {"attention", "--tile-model", Sort::words, nullptr, "default published"},
    {"vector", "--tile-model", Sort::words, nullptr, "default published"},
    {"", "--tile-model", Sort::words, nullptr, "default published roofline"},
    {"", "--gguf-era", Sort::words, eras},
    {"", "--gpu-layers", Sort::words, nullptr, "all"},
    {"", "--ep-dispatch", Sort::words, nullptr, "bf16 fp16 fp8 int8"},
    {"", "--ep-combine", Sort::words, nullptr, "bf16 fp16 fp8 int8"},
    {"", "--embedding", Sort::words, nullptr, "sharded replicated"},
    {"", "--resolution", Sort::words, resolutions},
    {"", "--aspect", Sort::words, nullptr, "9:16 16:9 1:1 3:4 4:3 9:21 2:3 1:2"},
    {"", "--cfg", Sort::words, nullptr, "on off"},
    {"", "--text-weights", Sort::words, nullptr, "fp32 bf16 fp16"},
    {"parallel", "--recompute", Sort::words, nullptr, "none selective full all"},
    {"", "--recompute", Sort::words, nullptr, "none selective full"},
    {"", "--zero", Sort::words, nullptr, "0 1 2 3"},
    {"", "--gradients", Sort::words, nullptr, "fp32 bf16 fp16"},
    {"", "--units", Sort::words, nullptr, "si article"},
    {"show", "--detail", Sort::words, nullptr, "summary tensors"},
    {"", "--detail", Sort::words, nullptr, "summary ops"},
    {"", "--fuse", Sort::words, nullptr, "none elementwise"},
    {"", "--dtype", Sort::words, dtypes},
    {"gemm", "--then", Sort::words, nullptr, "activation gated_activation add"},
    {"map-collective", "--op", Sort::words, nullptr,
     "all-reduce all-gather reduce-scatter all-to-all send ring-pass broadcast"},
    {"map-collective", "--algorithm", Sort::words, algorithms},
    {"import", "--op", Sort::words, nullptr, "all_reduce all_gather reduce_scatter all_to_all"},
    {"import", "source", Sort::words, sources},
    {"import", "files", Sort::files},
    {"replay", "--phase", Sort::words, nullptr, "all prefill decode"},
    {"replay", "--backend", Sort::words, backends},
    {"replay", "--gemm", Sort::words, nullptr, "best eigen openblas onednn"},
    {"replay", "--sweep", Sort::words, sweeps},
    {"list", "KIND", Sort::words, nullptr, "models hardware runtimes measurements scenarios"},
    {"show", "KIND", Sort::words, nullptr, "model hardware runtime scenario"},
    {"", "measurements", Sort::paths, measurements},
    {"report", "RESULT", Sort::files},
    {"merge", "FILE", Sort::files},
    {"run", "SCENARIO", Sort::paths, scenarios},
    {"", "--lang", Sort::words, nullptr, "en zh"},
};

bool names_option(const CLI::Option& option, std::string_view name) {
  if (!name.starts_with("--")) return option.get_positional() && option.get_name(true) == name;
  const auto& names = option.get_lnames();
  return std::find(names.begin(), names.end(), name.substr(2)) != names.end();
}

// NAME of `llmperf show KIND NAME`.
Names shown_names(std::span<const std::string> arguments) {
  if (arguments.empty()) return {};
  if (arguments[0].starts_with("model")) return models();
  if (arguments[0].starts_with("scenario")) return scenarios();
  return arguments[0].starts_with("runtime") ? runtime_files() : devices();
}

// A step can be traced where an export may be a trace.
Names formats(const CLI::App& command) {
  Names names = words("table csv json md html");
  const CLI::Option* exports = command.get_option_no_throw("--export");
  if (exports && exports->get_description().find(".trace.json") != std::string::npos) names.emplace_back("trace.json");
  if (command.get_name() == "sweep" || command.get_name() == "merge") names.emplace_back("jsonl");
  return names;
}

FlagValues by_type(const std::string& type) {
  constexpr std::string_view kFiles[] = {"FILE", "CSV", "YAML", "JSON", "HTML", "PATH"};
  constexpr std::string_view kFolders[] = {"DIR", "FOLDER"};
  if (std::find(std::begin(kFiles), std::end(kFiles), type) != std::end(kFiles)) return {Sort::files, {}};
  if (std::find(std::begin(kFolders), std::end(kFolders), type) != std::end(kFolders)) return {Sort::folders, {}};
  return {};
}

// Of one value.
FlagValues single_values(const CLI::App& command, const CLI::Option& option, std::span<const std::string> arguments) {
  if (command.get_name() == "show" && names_option(option, "NAME")) return {Sort::paths, shown_names(arguments)};
  if (names_option(option, "--format")) return {Sort::words, formats(command)};
  for (const Rule& rule : kRules) {
    if (!rule.command.empty() && rule.command != command.get_name()) continue;
    if (!names_option(option, rule.option)) continue;
    return {rule.sort, rule.names ? rule.names() : rule.list.empty() ? Names{} : words(rule.list)};
  }
  return by_type(option.get_type_name());
}

}  // namespace

FlagValues flag_values(const CLI::App& command, const CLI::Option& option, std::span<const std::string> arguments) {
  FlagValues values = single_values(command, option, arguments);
  constexpr std::string_view kSingle[] = {"--format", "--lang"};
  const bool single = std::any_of(std::begin(kSingle), std::end(kSingle),
                                  [&](std::string_view name) { return names_option(option, name); });
  const bool named = values.sort == Sort::words || values.sort == Sort::paths;
  if (command.get_name() == "sweep" && named && !single) values.sort = Sort::items;  // every flag takes a list
  return values;
}

}  // namespace llmperf::cli
