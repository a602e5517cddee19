#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "replay/replay.h"

namespace llmperf::replay {
namespace {

using measure::OpRow;

OpRow vector_row(const std::string& kind, std::int64_t rows, std::int64_t width, Dtype dtype, std::int64_t heads = 0,
                 std::int64_t kv_heads = 0) {
  const double moved = 2 * static_cast<double>(rows * width) * bytes_per_element(dtype);
  return {"vector:" + kind, dtype,
          measure::VectorShape{kind, rows, width, heads, kv_heads, kind == "elementwise" ? Bytes{moved} : Bytes{}}};
}

OpRow attention_row(std::int64_t q_len, std::int64_t kv_len, Dtype dtype, bool causal) {
  const bool decode = q_len == 1;
  return {decode ? "attention_decode" : "attention_prefill", dtype,
          measure::AttentionShape{decode ? measure::Phase::decode : measure::Phase::prefill, 2, q_len, kv_len, 4, 2, 64,
                                  causal}};
}

// Sizes that are no multiples of a tile where the op allows them, several rows, several heads to a key head.
std::vector<OpRow> small_ops() {
  std::vector<OpRow> rows;
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
    rows.push_back({"gemm", dtype, measure::GemmShape{5, 96, 128, 1, {}}});
    rows.push_back({"gemm", dtype, measure::GemmShape{7, 48, 64, 3, {}}});
    for (const char* weights : {"int8", "w4a16-g32", "w8a8"}) {
      rows.push_back({"gemm", dtype, measure::GemmShape{5, 96, 128, 1, weights}});
    }
    rows.push_back({"gemm", dtype, measure::GemmShape{7, 48, 64, 3, "w8a8"}});
    rows.push_back({"moe", dtype, measure::ExpertsShape{.m = 5, .hidden = 64, .inter = 32, .topk = 2, .experts = 6}});
    rows.push_back(attention_row(33, 33, dtype, true));
    rows.push_back(attention_row(9, 40, dtype, true));
    rows.push_back(attention_row(9, 40, dtype, false));
    rows.push_back(attention_row(1, 77, dtype, true));
    for (const char* kind : {"rms_norm", "layer_norm", "add_rms_norm", "add_layer_norm", "add", "multiply",
                             "activation", "gated_activation", "softmax", "sampling", "elementwise"}) {
      rows.push_back(vector_row(kind, 9, 160, dtype));
    }
    rows.push_back(vector_row("rope", 54, 128, dtype, 4, 2));
    rows.push_back({"gather", dtype, measure::GatherShape{11, 64, 100}});
    rows.push_back({"kv_write", dtype, measure::CacheShape{10, 2, 64}});
    for (const char* op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}) {
      rows.push_back({op, dtype, measure::CollectiveShape{*measure::collective_kind(op), 2, Bytes{4096}}});
    }
  }
  rows.push_back({"gemm", Dtype::fp32, measure::GemmShape{5, 96, 128, 1, {}}});
  rows.push_back({"gemm", Dtype::int8, measure::GemmShape{5, 96, 128, 1, {}}});
  return rows;
}

// The op in types that the reference may have instead: fp32, then fp32 of weights that are not quantised.
std::vector<OpRow> stand_ins(const OpRow& row) {
  std::vector<OpRow> rows = {row};
  OpRow wide = row;
  wide.dtype = Dtype::fp32;
  if (auto* shape = std::get_if<measure::CollectiveShape>(&wide.shape)) {  // of as many elements
    shape->bytes = shape->bytes * (bits(Dtype::fp32) / bits(row.dtype));
  } else if (auto* vector = std::get_if<measure::VectorShape>(&wide.shape)) {
    vector->bytes = vector->bytes * (bits(Dtype::fp32) / bits(row.dtype));
  }
  rows.push_back(wide);
  if (auto* shape = std::get_if<measure::GemmShape>(&wide.shape); shape != nullptr && !shape->weights.empty()) {
    shape->weights.clear();
    rows.push_back(wide);
  }
  return rows;
}

// Half a step of a type, relative to 1.
double unit(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp16: return std::ldexp(1.0, -11);
    case Dtype::bf16: return std::ldexp(1.0, -8);
    case Dtype::int8: return 0.5 / 127;
    default: return std::ldexp(1.0, -24);
  }
}

// Operands, what is in between and the result are each rounded; sums of fp32 depend on their order.
double tolerance_of(const OpRow& row, const OpRow& reference) {
  constexpr double kRoundings = 8;
  constexpr double kOrder = 256;
  double tolerance = row.dtype == Dtype::fp32 ? kOrder * unit(Dtype::fp32) : kRoundings * unit(row.dtype);
  // Quantised operands against operands that are not: off by up to half a step of their integers.
  const auto* gemm = std::get_if<measure::GemmShape>(&row.shape);
  if (gemm == nullptr || reference == row) return tolerance;
  const auto* compared = std::get_if<measure::GemmShape>(&reference.shape);
  if (!gemm->weights.empty() && compared->weights.empty())
    tolerance += gemm->weights.starts_with("w4") ? 1.0 / 7 : 1.0 / 127;
  if (gemm->weights == "w8a8" || row.dtype == Dtype::int8) tolerance += 1.0 / 127;
  return tolerance;
}

double relative_error(const std::vector<float>& values, const std::vector<float>& reference) {
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double d = static_cast<double>(values[i]) - static_cast<double>(reference[i]);
    difference += d * d;
    size += static_cast<double>(reference[i]) * static_cast<double>(reference[i]);
  }
  if (difference == 0) return 0;
  return size > 0 ? std::sqrt(difference / size) : std::numeric_limits<double>::infinity();
}

SelfTestResult test(const OpRow& row, Backend& tested, Backend& reference) {
  SelfTestResult result{measure::describe(row)};
  auto op = tested.prepare(row, 1);
  if (auto* why = std::get_if<Unavailable>(&op)) {
    result.reason = std::move(why->reason);
    return result;
  }
  std::string lacking;
  for (const OpRow& candidate : stand_ins(row)) {
    auto other = reference.prepare(candidate, 1);
    if (const auto* why = std::get_if<Unavailable>(&other)) {
      if (lacking.empty()) lacking = why->reason;
      continue;
    }
    const std::vector<float> values = tested.result(*std::get<std::unique_ptr<Prepared>>(op));
    const std::vector<float> expected = reference.result(*std::get<std::unique_ptr<Prepared>>(other));
    result.outcome = SelfTestResult::Outcome::failed;
    if (values.size() != expected.size()) {
      result.reason = fmt::format("{} results instead of {}", values.size(), expected.size());
      return result;
    }
    result.error = relative_error(values, expected);
    result.tolerance = tolerance_of(row, candidate);
    // Written so that what is not a number fails.
    if (*result.error <= *result.tolerance) {
      result.outcome = SelfTestResult::Outcome::passed;
    } else {
      result.reason = fmt::format("differs by {:.2g}, where {:.2g} is allowed", *result.error, *result.tolerance);
    }
    return result;
  }
  result.reason = "nothing to compare with: " + lacking;
  return result;
}

}  // namespace

std::string_view name(SelfTestResult::Outcome outcome) {
  constexpr std::string_view kNames[] = {"passed", "failed", "unavailable"};
  return kNames[static_cast<std::size_t>(outcome)];
}

std::vector<SelfTestResult> self_test(Backend& tested, Backend& reference) {
  std::vector<SelfTestResult> results;
  bool works = true;
  for (const OpRow& row : small_ops()) {
    if (!works) {
      results.push_back({.op = measure::describe(row), .reason = "not run after the failure above"});
      continue;
    }
    try {
      results.push_back(test(row, tested, reference));
    } catch (const Error& error) {
      works = false;
      results.push_back({.op = measure::describe(row),
                         .outcome = SelfTestResult::Outcome::failed,
                         .reason = error.diagnostics().front().message});
    }
  }
  return results;
}

bool failed(const std::vector<SelfTestResult>& results) {
  return std::any_of(results.begin(), results.end(),
                     [](const SelfTestResult& r) { return r.outcome == SelfTestResult::Outcome::failed; });
}

}  // namespace llmperf::replay
