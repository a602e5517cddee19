#include "hardware/runtime.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace llmperf::hardware {
namespace {

struct Switch {
  std::string_view name;
  bool RuntimeOptions::*field;
  bool in_all = true;
};
constexpr Switch kSwitches[] = {
    {"flash_attention", &RuntimeOptions::flash_attention},
    {"fused_qkv", &RuntimeOptions::fused_qkv},
    {"fused_gate_up", &RuntimeOptions::fused_gate_up},
    {"fused_norm", &RuntimeOptions::fused_norm},
    {"fused_add_norm", &RuntimeOptions::fused_add_norm},
    {"fused_rope", &RuntimeOptions::fused_rope},
    {"fused_activation", &RuntimeOptions::fused_activation},
    {"static_kv", &RuntimeOptions::static_kv},
    {"last_token_logits", &RuntimeOptions::last_token_logits},
    {"overlap_collectives", &RuntimeOptions::overlap_collectives, false},
};

// Names that tuning guides use.
struct Alias {
  std::string_view name;
  bool RuntimeOptions::*field;
};
constexpr Alias kAliases[] = {
    {"fused_add_rmsnorm", &RuntimeOptions::fused_norm},
    {"fused_add_rmsnorm", &RuntimeOptions::fused_add_norm},
    {"last_token_head", &RuntimeOptions::last_token_logits},
    {"mc2", &RuntimeOptions::overlap_collectives},
};

void set_all(RuntimeOptions& options, bool on) {
  for (const Switch& s : kSwitches) options.*s.field = on && s.in_all;
}

// Calls `use` with each field that `name` stands for, and says whether there is any.
template <class Use>
bool each_field(std::string_view name, Use&& use) {
  bool known = false;
  const auto search = [&](const auto& table) {
    for (const auto& entry : table) {
      if (entry.name != name) continue;
      use(entry.field);
      known = true;
    }
  };
  search(kSwitches);
  search(kAliases);
  return known;
}

// `word` as it was given, "no_" and all.
Error unknown(std::string_view word, std::string_view name) {
  std::vector<std::string> names = runtime_option_names();
  for (const Alias& alias : kAliases) {
    if (names.back() != alias.name) names.emplace_back(alias.name);
  }
  return Error::bad_input("--options: unknown runtime option " + quote(word), name_hint(name, names));
}

}  // namespace

const std::vector<std::string>& runtime_option_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Switch& s : kSwitches) result.emplace_back(s.name);
    return result;
  }();
  return names;
}

bool is_option(std::string_view name) {
  return each_field(name, [](auto) {});
}

void set_option(RuntimeOptions& options, std::string_view name, bool on) {
  if (!each_field(name, [&](bool RuntimeOptions::*field) { options.*field = on; })) throw unknown(name, name);
}

RuntimeOptions parse_runtime_options(std::string_view list) {
  RuntimeOptions options;
  std::string words(list);
  std::replace(words.begin(), words.end(), '+', ',');
  bool first = true;
  for (std::string_view word : split(words, ',')) {
    word = trim(word);
    const bool off = word.starts_with("no_");
    if (first) set_all(options, word == "all" || off);
    if (!(first && (word == "all" || word == "none" || word == "baseline"))) {
      const std::string_view name = off ? word.substr(3) : word;
      if (!is_option(name)) throw unknown(word, name);
      set_option(options, name, !off);
    }
    first = false;
  }
  return options;
}

std::string format_runtime_options(const RuntimeOptions& options) {
  std::vector<std::string> from_none;
  std::vector<std::string> from_all;
  for (const Switch& s : kSwitches) {
    const bool on = options.*s.field;
    if (on) from_none.emplace_back(s.name);
    if (on != s.in_all) from_all.push_back((on ? "" : "no_") + std::string(s.name));
  }
  if (from_all.empty()) return "all";
  if (from_none.empty()) return "none";
  if (from_none.size() <= from_all.size()) return join(from_none, ",");
  return "all," + join(from_all, ",");
}

}  // namespace llmperf::hardware
