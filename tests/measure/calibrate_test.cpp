// From rows to a profile: what is stored of the fit, and what is said against it.
#include "measure/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "catch.h"
#include "measure/predictor.h"
#include "measure/training_run.h"

namespace llmperf::measure::calibrate_test {
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

TEST_CASE("one row of one's own card pulls the profile of its class to it", "[calibrate]") {
  const hardware::Device device = hardware::load_device("rtx4080");
  const RuntimeProfile start = hardware::load_runtime_profile(device, "llama.cpp@2024-05");
  REQUIRE(start.hardware.empty());
  const std::string shipped[] = {"llama.cpp"};
  Measurements all = read_measurements(shipped);
  std::erase_if(all.rows, [](const Row& row) {
    return row.hardware != "rtx4080" || std::get<StepRow>(row.of).phase != Phase::decode;
  });
  REQUIRE(all.rows.size() == 7);
  Measurements one = all;
  one.rows.resize(1);
  const RuntimeProfile own = calibrate(one, device, start, Pull::to_fitted).profile;
  const auto mean_error = [&](const RuntimeProfile& profile) {
    const std::vector<std::size_t> others = {1, 2, 3, 4, 5, 6};
    std::vector<double> seconds(others.size());
    Predictor(all, others, device, profile).predict(profile.values, std::nullopt, seconds);
    double sum = 0;
    for (std::size_t i = 0; i < others.size(); ++i) {
      sum += std::abs(seconds[i] / all.rows[others[i]].latency.value - 1);
    }
    return sum / static_cast<double>(others.size());
  };
  CHECK(mean_error(own) < 0.5 * mean_error(start));
  // The errors are still those of devices left out, and so is the range.
  CHECK(own.measured_on(device));
  CHECK(own.range.rows == start.range.rows + 1);
  CHECK(own.error_of("decode")->mean == start.error_of("decode")->mean);
  // Without a profile to be pulled to, a row says too little.
  CHECK_THROWS_WITH(calibrate(one, device, start), Catch::Contains("a profile needs at least 3"));
}

TEST_CASE("a few rows of many kinds do not lead a profile of the class astray", "[calibrate]") {
  const hardware::Device device = hardware::load_device("h200-sxm");
  hardware::Device unseen = device;  // whose own profile is not to be had
  unseen.name = "unseen";
  const RuntimeProfile start = hardware::load_runtime_profile(unseen, "vllm");
  REQUIRE(start.hardware.empty());
  const std::string shipped[] = {"h200-sxm-engines"};
  Measurements all = read_measurements(shipped);
  std::erase_if(all.rows, [&](const Row& row) {
    const auto* op = std::get_if<OpRow>(&row.of);
    return op == nullptr || op->runtime != "vllm" || !untrusted(all, row).empty();
  });
  for (Row& row : all.rows) row.hardware = unseen.name;
  REQUIRE(all.rows.size() > 100);
  const auto mean_error = [&](const RuntimeProfile& profile) {
    std::vector<std::size_t> rows(all.rows.size());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    std::vector<double> seconds(rows.size());
    Predictor(all, rows, unseen, profile).predict(profile.values, std::nullopt, seconds);
    double sum = 0;
    for (const std::size_t row : rows) sum += std::abs(seconds[row] / all.rows[row].latency.value - 1);
    return sum / static_cast<double>(rows.size());
  };
  constexpr std::size_t kDraws = 6;
  double sum = 0;
  for (std::size_t first = 0; first < kDraws; ++first) {
    Measurements few = all;
    few.rows.clear();
    for (std::size_t i = first; i < all.rows.size(); i += all.rows.size() / 20) few.rows.push_back(all.rows[i]);
    sum += mean_error(calibrate(few, unseen, start, Pull::to_fitted).profile);
  }
  CHECK(sum / kDraws < 1.1 * mean_error(start));
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
  CHECK(warns(result, "model qwen1.5-7b is 198 % slower than its parts say: its 9 rows have little say in the fit"));
  CHECK_FALSE(warns(result, "model qwen1.5-7b speaks against the rest"));
  CHECK(warns(result, "of 36 rows are off by more than a factor of 1.3: t.csv:"));
}

TEST_CASE("a model that is off as a whole leaves the fit of the others alone", "[calibrate]") {
  const CalibrateResult result = calibrate(steps({"qwen1.5-1.8b", "qwen1.5-7b", "qwen1.5-14b"}, "qwen1.5-7b", 1.4),
                                           card(), vllm(), Pull::to_fitted);
  CHECK(warns(result, "model qwen1.5-7b is 39 % slower than its parts say"));  // the pull to 1 takes some of it
  CHECK(result.calibration.parameters.size() == calibrate(steps({"qwen1.5-7b"}), card(), vllm(), Pull::to_fitted)
                                                    .calibration.parameters.size());  // the offset is not among them
  for (const GroupErrors& group : result.calibration.residuals) {
    if (group.by != "model") continue;
    const double exact = group.name == "qwen1.5-7b" ? 1 / 1.4 - 1 : 0;  // reported without the offset
    CHECK(group.errors.bias == Approx(exact).margin(0.01));
    CHECK(group.errors.mape == Approx(-exact).margin(0.01));
  }
}

TEST_CASE("what rows have in common that are far off is named once", "[calibrate]") {
  Measurements m = steps({"qwen1.5-1.8b", "qwen1.5-7b"});
  for (Row& row : m.rows) {
    auto& step = std::get<StepRow>(row.of);
    step.engine_version = step.batch == 64 ? "0.4" : "0.5";
    if (step.batch == 64) row.latency = row.latency * 3;
  }
  const CalibrateResult result = calibrate(m, card(), vllm(), Pull::to_fitted);
  CHECK(warns(result, "engine version 0.4 speaks against the rest: its 4 rows are predicted"));
  CHECK_FALSE(warns(result, "model qwen1.5-7b speaks"));
}

TEST_CASE("where ops outnumber steps these are fitted after them", "[calibrate]") {
  // Sixty products as the profile has them, nine steps of one model with half a millisecond of host on top.
  Measurements m = steps({"qwen1.5-7b"});
  for (Row& row : m.rows) row.latency += Seconds{0.5e-3};
  std::string text = "hardware,op,dtype,m,n,k,latency_us\n";
  for (const int size : {1, 16, 128, 1024, 4096}) {
    for (const int width : {1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264, 12288}) {
      text += fmt::format("rtx4090,gemm,bf16,{},{},4096,1\n", size, width);
    }
  }
  Measurements ops = parse_measurements(text, "ops.csv");
  std::vector<std::size_t> rows(ops.rows.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  std::vector<double> seconds(rows.size());
  Predictor(ops, rows, card(), vllm()).predict(vllm().values, std::nullopt, seconds);
  m.files.push_back(ops.files.front());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    m.rows.push_back(ops.rows[i]);
    m.rows.back().file = 1;
    m.rows.back().latency = Seconds{seconds[i]};
  }
  const CalibrateResult result = calibrate(m, card(), vllm());
  const Calibration& c = result.calibration;
  REQUIRE(c.left_out.size() == 2);
  CHECK(c.left_out[0].by.ends_with("of the ops, fitted first"));
  CHECK(c.left_out[1].by.ends_with("of the steps, fitted after them"));
  CHECK(result.profile.range.rows == 69);
  CHECK(c.residuals.front().errors.rows == 69);
  CHECK(c.files == std::vector<std::string>{"t.csv", "ops.csv"});
  REQUIRE(result.profile.error_of("gemm") != nullptr);
  CHECK(result.profile.error_of("gemm")->rows == 60);
  CHECK(result.profile.error_of("decode")->rows == 6);
  for (const GroupErrors& group : c.residuals) {
    if (group.by == "op" || group.by == "phase") CHECK(group.errors.mape < 0.03);
  }
  CHECK(std::is_sorted(c.parameters.begin(), c.parameters.end(),
                       [](const auto& a, const auto& b) { return a.free.index < b.free.index; }));
  CHECK_FALSE(c.next.empty());
  CHECK(c.next.size() <= kProposals);
}

TEST_CASE("half of a shipped file predicts the other half as well as three constants of the first", "[calibrate]") {
  struct Half {
    const char* file;
    const char* hardware;
    const char* runtime;
    const char* profile;
  };
  for (const Half& of :
       {Half{"mi300x-steps", "mi300x", "vllm", "vllm"}, Half{"h100-sxm-steps", "h100-sxm", "trtllm", "trtllm@1.0"}}) {
    INFO(of.file);
    const hardware::Device device = hardware::load_device(of.hardware);
    const std::string name = of.file;
    Measurements m = read_measurements({&name, 1});
    std::erase_if(m.rows, [&](const Row& row) {
      return !untrusted(m, row).empty() || std::get<StepRow>(row.of).runtime != of.runtime;
    });
    Measurements half = m;
    half.rows.clear();
    if (std::find(m.extra_columns.begin(), m.extra_columns.end(), kUntrustedColumn) == m.extra_columns.end()) {
      m.extra_columns.emplace_back(kUntrustedColumn);
    }
    const auto column = static_cast<std::size_t>(
        std::find(m.extra_columns.begin(), m.extra_columns.end(), kUntrustedColumn) - m.extra_columns.begin());
    for (std::size_t i = 0; i < m.rows.size(); ++i) {
      if (i % 2 == 0) half.rows.push_back(m.rows[i]);
      m.rows[i].extra.resize(m.extra_columns.size());
      m.rows[i].extra[column] = i % 2 == 0 ? "" : "the other half";
    }
    const CalibrateResult fitted = calibrate(half, device, hardware::load_runtime_profile(device, of.profile));
    CHECK_FALSE(warns(fitted, "hardly more than its defaults"));
    const Validation v = validate(m, of.profile);  // for the three constants of the first half
    std::vector<std::size_t> rows(m.rows.size());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    std::vector<double> seconds(rows.size());
    Predictor(m, rows, device, fitted.profile).predict(fitted.profile.values, std::nullopt, seconds);
    double own = 0;
    double simple = 0;
    for (std::size_t i = 1; i < rows.size(); i += 2) {
      own += std::abs(relative_error(seconds[i], m.rows[i].latency.value));
      simple += std::abs(relative_error(v.rows[i].fitted_roofline, m.rows[i].latency.value));
    }
    CHECK(own < 1.3 * simple);
  }
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
  REQUIRE(vllm().engine == "vllm-v0-2024a");
  const auto version = [&](std::size_t row) -> std::string& {
    return std::get<StepRow>(m.rows[row].of).engine_version;
  };
  version(0) = "0.10.0";
  version(1) = "0.4.1";
  version(2) = "unknown";
  const CalibrateResult result = calibrate(m, card(), vllm(), Pull::to_fitted);
  CHECK(warns(result, "1 rows are of other versions than vllm-v0-2024a: left out"));
  CHECK(result.calibration.residuals.front().errors.rows == static_cast<std::int64_t>(m.rows.size()) - 1);
}

TEST_CASE("rows of an era are calibrated, whatever name its profile has", "[calibrate]") {
  const hardware::Device device = hardware::load_device("a100-sxm-80gb");
  const hardware::RuntimeProfile profile = hardware::load_runtime_profile(device, "vllm@0.6.3");
  REQUIRE(profile.engine == "vllm-v0");
  const std::string head = "hardware,runtime,engine_version,model,weights,batch,phase,new_tokens,context,latency_ms\n";
  const auto row = [](const char* runtime, const char* version, int context) {
    return fmt::format("a100-sxm-80gb,{},{},qwen2.5-7b,bf16,1,decode,1,{},{}\n", runtime, version, context,
                       11.8 + 3e-5 * context);
  };
  std::string rows = head;
  for (const int context : {1024, 4096, 8192, 16384}) rows += row("vllm", "0.6.3 (2024-09)", context);
  rows += row("vllm", "0.12.0", 1024) + row("transformers", "4.46", 1024);
  const CalibrateResult result = calibrate(parse_measurements(rows, "t.csv"), device, profile);
  CHECK(result.calibration.residuals.front().errors.rows == 4);
  CHECK(warns(result, "2 rows are of another device or runtime than a100-sxm-80gb under vllm-v0: left out"));
}

TEST_CASE("rows that a framework called one by one give the cost of its calls", "[calibrate]") {
  const hardware::Device cpu = hardware::load_device("epyc-9654");
  const RuntimeProfile start = hardware::load_runtime_profile(cpu, "replay");
  RuntimeProfile truth = start;
  using hardware::CallParameter;
  const std::size_t call = *index("gather", CallParameter::call);
  const std::size_t passes = *index("gather", CallParameter::passes);
  truth.values[call] = 12e-6;
  truth.values[passes] = 3;
  std::string text = "hardware,op,dtype,m,n,k,mode,kernel,latency_us\n";
  for (const int m : {1, 4, 16, 64, 1024, 8192}) {
    text += fmt::format(
        "epyc-9654,gather,bf16,{0},4096,128256,eager,torch embedding,1\n"
        "epyc-9654,vector:add,bf16,{0},4096,,eager,torch chain,1\n"
        "epyc-9654,gemm,bf16,{0},4096,4096,eager,torch linear,1\n",
        m);
  }
  Measurements m = parse_measurements(text, "t.csv");
  std::vector<std::size_t> rows(m.rows.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  std::vector<double> seconds(rows.size());
  Predictor(m, rows, cpu, truth).predict(truth.values, std::nullopt, seconds);
  for (std::size_t i = 0; i < rows.size(); ++i) m.rows[i].latency = Seconds{seconds[i]};
  const CalibrateResult result = calibrate(m, cpu, start);
  CHECK(result.profile.choices.eager);
  CHECK(result.profile.values[call] == Approx(12e-6).epsilon(0.1));
  CHECK(result.profile.values[passes] == Approx(3).epsilon(0.2));
  // What the profile was off by before, and is now.
  REQUIRE_FALSE(result.calibration.before.empty());
  CHECK(result.calibration.before.front().errors.mape > 0.1);
  CHECK(result.calibration.residuals.front().errors.mape < 0.02);
  // The same rows out of a graph know no calls, and say so to a profile that did.
  for (Row& row : m.rows) std::get<OpRow>(row.of).mode = "graph";
  CHECK_FALSE(calibrate(m, cpu, result.profile).profile.choices.eager);
}

TEST_CASE("on a device with a queue calls are seen where kernels are shorter", "[calibrate]") {
  const RuntimeProfile start = hardware::load_runtime_profile(card(), "replay");
  RuntimeProfile truth = start;
  const std::size_t call = *index("gemm", hardware::CallParameter::call);
  const std::size_t launch = index(hardware::Parameter::gemm_launch);
  truth.values[call] = 25e-6;
  truth.values[launch] = 6e-6;
  std::string text = "hardware,op,dtype,m,n,k,mode,latency_us\n";
  for (const int m : {1, 16, 256, 1024, 4096}) {
    for (const char* mode : {"graph", "eager"}) {
      for (const int n : {256, 1024, 8192}) text += fmt::format("rtx4090,gemm,bf16,{},{},1024,{},1\n", m, n, mode);
    }
  }
  Measurements m = parse_measurements(text, "t.csv");
  std::vector<std::size_t> rows(m.rows.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  std::vector<double> seconds(rows.size());
  Predictor(m, rows, card(), truth).predict(truth.values, std::nullopt, seconds);
  for (std::size_t i = 0; i < rows.size(); ++i) m.rows[i].latency = Seconds{seconds[i]};
  const CalibrateResult result = calibrate(m, card(), start);
  CHECK_FALSE(result.profile.choices.eager);  // estimates are of graphs, with both known
  CHECK(result.profile.values[call] == Approx(25e-6).epsilon(0.1));
  CHECK(result.profile.values[launch] == Approx(6e-6).epsilon(0.25));
  // Steps out of graphs beside rows that were called: a profile of graphs.
  std::erase_if(m.rows, [](const Row& row) { return std::get<OpRow>(row.of).mode == "graph"; });
  CHECK(calibrate(m, card(), start).profile.choices.eager);
  const Measurements of_steps = steps({"qwen1.5-1.8b", "qwen1.5-7b"});
  for (Row row : of_steps.rows) {
    std::get<StepRow>(row.of).runtime.clear();
    m.rows.push_back(row);
  }
  CHECK_FALSE(calibrate(m, card(), start).profile.choices.eager);
}

TEST_CASE("what PyTorch has no kernel for is no measure of a device whose stacks have one", "[calibrate]") {
  std::string text = "hardware,op,dtype,m,n,k,mode,kernel,latency_us\n";
  for (const int m : {1, 16, 256, 1024, 8192}) {
    text += fmt::format("rtx4090,gemm,bf16,{0},4096,4096,graph,torch linear,{1}\n", m, 100 + m / 2);
    text += fmt::format("rtx4090,vector:rms_norm,bf16,{0},4096,,graph,torch chain,{1}\n", m, 50 + m);
  }
  const CalibrateResult result = calibrate(parse_measurements(text, "t.csv"), card(), vllm());
  CHECK(warns(result, "5 rows are of what PyTorch had no kernel for"));
  CHECK(result.calibration.residuals.front().errors.rows == 5);
}

TEST_CASE("latencies that can hardly be are refused of a file, and warned of where they were timed here",
          "[calibrate]") {
  std::string text = "hardware,op,dtype,m,n,k,latency_us\n";
  for (const int m : {1, 16, 256, 1024, 8192}) text += fmt::format("rtx4090,gemm,bf16,{},4096,4096,{}\n", m, 1e7 + m);
  Measurements rows = parse_measurements(text, "t.csv");
  CHECK_THROWS_WITH(calibrate(rows, card(), vllm()), Catch::Contains("slower than roof and launches"));
  rows.timed_here = true;
  CHECK(warns(calibrate(rows, card(), vllm()), "slower than roof and launches"));
}

namespace {

const hardware::Device& h100() {
  static const hardware::Device device = hardware::load_device("h100-sxm");
  return device;
}
RuntimeProfile stack(const char* name) {
  return hardware::load_runtime_profile(h100(), name, hardware::UnknownRuntime::error, hardware::Workload::training);
}

// Training steps of two sites as a profile predicts them.
Measurements training_steps(const RuntimeProfile& truth, const char* framework = "torchtitan", int year = 2024) {
  std::string text =
      "id,source,framework,year,hardware,gpus,gpus_per_node,model,task,precision,weights,seq,gbs,mbs,tp,pp,cp,ep,"
      "dp_mode,recompute,loss,tok_s_gpu\n";
  int site = 0;
  for (const char* source : {"here", "there"}) {
    for (const char* model : {"llama-3-8b", "llama-2-13b", "llama-3.2-1b"}) {  // widths tell products from quantising
      for (const char* precision : {"bf16", "fp8"}) {
        for (const int seq : {2048, 32768}) {
          text += fmt::format("a,{},{},{},h100-sxm,64,8,{},pretrain,{},bf16,{},64,1,1,1,1,1,fsdp,{},,1\n", source,
                              framework, year, model, precision, seq, site == 0 ? "full" : "none");
        }
      }
    }
    ++site;
  }
  Measurements m = parse_measurements(text, "t.csv");
  request::Sources sources;
  sources.put(h100().name, h100());
  for (Row& row : m.rows) {
    TrainingRun run = resolve_run(std::get<TrainingRow>(row.of), h100(), {}, sources);
    estimate_under(run, truth, h100());
    row.latency = run.time();
  }
  return m;
}

}  // namespace

TEST_CASE("training steps give the numbers that they were made with", "[calibrate]") {
  using enum hardware::Parameter;
  const RuntimeProfile start = stack("pytorch-fsdp@2024");
  RuntimeProfile truth = start;
  truth.values[index(gemm_share)] = 0.7;
  truth.values[index(training_narrow_share)] = 0.4;
  truth.values[index(prefill_share)] = 0.3;
  const Measurements rows = training_steps(truth);
  const CalibrateResult result = calibrate(rows, h100(), start);
  // Of attention's passes forward and backward differ in their share of a step alone.
  for (const auto& [p, within] : {std::pair{gemm_share, 0.02}, {training_narrow_share, 0.02}, {prefill_share, 0.1}}) {
    INFO(hardware::parameter_info(index(p)).name);
    CHECK(hardware::get(result.profile.values, p) == Approx(hardware::get(truth.values, p)).epsilon(within));
    CHECK(result.profile.provenance[index(p)] == hardware::Provenance::fitted);
  }
  // What no step depends on is not among the numbers, and memory's are none of its business.
  for (const CalibratedParameter& p : result.calibration.parameters) {
    CHECK(p.name != "training.experts_share");
    CHECK(p.name != "training.loss_bytes");
  }
  CHECK(result.calibration.before.front().errors.mape > 0.1);
  CHECK(result.calibration.residuals.front().errors.mape < 0.01);
  // Sites are left out whole, and kinds of runs have errors of their own.
  CHECK(result.calibration.left_out.front().folds == 2);
  REQUIRE(result.profile.error_of("training") != nullptr);
  CHECK(result.profile.error_of("training")->rows == 12);
  REQUIRE(result.profile.error_of("training narrow") != nullptr);
  CHECK(result.profile.hardware == "h100-sxm");
  // Read back from its file it predicts the same.
  const RuntimeProfile again = hardware::parse_runtime_profile(
      descriptor::parse_yaml(hardware::format_runtime_profile(result.profile), "t.yaml"));
  request::Sources sources;
  sources.put(h100().name, h100());
  TrainingRun run = resolve_run(std::get<TrainingRow>(rows.rows[0].of), h100(), {}, sources);
  estimate_under(run, again, h100());
  CHECK(run.time().value == Approx(rows.rows[0].latency.value).epsilon(0.01));
}

TEST_CASE("training steps of other releases, and those whose memory alone is known, are left out", "[calibrate]") {
  const RuntimeProfile start = stack("pytorch-fsdp@2024");
  Measurements rows = training_steps(start);
  const Measurements older = training_steps(start, "composer+FSDP1", 2023);
  rows.rows.insert(rows.rows.end(), older.rows.begin(), older.rows.end());
  rows.rows[0].latency = Seconds{std::nan("")};
  const CalibrateResult result = calibrate(rows, h100(), start);
  CHECK(result.calibration.residuals.front().errors.rows == 23);
  CHECK(warns(result, "24 rows are of other versions than PyTorch FSDP of 2024 on Hopper"));
}

TEST_CASE("training steps and others have profiles of their own", "[calibrate]") {
  Measurements rows = training_steps(stack("pytorch-fsdp@2024"));
  CHECK(workload_of(rows) == hardware::Workload::training);
  CHECK_THROWS_WITH(calibrate(rows, h100(), hardware::load_runtime_profile(h100(), "vllm")),
                    Catch::Contains("the rows are training steps"));
  const Measurements others = steps({"qwen1.5-7b"});
  CHECK(workload_of(others) == hardware::Workload::language);
  rows.rows.push_back(others.rows.front());
  CHECK_THROWS_WITH(workload_of(rows), Catch::Contains("profiles of their own"));
}

}  // namespace llmperf::measure::calibrate_test
