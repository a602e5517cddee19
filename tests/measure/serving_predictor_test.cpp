// Predictions of runs are simulations of them: what a run alone takes, what load adds, what cannot be predicted.
#include "measure/serving_predictor.h"

#include <cmath>

#include "catch.h"
#include "estimate/estimate.h"
#include "measure/calibrate.h"
#include "measure/row_ops.h"
#include "measure/validation.h"
#include "model/model_file.h"

namespace llmperf::measure::serving_predictor_test {
namespace {

const std::string kHeader =
    "hardware,tp,runtime,engine_version,model,weights,kv_blocks,prefix_caching,concurrency,requests,rate,burstiness,"
    "input,"
    "output,prefix,decode_plan,ttft_mean_ms,tpot_mean_ms,output_tokens_per_second\n";

Measurements of(const std::string& rows) { return parse_measurements(kHeader + rows, "t.csv"); }
std::string row(const std::string& load, const std::string& figures = "100,10,100") {
  return "rtx4090,1,vllm,0.15.1,llama-3.1-8b,bf16,," + load + ",," + figures + "\n";
}
double predicted(const Validation& v, std::size_t i) { return v.rows.at(i).predicted; }

}  // namespace

TEST_CASE("one request alone takes what an estimate says", "[serving][predictor]") {
  const Validation v = validate(of(row("0,1,1,,,512,64,")), "none");
  const model::Decoder decoder = model::load_decoder("llama-3.1-8b");
  const hardware::Device device = hardware::load_device("rtx4090");
  estimate::Choices choices;
  choices.weights = "bf16";
  estimate::Estimator estimator(estimate::make_setup(decoder, device, choices));
  const auto alone = estimator.run({.batch = 1, .prompt = 512, .generate = 64});
  CHECK(predicted(v, 0) == Approx(alone.ttft->value).epsilon(0.02));
  // 64 tokens: the first with the prompt, 63 after it.
  CHECK(1 / predicted(v, 2) == Approx(64 / (predicted(v, 0) + 63 * predicted(v, 1))).epsilon(0.001));
}

TEST_CASE("more at once is slower for each and faster for all", "[serving][predictor]") {
  const Validation v = validate(of(row("0,1,10,,,512,64,") + row("0,16,160,,,512,64,")));
  CHECK(predicted(v, 3) > predicted(v, 0));  // TTFT
  CHECK(predicted(v, 4) > predicted(v, 1));  // TPOT
  CHECK(predicted(v, 5) < predicted(v, 2));  // time for a token of the server
  CHECK(v.rows[0].profile == "vllm-async: kernels of vllm on rtx4090");
  // The speed of light is the same simulation of shorter steps.
  for (const ValidatedRow& one : v.rows) CHECK(one.roofline < one.predicted);
}

TEST_CASE("prompts that repeat are computed once", "[serving][predictor]") {
  const Validation v = validate(of(row("1,1,20,,,2048,4,") + row("1,1,20,,,2048,4,2048:1")));
  CHECK(predicted(v, 3) < 0.5 * predicted(v, 0));
}

TEST_CASE("what cannot be predicted is listed with the reason, and not scored", "[serving][predictor]") {
  // 16 GB of weights leave no room for a cache beside the graphs of a card of 16 GB.
  const std::string one = "rtx4080,1,vllm,0.15.1,llama-3.1-8b,bf16,,0,1,10,,,512,64,,,100,10,\n";
  const Validation v = validate(of(one + row("0,1,10,,,512,64,")));
  CHECK_FALSE(v.rows[0].scored);
  CHECK(v.rows[0].remark.starts_with("not predicted: "));
  CHECK(std::isnan(v.rows[0].predicted));
  CHECK(v.rows[2].scored);
  CHECK(v.summary.errors.rows == 3);
  CHECK(std::isfinite(v.summary.errors.mape));
}

TEST_CASE("a run of what does not exist is refused with its line", "[serving][predictor]") {
  const auto message = [](const std::string& rows) {
    try {
      validate(of(rows));
    } catch (const Error& error) {
      return format_diagnostic({error.diagnostics().front().where, error.diagnostics().front().message, {}});
    }
    return std::string();
  };
  CHECK(message("rtx4090,1,vllm,,llama-9,bf16,,0,1,10,,,512,64,,,100,10,\n").starts_with("t.csv:2: unknown model"));
  CHECK(message("rtx4090,1,ollama,,llama-3.1-8b,bf16,,0,1,10,,,512,64,,,100,10,\n") ==
        "t.csv:2: 'runtime': no engine whose rules 'ollama' follows");
  CHECK(message("rtx4090,1,vllm,,llama-3.1-8b,bf16,,0,1,10,,,512,64,,2,100,10,\n") ==
        "t.csv:2: '2' is no plan of replicas");
}

TEST_CASE("replicas of prompts and of decode run their own plans", "[serving][predictor]") {
  const auto run = [](const std::string& plans) {
    return validate(
        parse_measurements(
            "hardware,runtime,engine_version,model,weights,concurrency,requests,input,output,prefill_replicas,"
            "decode_replicas,prefill_plan,decode_plan,tp,ttft_mean_ms,tpot_mean_ms\n"
            "h100-sxm,vllm,0.15.1,llama-3.1-8b,bf16,1,4,2048,64,1,1," +
                plans + ",100,10\n",
            "t.csv"),
        "none");
  };
  const Validation alike = run("tp2,tp2,1");
  const Validation apart = run("tp1 pp1,tp2,1");
  CHECK(predicted(apart, 0) > 1.5 * predicted(alike, 0));  // the prompt's
  CHECK(predicted(apart, 1) == Approx(predicted(alike, 1)).epsilon(1e-6));
  const Validation shared = run(",,2");
  CHECK(predicted(shared, 1) == Approx(predicted(alike, 1)).epsilon(1e-6));
}

TEST_CASE("where prompts are not cut, steps that rows do not size hold one beside the others' tokens",
          "[serving][predictor]") {
  const auto run = [](const std::string& tokens) {
    return validate(
        parse_measurements(
            "hardware,tp,runtime,model,weights,max_batched_tokens,concurrency,requests,input,output,ttft_mean_ms\n"
            "h100-sxm,1,trtllm,llama-3.1-8b,fp8," +
                tokens + ",8,24,8192,64,100\n",
            "t.csv"),
        "none");
  };
  const Validation chosen = run("");
  CHECK(predicted(chosen, 0) == predicted(run("8264"), 0));  // 8192 + 8 + 64
  CHECK(chosen.warnings.front().starts_with("trtllm does not cut prompts"));
  CHECK(predicted(run("8192"), 0) > 1.5 * predicted(chosen, 0));
}

TEST_CASE("the engine of a runtime, with the version that has rules of its own", "[serving]") {
  ServingRow r;
  r.runtime = "vllm-ascend";
  r.engine_version = "0.18.0 (2026-02)";
  CHECK(engine_followed(r) == "vllm@0.18.0");
  r.runtime = "trtllm";
  r.engine_version = "nightly";
  CHECK(engine_followed(r) == "trtllm");
}

TEST_CASE("calibrate finds host times that made figures of servers", "[serving][calibrate]") {
  // A version whose scheduler waits for the device: what the host does in a step is not hidden behind it.
  const auto waits = [](std::string rows) {
    for (std::size_t at; (at = rows.find("0.15.1")) != std::string::npos;) rows.replace(at, 6, "0.11.0");
    return rows;
  };
  const hardware::Device device = hardware::load_device("rtx4090");
  auto start = hardware::load_runtime_profile(device, "vllm@0.11.0", hardware::UnknownRuntime::error);
  start.values[std::size_t(hardware::Parameter::step_sequence)] = 1e-5;  // which is not what is looked for
  hardware::RuntimeProfile made = start;
  made.values[std::size_t(hardware::Parameter::step_decode)] *= 10;
  Measurements m = of(waits(row("0,1,4,,,256,32,") + row("0,8,32,,,256,32,")));
  std::vector<std::size_t> rows = {0, 1, 2, 3, 4, 5};
  std::vector<double> seconds(rows.size());
  ServingPredictor(m, rows, device).predict(&made, seconds);
  for (std::size_t i = 0; i < rows.size(); ++i) m.rows[i].latency = Seconds{seconds[i]};
  const CalibrateResult result = calibrate(m, device, start);
  const double found = get(result.profile.values, hardware::Parameter::step_decode);
  const double was = get(start.values, hardware::Parameter::step_decode);
  CHECK(found == Approx(10 * was).epsilon(0.2));
  CHECK(result.calibration.residuals.front().errors.mape < 0.02);
  CHECK(result.calibration.parameters.size() == 3);  // one device exchanges nothing
}

TEST_CASE("calibrate finds what is kept of a draft where rows do not say it", "[serving][calibrate]") {
  const hardware::Device device = hardware::load_device("rtx4090");
  const auto rows = [](const std::string& accept) {
    return parse_measurements(
        "hardware,tp,runtime,engine_version,model,weights,draft,accept,concurrency,requests,input,output,"
        "ttft_mean_ms,tpot_mean_ms\n"
        "rtx4090,1,vllm,0.15.1,llama-3.1-8b,bf16,eagle:3," +
            accept + ",1,4,256,64,100,10\nrtx4090,1,vllm,0.15.1,llama-3.1-8b,bf16,eagle:3," + accept +
            ",4,16,256,64,100,10\n",
        "t.csv");
  };
  const auto start = hardware::load_runtime_profile(device, "vllm@0.15.1", hardware::UnknownRuntime::error);
  const Measurements known = rows("0.85");
  std::vector<double> seconds(4);
  ServingPredictor(known, {0, 1, 2, 3}, device).predict(&start, seconds);
  Measurements unknown = rows("");
  CHECK(validate(unknown).rows[0].remark == "not predicted: 'draft' needs 'accept'");
  // No file is read because another names it.
  CHECK_THROWS_WITH(validate(rows("/etc/hostname")), Catch::Contains("'accept': '' is not a chance"));
  for (std::size_t i = 0; i < seconds.size(); ++i) unknown.rows[i].latency = Seconds{seconds[i]};
  const CalibrateResult result = calibrate(unknown, device, start);
  const CalibratedParameter& found = result.calibration.parameters.back();
  CHECK(found.name == "accept eagle:3 on llama-3.1-8b");
  CHECK(found.fitted.value == Approx(0.85).epsilon(0.06));
}

}  // namespace llmperf::measure::serving_predictor_test
