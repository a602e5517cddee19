// Where a number of an estimate comes from. Every number has a path, its place in the JSON output: "ttft_s",
// "memory.kv_cache_bytes", "phases.prefill.ops.qkv_proj.matrix_flops". Its explanation is the formula that computed it
// (base/term.h), compared with the number: an explanation that does not reproduce it is a bug, not an approximation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/term.h"
#include "estimate/engine_memory.h"
#include "estimate/estimate.h"

namespace llmperf::estimate {

using llmperf::Explanation;
using llmperf::Variable;

// `estimate` must be a result of `estimator`. Throws Error(bad_input) with the nearest paths when the estimate has no
// number of that path, and std::logic_error when a formula and its number differ by more than 1e-9 of the larger.
Explanation explain(const Estimator& estimator, const Estimate& estimate, std::string_view path);

// The tokens of an engine's pool, and what is left for it: "memory.kv_tokens".
inline constexpr std::string_view kPoolTokens = "memory.kv_tokens";
Explanation explain_pool(const EngineMemory& memory, const KvCapacity& room);

// Every path that `explain` knows for this estimate. Ops of one name in the same phase are told apart as "norm",
// "norm#2", ….
std::vector<std::string> explainable_paths(const Estimator& estimator, const Estimate& estimate);

}  // namespace llmperf::estimate
