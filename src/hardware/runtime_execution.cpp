#include "hardware/runtime_execution.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/list.h"
#include "base/text.h"

namespace llmperf::hardware {
namespace {

const RuntimeProfile::NamedOption* find_named(const RuntimeProfile& profile, std::string_view name) {
  const auto it = std::find_if(profile.ladder.begin(), profile.ladder.end(),
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
    throw Error::bad_input("--options: unknown runtime option " + quote(name), name_hint(name, names));
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
  return std::all_of(profile.static_graph_needs.begin(), profile.static_graph_needs.end(),
                     [&](const std::string& name) {
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

RuntimeExecution resolve_execution(const RuntimeProfile& profile, std::string_view options,
                                   std::string_view execution) {
  return resolve_execution(profile, parse_options(profile, options), execution);
}

RuntimeExecution resolve_execution(const RuntimeProfile& profile, const RuntimeOptions& options,
                                   std::string_view execution) {
  RuntimeExecution result{options, profile.prefill_dispatch, profile.dispatch};
  result.options.chains = profile.options.chains;
  if (!execution.empty() && std::find(kExecutions.begin(), kExecutions.end(), execution) == kExecutions.end()) {
    throw Error::bad_input("--execution: unknown way to run " + quote(execution),
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
