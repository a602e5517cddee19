// Results of benchmarks that send requests to a server and time what comes back, a file or a line for each run:
//
//  * vLLM's `vllm bench serve --save-result` (vllm/benchmarks/serve.py at 009e6d4): one object, times in milliseconds,
//    with --save-detailed also those of every request;
//  * SGLang's `sglang.bench_serving` (python/sglang/bench_serving.py at 0033168): a line for each run, likewise;
//  * what either of them prints at the end ("Serving Benchmark Result"), which says neither model nor engine;
//  * SemiAnalysisAI's InferenceX (utils/process_result.py at 00e51cc and after it): objects that say the plan too,
//  times
//    in seconds, throughputs per device.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "import/runs.h"
#include "model/model_file.h"
#include "serving/metrics.h"

namespace llmperf::import {
namespace {

using descriptor::Node;
using descriptor::Problems;

// Statistics by the names that the tools put before a metric.
constexpr std::pair<std::string_view, std::string_view> kStatisticNames[] = {
    {"mean", "mean"}, {"median", "p50"}, {"p50", "p50"}, {"p90", "p90"}, {"p95", "p95"}, {"p99", "p99"}};

// Every STATISTIC_METRIC with that behind it; `e2e`: what the tool calls that metric; `unit`: seconds of one.
void add_summary(const Node& object, std::string_view e2e, std::string_view behind, double unit, Problems& problems,
                 BenchmarkRun& run) {
  for (const std::string_view metric : serving::kMetrics) {
    for (const auto& [prefix, statistic] : kStatisticNames) {
      const std::string key = fmt::format("{}_{}{}", prefix, metric == "e2e" ? e2e : metric, behind);
      if (const auto value = number_at(object, key, problems)) {
        run.add(fmt::format("{}.{}", metric, statistic), *value * unit);
      }
    }
  }
}

std::vector<double> numbers(const Node& object, std::string_view key, Problems& problems) {
  std::vector<double> list;
  const Node* at = value_at(object, key);
  if (at == nullptr) return list;
  if (at->kind != Node::Kind::sequence) {
    problems.add(*at, fmt::format("{} must be a list", quote(key)));
    return list;
  }
  list.reserve(at->items.size());
  for (const Node& item : at->items) {
    const auto number = item.kind == Node::Kind::scalar ? parse_double(item.scalar) : std::nullopt;
    if (!number && !problems.full()) problems.add(item, fmt::format("{} must be a list of numbers", quote(key)));
    list.push_back(number.value_or(0));
  }
  return list;
}

// Requests one by one, where the file has them: the figures that its summary lacks, and lengths. Times in seconds.
void add_requests(const Node& object, Problems& problems, BenchmarkRun& run) {
  const std::vector<double> ttfts = numbers(object, "ttfts", problems);
  const std::vector<double> outputs = numbers(object, "output_lens", problems);
  const std::vector<double> inputs = numbers(object, "input_lens", problems);
  std::vector<double> latencies = numbers(object, "latencies", problems);
  const Node* itls = value_at(object, "itls");
  const std::size_t n = ttfts.size();
  std::vector<double> gaps;
  if (itls != nullptr && itls->items.size() == n) {
    const bool whole = latencies.size() == n;
    if (!whole) latencies = ttfts;
    for (std::size_t i = 0; i < n; ++i) {
      for (const Node& gap : itls->items[i].items) {
        const double seconds = gap.kind == Node::Kind::scalar ? parse_double(gap.scalar).value_or(0) : 0;
        gaps.push_back(seconds);
        if (!whole) latencies[i] += seconds;
      }
    }
  }
  std::vector<double> good_inputs;
  std::vector<double> good_outputs;
  for (std::size_t i = 0; i < std::min(inputs.size(), outputs.size()); ++i) {
    if (outputs[i] <= 0) continue;  // failed
    good_inputs.push_back(inputs[i]);
    good_outputs.push_back(outputs[i]);
  }
  if (run.row.input.empty()) run.row.input = lengths_of(good_inputs);
  if (run.row.output.empty()) run.row.output = lengths_of(good_outputs);
  if (n == 0 || outputs.size() != n || latencies.size() != n) return;
  std::vector<double> first;
  std::vector<double> each;
  std::vector<double> all;
  for (std::size_t i = 0; i < n; ++i) {
    if (outputs[i] <= 0 || !(latencies[i] > 0)) continue;
    first.push_back(ttfts[i]);
    all.push_back(latencies[i]);
    if (outputs[i] > 1) each.push_back((latencies[i] - ttfts[i]) / (outputs[i] - 1));
  }
  const auto add = [&](serving::Metric metric, std::vector<double> values) {
    if (values.empty()) return;
    const serving::Distribution of = serving::distribution(std::move(values));
    for (const std::string_view statistic : serving::kStatistics) {
      run.add(fmt::format("{}.{}", name(metric), statistic), of.of(statistic));
    }
  };
  add(serving::Metric::ttft, std::move(first));
  add(serving::Metric::tpot, std::move(each));
  add(serving::Metric::itl, std::move(gaps));
  add(serving::Metric::e2e, std::move(all));
}

// What both benchmarks say of a run.
BenchmarkRun common(const Node& object, std::string_view e2e, Problems& problems) {
  BenchmarkRun run;
  run.line = object.line;
  const std::optional<double> rate = number_at(object, "request_rate", problems);
  if (rate && std::isfinite(*rate) && *rate > 0) run.row.load.rate = rate;
  run.at_once = rate.has_value() && !run.row.load.rate;
  const std::optional<double> burstiness = number_at(object, "burstiness", problems);
  if (run.row.load.rate && burstiness && *burstiness > 0) run.row.load.burstiness = *burstiness;
  run.row.load.concurrency = count_at(object, "max_concurrency", problems);
  run.completed = count_at(object, "completed", problems).value_or(0);
  run.failed = count_at(object, "failed", problems).value_or(0);
  run.duration = Seconds{number_at(object, "duration", problems).value_or(0)};
  for (const char* accepted : {"accept_length", "spec_decode_acceptance_length"}) {
    if (number_at(object, accepted, problems).value_or(1) > 1) run.untrusted = "speculative decoding";
  }
  add_summary(object, e2e, "_ms", 1e-3, problems, run);
  run.add_rate("output_tokens_per_second", number_at(object, "output_throughput", problems));
  run.add_rate("requests_per_second", number_at(object, "request_throughput", problems));
  return run;
}

// Totals, where nothing says more.
void add_mean_lengths(const Node& object, Problems& problems, BenchmarkRun& run) {
  const auto mean = [&](std::string_view key) {
    const double total = number_at(object, key, problems).value_or(0);
    return run.completed > 0 ? lengths_of(total / d(run.completed), 0) : std::string();
  };
  if (run.row.input.empty()) run.row.input = mean("total_input_tokens");
  if (run.row.output.empty()) run.row.output = mean("total_output_tokens");
}

// The engine behind what a client calls its backend: "sglang-oai", "vllm-chat", "trt".
std::string engine_of(std::string_view backend) {
  for (const auto& [prefix, engine] : {std::pair{"sglang", "sglang"}, std::pair{"vllm", "vllm"},
                                       std::pair{"trt", "trtllm"}, std::pair{"tensorrt", "trtllm"}}) {
    if (backend.starts_with(prefix)) return engine;
  }
  return {};
}

// A file of another tool has none of the keys that every run has.
bool has_keys(const Node& node, std::initializer_list<std::string_view> keys, Source source, Problems& problems) {
  if (node.kind != Node::Kind::mapping) {
    problems.add(node, "a run is an object");
    return false;
  }
  for (const std::string_view key : keys) {
    if (value_at(node, key) != nullptr) continue;
    problems.add(node, fmt::format("no {}: not a result of {}", quote(key), name(source)));
    return false;
  }
  return true;
}

// Lines of the printed table, in small letters, and their keys in a saved result.
constexpr std::pair<std::string_view, std::string_view> kPrinted[] = {
    {"successful requests", "completed"},
    {"failed requests", "failed"},
    {"benchmark duration (s)", "duration"},
    {"total input tokens", "total_input_tokens"},
    {"total generated tokens", "total_output_tokens"},
    {"request throughput (req/s)", "request_throughput"},
    {"output token throughput (tok/s)", "output_throughput"},
    {"backend", "backend"},
    {"request rate configured (rps)", "request_rate"},
    {"traffic request rate", "request_rate"},
    {"maximum request concurrency", "max_concurrency"},
    {"max request concurrency", "max_concurrency"},
    {"acceptance length", "spec_decode_acceptance_length"},
    {"accept length", "accept_length"}};

// "Mean E2E Latency (ms)" is mean_e2e_latency_ms; empty: a line that is not read.
std::string printed_key(std::string title) {
  title = to_lower(title);
  for (const auto& [line, key] : kPrinted) {
    if (title == line) return std::string(key);
  }
  if (!title.ends_with(" (ms)")) return {};
  title.replace(title.size() - 4, 4, "ms");
  std::replace(title.begin(), title.end(), ' ', '_');
  return title;
}

// The tables that were printed, each as the object that would have been saved; else the documents of the file.
std::vector<Node> read_results(std::string_view text, std::string_view engine, Problems& problems) {
  if (text.find(kPrintedResult) == std::string_view::npos) return read_documents(text, problems);
  std::vector<Node> results;
  int number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    const bool title = line.find(kPrintedResult) != std::string_view::npos;
    if (title) {
      results.emplace_back().kind = Node::Kind::mapping;
      results.back().line = number;
    }
    const std::size_t colon = line.rfind(':');
    if (results.empty() || (!title && colon == std::string_view::npos)) continue;
    const std::string key = title ? "backend" : printed_key(std::string(trim(line.substr(0, colon))));
    Node value;
    value.kind = Node::Kind::scalar;
    value.scalar = title ? engine : trim(line.substr(colon + 1));
    value.line = number;
    std::erase(value.scalar, ',');
    if (!key.empty() && value.scalar != "not set") results.back().entries.push_back({key, number, 1, value});
  }
  return results;
}

}  // namespace

void read_vllm_bench(std::string_view text, const Options& options, Problems& problems, Collector& into) {
  for (const Node& object : read_results(text, "vllm", problems)) {
    if (!has_keys(object, {"completed", "duration"}, Source::vllm_bench, problems)) continue;
    BenchmarkRun run = common(object, "e2el", problems);
    run.row.model = text_at(object, "model_id", problems).value_or("");
    run.row.tp = std::max<std::int64_t>(1, count_at(object, "tensor_parallel_size", problems).value_or(1));
    if (value_at(object, "ramp_up_strategy") != nullptr) run.untrusted = "the rate rises during the run";
    add_requests(object, problems, run);
    add_mean_lengths(object, problems, run);
    const std::string engine = engine_of(text_at(object, "backend", problems).value_or(""));
    add_run(std::move(run), options, engine.empty() ? "vllm" : engine, into);
  }
}

void read_sglang_bench(std::string_view text, const Options& options, Problems& problems, Collector& into) {
  for (const Node& object : read_results(text, "sglang", problems)) {
    if (!has_keys(object, {"backend", "completed", "duration"}, Source::sglang_bench, problems)) continue;
    BenchmarkRun run = common(object, "e2e_latency", problems);
    run.row.model = text_at(object, "server_info.model_path", problems).value_or("");
    run.row.tp = std::max<std::int64_t>(1, count_at(object, "server_info.tp_size", problems).value_or(1));
    run.row.engine_version = text_at(object, "server_info.version", problems).value_or("");
    add_requests(object, problems, run);
    // Random lengths are drawn evenly from a share of the longest up to it.
    const bool random = text_at(object, "dataset_name", problems).value_or("").starts_with("random");
    const double share = number_at(object, "random_range_ratio", problems).value_or(1);
    const auto drawn = [&](std::string_view key) -> std::string {
      const std::int64_t longest = random ? count_at(object, key, problems).value_or(0) : 0;
      if (longest < 1 || longest > serving::kMaxLength || share < 0 || share > 1) return {};
      const std::int64_t shortest = std::max<std::int64_t>(1, std::llround(share * d(longest)));
      return shortest == longest ? fmt::format("{}", longest) : fmt::format("{}-{}", shortest, longest);
    };
    if (run.row.input.empty()) run.row.input = drawn("random_input_len");
    if (run.row.output.empty()) run.row.output = drawn("random_output_len");
    add_mean_lengths(object, problems, run);
    const std::string engine = engine_of(text_at(object, "backend", problems).value_or(""));
    add_run(std::move(run), options, engine.empty() ? "sglang" : engine, into);
  }
}

namespace {

// "fp8": of a model that is published in a scheme of 8 bits, that one.
std::string scheme_of(const std::string& precision, const std::string& model, const std::string& hardware) {
  if (precision != "fp8" && precision != "fp4") return precision;
  std::string own;
  try {
    own = model::load_decoder(model).default_weights;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input) throw;
  }
  if (precision == "fp8") return own.starts_with("fp8") ? own : precision;
  if (own.find("fp4") != std::string::npos) return own;
  return hardware.starts_with("mi") ? "mxfp4" : "nvfp4";
}

// A flag, which older files have as text.
bool truth_at(const Node& object, std::string_view key, Problems& problems) {
  return to_lower(text_at(object, key, problems).value_or("")) == "true";
}

void read_inferencex_run(const Node& object, const Options& options, Problems& problems, Collector& into) {
  BenchmarkRun run;
  run.line = object.line;
  measure::ServingRow& row = run.row;
  const std::string hw = text_at(object, "hw", problems).value_or("");
  run.hardware = hw.substr(0, hw.find_first_of("-_"));
  row.model = text_at(object, "model", problems).value_or("");
  const std::string framework = text_at(object, "framework", problems).value_or("");
  row.runtime = engine_of(framework.substr(framework.starts_with("dynamo-") ? 7 : 0));
  // "lmsysorg/sglang:v0.5.9-cu130": digits and dots behind the last colon.
  std::string image = text_at(object, "image", problems).value_or("");
  image.erase(0, std::min(image.rfind(':') + 1, image.size()));
  if (image.starts_with('v')) image.erase(0, 1);
  const std::string version = image.substr(0, image.find_first_not_of("0123456789."));
  if (std::count(version.begin(), version.end(), '.') == 2) row.engine_version = version;
  const std::string model = options.model.empty() ? row.model : options.model;
  row.weights = scheme_of(text_at(object, "precision", problems).value_or(""), model, run.hardware);
  row.load.concurrency = count_at(object, "conc", problems);

  // Lengths are even in 0.8 to 1 of the nominal ones; ten requests are sent for each that is under way.
  const auto lengths = [&](std::string_view key) -> std::string {
    constexpr double kShortest = 0.8;
    const std::int64_t nominal = count_at(object, key, problems).value_or(0);
    if (nominal < 2 || nominal > serving::kMaxLength) return nominal == 1 ? "1" : "";
    return fmt::format("{}-{}", std::llround(kShortest * d(nominal)), nominal);
  };
  row.input = lengths("isl");
  row.output = lengths("osl");
  row.engine.prefix_caching = false;
  // Its launch files of TensorRT-LLM, and of SGLang for Blackwell (benchmarks/dsr1_fp8_b200_trt.sh at 0a919c5 and
  // dsr1_fp4_b200.sh at 1fc5d73), cache in 8 bits; the latter set --scheduler-recv-interval, which those for Hopper do
  // not.
  const bool blackwell = run.hardware.starts_with('b') || run.hardware.starts_with("gb");
  if (row.runtime == "trtllm" || (row.runtime == "sglang" && blackwell)) row.kv = "fp8";
  if (row.runtime == "sglang" && blackwell) {
    constexpr std::int64_t kMany = 16;
    row.engine.recv_interval = row.load.concurrency.value_or(1) < kMany ? 10 : 30;
  }

  const auto count = [&](std::string_view key, std::int64_t absent) {
    return std::max(absent, count_at(object, key, problems).value_or(absent));
  };
  double devices = 1;
  if (truth_at(object, "is_multinode", problems) || truth_at(object, "disagg", problems)) {
    const auto plan = [&](std::string_view side) {
      return fmt::format("tp{} ep{}{}", count(fmt::format("{}_tp", side), 1), count(fmt::format("{}_ep", side), 1),
                         truth_at(object, fmt::format("{}_dp_attention", side), problems) ? " dp" : "");
    };
    row.replicas.prefill = count("prefill_num_workers", 1);
    row.replicas.decode = count("decode_num_workers", 1);
    row.prefill_plan = plan("prefill");
    row.decode_plan = plan("decode");
    devices = d(count("num_decode_gpu", 0) > 0 ? count("num_decode_gpu", 0) : count("num_prefill_gpu", 1));
    run.untrusted = "prompts and decode on devices of their own";
  } else {
    row.tp = count("tp", 1);
    row.ep = count("ep", 1);
    row.pp = count("pp", 1);
    devices = d(row.tp) * d(row.pp);
    if (truth_at(object, "dp_attention", problems)) {
      row.dp = row.tp;
      row.tp = 1;
    }
  }
  const std::string drafts = to_lower(text_at(object, "spec_decoding", problems).value_or("none"));
  if (!drafts.empty() && drafts != "none" && run.untrusted.empty()) {
    run.untrusted = fmt::format("speculative decoding ({}), whose length the file does not say", drafts);
  }
  add_summary(object, "e2el", "", 1, problems, run);
  const std::optional<double> each = number_at(object, "output_tput_per_gpu", problems);
  if (each) run.add_rate("output_tokens_per_second", *each * devices);
  add_run(std::move(run), options, "", into);
}

}  // namespace

void read_inferencex(std::string_view text, const Options& options, Problems& problems, Collector& into) {
  for (const Node& object : read_documents(text, problems)) {
    if (!has_keys(object, {"hw", "conc"}, Source::inferencex, problems)) continue;
    read_inferencex_run(object, options, problems, into);
  }
}

}  // namespace llmperf::import
