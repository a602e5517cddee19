// validate and calibrate print what they computed: headline first, all rows in CSV and JSON, tables that fit the page.
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "catch.h"
#include "measure/calibrate.h"
#include "measure/validation.h"
#include "report/reports.h"

namespace llmperf::report::validate_report_test {
namespace {

using measure::Calibration;
using measure::Validation;
using nlohmann::json;

// A step of 10 ms predicted as 11, a product of 20 us predicted as 18 (listed only), and `more` products.
Validation validation(int more = 0) {
  Validation v;
  v.measurements = measure::parse_measurements(
      "hardware,runtime,model,weights,batch,phase,new_tokens,context,latency_ms,who,error\n"
      "d,vllm,m,bf16,1,decode,1,100,10,\"me, myself\",7\n",
      "steps.csv");
  std::string text = "hardware,op,dtype,m,n,k,latency_us\nd,gemm,bf16,1,2,3,20\n";
  for (int i = 0; i < more; ++i) text += "d,gemm,bf16,1," + std::to_string(i + 1) + ",4096,20\n";
  const measure::Measurements ops = measure::parse_measurements(text, "ops.csv");
  v.measurements.files.push_back(ops.files[0]);
  for (measure::Row row : ops.rows) {
    row.file = 1;
    v.measurements.rows.push_back(row);
  }
  for (std::size_t i = 0; i < v.measurements.rows.size(); ++i) {
    measure::ValidatedRow r;
    r.row = i;
    r.predicted = i == 0 ? 0.011 : i == 1 ? 18e-6 : 21e-6;
    r.roofline = i == 0 ? 0.004 : 2e-6;
    r.fitted_roofline = i == 0 ? 0.009 : 20e-6;
    if (i == 0) r.rule = 0.008;
    r.profile = "vllm";
    r.extrapolated = i == 0;
    r.scored = i != 1;
    if (!r.scored) r.remark = "not a measurement";
    v.rows.push_back(r);
  }
  summarise(v);
  return v;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

int widest_line(const std::string& text) {
  int widest = 0;
  for (const std::string_view line : split(text, '\n')) widest = std::max(widest, display_width(line));
  return widest;
}

Calibration calibration() {
  Calibration c;
  c.hardware = "rtx4090";
  c.runtime = "vllm";
  c.files = {"a.csv"};
  c.converged = true;
  c.parameters.resize(3);
  c.parameters[0] = {"gemm.launch", "s", "of every kernel", {0, 5e-6, 0.5, 1e-7, 1e-4}, {}, 0.08};
  c.parameters[0].fitted.value = 3.1e-6;
  c.parameters[0].fitted.relative_error = 0.05;
  c.parameters[1] = {"gemm.share", "", "of the matrix peak", {1, 0.7, 0.3, 0.1, 1}, {}, 0};
  c.parameters[1].fitted.index = 1;
  c.parameters[1].fitted.value = 1;
  c.parameters[1].fitted.at_bound = true;
  c.parameters[2] = {"decode.share", "", "of the bandwidth", {2, 0.7, 0.3, 0.1, 1}, {}, 0};
  c.parameters[2].fitted.value = 0.7;
  c.parameters[2].fitted.identified = measure::Identified::no_effect;
  c.correlations = {{0, 1, -0.95}};
  const Validation v = validation();
  const std::size_t rows[] = {0, 1};
  const double predicted[] = {0.011, 18e-6};
  c.residuals = errors_by_group(v.measurements, rows, predicted);
  c.left_out = {{"model", 3, c.residuals}, {"site", 0, {}}};
  return c;
}

}  // namespace

TEST_CASE("validate's JSON holds every row with its measurement, prediction and columns", "[report]") {
  const json j = json::parse(validate_report(validation()).json);
  CHECK(j["schema"] == "llmperf.validate");
  REQUIRE(j["rows"].size() == 2);
  const json& step = j["rows"][0];
  CHECK(step["measured_s"] == 0.01);
  CHECK(step["predicted_s"] == 0.011);
  CHECK(step["error"].get<double>() == Approx(0.1));
  CHECK(step["roofline_s"] == 0.004);
  CHECK(step["fitted_roofline_s"] == 0.009);
  CHECK(step["rule_s"] == 0.008);
  CHECK_FALSE(j["rows"][1].contains("rule_s"));  // a kernel
  CHECK_FALSE(step.contains("fits"));            // nothing was trained
  CHECK_FALSE(step.contains("memory_bytes"));
  CHECK(step["profile"] == "vllm");
  CHECK(step["extrapolated"] == true);
  CHECK(j["unused_columns"] == json({"who", "error"}));
  CHECK(step["class_default"] == false);
  CHECK(step["context"] == 100);
  CHECK(step["who"] == "me, myself");
  CHECK(step["input_error"] == "7");  // a column of the input that is called like one of the output
  CHECK_FALSE(step.contains("m"));
  CHECK(j["rows"][1]["m"] == 1);
  CHECK(j["rows"][1]["line"] == 2);
  CHECK(j["rows"][1]["file"] == "ops.csv");
  CHECK(j["rows"][1]["scored"] == false);
}

TEST_CASE("validate's summary and groups are of scored rows, beside their baselines", "[report]") {
  const json j = json::parse(validate_report(validation()).json);
  CHECK(j["summary"]["rows"] == 1);
  CHECK(j["summary"]["mape"].get<double>() == Approx(0.1));
  CHECK(j["summary"]["median_ape"].get<double>() == Approx(0.1));
  CHECK(j["summary"]["p90_ape"].get<double>() == Approx(0.1));
  CHECK(j["summary"]["bias"].get<double>() == Approx(0.1));
  CHECK(j["summary"]["roofline_mape"].get<double>() == Approx(0.6));
  CHECK(j["summary"]["rule_mape"].get<double>() == Approx(0.2));
  CHECK(j["groups"][0]["by"] == "runtime");
  CHECK(j["groups"][0]["name"] == "vllm");
  CHECK(j["groups"][0]["fitted_roofline_mape"].get<double>() == Approx(0.1));
}

TEST_CASE("no scored rows have no error in JSON, not an error of 0", "[report]") {
  Validation v = validation();
  for (auto& r : v.rows) r.scored = false;
  summarise(v);
  const Report r = validate_report(v);
  CHECK(json::parse(r.json)["summary"]["mape"].is_null());
  CHECK(contains(render_text(r.document), "n/a"));
}

TEST_CASE("validate's CSV has a cell for every column of every row", "[report]") {
  const Report r = validate_report(validation());
  REQUIRE(r.csv.rows.size() == 2);
  for (const auto& row : r.csv.rows) CHECK(row.size() == r.csv.columns.size());
  const std::string text = render_csv(r.csv);
  CHECK(contains(text, ",\"me, myself\","));
  CHECK(contains(text, "measured_s,predicted_s,error,roofline_s"));
}

TEST_CASE("few rows are all listed, of many the worst", "[report]") {
  const std::string few = render_text(validate_report(validation()).document);
  CHECK(contains(few, "1:2  vllm m batch 1 decode 100+1"));
  CHECK(contains(few, "All of them: d, bf16\n"));
  CHECK(contains(few, "+10.0 %"));
  CHECK(contains(few, "not a measurement"));
  const std::string many = render_text(validate_report(validation(100)).document);
  CHECK(contains(many, "The 20 worst of 101 scored rows"));
  CHECK(contains(many, "The 10 worst of 100 groups by weight matrix"));
  CHECK(contains(many, "vllm m batch 1 decode 100+1"));  // 10 % among rows of 5 %
}

TEST_CASE("a row is a line of the page, without what all rows have alike", "[report]") {
  Validation v;
  const std::string run = "h100-sxm-with-a-long-name,8,vllm,llama-4-maverick-17b-128e,fp8-block128,";
  std::string text =
      "hardware,tp,runtime,model,weights,concurrency,input,output,ttft_mean_ms,output_tokens_per_second\n";
  for (int i = 1; i <= 15; ++i) text += run + std::to_string(i) + ",8192,lognormal:900:0.7,10,100\n";
  v.measurements = measure::parse_measurements(text, "runs.csv");
  for (std::size_t i = 0; i < v.measurements.rows.size(); ++i) {
    v.rows.push_back({.row = i, .predicted = 0.01, .roofline = 0.002, .fitted_roofline = 0.01, .profile = "vllm"});
  }
  summarise(v);
  const std::string page = render_text(validate_report(v).document);
  CHECK(widest_line(page) <= kPageWidth);
  std::size_t lines = 0;
  for (const std::string_view line : split(page, '\n')) {
    lines += line.find("concurrency ") != std::string_view::npos && line.find(" ms") != std::string_view::npos ? 1 : 0;
  }
  CHECK(lines == 30);
  CHECK(contains(page, "All of them: h100-sxm-with-a-long-name, vllm, llama-4-maverick-17b-128e, fp8-block128, tp 8"));
  for (const char* name : {"output_tokens_per_second", "concurrency 15", "ttft.mean"}) CHECK(contains(page, name));
  CHECK(split(page, '\n').size() < 120);
}

TEST_CASE("lines that were refused stand on the page by reason, and in JSON one by one", "[report]") {
  Validation v = validation();
  for (const int line : {3, 4, 5, 9})
    v.measurements.refused.push_back({{"steps.csv", line, 1}, "unknown model 'x'", "y?"});
  v.measurements.refused.push_back({{"steps.csv", 9, 2}, "'batch' is empty", ""});
  const Report r = validate_report(v);
  const std::string page = render_text(r.document);
  CHECK(contains(page, "4 lines refused"));
  CHECK(contains(page, "3-5, 9"));
  CHECK(contains(page, "unknown model 'x' (y?)"));
  const json j = json::parse(r.json);
  REQUIRE(j["refused"].size() == 5);
  CHECK(j["refused"][3] == json{{"file", "steps.csv"}, {"line", 9}, {"reason", "unknown model 'x'"}, {"hint", "y?"}});
}

TEST_CASE("tables of validate and calibrate fit the page, the headline comes first", "[report]") {
  const std::string validated = render_text(validate_report(validation(100)).document);
  CHECK(widest_line(validated) <= kPageWidth);
  CHECK(validated.find("mean error") < validated.find("Errors by group"));
  const std::string calibrated = render_text(calibrate_report(calibration()).document);
  CHECK(widest_line(calibrated) <= kPageWidth);
  CHECK(calibrated.find("error, left out") < calibrated.find("gemm.launch"));
}

TEST_CASE("calibrate says of each parameter what it is, how well it is known and why not", "[report]") {
  const Report r = calibrate_report(calibration());
  const json j = json::parse(r.json);
  CHECK(j["schema"] == "llmperf.calibrate");
  const json& launch = j["parameters"][0];
  CHECK(launch["name"] == "gemm.launch");
  CHECK(launch["unit"] == "s");
  CHECK(launch["value"] == 3.1e-6);
  CHECK(launch["default"] == 5e-6);
  CHECK(launch["relative_error"] == 0.08);  // the larger of 5 % from the fit and 8 % from leaving groups out
  CHECK(launch["identified"] == true);
  CHECK(j["parameters"][1]["status"] == "at bound");
  CHECK(j["parameters"][2]["identified"] == false);
  CHECK(j["parameters"][2]["relative_error"].is_null());
  CHECK(j["correlations"][0]["second"] == "gemm.share");
  CHECK(j["cross_validation"][0]["folds"] == 3);
  CHECK(j["cross_validation"][0]["summary"]["mape"].get<double>() == Approx(0.1));
  CHECK(j["cross_validation"][1]["summary"].is_null());
  const std::string text = render_text(r.document);
  CHECK(contains(text, "3.1 us"));
  CHECK(contains(text, "default: no row depends on it"));
  CHECK(contains(text, "at its upper bound"));
  CHECK(contains(text, "2 of 3 identified"));
  CHECK(contains(text, "unknown: the rows are one group by site"));
  CHECK(r.csv.rows.size() == 3);
}

}  // namespace llmperf::report::validate_report_test
