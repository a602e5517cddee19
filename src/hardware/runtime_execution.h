// What `options` and `execution` make of a runtime profile.
#pragma once

#include <string_view>

#include "hardware/runtime_profile.h"

namespace llmperf::hardware {

struct RuntimeExecution {
  RuntimeOptions options;
  Dispatch prefill = Dispatch::graph;
  Dispatch decode = Dispatch::graph;
};

// The profile as it runs models of an architecture, whose code may have habits (RuntimeProfile::repeated_kv).
RuntimeProfile run_by(RuntimeProfile profile, std::string_view architecture);
// Of rows of single ops that an engine's library ran outside of it, untuned where servers tune.
RuntimeProfile measured_alone(RuntimeProfile profile);
// The profile of a server, whose devices never rest: where it was fitted to short runs, at the clock of steady load.
RuntimeProfile under_load(RuntimeProfile profile);

// `options`: "all" (everything the stack can do), "none" or "baseline" (what it does in any case), or a list of names,
// the profile's own or switches, separated by ',' or '+'; names switch on from none, no_NAME (or after "all") off.
// `execution`: empty for the profile's own; "eager"; "graph", which is dispatched from the host while options that a
// static graph needs are off; "static-graph" or "dynamic-graph" whatever the options. Throws Error(bad_input).
RuntimeExecution resolve_execution(const RuntimeProfile& profile, std::string_view options, std::string_view execution);
// The same of switches that are known already; how chains run is taken from the profile.
RuntimeExecution resolve_execution(const RuntimeProfile& profile, const RuntimeOptions& options,
                                   std::string_view execution);
// The shortest list that gives these options: "all", "none", or names.
std::string format_profile_options(const RuntimeProfile& profile, const RuntimeOptions& options);

}  // namespace llmperf::hardware
