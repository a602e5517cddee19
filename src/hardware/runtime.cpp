#include "hardware/runtime.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/list.h"
#include "base/text.h"
#include "hardware/names.h"
#include "hardware/runtime_execution.h"

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
    {"absorbed_prompts", &RuntimeOptions::absorbed_prompts, kLanguage, false},
    {"fused_qkv_a", &RuntimeOptions::fused_qkv_a, kLanguage, false},
    {"fused_shared_expert", &RuntimeOptions::fused_shared_expert, kLanguage, false},
    {"joined_vectors", &RuntimeOptions::joined_vectors, kLanguage | kVideo, false},
    {"prefetch_weights", &RuntimeOptions::prefetch_weights, kLanguage | kVideo, false},
    {"fused_qk_norm", &RuntimeOptions::fused_qk_norm, kVideo},
    {"fused_modulate", &RuntimeOptions::fused_modulate, kVideo},
    {"fused_gate", &RuntimeOptions::fused_gate, kVideo},
    {"skip_frame_mask", &RuntimeOptions::skip_frame_mask, kVideo},
    {"flash_any_length", &RuntimeOptions::flash_any_length, kVideo},
};
constexpr bool used(const Switch& s, Workload workload) {
  return (s.use & (workload == Workload::video ? kVideo : kLanguage)) != 0;
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
    if (alias.name != name || workload == Workload::video) continue;
    visit(alias.field);
    known = true;
  }
  return known;
}

// `word` as it was given, "no_" and all.
Error unknown(std::string_view word, std::string_view name, Workload workload) {
  std::vector<std::string> names = runtime_option_names(workload);
  for (const Alias& alias : kAliases) {
    if (workload != Workload::video && names.back() != alias.name) names.emplace_back(alias.name);
  }
  return Error::bad_input("`options`: unknown runtime option " + quote(word), name_hint(name, names));
}

}  // namespace

std::string_view name(Workload workload) { return kWorkloadNames[static_cast<std::size_t>(workload)]; }

const std::vector<std::string>& runtime_option_names(Workload workload) {
  static const auto names = [] {
    std::array<std::vector<std::string>, kWorkloadNames.size()> result;
    for (const Workload w : {Workload::language, Workload::video, Workload::training}) {
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

// ---- Of a profile

namespace {

const RuntimeProfile::NamedOption* find_named(const RuntimeProfile& profile, std::string_view name) {
  const auto it = std::ranges::find_if(profile.ladder,
                                       [&](const RuntimeProfile::NamedOption& option) { return option.name == name; });
  return it == profile.ladder.end() ? nullptr : &*it;
}

void apply(const RuntimeProfile& profile, std::string_view name, bool on, RuntimeOptions& options) {
  if (const auto* named = find_named(profile, name)) {
    for (const std::string& word : named->switches) set_option(options, word, on, profile.workload);
    return;
  }
  if (!is_option(name, profile.workload)) {
    std::vector<std::string> names = runtime_option_names(profile.workload);
    for (const auto& option : profile.ladder) names.push_back(option.name);
    throw Error::bad_input("`options`: unknown runtime option " + quote(name), name_hint(name, names));
  }
  set_option(options, name, on, profile.workload);
}

RuntimeOptions parse_options(const RuntimeProfile& profile, std::string_view list) {
  std::string text(list);
  std::replace(text.begin(), text.end(), '+', ',');
  RuntimeOptions options = profile.base;
  bool first = true;
  for (std::string_view word : split(text, ',')) {
    word = trim(word);
    const bool off = word.starts_with("no_");
    if (first && (word == "all" || off)) options = profile.options;
    const bool whole = first && (word == "all" || word == "none" || word == "baseline");
    if (!whole) apply(profile, off ? word.substr(3) : word, !off, options);
    first = false;
  }
  return options;
}

constexpr std::array<std::string_view, 4> kExecutions = {"eager", "graph", "static-graph", "dynamic-graph"};

// Whether every option that a static graph needs is on.
bool can_be_static(const RuntimeProfile& profile, const RuntimeOptions& options) {
  return std::ranges::all_of(profile.static_graph_needs, [&](const std::string& name) {
    RuntimeOptions with = options;
    apply(profile, name, true, with);
    return with == options;
  });
}

}  // namespace

RuntimeProfile run_by(RuntimeProfile profile, std::string_view architecture) {
  profile.options.repeated_kv |= contains(profile.repeated_kv, architecture);
  profile.base.repeated_kv |= contains(profile.repeated_kv, architecture);
  return profile;
}

RuntimeProfile measured_alone(RuntimeProfile profile) {
  for (std::size_t i = 0; i < kAllParameters; ++i) {
    if (profile.alone[i] > 0) profile.values[i] = profile.alone[i];
  }
  return profile;
}

RuntimeProfile under_load(RuntimeProfile profile) {
  if (profile.choices.power == Power::short_run) profile.choices.power = Power::sustained;
  return profile;
}

RuntimeExecution resolve_execution(const RuntimeProfile& profile, std::string_view options,
                                   std::string_view execution) {
  return resolve_execution(profile, parse_options(profile, options), execution);
}

RuntimeExecution resolve_execution(const RuntimeProfile& profile, const RuntimeOptions& options,
                                   std::string_view execution) {
  RuntimeExecution result{options, profile.prefill_dispatch, profile.dispatch};
  result.options.chains = profile.options.chains;
  if (!execution.empty() && std::ranges::find(kExecutions, execution) == kExecutions.end()) {
    throw Error::bad_input("`execution`: unknown way to run " + quote(execution),
                           name_hint(execution, std::vector<std::string>(kExecutions.begin(), kExecutions.end())));
  }
  const bool own = execution.empty() || (execution == "graph" && profile.dispatch != Dispatch::eager) ||
                   (execution == "eager" && profile.dispatch == Dispatch::eager);
  if (!own) {
    result.prefill = result.decode = execution == "eager"           ? Dispatch::eager
                                     : execution == "dynamic-graph" ? Dispatch::dynamic_graph
                                                                    : Dispatch::graph;
  }
  if (execution != "static-graph" && !can_be_static(profile, result.options)) {
    for (Dispatch* dispatch : {&result.prefill, &result.decode}) {
      if (*dispatch == Dispatch::graph) *dispatch = Dispatch::dynamic_graph;
    }
  }
  // A graph that is compiled whole has its element-wise chains fused on the way.
  if (result.options.chains == Chains::framework && result.decode == Dispatch::graph) {
    result.options.chains = Chains::compiled;
  }
  result.options.allocated_kv = profile.choices.allocated_kv;
  return result;
}

std::string format_profile_options(const RuntimeProfile& profile, const RuntimeOptions& options) {
  const auto same = [&](RuntimeOptions other) {
    other.chains = options.chains;
    other.allocated_kv = options.allocated_kv;
    other.attention_query_tile = options.attention_query_tile;
    return other == options;
  };
  if (same(profile.options)) return "all";
  if (same(profile.base)) return "none";
  RuntimeOptions reached = profile.base;
  std::string names;
  const auto add = [&](const std::string& name) {
    RuntimeOptions with = reached;
    apply(profile, name, true, with);
    if (with == reached) return;
    RuntimeOptions kept = options;
    apply(profile, name, true, kept);
    if (!(kept == options)) return;
    reached = with;
    names += (names.empty() ? "" : ",") + name;
  };
  for (const auto& option : profile.ladder) add(option.name);
  for (const std::string& name : runtime_option_names(profile.workload)) add(name);
  return same(reached) ? names : format_runtime_options(options, profile.workload);
}

}  // namespace llmperf::hardware
