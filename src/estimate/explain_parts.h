// What the explanations are put together from. Internal to explain.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

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
struct MetricInfo {
  Metric metric;
  std::string_view name;
  std::string_view unit;
  std::string_view none;  // what is said of an op that has none of it
};
inline constexpr std::array<MetricInfo, 12> kMetrics = {{
    {Metric::flops, "flops", "FLOP", ""},
    {Metric::matrix_flops, "matrix_flops", "FLOP", "this op multiplies no matrices"},
    {Metric::vector_flops, "vector_flops", "FLOP", "this op has no element-wise work"},
    {Metric::bytes, "bytes", "B", ""},
    {Metric::weight_bytes, "weight_bytes", "B", "this op reads no weights"},
    {Metric::activation_read_bytes, "activation_read_bytes", "B", "this op reads no activations"},
    {Metric::activation_written_bytes, "activation_written_bytes", "B", "this op writes no activations"},
    {Metric::kv_read_bytes, "kv_read_bytes", "B", "this op does not read the KV cache"},
    {Metric::kv_written_bytes, "kv_written_bytes", "B", "this op does not write the KV cache"},
    {Metric::network_bytes, "network_bytes", "B", "this op sends nothing over a link"},
    {Metric::time_s, "time_s", "s", ""},
    {Metric::roof_s, "roof_s", "s", ""},
}};
constexpr const MetricInfo& info(Metric metric) { return kMetrics[static_cast<std::size_t>(metric)]; }
constexpr std::string_view name(Metric metric) { return info(metric).name; }
constexpr std::string_view unit(Metric metric) { return info(metric).unit; }
double value(Metric metric, const cost::Work& work, const mapper::OpTime& time, double count);

inline Term named(std::string_view name, double value, std::string meaning) {
  return {name, value, std::move(meaning)};
}
inline Term named(std::string_view name, std::int64_t value, std::string meaning) {
  return {name, static_cast<double>(value), std::move(meaning)};
}
// A variable named after its path, with its explanation among the parts.
Term named(Explanation part, std::string meaning);
// The meaning of an op's number: "B, all 32 executions together".
std::string executions(Metric metric, std::int64_t count);
// Throws std::logic_error unless the formula gives `number`.
Explanation checked(const Term& formula, std::string path, std::string_view unit, double number);

// Op `index` of a phase. `step`: at that step rather than on average over the phase.
Explanation explain_op(const Estimator& estimator, const Phase& phase, std::size_t index, Metric metric,
                       std::string path, const graph::SequenceGroup* step = nullptr);

// Paths that start with "memory.", "largest_batch" and "longest_context_tokens".
std::span<const std::string_view> memory_paths();
Explanation explain_memory(const Estimator& estimator, const Estimate& estimate, std::string_view path);

}  // namespace llmperf::estimate
