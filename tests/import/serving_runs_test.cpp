// A run of each benchmark, what becomes of its figures, and why a run is no measurement. The files are made up; their
// keys are those of the tools.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "import_helpers.h"

namespace llmperf::import::serving_runs_test {
namespace {

using measure::ServingRow;

std::string file(const std::string& name) {
  std::ifstream stream(std::string(LLMPERF_SOURCE_DIR) + "/tests/import/" + name);
  REQUIRE(stream);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

const Options kBf16{.hardware = "h100-sxm", .weights = "bf16", .runtime = "vllm@0.15.1"};

const ServingRow& run(const Imported& i, std::size_t row = 0) {
  return std::get<ServingRow>(i.measurements.rows.at(row).of);
}
// Milliseconds by metric, of rates per second; of the run on that line.
std::map<std::string, double> figures(const Imported& i, int line = 0) {
  std::map<std::string, double> list;
  for (const measure::Row& row : i.measurements.rows) {
    if (line > 0 && row.line != line) continue;
    const std::string& metric = std::get<ServingRow>(row.of).metric;
    const bool rate = measure::find_figure(metric)->rate;
    list[metric] = rate ? 1 / row.latency.value : row.latency.value * 1e3;
  }
  return list;
}
std::string remark(Source source, const std::string& text, const Options& options) {
  const Imported i = imported(source, text, options);
  REQUIRE(i.types.size() == 1);
  CHECK(i.measurements.rows.empty() == !i.types[0].remark.empty());
  return i.types[0].remark;
}

// What any reader of measurements makes of what was imported.
void check_file(const Imported& i) {
  const measure::Measurements again =
      measure::parse_measurements(measure::format_measurements(i.measurements), "again.csv");
  REQUIRE(again.rows.size() == i.measurements.rows.size());
  for (std::size_t k = 0; k < again.rows.size(); ++k) CHECK(again.rows[k].of == i.measurements.rows[k].of);
}

}  // namespace

// 200 requests of 25553 and 25600 tokens in all are of 128 and 128 on the mean.
TEST_CASE("the printed table is the result that would have been saved", "[import][serving]") {
  const std::string vllm =
      "INFO 12-01 starting\n============ Serving Benchmark Result ============\n"
      "Successful requests:                     200       \nMaximum request concurrency:             16\n"
      "Request rate configured (RPS):           4.00\nBenchmark duration (s):                  187.90    \n"
      "Total input tokens:                      25553     \nTotal generated tokens:                  25600\n"
      "Request throughput (req/s):              1.06      \nOutput token throughput (tok/s):         1,136.24\n"
      "---------------Time to First Token----------------\nMean TTFT (ms):                          587.30\n"
      "P99 TTFT (ms):                           2309.84   \n"
      "-----Time per Output Token (excl. 1st token)------\nMean TPOT (ms):                          23.89\n"
      "---------------Inter-token Latency----------------\nMedian ITL (ms):                         20.5\n"
      "----------------End-to-end Latency----------------\nMean E2EL (ms):                          3600\n"
      "==================================================\n";
  Options options = kBf16;
  options.model = "llama-3.1-8b";
  const Imported i = imported(Source::vllm_bench, vllm, options);
  check_file(i);
  CHECK(figures(i) == std::map<std::string, double>{{"ttft.mean", 587.3},
                                                    {"ttft.p99", 2309.84},
                                                    {"tpot.mean", 23.89},
                                                    {"itl.p50", 20.5},
                                                    {"e2e.mean", 3600},
                                                    {"output_tokens_per_second", 1136.24},
                                                    {"requests_per_second", 1.06}});
  CHECK(run(i).requests == 200);
  CHECK(run(i).load.concurrency == 16);
  CHECK(run(i).load.rate == 4.0);
  CHECK(run(i).input == "128");
  CHECK(run(i).runtime == "vllm");

  // SGLang's, twice, of which the second drafts.
  const std::string sglang =
      "============ Serving Benchmark Result ============\nBackend:                                 sglang\n"
      "Traffic request rate:                    inf\nMax request concurrency:                 8\n"
      "Successful requests:                     10\nBenchmark duration (s):                  10.0\n"
      "Total input tokens:                      1000\nTotal generated tokens:                  1000\n"
      "Mean E2E Latency (ms):                   900.5\nMean TTFT (ms):                          50.5\n";
  options.runtime.clear();
  const Imported two = imported(Source::sglang_bench, sglang + "====\n" + sglang + "Accept length:  2.1\n", options);
  REQUIRE(two.measurements.rows.size() == 4);
  CHECK(figures(two, 1) == std::map<std::string, double>{{"e2e.mean", 900.5}, {"ttft.mean", 50.5}});
  CHECK(run(two).runtime == "sglang");
  CHECK_FALSE(run(two).load.rate.has_value());
  CHECK(run(two).load.concurrency == 8);
  CHECK(two.measurements.rows[0].extra[2].empty());
  CHECK(two.measurements.rows[3].extra[2] == "speculative decoding");
  CHECK(problems_of(Source::vllm_bench, "Mean TTFT (ms): 5\n") ==
        std::vector<std::string>{"t.csv: is no JSON, which vllm-bench is"});
}

TEST_CASE("vllm bench serve: summary, and of requests one by one what it lacks", "[import][serving]") {
  const Imported i = imported(Source::vllm_bench, file("vllm_bench.json"), kBf16);
  check_file(i);
  const ServingRow& r = run(i);
  CHECK(r.model == "llama-3.1-8b");
  CHECK(r.tp == 2);
  CHECK(r.load.concurrency == 2);
  CHECK(r.requests == 4);
  CHECK_FALSE(r.load.rate);
  CHECK(r.input == "500");
  CHECK(r.output == "10");
  CHECK(r.engine_version == "0.15.1");
  const auto f = figures(i);
  CHECK(f.at("ttft.mean") == Approx(200));
  CHECK(f.at("ttft.p50") == Approx(100));
  CHECK(f.at("ttft.p99") == Approx(488));
  // Of 0.1, 0.1, 0.1 and 0.5 s the 90th percentile is at rank 2.7: 0.1 + 0.7 x 0.4.
  CHECK(f.at("ttft.p90") == Approx(380));
  // Latencies 1.0, 1.0, 1.0 and 0.5 + 1.8 s.
  CHECK(f.at("e2e.mean") == Approx(1325));
  CHECK(f.at("output_tokens_per_second") == Approx(20));
  CHECK(f.at("requests_per_second") == Approx(2));
  CHECK(i.types.at(0).of == Class::run);
  CHECK(i.types.at(0).total.value == 2);
}

TEST_CASE("vllm bench serve: failures and rising rates are kept and not trusted", "[import][serving]") {
  const std::string text =
      R"({"backend": "openai-chat", "model_id": "x/Llama-3.1-8B", "request_rate": 8.5, "burstiness": 0.5, "max_concurrency": null,
          "duration": 10, "completed": 90, "failed": 10, "total_input_tokens": 9000, "total_output_tokens": 900,
          "mean_ttft_ms": 50, "p95_e2el_ms": NaN, "output_throughput": 90})";
  const Imported i = imported(Source::vllm_bench, text, {.weights = "fp8"});
  check_file(i);
  CHECK(run(i).load.rate == 8.5);
  CHECK(run(i).load.burstiness == 0.5);
  CHECK(run(i).requests == 100);
  CHECK(run(i).input == "100");
  CHECK(run(i).runtime == "vllm");
  CHECK(i.measurements.rows[0].hardware == "unknown");
  CHECK(i.measurements.rows[0].extra.at(2) == "10 of 100 requests failed");
  CHECK(figures(i).size() == 2);
}

TEST_CASE("what a run does not say is asked for", "[import][serving]") {
  const std::string text = file("vllm_bench.json");
  CHECK(remark(Source::vllm_bench, text, {}) == "weights not in the file: `weights`");
  const std::string foreign =
      R"({"model_id": "acme/frobnicator-3", "completed": 1, "duration": 1, "mean_ttft_ms": 1, "max_concurrency": 1})";
  CHECK(remark(Source::vllm_bench, foreign, kBf16) == "model acme/frobnicator-3 is not built in: `model`");
  Options named = kBf16;
  named.model = "qwen3-32b";
  CHECK(remark(Source::vllm_bench, foreign, named) == "lengths not in the file");
  CHECK(remark(Source::vllm_bench, R"({"completed": 1, "duration": 1})", kBf16) == "model not in the file: `model`");
}

TEST_CASE("files of something else are refused at their place", "[import][serving]") {
  CHECK(problems_of(Source::vllm_bench, "{\"a\": 1}", kBf16) ==
        std::vector<std::string>{"t.csv:1:1: no 'completed': not a result of vllm-bench"});
  CHECK(problems_of(Source::sglang_bench, "{\"backend\": \"sglang\", \"completed\": 1,\n \"duration\": \"long\"}",
                    kBf16) == std::vector<std::string>{"t.csv:2:14: 'duration' must be a number, not 'long'"});
  CHECK(problems_of(Source::guidellm, "{\"benchmarks\": 3}", kBf16).size() == 1);
  CHECK(problems_of(Source::aiperf, "not a table\n", kBf16).size() == 1);
  CHECK(problems_of(Source::inferencex, "[1]", kBf16) == std::vector<std::string>{"t.csv:1:2: a run is an object"});
  CHECK(problems_of(Source::vllm_bench, "{\"completed\": 1, \"duration\": 1, \"ttfts\": 3}", kBf16) ==
        std::vector<std::string>{"t.csv:1:42: 'ttfts' must be a list"});
  CHECK_THROWS_AS(imported(Source::nccl_tests, "", kBf16), Error);  // --weights says nothing of collectives
}

TEST_CASE("sglang.bench_serving: a line for each run", "[import][serving]") {
  const std::string line =
      R"({"backend": "sglang", "dataset_name": "random", "request_rate": Infinity, "max_concurrency": 16,
"random_input_len": 1024, "random_output_len": 512, "random_range_ratio": 0.5, "duration": 100.0, "completed": 160,
"total_input_tokens": 120000, "total_output_tokens": 60000, "request_throughput": 1.6, "output_throughput": 600.0,
"mean_e2e_latency_ms": 9000.0, "median_e2e_latency_ms": 8900.0, "p99_e2e_latency_ms": 12000.0, "mean_ttft_ms": 300.0,
"mean_tpot_ms": 24.0, "mean_itl_ms": 24.5, "p95_itl_ms": 30.0, "concurrency": 15.2, "accept_length": null})";
  std::string flat = line;
  std::replace(flat.begin(), flat.end(), '\n', ' ');
  Options options = kBf16;
  options.model = "qwen3-32b";
  options.runtime = "";
  options.ranks = 4;
  const Imported i = imported(Source::sglang_bench, flat + "\n" + flat + "\n", options);
  check_file(i);
  CHECK(i.types.at(0).count == 2);
  CHECK(run(i).runtime == "sglang");
  CHECK(run(i).tp == 4);
  CHECK(run(i).input == "512-1024");
  CHECK(run(i).output == "256-512");
  const auto f = figures(i, 2);
  CHECK(f.size() == 9);
  CHECK(f.at("e2e.p99") == Approx(12000));
  CHECK(f.at("itl.p95") == Approx(30));
}

TEST_CASE("InferenceX: plan and precision are in the file, seconds and throughputs per device", "[import][serving]") {
  const std::string one =
      R"([{"hw": "h200-cr", "tp": 8, "ep": 1, "dp_attention": "false", "conc": 64, "model": "deepseek-ai/DeepSeek-R1-0528",
           "framework": "sglang", "precision": "fp8", "isl": 1024, "osl": 8192, "image": "lmsysorg/sglang:v0.5.9-cu130",
           "tput_per_gpu": 900.0, "output_tput_per_gpu": 250.0, "mean_ttft": 0.3, "median_ttft": 0.2, "p99_ttft": 2.0,
           "mean_tpot": 0.03, "median_intvty": 33.3, "mean_e2el": 220.0, "spec_decoding": "none"}])";
  const Imported i = imported(Source::inferencex, one, {});
  check_file(i);
  const ServingRow& r = run(i);
  CHECK(i.measurements.rows[0].hardware == "h200-sxm");
  CHECK(r.model == "deepseek-r1");
  CHECK(r.weights == "fp8-block128");  // as DeepSeek-R1 is published
  CHECK(r.runtime == "sglang");
  CHECK(r.engine_version == "0.5.9");
  CHECK(r.input == "819-1024");
  CHECK(r.output == "6554-8192");
  CHECK(r.sent() == 640);
  CHECK_FALSE(r.engine.recv_interval);
  for (const auto& [conc, interval] : {std::pair{"15", 10}, std::pair{"16", 30}}) {
    std::string blackwell = one;
    blackwell.replace(blackwell.find("h200-cr"), 7, "b200-cr");
    blackwell.replace(blackwell.find("64,"), 2, conc);
    CHECK(run(imported(Source::inferencex, blackwell, {})).engine.recv_interval == interval);
  }
  const auto f = figures(i);
  CHECK(f.at("output_tokens_per_second") == Approx(2000));  // 8 x 250
  CHECK(f.at("ttft.mean") == Approx(300));
  CHECK(f.at("tpot.mean") == Approx(30));
  CHECK(f.at("e2e.mean") == Approx(220000));
  const std::string apart =
      R"({"hw": "gb200", "conc": 512, "model": "deepseek-ai/DeepSeek-R1", "framework": "dynamo-trt", "precision": "fp4",
          "isl": 8192, "osl": 1024, "is_multinode": true, "disagg": true, "prefill_tp": 4, "prefill_ep": 4,
          "prefill_num_workers": 2, "decode_tp": 8, "decode_ep": 8, "decode_dp_attention": true, "decode_num_workers": 1,
          "num_prefill_gpu": 8, "num_decode_gpu": 8, "output_tput_per_gpu": 100.0, "mean_tpot": 0.01})";
  const Imported two = imported(Source::inferencex, apart, {});
  check_file(two);
  CHECK(run(two).runtime == "trtllm");
  CHECK(run(two).replicas.prefill == 2);
  CHECK(run(two).decode_plan == "tp8 ep8 dp");
  CHECK(figures(two).at("output_tokens_per_second") == Approx(800));
  CHECK(two.measurements.rows[0].extra.at(2) == "prompts and decode on devices of their own");
}

TEST_CASE("AIPerf: the unit says what a number is, and its inter token latency is a TPOT", "[import][serving]") {
  const std::string json =
      R"({"schema_version": "1.5",
          "input_config": {"endpoint": {"model_names": ["Qwen/Qwen3-32B"]}, "loadgen": {"concurrency": 32}},
          "request_latency": {"unit": "ms", "avg": 2500.0, "p50": 2400.0, "p90": 3000.0, "p99": 3500.0, "std": 300.0},
          "time_to_first_token": {"unit": "sec", "avg": 0.2}, "inter_token_latency": {"unit": "ms", "avg": 23.0},
          "inter_chunk_latency": {"unit": "us", "avg": 24000.0},
          "output_token_throughput": {"unit": "tokens/sec", "avg": 1280.0},
          "request_throughput": {"unit": "requests/sec", "avg": 12.8}, "request_count": {"unit": "requests", "avg": 320.0},
          "input_sequence_length": {"unit": "tokens", "avg": 1000.0, "std": 2.0},
          "output_sequence_length": {"unit": "tokens", "avg": 100.0, "std": 30.0}})";
  const Imported i = imported(Source::aiperf, json, kBf16);
  check_file(i);
  CHECK(run(i).model == "qwen3-32b");
  CHECK(run(i).load.concurrency == 32);
  CHECK(run(i).requests == 320);
  CHECK(run(i).input == "1000");
  CHECK(run(i).output == "lognormal:100:0.294");  // sqrt(ln(1 + 0.09))
  const auto f = figures(i);
  CHECK(f.at("ttft.mean") == Approx(200));
  CHECK(f.at("tpot.mean") == Approx(23));
  CHECK(f.at("itl.mean") == Approx(24));
  CHECK(f.at("e2e.p90") == Approx(3000));
  CHECK(problems_of(Source::aiperf, R"({"request_latency": {"unit": "furlongs", "avg": 1}})", kBf16) ==
        std::vector<std::string>{"t.csv:1:21: 'furlongs' is no unit of time"});
}

TEST_CASE("GenAI-Perf's table has no load: that is asked for", "[import][serving]") {
  const std::string csv =
      "Metric,avg,min,max,p99,p95,p90,p75,p50,p25\n"
      "Time To First Token (ms),\"1,146.31\",249.48,\"3,485.23\",\"3,457.97\",3349,3215,1330,640.07,286.52\n"
      "Request Latency (ms),\"6,406.20\",5371,9608,9436,9046,9028,6549,5690,5493\n"
      "Inter Token Latency (ms),30.35,27.59,35.6,35.23,33.88,32.53,31.05,30.13,29.04\n"
      "Output Sequence Length (tokens),174.45,164,187,186,183,180,177,174,171\n"
      "Input Sequence Length (tokens),\"3,000.05\",2999,3001,3001,3001,3000,3000,3000,3000\n"
      "\n"
      "Metric,Value\n"
      "Output Token Throughput (per sec),261.25\n"
      "Request Throughput (per sec),1.50\n"
      "Request Count (count),90\n";
  Options options = kBf16;
  options.model = "llama-3.1-70b";
  options.concurrency = 10;
  const Imported i = imported(Source::aiperf, csv, options);
  check_file(i);
  CHECK(run(i).load.concurrency == 10);
  CHECK(run(i).requests == 90);
  CHECK(run(i).input == "3000");
  const auto f = figures(i);
  CHECK(f.at("ttft.mean") == Approx(1146.31));
  CHECK(f.at("tpot.p99") == Approx(35.23));
  CHECK(f.at("output_tokens_per_second") == Approx(261.25));
  options.concurrency.reset();
  CHECK(remark(Source::aiperf, csv, options) == "load not in the file: `concurrency` or `rate`");
  // A time without its unit is none, whatever else a table has.
  for (const char* line : {"Request Latency,5\n", "Request Latency (sec,5\n"}) {
    CHECK(problems_of(Source::aiperf, std::string("Metric,avg\nAnything,soon\n") + line, kBf16) ==
          std::vector<std::string>{"t.csv:3:1: '' is no unit of time"});
  }
}

TEST_CASE("GuideLLM: a run for each benchmark, whose inter token latency is one of all gaps", "[import][serving]") {
  const Imported i = imported(Source::guidellm, file("guidellm.json"), kBf16);
  check_file(i);
  CHECK(i.types.at(0).count == 2);
  const ServingRow& r = run(i);
  CHECK(r.model == "qwen3-32b");
  CHECK(r.load.concurrency == 8);
  CHECK(r.requests == 120);
  CHECK(r.input == "1000");
  CHECK(r.output == "lognormal:100:0.472");  // sqrt(ln(1.25))
  const auto f = figures(i, i.measurements.rows.front().line);
  CHECK(f.at("itl.mean") == Approx(38.4));
  CHECK_FALSE(f.contains("itl.p99"));
  CHECK_FALSE(f.contains("tpot.mean"));
  CHECK(f.at("e2e.p90") == Approx(5000));
  CHECK(f.at("ttft.p99") == Approx(400));
  const ServingRow& constant = run(i, i.measurements.rows.size() - 1);
  CHECK(constant.load.rate == 1.5);
  CHECK(std::isinf(constant.load.burstiness));
  CHECK(i.measurements.rows.back().extra.at(2) == "10 of 100 requests failed");
}

}  // namespace llmperf::import::serving_runs_test
