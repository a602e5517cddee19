// What the explanations are put together from. Internal to explain.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimate/explain.h"

namespace llmperf::estimate {

// A number that every op has, over all its executions in a step.
enum class Metric : unsigned char {
  flops,
  matrix_flops,
  vector_flops,
  bytes,
  weight_bytes,
  activation_read_bytes,
  activation_written_bytes,
  kv_read_bytes,
  kv_written_bytes,
  network_bytes,
  time_s,
  roof_s
};
inline constexpr std::array<Metric, 12> kMetrics = {Metric::flops,
                                                    Metric::matrix_flops,
                                                    Metric::vector_flops,
                                                    Metric::bytes,
                                                    Metric::weight_bytes,
                                                    Metric::activation_read_bytes,
                                                    Metric::activation_written_bytes,
                                                    Metric::kv_read_bytes,
                                                    Metric::kv_written_bytes,
                                                    Metric::network_bytes,
                                                    Metric::time_s,
                                                    Metric::roof_s};
std::string_view name(Metric metric);  // "weight_bytes"
std::string_view unit(Metric metric);  // "B"
double value(Metric metric, const cost::Work& work, const mapper::OpTime& time, double count);

// Adds a variable and returns its name; one of that name is kept. Those that the formula does not use are dropped at
// the end.
std::string let(Explanation& x, std::string_view name, double value, std::string_view meaning);
std::string let(Explanation& x, std::string_view name, std::int64_t value, std::string_view meaning);
// The same for an explanation of its own: a variable named after its path, with the explanation among the parts.
std::string let(Explanation& x, Explanation part, std::string_view meaning);
// The meaning of an op's number: "B, all 32 executions together".
std::string executions(Metric metric, std::int64_t count);
// Evaluates the formula into `value`, for parts that have no number to agree with.
Explanation solved(Explanation x);
// Throws std::logic_error unless the formula gives `value`.
Explanation checked(Explanation x, double value);

// Stored bytes of one [n, k] matrix as a formula over `n` and `k`: "(n * k * bits / 8 + n * ceil(k / group) * …)".
std::string stored_bytes(Explanation& x, const model::StoredFormat& format, std::string_view n, std::string_view k);

// The formula of a number that an op owes to its shape: FLOPs of one engine, or bytes of one kind.
void explain_work(const Estimator& estimator, const graph::Op& op, const graph::SequenceGroup& group, Metric metric,
                  Explanation& x);

// Op `index` of a phase. `step`: at that step rather than on average over the phase.
Explanation explain_op(const Estimator& estimator, const Phase& phase, std::size_t index, Metric metric,
                       std::string path, const graph::SequenceGroup* step = nullptr);

// Formula, variables and notes of memory.activation_bytes: of a step's live tensors, or of llama.cpp's buffers.
void explain_activation(const Estimator& estimator, const Scenario& scenario, Explanation& x);
void explain_compute_buffers(const Estimator& estimator, const Scenario& scenario, bool on_host, Explanation& x);

// Paths that start with "memory.", "largest_batch" and "longest_context_tokens".
std::span<const std::string_view> memory_paths();
Explanation explain_memory(const Estimator& estimator, const Estimate& estimate, std::string_view path);

}  // namespace llmperf::estimate
