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
#include "serving/serve.h"

namespace llmperf::measure {

// What rows of whole models have alike, of steps and of servers.
struct ModelRow {
  std::int64_t tp = 1;  // the plan of a replica, axis by axis (graph::Plan); 1 without the column
  std::int64_t ep = 1;
  std::int64_t dp = 1;
  std::int64_t pp = 1;
  std::string runtime;
  std::string engine_version;  // "0.6.3 (2024-09)", which says the era of the runtime; empty: not said
  std::string execution;       // "eager", "graph", …; empty: not said
  std::string options;         // as written: "static_kv+flash_attention"; empty: not said
  std::string model;
  std::string weights;
  std::string kv;  // of the cache; empty: not said
  bool operator==(const ModelRow&) const = default;
};

struct ServingRow : ModelRow {
  // The engine's settings, as far as they are said; its name follows from the runtime. Of the load its rate, burstiness
  // and concurrency: the rest is told below.
  serving::EngineChoices engine;
  serving::Load load;
  std::int64_t requests = 0;  // of the load; 0: see sent()
  serving::Replicas replicas;
  // Lengths as serving::parse_lengths takes them, which a trace says otherwise; what is shared as serving::parse_prefix
  // does, empty: nothing; a file as serving::load_trace takes it, or a built-in one by name.
  std::string input, output, prefix, trace;
  std::string prefill_plan, decode_plan;  // "tp2 ep4", of replicas that have not the plan above
  std::string draft, accept;              // speculative decoding, as `--draft` has it: "mtp:3"
  std::string metric;                     // "ttft.mean", "output_tokens_per_second"

  bool operator==(const ServingRow&) const = default;
  // Whether two rows are figures of the same run, as far as their columns say.
  bool same_run(const ServingRow& other) const;
  // Without a number ten for each that is under way, else 1,000.
  std::int64_t sent() const { return requests > 0 ? requests : load.concurrency ? 10 * *load.concurrency : 1000; }
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

// Plan, settings and load on one line, without the figure.
std::string describe(const ServingRow& row);

}  // namespace llmperf::measure
