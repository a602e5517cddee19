// What a run of the simulation says, in the definitions of vLLM's benchmark (vllm/benchmarks/serve.py at 009e6d4):
//
//   TTFT     first token - sent, of each request
//   TPOT     (last token - first token) / (tokens - 1), of each request of more than one token: AIPerf's "inter token
//            latency"
//   ITL      every time between two tokens (chunks, where a step gives several), of all requests together
//   E2E      last token - sent: AIPerf's "request latency"
//   throughput and goodput over the time from the first request sent to the last token
//
// Percentiles are interpolated between the two nearest values, as numpy does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serving/simulation.h"

namespace llmperf::serving {

struct Distribution {
  double mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0;
  double of(std::string_view statistic) const;  // "mean", "p50" …
};
inline constexpr std::array<std::string_view, 5> kStatistics = {"mean", "p50", "p90", "p95", "p99"};
// With as many more that never end: a percentile among these is infinite, and so is the mean.
Distribution distribution(std::vector<double> values, std::int64_t endless = 0);
// … of values with how often each is there.
Distribution distribution(std::vector<std::pair<double, std::int64_t>> values);

enum class Metric : std::uint8_t { ttft, tpot, itl, e2e };
inline constexpr std::array<std::string_view, 4> kMetrics = {"ttft", "tpot", "itl", "e2e"};
constexpr std::string_view name(Metric metric) { return kMetrics[static_cast<std::size_t>(metric)]; }

// "ttft.p99=1s": a statistic of a metric that must not be longer; "chat:ttft.p99=1s" of the requests of one class.
struct Bound {
  Metric metric = Metric::ttft;
  std::string statistic = "p99";
  Seconds limit{};
  std::string of = {};  // the class; empty: all
  std::string text() const;
};
using Slo = std::vector<Bound>;
// What a bound is about of a request; not of ITL, which is about none.
Seconds value_of(const Served& request, Metric metric);
// A comma-separated list; "ttft=1s" means its 99th percentile. Throws Error(bad_input); messages say `slo`.
Slo parse_slo(std::string_view text);
std::string text_of(const Slo& slo);

// Of all requests, or of those of one class.
struct RequestTimes {
  std::int64_t requests = 0;  // that ended
  std::int64_t rejected = 0;
  Distribution ttft, tpot, e2e;
  // By metric, as bounds take them where any were rejected, which never end; of ITL none.
  std::array<Distribution, kMetrics.size()> promised = {};
  double met_share = 1;  // of those that ended or were rejected, that meet all bounds that are about them
  const Distribution& of(Metric metric) const;  // not of ITL, which is of no request
};
struct ClassSummary : RequestTimes {
  std::string name;
};

struct Summary : RequestTimes {
  Distribution itl;
  Seconds duration{};
  double requests_per_second = 0;
  double input_tokens_per_second = 0;
  double output_tokens_per_second = 0;
  std::optional<double> goodput_per_second;  // with bounds: of requests that meet all of them that are about a request
  std::vector<ClassSummary> classes;         // none: all are alike
  std::int64_t preemptions = 0;
  double prefix_hit_share = 0;  // of prompt tokens, from tiers as well
  double tier_hit_share = 0;    // … from these alone
  double kv_peak_share = 0;
  double kv_mean_share = 0;
  double busy_share = 0;
  double mean_batch = 0;    // sequences in a step, over the time that steps run
  double mean_waiting = 0;  // sequences, likewise
  std::int64_t steps = 0;
  Causes ttft_causes = {};  // shares of all TTFT
  GapCauses itl_causes;     // shares of all time between tokens
  bool stable = true;
  double queue_growth = 0;  // requests per second by which the queue grows; 0 where it is stable
  const Distribution& of(Metric metric) const;
  // What a bound is about; nothing where more were rejected than may miss it, of a mean any.
  std::optional<double> value(const Bound& bound) const;
  // How far the worst bound is exceeded: 0.2 of one that is 20 % too long, -0.1 where all are at least 10 % shorter.
  double excess(const Slo& slo) const;
  bool meets(const Slo& slo) const { return stable && excess(slo) <= 0; }
};
Summary summarise(const Run& run, const Workload& workload, const Slo& slo = {});

// Requests per second that are sent beyond those that end, over the second half of the time in which they are sent, by
// a straight line through how many are under way; 0 unless there are more of them than random arrivals account for.
double queue_growth(const Run& run);

}  // namespace llmperf::serving
