// What one measurement of a server under load is of: the plan, the engine and its settings, the load, and which figure
// of the run it is. A run in a file is a line with as many figures as were measured; each becomes a row of its own, so
// that a TTFT and a throughput are compared, grouped and fitted like any other measurement.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "serving/metrics.h"

namespace llmperf::measure {

struct ServingRow {
  std::int64_t tp = 1;  // the plan of a replica, axis by axis (graph::Plan)
  std::int64_t ep = 1;
  std::int64_t dp = 1;
  std::int64_t pp = 1;
  std::string runtime;
  std::string engine_version = {};
  std::string execution = {};  // as of StepRow
  std::string options = {};
  std::string model;
  std::string weights;
  std::string kv = {};  // of the cache; empty: not said
  // The engine's settings; nothing (0): its own for that version, device and number of devices.
  std::int64_t max_batched_tokens = 0;
  std::int64_t max_seqs = 0;
  std::optional<double> kv_utilisation = {};
  std::int64_t kv_blocks = 0;
  std::int64_t block_size = 0;
  std::optional<bool> prefix_caching = {};
  // The load: requests per second, or so many at once, or both. Without a trace lengths are as serving::parse_lengths
  // takes them.
  std::optional<double> rate = {};
  double burstiness = 1;  // infinite: at equal intervals
  std::int64_t concurrency = 0;
  std::int64_t requests = 0;  // 0: ten for each of `concurrency`, else 1,000
  std::string input = {};
  std::string output = {};
  std::string prefix = {};  // as serving::parse_prefix takes it; empty: nothing is shared
  std::string trace = {};   // a file as serving::load_trace takes it, or a built-in one by name
  std::int64_t replicas = 1;
  std::int64_t prefill_replicas = 0;  // disaggregated, where the two are not 0
  std::int64_t decode_replicas = 0;
  std::string prefill_plan = {};  // "tp2 ep4": where it is not the plan above, nothing predicts the row
  std::string decode_plan = {};
  std::string draft = {};  // speculative decoding, as `--draft` has it: "mtp:3"
  std::string accept = {};

  std::string metric = {};  // "ttft.mean", "output_tokens_per_second"

  bool operator==(const ServingRow&) const = default;
  // Whether two rows are figures of the same run, as far as their columns say.
  bool same_run(const ServingRow& other) const;
  bool disaggregated() const { return prefill_replicas > 0 || decode_replicas > 0; }
  std::int64_t sent() const { return requests > 0 ? requests : concurrency > 0 ? 10 * concurrency : 1000; }
};

// A figure that files have a column for. A rate is held as its inverse: the server's time for a token or for a request.
struct ServingFigure {
  std::string metric;  // "ttft.mean"
  std::string column;  // "ttft_mean_ms"
  bool rate = false;
};
const std::vector<ServingFigure>& serving_figures();
// By metric; null for other texts.
const ServingFigure* find_figure(std::string_view metric);
// The figure of a run, in seconds.
Seconds figure_of(const serving::Summary& summary, std::string_view metric);

// Plan, settings and load, without the figure; and on one line.
std::vector<std::string> settings_of(const ServingRow& row);
std::string describe(const ServingRow& row);

}  // namespace llmperf::measure
