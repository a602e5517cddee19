// Runs of serving benchmarks, whatever tool made them: what a file says of the load and of the figures, and what only
// the command line can say, become rows of measurements.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor/node.h"
#include "descriptor/reader.h"
#include "import/collector.h"
#include "measure/serving_row.h"

namespace llmperf::import {

struct BenchmarkRun {
  int line = 0;
  std::string hardware = {};                                  // as the file says it; empty: it does not
  measure::ServingRow row;                                    // of the figures all but the metric
  std::vector<std::pair<std::string, Seconds>> figures = {};  // metric, of a rate its inverse
  std::int64_t completed = 0;
  std::int64_t failed = 0;
  bool at_once = false;  // without rate and concurrency: the file says that all are sent at the beginning
  Seconds duration{};
  std::string untrusted = {};

  // Nothing of values that are no figures: not positive, not finite.
  void add(std::string metric, std::optional<double> seconds);
  void add_rate(std::string metric, std::optional<double> per_second);
  bool has(std::string_view metric) const;
};

// Adds the run to the collector, completed by the options. `runtime`: the engine where neither says one; empty: none.
void add_run(BenchmarkRun run, const Options& options, std::string_view runtime, Collector& into);

// What lengths are made from to have these: one length, evenly between two, or else a lognormal distribution of the
// same mean and standard deviation. Empty of none.
std::string lengths_of(const std::vector<double>& lengths);
std::string lengths_of(double mean, double deviation);

// Documents of a text that is behind `before` lines of its file: one, each on a line of its own, or those of an array.
// NaN and Infinity are numbers.
std::vector<descriptor::Node> read_documents(std::string_view text, descriptor::Problems& problems, int before = 0);

// A value at "a.b.0.c" of a document; null where there is none or it is null.
const descriptor::Node* value_at(const descriptor::Node& node, std::string_view path);
// Numbers and texts of it. What is there and is of another type is a problem at its place; numbers may be quoted.
std::optional<double> number_at(const descriptor::Node& node, std::string_view path, descriptor::Problems& problems);
std::optional<std::string> text_at(const descriptor::Node& node, std::string_view path, descriptor::Problems& problems);
std::optional<std::int64_t> count_at(const descriptor::Node& node, std::string_view path,
                                     descriptor::Problems& problems);

}  // namespace llmperf::import
