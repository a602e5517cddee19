#include "estimate/explain_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace llmperf::estimate {
namespace {

constexpr double kTolerance = 1e-9;

// The variables the formula uses, in its order.
void tidy(Explanation& x) {
  std::vector<Variable> used;
  for (const std::string_view name : names_in(x.formula)) {
    const auto found =
        std::find_if(x.variables.begin(), x.variables.end(), [&](const Variable& v) { return v.name == name; });
    if (found != x.variables.end()) used.push_back(std::move(*found));
  }
  x.variables = std::move(used);
}

}  // namespace

std::string_view name(Metric metric) {
  switch (metric) {
    case Metric::flops: return "flops";
    case Metric::matrix_flops: return "matrix_flops";
    case Metric::vector_flops: return "vector_flops";
    case Metric::bytes: return "bytes";
    case Metric::weight_bytes: return "weight_bytes";
    case Metric::activation_read_bytes: return "activation_read_bytes";
    case Metric::activation_written_bytes: return "activation_written_bytes";
    case Metric::kv_read_bytes: return "kv_read_bytes";
    case Metric::kv_written_bytes: return "kv_written_bytes";
    case Metric::network_bytes: return "network_bytes";
    case Metric::time_s: return "time_s";
    case Metric::roof_s: return "roof_s";
  }
  return "";
}

std::string_view unit(Metric metric) {
  if (metric == Metric::time_s || metric == Metric::roof_s) return "s";
  return name(metric).ends_with("flops") ? "FLOP" : "B";
}

double value(Metric metric, const cost::Work& work, const mapper::OpTime& time, double count) {
  switch (metric) {
    case Metric::flops: return (work.matrix + work.vector).value * count;
    case Metric::matrix_flops: return work.matrix.value * count;
    case Metric::vector_flops: return work.vector.value * count;
    case Metric::bytes: return work.bytes().value * count;
    case Metric::weight_bytes: return work.weights.value * count;
    case Metric::activation_read_bytes: return work.activations_read.value * count;
    case Metric::activation_written_bytes: return work.activations_written.value * count;
    case Metric::kv_read_bytes: return work.kv_read.value * count;
    case Metric::kv_written_bytes: return work.kv_written.value * count;
    case Metric::network_bytes: return work.network.value * count;
    case Metric::time_s: return time.total.value * count;
    case Metric::roof_s: return time.roof.value * count;
  }
  return 0;
}

std::string let(Explanation& x, std::string_view name, double value, std::string_view meaning) {
  const bool known =
      std::any_of(x.variables.begin(), x.variables.end(), [&](const Variable& v) { return v.name == name; });
  if (!known) x.variables.push_back({std::string(name), value, std::string(meaning)});
  return std::string(name);
}

std::string let(Explanation& x, std::string_view name, std::int64_t value, std::string_view meaning) {
  return let(x, name, static_cast<double>(value), meaning);
}

std::string let(Explanation& x, Explanation part, std::string_view meaning) {
  std::string name = let(x, part.path, part.value, meaning);
  x.parts.push_back(std::move(part));
  return name;
}

std::string executions(Metric metric, std::int64_t count) {
  return count == 1 ? std::string(unit(metric)) : fmt::format("{}, all {} executions together", unit(metric), count);
}

Explanation solved(Explanation x) {
  tidy(x);
  x.value = evaluate(x.formula, x.variables);
  return x;
}

Explanation checked(Explanation x, double value) {
  tidy(x);
  x.value = value;
  const double formula = evaluate(x.formula, x.variables);
  if (!(std::abs(formula - value) <= kTolerance * std::max(std::abs(formula), std::abs(value)))) {
    throw std::logic_error(
        fmt::format("internal error: {} is {}, but its formula {} gives {}", x.path, value, x.formula, formula));
  }
  return x;
}

std::string stored_bytes(Explanation& x, const model::StoredFormat& format, std::string_view n, std::string_view k) {
  std::string text = fmt::format("{} * {} * {}", n, k,
                                 let(x, "bits", format.bits,
                                     format.name.empty() ? std::string("bits stored per weight")
                                                         : fmt::format("bits stored per weight in {}, scales "
                                                                       "included",
                                                                       format.name)));
  if (format.bits_per_row > 0) {
    text += fmt::format(" + {} * {}", n, let(x, "row_bits", format.bits_per_row, "bits of the scale of each row"));
  }
  if (format.bits_per_tensor > 0) {
    text += " + " + let(x, "tensor_bits", format.bits_per_tensor, "bits of the scale of the whole matrix");
  }
  if (format.group > 0) {
    let(x, "group", std::int64_t{format.group}, "weights that share a scale and a zero point");
    text += fmt::format(" + {} * ceil({} / group) * {}", n, k,
                        let(x, "group_bits", format.bits_per_group, "bits of the scale and zero point of a group"));
  }
  if (format.block > 0) {
    let(x, "block", std::int64_t{format.block}, "side of a square of weights that share a scale");
    text += fmt::format(" + ceil({} / block) * ceil({} / block) * {}", n, k,
                        let(x, "block_bits", format.bits_per_block, "bits of the scale of a block"));
  }
  const bool sum = text.find('+') != std::string::npos;
  return sum ? "(" + text + ") / 8" : text + " / 8";
}

}  // namespace llmperf::estimate
