// How far predictions are from measurements. The error of a row is predicted / measured - 1: +0.1 is 10 % too slow.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/measurements.h"

namespace llmperf::measure {

constexpr double relative_error(double predicted, double measured) { return predicted / measured - 1; }
// Of a row, whose figure may be a rate: that of the rate then, though its inverse is what is predicted.
double relative_error(const Row& row, double predicted);

// Of the absolute errors, except for the bias. All but `rows` are NaN when there are no rows: no error is not an error
// of 0.
struct Summary {
  std::int64_t rows = 0;
  double mape = 0;        // mean absolute percentage error, as a share: 0.05 is 5 %
  double median_ape = 0;  // quantiles between two rows are interpolated linearly
  double p90_ape = 0;
  double max_ape = 0;
  double bias = 0;  // mean of the signed errors
};
Summary summarise(std::span<const double> errors);

// The value below which `share` of the values lie: rank share * (n - 1), interpolated linearly. NaN of no values.
double quantile(std::vector<double> values, double share);

// Rows that have something in common.
struct RowGroup {
  std::string by;    // "model", "phase", "batch_band", …
  std::string name;  // "qwen1.5-7b", "decode", "2-8"
  std::vector<std::size_t> rows;
};
// All groups of all kinds that apply, kind after kind; bands ascending, others in order of appearance. Steps are
// grouped by model, runtime, weights, phase, batch band, execution, options, runtime with phase, runtime with batch
// band, device with phase, and where rows have them by backend, era, cards and host; ops by op, mode, kernel, band of
// m, scheme, (n, k) site, head layout, shape of experts, (collective, ranks); figures of servers by metric, and that
// with model, device, plan and load. `rows` chooses which rows take part.
std::vector<RowGroup> group_rows(const Measurements& measurements, std::span<const std::size_t> rows);

// Rows that a text is equal of, in the order in which the texts appear; rows without one are in none.
struct RowsOfText {
  std::string text;
  std::vector<std::size_t> rows;
};
std::vector<RowsOfText> rows_by_text(std::span<const std::size_t> rows,
                                     const std::function<std::optional<std::string>(std::size_t row)>& text);

// One row's name within a kind of groups; empty when the kind does not apply to it. What cross-validation leaves out at
// once is such a name: "model", "options", "site", "layout", "experts", "collective".
std::string group_name(const Row& row, std::string_view by);

}  // namespace llmperf::measure
