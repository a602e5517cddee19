#include "support.h"

#include <dlfcn.h>

#include <cmath>
#include <limits>

#include "catch.h"

namespace llmperf::replay::ascend {

std::vector<std::string> folders(const std::string& home) {
  return {std::string(LLMPERF_STANDIN_HOME) + "/" + home + "/lib64"};
}

Standin& standin() {
  static Standin found = [] {
    Standin control{};
    void* library = dlopen((folders().front() + "/libascendcl.so").c_str(), RTLD_LAZY | RTLD_GLOBAL);
    REQUIRE(library != nullptr);
#define STANDIN_FIND(name, ...)                                                            \
  control.name = reinterpret_cast<std::add_pointer_t<__VA_ARGS__>>(dlsym(library, #name)); \
  REQUIRE(control.name != nullptr);
    STANDIN_CONTROL(STANDIN_FIND)
#undef STANDIN_FIND
    return control;
  }();
  return found;
}

std::shared_ptr<cann::Functions> functions(const std::string& home) {
  return std::make_shared<cann::Functions>(*cann::load(folders(home)));
}

std::unique_ptr<NpuBackend> backend(std::shared_ptr<const cann::Functions> cann, std::int64_t page) {
  return std::make_unique<NpuBackend>(std::move(cann), 0, Seconds{0}, page);
}

std::string violations() {
  std::string lines;
  for (int i = 0; i < standin().standin_violations(); ++i) lines += std::string(standin().standin_violation(i)) + "\n";
  return lines;
}

void check_clean() {
  CHECK(violations() == "");
  CHECK(std::string(standin().standin_live_list()) == "");
}

measure::OpRow gemm(std::int64_t m, std::int64_t n, std::int64_t k, Dtype dtype, const std::string& weights,
                    std::int64_t batch) {
  return {"gemm", dtype, measure::GemmShape{m, n, k, batch, weights}};
}
measure::OpRow attention(std::int64_t batch, std::int64_t q, std::int64_t kv, std::int64_t heads, std::int64_t kv_heads,
                         std::int64_t width, Dtype dtype, bool causal) {
  const auto phase = q == 1 ? measure::Phase::decode : measure::Phase::prefill;
  return {q == 1 ? "attention_decode" : "attention_prefill", dtype,
          measure::AttentionShape{phase, batch, q, kv, heads, kv_heads, width, causal}};
}
measure::OpRow experts(std::int64_t m, std::int64_t hidden, std::int64_t inter, std::int64_t topk, std::int64_t experts,
                       Dtype dtype, const std::string& weights, std::int64_t tp) {
  return {
      "moe", dtype,
      measure::ExpertsShape{
          .m = m, .hidden = hidden, .inter = inter, .topk = topk, .experts = experts, .tp = tp, .weights = weights}};
}
measure::OpRow vector(const std::string& layer, std::int64_t rows, std::int64_t width, Dtype dtype, std::int64_t heads,
                      std::int64_t kv_heads) {
  return {"vector:" + layer, dtype, measure::VectorShape{layer, rows, width, heads, kv_heads, {}}};
}
measure::OpRow gather(std::int64_t rows, std::int64_t width, std::int64_t table, Dtype dtype) {
  return {"gather", dtype, measure::GatherShape{rows, width, table}};
}
measure::OpRow cache_write(std::int64_t tokens, std::int64_t kv_heads, std::int64_t width, Dtype dtype) {
  return {"kv_write", dtype, measure::CacheShape{tokens, kv_heads, width}};
}
measure::OpRow collective(const std::string& op, std::int64_t ranks, double bytes, Dtype dtype) {
  return {op, dtype, measure::CollectiveShape{*measure::collective_kind(op), ranks, Bytes{bytes}}};
}

std::unique_ptr<Prepared> prepared(NpuBackend& on, const measure::OpRow& row, std::int64_t copies) {
  auto made = on.prepare(row, copies);
  if (const auto* reason = std::get_if<Unavailable>(&made)) FAIL(measure::describe(row) << ": " << reason->reason);
  return std::move(std::get<std::unique_ptr<Prepared>>(made));
}

std::string refusal(NpuBackend& on, const measure::OpRow& row, std::int64_t copies) {
  auto made = on.prepare(row, copies);
  const auto* reason = std::get_if<Unavailable>(&made);
  return reason != nullptr ? reason->reason : "";
}

double relative_error(const std::vector<float>& values, const std::vector<double>& expected) {
  if (values.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double d = static_cast<double>(values[i]) - expected[i];
    difference += d * d;
    size += expected[i] * expected[i];
  }
  return std::sqrt(difference / size);
}

double tolerance(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp32: return 1e-6;
    case Dtype::bf16: return 6e-3;
    default: return 8e-4;
  }
}

}  // namespace llmperf::replay::ascend
