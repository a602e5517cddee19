#include "calibrate/baselines.h"

#include <algorithm>
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

}  // namespace llmperf::calibrate
