#include "calibrate/validation.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "calibrate/fit.h"
#include "calibrate/statistics.h"

namespace llmperf::calibrate {
namespace {

enum Constant : std::size_t { launch, compute_share, memory_share };

double fitted_time(const RooflineTimes& t, std::span<const double> v) {
  return v[launch] + std::max(t.compute / v[compute_share], t.memory / v[memory_share]);
}

// The maximum makes several local minima: the fit starts from a small and from a large launch time, and the better
// wins.
std::vector<double> fit_constants(std::span<const double> measured, std::span<const RooflineTimes> times,
                                  const std::vector<std::size_t>& rows) {
  FitProblem problem;
  for (const std::size_t row : rows) problem.measured.push_back(measured[row]);
  problem.predict = [&](std::span<const double> values, std::optional<std::size_t>, std::span<double> predicted) {
    for (std::size_t i = 0; i < rows.size(); ++i) predicted[i] = fitted_time(times[rows[i]], values);
  };
  const double shortest = *std::min_element(problem.measured.begin(), problem.measured.end());
  const double middle = quantile(problem.measured, 0.5);
  constexpr double kAnything = 5;  // a spread that leaves the constants to the rows
  constexpr double kShare = 0.7;
  problem.free = {{launch, shortest, kAnything, shortest * 1e-6, middle * 10},
                  {compute_share, kShare, kAnything, 1e-6, 1e3},
                  {memory_share, kShare, kAnything, 1e-6, 1e3}};
  std::optional<FitResult> best;
  for (const double start : {shortest * 0.1, shortest, middle}) {
    problem.values = {start, kShare, kShare};
    FitResult result = fit(problem, {.min_shrinkage = 0});
    if (!best || result.cost < best->cost) best = std::move(result);
  }
  return best->values;
}

}  // namespace

Baselines baselines(std::span<const double> measured, std::span<const RooflineTimes> times) {
  Baselines result;
  result.fitted.resize(times.size());
  std::vector<std::pair<std::string, std::vector<std::size_t>>> kinds;
  std::unordered_map<std::string_view, std::size_t> known;
  for (std::size_t row = 0; row < times.size(); ++row) {
    result.roofline.push_back(std::max(times[row].compute, times[row].memory));
    const auto [found, added] = known.try_emplace(times[row].kind, kinds.size());
    if (added) kinds.push_back({times[row].kind, {}});
    kinds[found->second].second.push_back(row);
  }
  for (const auto& [kind, rows] : kinds) {
    const std::vector<double> values = fit_constants(measured, times, rows);
    for (const std::size_t row : rows) result.fitted[row] = fitted_time(times[row], values);
    result.constants.push_back({kind, values[launch], values[compute_share], values[memory_share], rows.size()});
  }
  return result;
}

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
