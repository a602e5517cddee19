#include "calibrate/validation.h"

#include <limits>
#include <numeric>

namespace llmperf::calibrate {
namespace {

// Per row of the measurements; empty: there is none.
struct Predictions {
  std::vector<double> own;
  std::vector<double> roofline;
  std::vector<double> fitted_roofline;
};

std::vector<double> errors(const Measurements& measurements, std::span<const double> predicted,
                           std::span<const std::size_t> rows) {
  std::vector<double> list;
  if (predicted.empty()) return list;
  list.reserve(rows.size());
  for (const std::size_t row : rows) {
    list.push_back(relative_error(predicted[row], measurements.rows[row].latency.value));
  }
  return list;
}

GroupErrors errors_of(const Measurements& measurements, const Predictions& p, const RowGroup& group) {
  return {group.by, group.name, summarise(errors(measurements, p.own, group.rows)),
          summarise(errors(measurements, p.roofline, group.rows)).mape,
          summarise(errors(measurements, p.fitted_roofline, group.rows)).mape};
}

}  // namespace

void summarise(Validation& validation) {
  const Measurements& measurements = validation.measurements;
  Predictions p;
  p.own.resize(measurements.rows.size());
  p.roofline.resize(measurements.rows.size());
  p.fitted_roofline.resize(measurements.rows.size());
  RowGroup scored;
  for (const ValidatedRow& r : validation.rows) {
    if (r.scored) scored.rows.push_back(r.row);
    p.own[r.row] = r.predicted;
    p.roofline[r.row] = r.roofline;
    p.fitted_roofline[r.row] = r.fitted_roofline;
  }
  validation.summary = errors_of(measurements, p, scored);
  validation.groups.clear();
  for (const RowGroup& group : group_rows(measurements, scored.rows)) {
    validation.groups.push_back(errors_of(measurements, p, group));
  }
}

std::vector<GroupErrors> errors_by_group(const Measurements& measurements, std::span<const std::size_t> rows,
                                         std::span<const double> predicted) {
  Predictions p;
  p.own.resize(measurements.rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) p.own[rows[i]] = predicted[i];
  const RowGroup all{{}, {}, {rows.begin(), rows.end()}};
  std::vector<GroupErrors> list = {errors_of(measurements, p, all)};
  for (const RowGroup& group : group_rows(measurements, all.rows)) list.push_back(errors_of(measurements, p, group));
  return list;
}

}  // namespace llmperf::calibrate
