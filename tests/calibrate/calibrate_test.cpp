// From rows to a profile: what is stored of the fit, and what is said against it.
#include "calibrate/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "calibrate/predictor.h"
#include "catch.h"

namespace llmperf::calibrate::calibrate_test {
namespace {

using hardware::RuntimeProfile;

const hardware::Device& card() {
  static const hardware::Device device = hardware::load_device("rtx4090");
  return device;
}
const RuntimeProfile& vllm() {
  static const RuntimeProfile profile = hardware::load_runtime_profile(card(), "vllm");
  return profile;
}

// Steps of models as the shipped profile predicts them, those of one model times `factor`.
Measurements steps(std::initializer_list<const char*> models, const std::string& odd = "", double factor = 1) {
  std::string text = "hardware,runtime,model,weights,batch,phase,new_tokens,context,latency_ms\n";
  for (const char* model : models) {
    for (const int batch : {1, 8, 64}) {
      for (const char* phase : {"decode,1,200", "decode,1,900"}) {
        text += fmt::format("rtx4090,vllm,{},bf16,{},{},1\n", model, batch, phase);
      }
    }
    for (const int prompt : {30, 120, 400})
      text += fmt::format("rtx4090,vllm,{},bf16,1,prefill,{},0,1\n", model, prompt);
  }
  Measurements m = parse_measurements(text, "t.csv");
  std::vector<std::size_t> rows(m.rows.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  std::vector<double> seconds(rows.size());
  Predictor(m, rows, card(), vllm()).predict(vllm().values, std::nullopt, seconds);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool is_odd = std::get<StepRow>(m.rows[i].of).model == odd;
    m.rows[i].latency = Seconds{seconds[i] * (is_odd ? factor : 1)};
  }
  return m;
}

bool warns(const CalibrateResult& result, std::string_view text) {
  return std::any_of(result.calibration.warnings.begin(), result.calibration.warnings.end(),
                     [&](const std::string& w) { return w.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("a fit that is pulled to a profile keeps what its rows say nothing about", "[calibrate]") {
  const Measurements m = steps({"qwen1.5-1.8b", "qwen1.5-7b", "qwen1.5-14b"});
  const RuntimeProfile& start = vllm();
  const CalibrateResult pulled = calibrate(m, card(), start, Pull::to_fitted);
  const CalibrateResult anew = calibrate(m, card(), start);
  const std::size_t packed = index(FormatKernel::awq, hardware::FormatParameter::share);  // no row has such weights
  REQUIRE(start.provenance[packed] == hardware::Provenance::fitted);
  CHECK(pulled.profile.provenance[packed] == hardware::Provenance::fitted);
  CHECK(anew.profile.provenance[packed] != hardware::Provenance::fitted);
  // The rows are the profile's own predictions, so that nothing pulls it away from itself.
  for (std::size_t p = 0; p < hardware::kAllParameters; ++p) {
    INFO(hardware::parameter_info(p).name);
    CHECK(pulled.profile.values[p] == Approx(start.values[p]).epsilon(1e-3));
  }
  CHECK(pulled.profile.range.rows == start.range.rows + 27);
  CHECK(pulled.profile.error_of("gemm") != nullptr);
  CHECK(anew.profile.error_of("gemm") == nullptr);
  CHECK(pulled.profile.error_of("decode")->rows == 18);
}

TEST_CASE("a fit to several models stores its range and the errors of those left out", "[calibrate]") {
  const CalibrateResult result = calibrate(steps({"qwen1.5-1.8b", "qwen1.5-7b", "qwen1.5-14b"}), card(), vllm());
  const hardware::FittedRange& range = result.profile.range;
  CHECK(range.rows == 27);
  CHECK(range.plans == std::vector<std::string>{"1 device"});
  CHECK(range.kv == std::vector<std::string>{"bf16"});
  CHECK(range.kinds == std::vector<std::string>{"dense"});
  CHECK(range.max_batch == 64);
  REQUIRE(result.profile.error_of("decode") != nullptr);
  CHECK(result.profile.error_of("decode")->rows == 18);
  CHECK_FALSE(warns(result, "speaks against the rest"));
  CHECK_FALSE(warns(result, "hardly more than its defaults"));
  CHECK_FALSE(warns(result, "off by more than"));
}

TEST_CASE("where nothing can be left out, no error of other rows is stored", "[calibrate]") {
  Measurements m = steps({"qwen1.5-7b"});
  std::erase_if(m.rows, [](const Row& row) { return std::get<StepRow>(row.of).batch > 1; });
  const CalibrateResult result = calibrate(m, card(), vllm());
  CHECK(result.calibration.left_out.front().folds == 0);
  CHECK(result.profile.errors.empty());
}

TEST_CASE("a model that contradicts the others is named, and so are its rows", "[calibrate]") {
  const CalibrateResult result =
      calibrate(steps({"qwen1.5-1.8b", "qwen1.5-4b", "qwen1.5-7b", "qwen1.5-14b"}, "qwen1.5-7b", 3), card(), vllm());
  CHECK(warns(result, "model qwen1.5-7b speaks against the rest: its 9 rows are predicted"));
  CHECK(warns(result, "of 36 rows are off by more than a factor of 1.3: t.csv:"));
}

TEST_CASE("a fit that the rows determine little of says so", "[calibrate]") {
  // Three steps of one shape and half of a percent of noise: anything may have made them.
  Measurements m = steps({"qwen1.5-7b"});
  m.rows.resize(3);
  for (std::size_t i = 0; i < 3; ++i) {
    m.rows[i] = m.rows[0];
    std::get<StepRow>(m.rows[i].of).context += static_cast<std::int64_t>(i);
    m.rows[i].latency = m.rows[0].latency * (1 + 0.005 * static_cast<double>(i));
  }
  CHECK(warns(calibrate(m, card(), vllm()), "hardly more than its defaults"));
}

TEST_CASE("rows of another era are left out of a fit, those without a version are not", "[calibrate]") {
  Measurements m = steps({"qwen1.5-1.8b", "qwen1.5-7b"});
  REQUIRE(vllm().engine == "vllm-v0");
  const auto version = [&](std::size_t row) -> std::string& {
    return std::get<StepRow>(m.rows[row].of).engine_version;
  };
  version(0) = "0.10.0";
  version(1) = "0.4.1";
  version(2) = "unknown";
  const CalibrateResult result = calibrate(m, card(), vllm(), Pull::to_fitted);
  CHECK(warns(result, "1 rows are of other versions than vllm-v0: left out"));
  CHECK(result.calibration.residuals.front().errors.rows == static_cast<std::int64_t>(m.rows.size()) - 1);
}

}  // namespace llmperf::calibrate::calibrate_test
