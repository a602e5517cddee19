#include "measure/validation.h"

#include <cmath>
#include <string>

#include "catch.h"

namespace llmperf::measure::validation_test {
namespace {

Measurements three_rows() {  // 10, 20 and 40 us
  return parse_measurements(
      "hardware,op,dtype,m,n,k,latency_us\n"
      "a,gemm,bf16,1,2,3,10\na,gemm,bf16,20,2,3,20\na,gemm,bf16,1,3,3,40\n",
      "t.csv");
}

const GroupErrors* find(const std::vector<GroupErrors>& groups, std::string_view by, std::string_view name) {
  for (const GroupErrors& g : groups) {
    if (g.by == by && g.name == name) return &g;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("summary and groups hold predictor and baselines side by side, of scored rows only", "[validation]") {
  Validation v;
  v.measurements = three_rows();
  v.rows = {{.row = 0, .predicted = 11e-6, .roofline = 5e-6, .fitted_roofline = 12e-6},
            {.row = 1, .predicted = 18e-6, .roofline = 5e-6, .fitted_roofline = 20e-6},
            {.row = 2, .predicted = 400e-6, .roofline = 1e-6, .fitted_roofline = 1e-6, .scored = false}};
  summarise(v);
  CHECK(v.error(v.rows[0]) == Approx(0.1));
  CHECK(v.summary.errors.rows == 2);
  CHECK(v.summary.errors.mape == Approx(0.1));
  CHECK(v.summary.errors.bias == Approx(0).margin(1e-12));
  CHECK(v.summary.roofline_mape == Approx(0.625));       // 50 % and 75 %
  CHECK(v.summary.fitted_roofline_mape == Approx(0.1));  // 20 % and 0
  const GroupErrors* small = find(v.groups, "m_band", "1");
  REQUIRE(small != nullptr);
  CHECK(small->errors.rows == 1);
  CHECK(small->errors.bias == Approx(0.1));
  CHECK(find(v.groups, "site", "n 3 k 3") == nullptr);  // of the row that is not scored
}

TEST_CASE("errors by group start with all rows asked for", "[validation]") {
  const Measurements m = three_rows();
  const std::size_t rows[] = {0, 2};
  const double predicted[] = {12e-6, 30e-6};
  const std::vector<GroupErrors> list = errors_by_group(m, rows, predicted);
  CHECK(list.front().by.empty());
  CHECK(list.front().errors.rows == 2);
  CHECK(list.front().errors.mape == Approx(0.225));  // 20 % and 25 %
  REQUIRE(find(list, "site", "n 3 k 3") != nullptr);
  CHECK(find(list, "site", "n 3 k 3")->errors.bias == Approx(-0.25));
  CHECK(find(list, "m_band", "17-64") == nullptr);
}

TEST_CASE("a row's version chooses the era that it is predicted by", "[validation]") {
  const std::string step = "qwen1.5-7b,bf16,1,decode,1,200,20";
  const Validation v = validate(
      parse_measurements("hardware,runtime,engine_version,model,weights,batch,phase,new_tokens,"
                         "context,latency_ms\n"
                         "a100-sxm-80gb,vllm,0.6.3 (2024-09)," +
                             step + "\n" + "a100-sxm-80gb,vllm,0.15.0rc1," + step + "\n" +
                             "a100-sxm-80gb,vllm,unknown," + step + "\n" + "rtx4090,llama.cpp,b2000," + step + "\n",
                         "t.csv"),
      "");
  REQUIRE(v.rows.size() == 4);
  CHECK(v.rows[0].profile == "vllm-v0 on a100-sxm-80gb");
  CHECK(v.rows[1].profile == "vllm-async: kernels of vllm on a100-sxm-80gb");
  CHECK(v.rows[2].profile == v.rows[1].profile);
  CHECK(v.rows[3].profile.starts_with("llama.cpp-cublas: kernels of llama.cpp"));
  CHECK(v.rows[0].predicted > v.rows[1].predicted);  // whose host is serial with the device
  CHECK(v.rows[2].predicted == v.rows[1].predicted);
  CHECK_FALSE(v.rows[0].extrapolated);
  CHECK(v.rows[1].extrapolated);
}

namespace {

const std::string kLocal =
    "hardware,runtime,model,weights,batch,phase,new_tokens,context,latency_ms,gpu_layers,host,backend,ubatch,threads,"
    "ep\n";

// With a row that is always good in front.
Validation of_rows(const std::string& rows) {
  return validate(parse_measurements(
      kLocal + "rtx4090,llama.cpp,llama-3.1-8b,q4_k_m,1,decode,1,100,7,,,cuda,,,\n" + rows, "t.csv"));
}

}  // namespace

TEST_CASE("rows that nothing predicts are refused at their lines, and the others are predicted", "[validation]") {
  // Twice each: what was looked up in vain once is not there the second time.
  for (const char* bad : {"rtx4090,llama.cpp,llama-3.1-8b,q4_k_m,1,decode,1,100,7,20,no-such-cpu,cuda,,,",
                          "no-such-card,llama.cpp,llama-3.1-8b,q4_k_m,1,decode,1,100,7,,,,,,",
                          "rtx4090,llama.cpp,no-such-model,q4_k_m,1,decode,1,100,7,,,,,,",
                          "rtx4090,llama.cpp,llama-3.1-8b,q4_k_x,1,decode,1,100,7,,,,,,",
                          "h100-sxm,vllm,deepseek-v2-lite,bf16,1,decode,1,100,7,,,,,,1048573"}) {
    const Validation v = of_rows(std::string(bad) + "\n" + bad + "\n");
    INFO(bad);
    CHECK(v.rows.size() == 1);
    CHECK(v.summary.errors.rows == 1);
    REQUIRE(v.measurements.refused.size() >= 2);
    CHECK(v.measurements.refused.front().where.line == 3);
    CHECK(v.measurements.refused.back().where.line == 4);
    CHECK(v.measurements.refused.front().message == v.measurements.refused.back().message);
  }
  CHECK_THROWS_AS(
      validate(parse_measurements(kLocal + "no-such-card,vllm,llama-3.1-8b,bf16,1,decode,1,9,7,,,,,,\n", "t.csv")),
      Error);
}

TEST_CASE("a backend runs on the devices it is for", "[validation]") {
  const auto row = [](const std::string& device, const std::string& backend) {
    return of_rows(device + ",llama.cpp,llama-3.2-1b,q4_k_m,1,decode,1,100,7,,," + backend + ",,,\n").rows.size() == 2;
  };
  for (const char* backend : {"exllamav2", "mlx", "metal", "rocm", "cpu"}) CHECK_FALSE(row("rtx2080ti", backend));
  for (const char* backend : {"cuda", "vulkan", "vulkan?", ""}) CHECK(row("rtx2080ti", backend));
  CHECK(row("rx7900xtx", "rocm"));
  CHECK_FALSE(row("rx7900xtx", "cuda"));
  CHECK(row("apple-m2-ultra", "metal"));
  CHECK(row("ryzen-7950x", "cpu"));
}

TEST_CASE("a micro-batch counts where llama.cpp runs the format, and is refused elsewhere", "[validation]") {
  const auto prompt = [](const std::string& runtime, const char* ubatch) {
    return "rtx4090," + runtime + ",llama-3.2-1b,bf16,1,prefill,4096,0,90,,,," + ubatch + ",,\n";
  };
  const Validation v = of_rows(prompt("llama.cpp", "32") + prompt("llama.cpp", "2048"));
  REQUIRE(v.rows.size() == 3);
  // 128 times over the weights: 2.5 GB at about 1 TB/s are 0.3 s.
  CHECK(v.rows[1].predicted > 0.3);
  CHECK(v.rows[1].predicted > 3 * v.rows[2].predicted);
  CHECK(of_rows(prompt("vllm", "512")).measurements.refused.size() == 1);
  CHECK(of_rows(prompt("vllm", "")).rows.size() == 2);
}

TEST_CASE("threads beyond the cores share them, which the row says", "[validation]") {
  const auto row = [](const char* threads) {
    return std::string("ryzen-7950x,llama.cpp,llama-3.2-1b,q4_k_m,1,decode,1,100,20,,,cpu,,") + threads + ",\n";
  };
  const Validation v = of_rows(row("16") + row("32"));  // of 16 cores
  REQUIRE(v.rows.size() == 3);
  CHECK(v.rows[2].predicted == v.rows[1].predicted);
  CHECK(v.rows[2].remark.find("32 threads on 16 cores") != std::string::npos);
  CHECK(v.rows[1].remark.find("threads") == std::string::npos);
}

TEST_CASE("a kernel's engine chooses the profile that predicts it", "[validation]") {
  const std::string gemm = "h100-sxm,gemm,bf16,64,4096,4096,9,";
  const Validation v =
      validate(parse_measurements("hardware,op,dtype,m,n,k,latency_us,runtime,engine_version\n" + gemm + ",\n" + gemm +
                                      "sglang,0.5.14\n" + gemm + "trtllm,1.3.0rc20\n" + gemm + "vllm,99\n",
                                  "t.csv"));
  REQUIRE(v.rows.size() == 3);
  CHECK(v.rows[0].profile == "vllm on h100-sxm");
  CHECK(v.rows[1].profile.find("sglang") != std::string::npos);
  CHECK(v.rows[2].profile.find("trtllm") != std::string::npos);
  REQUIRE(v.measurements.refused.size() == 1);
  CHECK(v.measurements.refused[0].where.line == 5);
  CHECK(v.measurements.refused[0].hint.find("vllm-v1 (from 0.8)") != std::string::npos);
}

TEST_CASE("the rule of thumb reads at three quarters of the bandwidth and multiplies at half the peak",
          "[validation]") {
  StepRow step;
  RowRoof roof;
  roof.memory = Seconds{3e-3};
  roof.products = Seconds{5e-3};
  step.phase = Phase::decode;
  CHECK(rule_of(step, roof) == Approx(4e-3));
  step.phase = Phase::verify;
  CHECK(rule_of(step, roof) == Approx(4e-3));
  step.phase = Phase::prefill;
  CHECK(rule_of(step, roof) == Approx(10e-3));
}

TEST_CASE("every group shows the rule of thumb on its steps", "[validation]") {
  Validation v;
  v.measurements = parse_measurements(
      "hardware,runtime,model,weights,batch,phase,new_tokens,context,latency_ms\n"
      "a,llama.cpp,m,q4_0,1,decode,1,64,10\na,llama.cpp,m,q4_0,1,prefill,64,0,10\n",
      "t.csv");
  Row op = three_rows().rows[0];
  v.measurements.rows.push_back(op);
  v.rows = {{.row = 0, .predicted = 10e-3, .rule = 12e-3},
            {.row = 1, .predicted = 10e-3, .rule = 4e-3},
            {.row = 2, .predicted = 10e-6}};
  summarise(v);
  CHECK(v.summary.rule_mape == Approx(0.4));  // 20 % and 60 %
  CHECK(find(v.groups, "hardware_phase", "a decode")->rule_mape == Approx(0.2));
  CHECK(std::isnan(find(v.groups, "op", "gemm")->rule_mape));
}

TEST_CASE("bands are judged by how many rows are inside of them", "[validation]") {
  Validation v;
  v.measurements = three_rows();
  v.rows = {{.row = 0, .predicted = 11e-6}, {.row = 1, .predicted = 16e-6}, {.row = 2, .predicted = 60e-6}};
  summarise(v);
  CHECK(std::isnan(v.summary.inside_p90));  // none has a band
  CHECK(std::isnan(v.summary.band_factor));
  v.rows[0].band = {.mean = 0.12, .p90 = 0.2};  // a factor of 1.1 off
  v.rows[1].band = {.mean = 0.1, .p90 = 0.26};  // 1.25
  v.rows[2].band = {.mean = 0.1, .p90 = 0.4};   // 1.5
  summarise(v);
  CHECK(v.summary.inside_mean == Approx(1.0 / 3));
  CHECK(v.summary.inside_p90 == Approx(2.0 / 3));
  CHECK(v.summary.band_factor == Approx(1.26));
  v.rows[2].band.reset();
  summarise(v);
  CHECK(v.summary.inside_mean == Approx(0.5));
  CHECK(v.summary.inside_p90 == 1);
  CHECK(v.summary.band_factor == Approx(1.23));
}

}  // namespace llmperf::measure::validation_test
