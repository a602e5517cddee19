// What drafts for a model (speculative decoding), from how it is asked for.
#pragma once

#include <optional>
#include <string>

#include "estimate/setup.h"
#include "request/sources.h"

namespace llmperf::request {

// "mtp", "eagle", "llama-3.2-1b", each also with how many tokens it proposes at a time: "mtp:3". Without, they are as
// many as are best. `accept`: as parse_acceptance takes it. Throws Error(bad_input); messages say `draft` and `accept`.
estimate::Draft read_draft(const std::string& draft, const std::optional<std::string>& accept,
                           const model::Decoder& target, Sources& sources);

}  // namespace llmperf::request
