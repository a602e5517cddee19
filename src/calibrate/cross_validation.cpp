#include "calibrate/cross_validation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace llmperf::calibrate {
namespace {

bool takes_part(std::span<const double> weights, std::size_t row) { return weights.empty() || weights[row] > 0; }

// Delete-a-group jackknife of values that each lack one fold.
double jackknife(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return std::sqrt((n - 1) / n * squares);
}

}  // namespace

std::vector<int> deal_folds(std::span<const std::string> labels, std::span<const double> weights, int max_folds) {
  struct Group {
    std::vector<std::size_t> rows;
  };
  std::vector<Group> groups;
  std::unordered_map<std::string_view, std::size_t> known;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (!takes_part(weights, row)) continue;
    const auto [found, added] = known.try_emplace(labels[row], groups.size());
    if (added) groups.emplace_back();
    groups[found->second].rows.push_back(row);
  }
  std::vector<int> fold(labels.size(), 0);
  const bool own = groups.size() <= static_cast<std::size_t>(max_folds);
  if (!own) {
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Group& a, const Group& b) { return a.rows.size() > b.rows.size(); });
  }
  std::vector<std::size_t> sizes(static_cast<std::size_t>(max_folds), 0);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto smallest = static_cast<std::size_t>(std::min_element(sizes.begin(), sizes.end()) - sizes.begin());
    const std::size_t to = own ? g : smallest;
    sizes[to] += groups[g].rows.size();
    for (const std::size_t row : groups[g].rows) fold[row] = static_cast<int>(to);
  }
  return fold;
}

CrossValidation cross_validate(const FitProblem& problem, const FitResult& full, std::span<const std::string> labels,
                               int max_folds, const FitOptions& options) {
  CrossValidation result;
  result.fold = deal_folds(labels, problem.weights, max_folds);
  const int folds = result.fold.empty() ? 0 : 1 + *std::max_element(result.fold.begin(), result.fold.end());
  if (folds < 2) return result;
  result.folds = folds;
  result.predicted.resize(labels.size());

  FitProblem part = problem;
  part.values = full.values;
  part.free.clear();
  for (std::size_t i = 0; i < problem.free.size(); ++i) {
    if (full.parameters[i].identified == Identified::yes) part.free.push_back(problem.free[i]);
  }
  std::vector<std::vector<double>> logs(problem.free.size());
  for (int fold = 0; fold < folds; ++fold) {
    part.weights.assign(labels.size(), 1);
    for (std::size_t row = 0; row < labels.size(); ++row) {
      const double weight = problem.weights.empty() ? 1 : problem.weights[row];
      part.weights[row] = result.fold[row] == fold ? 0 : weight;
    }
    const FitResult without = fit(part, options, &full.slopes);
    result.predictions += without.predictions;
    for (std::size_t row = 0; row < labels.size(); ++row) {
      if (result.fold[row] == fold) result.predicted[row] = without.predicted[row];
    }
    for (std::size_t i = 0; i < problem.free.size(); ++i) {
      logs[i].push_back(std::log(without.values[problem.free[i].index]));
    }
  }
  for (const std::vector<double>& values : logs) result.spread.push_back(jackknife(values));
  return result;
}

}  // namespace llmperf::calibrate
