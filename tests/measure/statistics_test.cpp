// Errors by hand.
#include "measure/statistics.h"

#include <cmath>
#include <numeric>

#include "catch.h"

namespace llmperf::measure::statistics_test {
namespace {

constexpr std::string_view kSteps =
    "hardware,tp,runtime,execution,options,model,weights,batch,phase,new_tokens,context,latency_ms\n";

std::vector<std::string> names(const std::vector<RowGroup>& groups, std::string_view by) {
  std::vector<std::string> list;
  for (const RowGroup& g : groups) {
    if (g.by == by) list.push_back(g.name);
  }
  return list;
}

std::vector<RowGroup> groups_of(const std::string& text) {
  const Measurements m = parse_measurements(text, "t.csv");
  std::vector<std::size_t> rows(m.rows.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  return group_rows(m, rows);
}

}  // namespace

TEST_CASE("the error is positive when the prediction is too slow", "[statistics]") {
  CHECK(relative_error(11, 10) == Approx(0.1));
  CHECK(relative_error(9, 10) == Approx(-0.1));
}

TEST_CASE("mean, median, 90th percentile, largest and bias of five errors", "[statistics]") {
  const Summary s = summarise(std::vector<double>{0.1, -0.2, 0.3, -0.4, 0.5});
  CHECK(s.rows == 5);
  CHECK(s.mape == Approx(0.3));
  CHECK(s.median_ape == Approx(0.3));
  CHECK(s.p90_ape == Approx(0.46));  // rank 0.9 * 4 = 3.6: between 0.4 and 0.5
  CHECK(s.max_ape == Approx(0.5));
  CHECK(s.bias == Approx(0.06));
}

TEST_CASE("the median of an even number of errors lies between the middle two", "[statistics]") {
  CHECK(summarise(std::vector<double>{0.4, -0.1, 0.2, 0.3}).median_ape == Approx(0.25));
}

TEST_CASE("all figures of one error are that error", "[statistics]") {
  const Summary s = summarise(std::vector<double>{-0.25});
  CHECK(s.mape == 0.25);
  CHECK(s.median_ape == 0.25);
  CHECK(s.p90_ape == 0.25);
  CHECK(s.max_ape == 0.25);
  CHECK(s.bias == -0.25);
}

TEST_CASE("no rows have no error, not an error of 0", "[statistics]") {
  const Summary s = summarise(std::vector<double>{});
  CHECK(s.rows == 0);
  CHECK(std::isnan(s.mape));
  CHECK(std::isnan(s.p90_ape));
}

TEST_CASE("step rows are grouped by what they are, bands in ascending order", "[statistics]") {
  const std::vector<RowGroup> groups = groups_of(std::string(kSteps) +
                                                 "d,1,vllm,graph,,m2,bf16,128,decode,1,10,1\n"
                                                 "d,1,vllm,graph,,m1,awq,2,decode,1,10,1\n"
                                                 "d,1,vllm,graph,,m1,awq,8,prefill,64,0,1\n"
                                                 "d,1,vllm,graph,,m1,awq,1,decode,1,10,1\n");
  CHECK(names(groups, "batch_band") == std::vector<std::string>{"1", "2-8", "33-128"});
  CHECK(names(groups, "model") == std::vector<std::string>{"m2", "m1"});
  CHECK(names(groups, "phase") == std::vector<std::string>{"prefill", "decode"});
  CHECK(names(groups, "weights") == std::vector<std::string>{"bf16", "awq"});
  CHECK(names(groups, "runtime_phase") == std::vector<std::string>{"vllm decode", "vllm prefill"});
  CHECK(names(groups, "options").empty());  // none is given
  CHECK(names(groups, "op").empty());
  for (const RowGroup& g : groups) {
    if (g.name == "2-8") CHECK(g.rows == std::vector<std::size_t>{1, 2});
  }
}

TEST_CASE("steps of llama.cpp are grouped by backend, era, cards and host, where rows say them", "[statistics]") {
  const auto groups = groups_of(
      "hardware,runtime,model,weights,batch,phase,new_tokens,context,latency_ms,n_gpu,split,gpu_layers,host,backend,"
      "era\n"
      "a,llama.cpp,m,q4_0,1,decode,1,64,9,4,,,,cuda,fa\n"
      "a,llama.cpp,m,q4_0,1,decode,1,64,9,1,,0,c,vulkan?,fa\n"
      "b,llama.cpp,m,q4_0,1,prefill,64,0,9,2,row,8,c,vulkan,\n"
      "b,vllm,m,bf16,1,prefill,64,0,9,,,,,,\n");
  CHECK(names(groups, "hardware_phase") == std::vector<std::string>{"a decode", "b prefill"});
  CHECK(names(groups, "backend") == std::vector<std::string>{"cuda", "vulkan"});
  CHECK(names(groups, "era") == std::vector<std::string>{"fa"});
  CHECK(names(groups, "cards") == std::vector<std::string>{"1", "2 by row", "4 by layer"});
  CHECK(names(groups, "offload") == std::vector<std::string>{"no layers beside c", "layers beside c"});
}

TEST_CASE("op rows are grouped by op, rows of the product, site, head layout and collective", "[statistics]") {
  const std::vector<RowGroup> groups = groups_of(
      "hardware,op,dtype,ranks,batch,m,n,k,q_len,kv_len,heads,kv_heads,head_dim,causal,bytes,latency_us\n"
      "d,gemm,bf16,,,17,64,32,,,,,,,,3\n"
      "d,gemm,bf16,,,16,64,32,,,,,,,,3\n"
      "d,attention_decode,bf16,,4,,,,1,128,32,8,128,1,,9\n"
      "d,all_reduce,fp16,4,,,,,,,,,,,1024,9\n");
  CHECK(names(groups, "op") == std::vector<std::string>{"gemm", "attention_decode", "all_reduce"});
  CHECK(names(groups, "m_band") == std::vector<std::string>{"2-16", "17-64"});
  CHECK(names(groups, "site") == std::vector<std::string>{"n 64 k 32"});
  CHECK(names(groups, "layout") == std::vector<std::string>{"32/8 x 128"});
  CHECK(names(groups, "collective") == std::vector<std::string>{"all-reduce 4 ranks"});
  CHECK(names(groups, "model").empty());
}

TEST_CASE("only the chosen rows are grouped", "[statistics]") {
  const Measurements m = parse_measurements(std::string(kSteps) +
                                                "d,1,vllm,graph,,m1,bf16,1,decode,1,10,1\n"
                                                "d,1,vllm,graph,,m2,bf16,1,decode,1,10,1\n",
                                            "t.csv");
  const std::size_t second[] = {1};
  CHECK(names(group_rows(m, second), "model") == std::vector<std::string>{"m2"});
}

TEST_CASE("a row's group within one kind has a name, or none where the kind does not apply", "[statistics]") {
  const Measurements m = parse_measurements(std::string(kSteps) + "d,1,vllm,graph,,m1,bf16,1,decode,1,10,1\n", "t.csv");
  CHECK(group_name(m.rows[0], "model") == "m1");
  CHECK(group_name(m.rows[0], "site").empty());
}

}  // namespace llmperf::measure::statistics_test
