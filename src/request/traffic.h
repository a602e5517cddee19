// From what was asked of serving to what the simulation is given: the engine and its settings, replicas, the requests
// that are sent, and what is promised of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "request/request.h"
#include "request/resolve.h"
#include "serving/serve.h"
#include "serving/trace_file.h"

namespace llmperf::request {

// The engine of a runtime profile's name: vLLM's where it is none that has rules of its own.
serving::EngineKind engine_of(std::string_view runtime);

// What was asked of the engine: of one that serves, or of one whose KV cache an estimate is to size.
serving::EngineChoices engine_choices(const Resolved& resolved);

struct Traffic {
  serving::EngineChoices engine;
  serving::Replicas replicas;
  serving::Load load;                   // that is made, or how the trace is sent
  std::optional<serving::Trace> trace;  // none: all requests are made
  serving::Slo slo;
  std::int64_t seeds = 1;
  std::vector<std::string> notes;  // of what stands for what there is none of
};

// What of a request has no effect where as many replicas as a rate wants are searched for. Throws Error(bad_input), all
// of it at once.
void check_capacity(const Request& request, bool disaggregated);
// Reads the trace. Throws Error(bad_input), all that has no effect at once.
Traffic read_traffic(const Resolved& resolved);
// What the traffic is sent to, `settings` those of the engine that computes prompts; of requests of so many tokens.
// Throws as serving::deploy() does.
serving::Deployed deploy(const Resolved& resolved, const Traffic& traffic, const serving::EngineSettings& settings,
                         std::int64_t tokens);
// The requests of a seed. Throws Error(bad_input) for one that is longer than the model was made for, or than a step of
// an engine that does not cut prompts.
serving::Workload requests_of(const Traffic& traffic, std::uint64_t seed, const model::Decoder& model,
                              const serving::EngineSettings& settings);

}  // namespace llmperf::request
