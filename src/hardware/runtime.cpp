#include "hardware/runtime.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace llmperf::hardware {
namespace {

struct Switch {
  const char* name;
  bool RuntimeOptions::*field;
};
constexpr Switch kSwitches[] = {
    {"flash_attention", &RuntimeOptions::flash_attention},
    {"fused_qkv", &RuntimeOptions::fused_qkv},
    {"fused_gate_up", &RuntimeOptions::fused_gate_up},
    {"fused_add_norm", &RuntimeOptions::fused_add_norm},
    {"fused_rope", &RuntimeOptions::fused_rope},
    {"fused_activation", &RuntimeOptions::fused_activation},
    {"static_kv", &RuntimeOptions::static_kv},
    {"last_token_logits", &RuntimeOptions::last_token_logits},
};

void set_all(RuntimeOptions& options, bool on) {
  for (const Switch& s : kSwitches) options.*s.field = on;
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

RuntimeOptions parse_runtime_options(std::string_view list) {
  RuntimeOptions options;
  bool first = true;
  for (std::string_view word : split(list, ',')) {
    word = trim(word);
    const bool off = word.starts_with("no_");
    const std::string_view name = off ? word.substr(3) : word;
    if (first) set_all(options, word == "all" || off);
    if (!(first && (word == "all" || word == "none"))) {
      const auto it =
          std::find_if(std::begin(kSwitches), std::end(kSwitches), [&](const Switch& s) { return s.name == name; });
      if (it == std::end(kSwitches)) {
        throw Error::bad_input("--options: unknown runtime option '" + std::string(word) + "'",
                               name_hint(name, runtime_option_names()));
      }
      options.*it->field = !off;
    }
    first = false;
  }
  return options;
}

std::string format_runtime_options(const RuntimeOptions& options) {
  std::vector<std::string> on, off;
  for (const Switch& s : kSwitches) {
    if (options.*s.field) {
      on.emplace_back(s.name);
    } else {
      off.push_back(std::string("no_") + s.name);
    }
  }
  if (off.empty()) return "all";
  if (on.empty()) return "none";
  if (on.size() <= off.size()) return join(on, ",");
  return "all," + join(off, ",");
}

}  // namespace llmperf::hardware
