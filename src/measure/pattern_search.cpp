#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "measure/fit.h"
#include "measure/statistics.h"

namespace llmperf::measure {
namespace {

struct Trial {
  std::vector<double> values;
  std::vector<double> predicted;
  double cost = 0;
};

class Search {
 public:
  explicit Search(const FitProblem& problem) : problem_(&problem) {}

  Trial at(std::vector<double> values) {
    ++predictions_;
    Trial t{std::move(values), std::vector<double>(problem_->measured.size()), 0};
    problem_->predict(t.values, std::nullopt, t.predicted);
    const double c = problem_->outlier;
    const double scale = c * c / (problem_->noise * problem_->noise);
    for (std::size_t i = 0; i < t.predicted.size(); ++i) {
      const double weight = problem_->weights.empty() ? 1 : problem_->weights[i];
      if (weight == 0) continue;
      const double r = std::log(t.predicted[i] / problem_->measured[i]);
      t.cost += weight * scale * (std::sqrt(1 + r * r / (c * c)) - 1);
    }
    for (const FreeParameter& p : problem_->free) {
      const double z = std::log(t.values[p.index] / p.prior) / p.spread;
      t.cost += z * z / 2;
    }
    return t;
  }
  // The parameter moved by so much of its logarithm, within its bounds.
  static std::vector<double> moved(std::vector<double> values, const FreeParameter& p, double by) {
    values[p.index] = std::clamp(values[p.index] * std::exp(by), p.min, p.max);
    return values;
  }
  int predictions() const { return predictions_; }

 private:
  const FitProblem* problem_;
  int predictions_ = 0;
};

}  // namespace

FitResult pattern_search(const FitProblem& problem, const SearchOptions& options) {
  Search search(problem);
  Trial best = search.at(problem.values);
  for (std::size_t i = 0; i < best.predicted.size(); ++i) {
    const bool counts = problem.weights.empty() || problem.weights[i] > 0;
    if (counts && !(best.predicted[i] > 0 && std::isfinite(best.predicted[i]))) {
      throw Error::bad_input(fmt::format("the prediction of measurement {} is not a positive time", i + 1));
    }
  }
  FitResult result;
  double share = options.first_step;
  for (; share >= options.last_step && search.predictions() < options.most_predictions; ++result.iterations) {
    bool better = false;
    for (const FreeParameter& p : problem.free) {
      for (const double way : {1.0, -1.0}) {
        Trial trial = search.at(Search::moved(best.values, p, way * share * p.spread));
        if (!(trial.cost < best.cost)) continue;
        best = std::move(trial);
        better = true;
        break;
      }
    }
    if (!better) share /= 2;
  }
  result.converged = share < options.last_step;

  // Half of the second difference of the cost around the result is 1 / (2 sd^2).
  const double around = 2 * options.last_step;
  for (const FreeParameter& p : problem.free) {
    const double h = around * p.spread;
    const double above = search.at(Search::moved(best.values, p, h)).cost;
    const double below = search.at(Search::moved(best.values, p, -h)).cost;
    const double bend = std::max(0.0, (above + below - 2 * best.cost) / (h * h));
    FittedParameter f{.index = p.index, .value = best.values[p.index]};
    f.relative_error = bend > 0 ? std::min(p.spread, 1 / std::sqrt(bend)) : p.spread;
    f.shrinkage = 1 - f.relative_error / p.spread;
    f.at_bound = f.value <= p.min || f.value >= p.max;
    if (above == best.cost && below == best.cost) {
      f.identified = Identified::no_effect;
    } else if (f.shrinkage < options.min_shrinkage) {
      f.identified = Identified::weakly;
    }
    result.parameters.push_back(f);
  }
  result.cost = best.cost;
  result.values = std::move(best.values);
  result.predicted = std::move(best.predicted);
  std::vector<double> sizes;
  for (std::size_t i = 0; i < result.predicted.size(); ++i) {
    if (!problem.weights.empty() && problem.weights[i] == 0) continue;
    sizes.push_back(std::abs(std::log(result.predicted[i] / problem.measured[i])));
  }
  constexpr double kOfNormal = 1.4826;
  result.residual_scale = sizes.empty() ? 0 : kOfNormal * quantile(std::move(sizes), 0.5);
  result.predictions = search.predictions();
  return result;
}

}  // namespace llmperf::measure
