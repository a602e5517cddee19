#include "hardware/runtime.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "hardware/names.h"

namespace llmperf::hardware {
namespace {

enum Use : unsigned char { kLanguage = 1, kVideo = 2 };
struct Switch {
  std::string_view name;
  bool RuntimeOptions::*field;
  unsigned char use = kLanguage;
  bool in_all = true;
};
constexpr Switch kSwitches[] = {
    {"flash_attention", &RuntimeOptions::flash_attention, kLanguage | kVideo},
    {"fused_qkv", &RuntimeOptions::fused_qkv},
    {"fused_gate_up", &RuntimeOptions::fused_gate_up},
    {"fused_norm", &RuntimeOptions::fused_norm},
    {"fused_add_norm", &RuntimeOptions::fused_add_norm},
    {"fused_rope", &RuntimeOptions::fused_rope, kLanguage | kVideo},
    {"fused_activation", &RuntimeOptions::fused_activation},
    {"static_kv", &RuntimeOptions::static_kv},
    {"last_token_logits", &RuntimeOptions::last_token_logits},
    {"overlap_collectives", &RuntimeOptions::overlap_collectives, kLanguage, false},
    {"repeated_kv", &RuntimeOptions::repeated_kv, kLanguage, false},
    {"fused_all_reduce_norm", &RuntimeOptions::fused_all_reduce_norm, kLanguage, false},
    {"fused_mla_prolog", &RuntimeOptions::fused_mla_prolog, kLanguage, false},
    {"joined_vectors", &RuntimeOptions::joined_vectors, kLanguage | kVideo, false},
    {"prefetch_weights", &RuntimeOptions::prefetch_weights, kLanguage | kVideo, false},
    {"fused_qk_norm", &RuntimeOptions::fused_qk_norm, kVideo},
    {"fused_modulate", &RuntimeOptions::fused_modulate, kVideo},
    {"fused_gate", &RuntimeOptions::fused_gate, kVideo},
    {"skip_frame_mask", &RuntimeOptions::skip_frame_mask, kVideo},
    {"flash_any_length", &RuntimeOptions::flash_any_length, kVideo},
};
constexpr bool used(const Switch& s, Workload workload) {
  return (s.use & (workload == Workload::language ? kLanguage : kVideo)) != 0;
}

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

void set_all(RuntimeOptions& options, bool on, Workload workload) {
  for (const Switch& s : kSwitches) {
    if (used(s, workload)) options.*s.field = on && s.in_all;
  }
}

// Calls `visit` with each field that `name` stands for, and says whether there is any.
template <class Visit>
bool each_field(std::string_view name, Workload workload, Visit&& visit) {
  bool known = false;
  for (const Switch& s : kSwitches) {
    if (s.name != name || !used(s, workload)) continue;
    visit(s.field);
    known = true;
  }
  for (const Alias& alias : kAliases) {
    if (alias.name != name || workload != Workload::language) continue;
    visit(alias.field);
    known = true;
  }
  return known;
}

// `word` as it was given, "no_" and all.
Error unknown(std::string_view word, std::string_view name, Workload workload) {
  std::vector<std::string> names = runtime_option_names(workload);
  for (const Alias& alias : kAliases) {
    if (workload == Workload::language && names.back() != alias.name) names.emplace_back(alias.name);
  }
  return Error::bad_input("--options: unknown runtime option " + quote(word), name_hint(name, names));
}

}  // namespace

std::string_view name(Workload workload) { return kWorkloadNames[static_cast<std::size_t>(workload)]; }

const std::vector<std::string>& runtime_option_names(Workload workload) {
  static const auto names = [] {
    std::array<std::vector<std::string>, kWorkloadNames.size()> result;
    for (const Workload w : {Workload::language, Workload::video}) {
      for (const Switch& s : kSwitches) {
        if (used(s, w)) result[static_cast<std::size_t>(w)].emplace_back(s.name);
      }
    }
    return result;
  }();
  return names[static_cast<std::size_t>(workload)];
}

bool is_option(std::string_view name, Workload workload) {
  return each_field(name, workload, [](auto) {});
}

void set_option(RuntimeOptions& options, std::string_view name, bool on, Workload workload) {
  if (!each_field(name, workload, [&](bool RuntimeOptions::*field) { options.*field = on; })) {
    throw unknown(name, name, workload);
  }
}

RuntimeOptions parse_runtime_options(std::string_view list, Workload workload) {
  RuntimeOptions options;
  std::string words(list);
  std::replace(words.begin(), words.end(), '+', ',');
  bool first = true;
  for (std::string_view word : split(words, ',')) {
    word = trim(word);
    const bool off = word.starts_with("no_");
    if (first) set_all(options, word == "all" || off, workload);
    if (!(first && (word == "all" || word == "none" || word == "baseline"))) {
      const std::string_view name = off ? word.substr(3) : word;
      if (!is_option(name, workload)) throw unknown(word, name, workload);
      set_option(options, name, !off, workload);
    }
    first = false;
  }
  return options;
}

std::string format_runtime_options(const RuntimeOptions& options, Workload workload) {
  std::vector<std::string> from_none;
  std::vector<std::string> from_all;
  for (const Switch& s : kSwitches) {
    if (!used(s, workload)) continue;
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
