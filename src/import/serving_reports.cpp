// Reports of load generators that know no engine: AIPerf and GenAI-Perf before it (profile_export_aiperf.json as its
// docs/reference/json-export-schema.md at 1554b47 has it, and the CSV beside it), and GuideLLM (benchmarks.json).
//
// What AIPerf calls inter token latency is vLLM's TPOT, (latency - TTFT) / (tokens - 1) of each request; its inter
// chunk latency is the time between two chunks. GuideLLM's inter token latency is the former of each request, weighted
// with its tokens, whose mean is that of all gaps: an ITL; of its percentiles vLLM has no like.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/number.h"
#include "base/text.h"
#include "descriptor/csv.h"
#include "import/runs.h"
#include "serving/metrics.h"

namespace llmperf::import {
namespace {

using descriptor::Node;
using descriptor::Problems;

struct Known {
  std::string_view tag;
  std::string_view metric;  // of ours
};
constexpr Known kTimes[] = {{"time_to_first_token", "ttft"},
                            {"inter_token_latency", "tpot"},
                            {"inter_chunk_latency", "itl"},
                            {"request_latency", "e2e"}};
constexpr std::string_view kStatistics[] = {"avg", "p50", "p90", "p95", "p99"};
std::string ours(std::string_view metric, std::string_view statistic) {
  return fmt::format("{}.{}", metric, statistic == "avg" ? "mean" : statistic);
}

// Seconds of a unit of time; nothing of others.
std::optional<double> unit_of(std::string_view text) {
  const std::string unit = to_lower(std::string(text));
  if (unit == "ms" || unit == "milliseconds") return 1e-3;
  if (unit == "s" || unit == "sec" || unit == "seconds") return 1.0;
  if (unit == "us" || unit == "microseconds") return 1e-6;
  if (unit == "ns" || unit == "nanoseconds") return 1e-9;
  return std::nullopt;
}

// The first of several places where there is something.
std::string_view place_in(const Node& node, std::initializer_list<std::string_view> paths) {
  for (const std::string_view path : paths) {
    if (value_at(node, path) != nullptr) return path;
  }
  return *paths.begin();
}

void read_aiperf_run(const Node& object, const Options& options, Problems& problems, Collector& into) {
  BenchmarkRun run;
  run.line = object.line;
  for (const Known& known : kTimes) {
    const Node* metric = value_at(object, known.tag);
    if (metric == nullptr) continue;
    const std::string unit = text_at(*metric, "unit", problems).value_or("ms");
    const std::optional<double> seconds = unit_of(unit);
    if (!seconds) {
      problems.add(*metric, fmt::format("{} is no unit of time", quote(unit)), "ms, sec, us, ns");
      continue;
    }
    for (const std::string_view statistic : kStatistics) {
      const auto value = number_at(*metric, statistic, problems);
      if (value) run.add(ours(known.metric, statistic), *value * *seconds);
    }
  }
  run.add_rate("output_tokens_per_second", number_at(object, "output_token_throughput.avg", problems));
  run.add_rate("requests_per_second", number_at(object, "request_throughput.avg", problems));
  run.completed = count_at(object, "request_count.avg", problems).value_or(0);
  run.failed = count_at(object, "error_request_count.avg", problems).value_or(0);
  run.duration = Seconds{number_at(object, "benchmark_duration.avg", problems).value_or(0)};
  const auto lengths = [&](std::string_view tag) {
    return lengths_of(number_at(object, fmt::format("{}.avg", tag), problems).value_or(0),
                      number_at(object, fmt::format("{}.std", tag), problems).value_or(0));
  };
  run.row.input = lengths("input_sequence_length");
  run.row.output = lengths("output_sequence_length");
  for (const char* place : {"input_config.endpoint.model_names.0", "input_config.models.items.0.name",
                            "input_config.model.0", "input_config.model"}) {
    const Node* at = value_at(object, place);
    if (run.row.model.empty() && at != nullptr && at->kind == Node::Kind::scalar) run.row.model = at->scalar;
  }
  run.row.load.concurrency =
      count_at(object,
               place_in(object, {"input_config.loadgen.concurrency", "input_config.phases.profiling.concurrency",
                                 "input_config.perf_analyzer.stimulus.concurrency", "input_config.concurrency"}),
               problems);
  run.row.load.rate =
      number_at(object,
                place_in(object, {"input_config.loadgen.request_rate", "input_config.phases.profiling.rate",
                                  "input_config.perf_analyzer.stimulus.request_rate", "input_config.request_rate"}),
                problems);
  if (run.row.load.rate && !(*run.row.load.rate > 0 && std::isfinite(*run.row.load.rate))) run.row.load.rate.reset();
  const std::string arrivals =
      text_at(object, "input_config.loadgen.arrival_pattern", problems)
          .value_or(text_at(object, "input_config.loadgen.request_rate_mode", problems).value_or("poisson"));
  if (run.row.load.rate && arrivals == "constant") run.row.load.burstiness = std::numeric_limits<double>::infinity();
  if (to_lower(text_at(object, "was_cancelled", problems).value_or("")) == "true") {
    run.untrusted = "the run was cancelled";
  }
  add_run(std::move(run), options, "", into);
}

Node scalar(std::string text, int line, int column) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.scalar = std::move(text);
  node.line = line;
  node.column = column;
  return node;
}

// What is read of the metrics in CSV, which may have any number of others.
bool is_read(std::string_view tag) {
  constexpr std::string_view kOthers[] = {"output_token_throughput", "request_throughput", "request_count",
                                          "error_request_count",     "benchmark_duration", "input_sequence_length",
                                          "output_sequence_length"};
  return std::ranges::find(kOthers, tag) != std::end(kOthers) ||
         std::ranges::find(kTimes, tag, &Known::tag) != std::end(kTimes);
}

// A line "Time To First Token (ms),…" as the object that a saved result has for it, "time_to_first_token", with what is
// in brackets as its unit. Numbers are written "1,146.31".
Node::Entry metric_of(const std::vector<descriptor::CsvCell>& cells, const std::vector<std::string>& header, int line) {
  const std::string& title = cells.front().text;
  const std::size_t open = std::min(title.rfind('('), title.size());
  const std::size_t close = title.find(')', open);
  std::string tag = to_lower(trim(std::string_view(title).substr(0, open)));
  std::replace(tag.begin(), tag.end(), ' ', '_');
  Node metric;
  metric.kind = Node::Kind::mapping;
  metric.line = line;
  metric.column = 1;
  const std::string unit = close == std::string::npos ? "" : title.substr(open + 1, close - open - 1);
  metric.entries.push_back({"unit", line, 1, scalar(unit, line, 1)});
  for (std::size_t i = 1; i < cells.size(); ++i) {
    std::string number = cells[i].text;
    std::erase(number, ',');
    if (number.empty()) continue;
    const int column = cells[i].column;
    metric.entries.push_back({header[i] == "Value" ? "avg" : header[i], line, column, scalar(number, line, column)});
  }
  return {tag, line, 1, std::move(metric)};
}

// Tables below each other, each with a header that begins with "Metric": one of statistics, one of single values. What
// follows is telemetry.
void read_aiperf_csv(std::string_view text, const Options& options, Problems& problems, Collector& into) {
  descriptor::CsvReader reader(text, problems);
  Node object;
  object.kind = Node::Kind::mapping;
  std::vector<std::string> header;
  while (reader.next() && !problems.full()) {
    const std::vector<descriptor::CsvCell>& cells = reader.cells();
    if (cells.front().text == "Metric") {
      header.clear();
      for (const descriptor::CsvCell& cell : cells) header.push_back(cell.text);
      if (object.line == 0) object.line = reader.line();
    } else if (header.empty() || cells.front().text == "Endpoint") {
      break;
    } else if (cells.size() != header.size()) {
      problems.add(reader.line(), 1, fmt::format("{} fields, and the header has {}", cells.size(), header.size()));
    } else {
      Node::Entry metric = metric_of(cells, header, reader.line());
      const bool known = std::ranges::find(object.entries, metric.key, &Node::Entry::key) != object.entries.end();
      if (is_read(metric.key) && !known) object.entries.push_back(std::move(metric));
    }
  }
  if (!header.empty()) return read_aiperf_run(object, options, problems, into);
  problems.add(1, 1, "no table that begins with 'Metric': not a profile export of aiperf", "profile_export_aiperf.csv");
}

}  // namespace

void read_aiperf(std::string_view text, const Options& options, Problems& problems, Collector& into) {
  const std::string_view content = trim(text);
  const bool json = content.starts_with('{') || content.starts_with('[');
  if (!json) return read_aiperf_csv(text, options, problems, into);
  for (const Node& object : read_documents(text, problems)) {
    if (value_at(object, "request_latency") == nullptr) {
      problems.add(object, "no 'request_latency': not a profile export of aiperf", "profile_export_aiperf.json");
    } else {
      read_aiperf_run(object, options, problems, into);
    }
  }
}

void read_guidellm(std::string_view text, const Options& options, Problems& problems, Collector& into) {
  for (const Node& document : read_documents(text, problems)) {
    const Node* list = value_at(document, "benchmarks");
    if (list == nullptr || list->kind != Node::Kind::sequence) {
      problems.add(document, "no list 'benchmarks': not a report of guidellm", "benchmarks.json");
      continue;
    }
    for (const Node& benchmark : list->items) {
      if (value_at(benchmark, "metrics") == nullptr) {
        problems.add(benchmark, "a benchmark without 'metrics'");
        continue;
      }
      BenchmarkRun run;
      run.line = benchmark.line;
      const auto figure = [&](std::string_view metric, std::string_view statistic) {
        return number_at(benchmark, fmt::format("metrics.{}.successful.{}", metric, statistic), problems);
      };
      const auto add = [&](std::string_view metric, std::string_view name, double unit) {
        if (const auto mean = figure(metric, "mean")) run.add(fmt::format("{}.mean", name), *mean * unit);
        for (const std::string_view p : {"p50", "p90", "p95", "p99"}) {
          const auto value = figure(metric, fmt::format("percentiles.{}", p));
          if (value) run.add(fmt::format("{}.{}", name, p), *value * unit);
        }
      };
      add("time_to_first_token_ms", "ttft", 1e-3);
      add("request_latency", "e2e", 1);
      if (const auto mean = figure("inter_token_latency_ms", "mean")) run.add("itl.mean", *mean * 1e-3);
      run.add_rate("output_tokens_per_second", figure("output_tokens_per_second", "mean"));
      run.add_rate("requests_per_second", figure("requests_per_second", "mean"));
      const auto lengths = [&](std::string_view metric) {
        return lengths_of(figure(metric, "mean").value_or(0), figure(metric, "std_dev").value_or(0));
      };
      run.row.input = lengths("prompt_token_count");
      run.row.output = lengths("output_token_count");
      const auto total = [&](std::string_view which) {
        const auto number = count_at(benchmark,
                                     place_in(benchmark, {fmt::format("metrics.request_totals.{}", which),
                                                          fmt::format("run_stats.requests_made.{}", which)}),
                                     problems);
        return number.value_or(0);
      };
      run.completed = total("successful");
      run.failed = total("errored");
      const double begin = number_at(benchmark, "start_time", problems).value_or(0);
      run.duration = Seconds{std::max(0.0, number_at(benchmark, "end_time", problems).value_or(begin) - begin)};
      for (const char* place : {"config.backend.model", "worker.backend_model", "args.backend.model"}) {
        if (run.row.model.empty()) run.row.model = text_at(benchmark, place, problems).value_or("");
      }
      // Earlier releases have the strategy beside the arguments.
      const Node* strategy = value_at(benchmark, "config.strategy");
      if (strategy == nullptr) strategy = value_at(benchmark, "args.strategy");
      if (strategy != nullptr) {
        const std::string type = text_at(*strategy, "type_", problems).value_or("");
        if (type == "synchronous") run.row.load.concurrency = 1;
        run.at_once = type == "throughput";
        if (type == "concurrent")
          run.row.load.concurrency = count_at(*strategy, place_in(*strategy, {"streams", "max_concurrency"}), problems);
        if (type == "constant" || type == "poisson" || type == "async")
          run.row.load.rate = number_at(*strategy, "rate", problems);
        if (type == "constant") run.row.load.burstiness = std::numeric_limits<double>::infinity();
        if (run.row.load.rate && !(*run.row.load.rate > 0 && std::isfinite(*run.row.load.rate)))
          run.row.load.rate.reset();
      }
      add_run(std::move(run), options, "", into);
    }
  }
}

}  // namespace llmperf::import
