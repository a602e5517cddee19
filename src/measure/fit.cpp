#include "measure/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "measure/linear.h"
#include "measure/statistics.h"

namespace llmperf::measure {
namespace {

constexpr double kStep = 1e-4;       // of a logarithm, for derivatives
constexpr double kConverged = 1e-4;  // squared length of a step in posterior standard deviations
constexpr double kSettled = 1e-5;    // relative gain of a step
constexpr double kMaxDamping = 1e8;

// A point of the search with all that was computed there.
struct Point {
  std::vector<double> u;  // logarithms of the free parameters
  std::vector<double> values;
  std::vector<double> predicted;
  std::vector<double> residuals;  // 0 for rows left out
  double cost = 0;
};

// Minimises over a fixed set of free parameters.
class Minimiser {
 public:
  Minimiser(const FitProblem& problem, std::vector<FreeParameter> free, std::vector<double> values)
      : problem_(&problem), free_(std::move(free)), n_(free_.size()), rows_(problem.measured.size()) {
    point_.u.resize(n_);
    for (std::size_t i = 0; i < n_; ++i) {
      const FreeParameter& p = parameter(i);
      point_.u[i] = std::log(std::clamp(values[p.index], p.min, p.max));
    }
    point_.values = std::move(values);
    point_.predicted.resize(problem.measured.size());
    slopes_ = Matrix(rows_, n_);
    evaluate(point_);
    for (std::size_t row = 0; row < rows_; ++row) {
      if (weight(row) > 0 && !std::isfinite(point_.residuals[row])) {
        throw Error::bad_input(fmt::format("the prediction of measurement {} is not a positive time", row + 1));
      }
    }
  }

  // `known` holds the derivatives at the starting point.
  void minimise(int max_iterations, const Slopes* known) {
    double damping = 1e-3;
    bool fresh = known != nullptr && take_slopes(*known);
    bool settled = false;
    for (iterations_ = 0; iterations_ < max_iterations; ++iterations_) {
      if (!fresh) differentiate();
      fresh = false;
      const std::vector<double> gradient = cost_gradient();
      const Matrix hessian = cost_hessian(problem_->noise);
      const std::vector<std::size_t> moving = not_held(gradient);
      if (settled || moving.empty() || -dot(gradient, step(hessian, gradient, moving, 0)) < kConverged) {
        converged_ = true;
        return;
      }
      const double before = point_.cost;
      if (!improve(hessian, gradient, moving, damping)) {
        converged_ = true;  // no better point in reach: the predictions have a kink here
        return;
      }
      settled = before - point_.cost < kSettled * (1 + point_.cost);
    }
    differentiate();
  }

  // Of the logarithms, given rows and prior. Where the model does not reach the noise of measurements, its residuals
  // are taken for noise.
  Matrix covariance() const {
    const double noise = std::max(problem_->noise, residual_scale());
    return inverse(cost_hessian(noise));
  }

  double residual_scale() const {
    constexpr double kNormal = 1.4826;
    std::vector<double> sizes;
    for (std::size_t row = 0; row < rows_; ++row) {
      if (weight(row) > 0) sizes.push_back(std::abs(point_.residuals[row]));
    }
    return sizes.empty() ? 0 : kNormal * quantile(std::move(sizes), 0.5);
  }

  bool has_effect(std::size_t i) const {
    constexpr double kNone = 1e-9;
    for (std::size_t row = 0; row < rows_; ++row) {
      if (weight(row) > 0 && std::abs(slopes_(row, i)) > kNone) return true;
    }
    return false;
  }
  bool at_bound(std::size_t i) const { return point_.u[i] <= lower(i) || point_.u[i] >= upper(i); }

  const Point& point() const { return point_; }
  const std::vector<FreeParameter>& free() const { return free_; }
  const Matrix& slopes() const { return slopes_; }
  int iterations() const { return iterations_; }
  int predictions() const { return predictions_; }
  bool converged() const { return converged_; }

 private:
  const FreeParameter& parameter(std::size_t i) const { return free_[i]; }
  double lower(std::size_t i) const { return std::log(parameter(i).min); }
  double upper(std::size_t i) const { return std::log(parameter(i).max); }
  double weight(std::size_t row) const { return problem_->weights.empty() ? 1 : problem_->weights[row]; }

  // Fills in all of the point but u.
  void evaluate(Point& p) {
    for (std::size_t i = 0; i < n_; ++i) p.values[parameter(i).index] = std::exp(p.u[i]);
    problem_->predict(p.values, std::nullopt, p.predicted);
    ++predictions_;
    p.residuals.assign(rows_, 0);
    p.cost = 0;
    const double c = problem_->outlier;
    const double scale = (c / problem_->noise) * (c / problem_->noise);
    for (std::size_t row = 0; row < rows_; ++row) {
      if (weight(row) <= 0) continue;
      const double r = std::log(p.predicted[row] / problem_->measured[row]);
      p.residuals[row] = r;
      p.cost += weight(row) * scale * (std::sqrt(1 + (r / c) * (r / c)) - 1);
    }
    for (std::size_t i = 0; i < n_; ++i) {
      const double z = prior_offset(p.u, i);
      const double far = parameter(i).outlier;
      p.cost += far > 0 ? far * far * (prior_bend(p.u, i) - 1) : z * z / 2;
    }
  }

  double prior_offset(const std::vector<double>& u, std::size_t i) const {
    return (u[i] - std::log(parameter(i).prior)) / parameter(i).spread;
  }

  // By how much less a prior pulls than a normal one would.
  double prior_bend(const std::vector<double>& u, std::size_t i) const {
    const double far = parameter(i).outlier;
    if (far <= 0) return 1;
    const double offset = prior_offset(u, i) / far;
    return std::sqrt(1 + offset * offset);
  }

  bool take_slopes(const Slopes& known) {
    if (known.values.size() != known.parameters.size() * rows_) return false;
    for (std::size_t i = 0; i < n_; ++i) {
      const auto found = std::find(known.parameters.begin(), known.parameters.end(), parameter(i).index);
      if (found == known.parameters.end()) return false;
      const auto column = static_cast<std::size_t>(found - known.parameters.begin());
      for (std::size_t row = 0; row < rows_; ++row) slopes_(row, i) = known.values[column * rows_ + row];
    }
    return true;
  }

  // Forward differences, backward at the upper bound. The last call without a changed parameter was at point_, or at a
  // trial that failed.
  void differentiate() {
    if (!base_is_point_) {
      problem_->predict(point_.values, std::nullopt, point_.predicted);
      ++predictions_;
      base_is_point_ = true;
    }
    std::vector<double> values = point_.values;
    std::vector<double> moved(point_.predicted.size());
    for (std::size_t i = 0; i < n_; ++i) {
      const std::size_t index = parameter(i).index;
      const double h = point_.u[i] + kStep > upper(i) ? -kStep : kStep;
      values[index] = std::exp(point_.u[i] + h);
      moved = point_.predicted;
      problem_->predict(values, index, moved);
      ++predictions_;
      values[index] = point_.values[index];
      for (std::size_t row = 0; row < rows_; ++row) {
        const double slope = moved[row] == point_.predicted[row] ? 0 : std::log(moved[row] / point_.predicted[row]) / h;
        slopes_(row, i) = std::isfinite(slope) ? slope : 0;
      }
    }
  }

  // Weights of rows in the normal equations: soft L1 takes it from outliers.
  std::vector<double> row_weights(double noise) const {
    std::vector<double> weights(rows_);
    for (std::size_t row = 0; row < rows_; ++row) {
      const double z = point_.residuals[row] / problem_->outlier;
      weights[row] = weight(row) / (noise * noise * std::sqrt(1 + z * z));
    }
    return weights;
  }

  std::vector<double> cost_gradient() const {
    std::vector<double> weighted = row_weights(problem_->noise);
    for (std::size_t row = 0; row < rows_; ++row) weighted[row] *= point_.residuals[row];
    std::vector<double> gradient = transposed_product(slopes_, weighted);
    for (std::size_t i = 0; i < n_; ++i) {
      gradient[i] += prior_offset(point_.u, i) / (parameter(i).spread * prior_bend(point_.u, i));
    }
    return gradient;
  }

  Matrix cost_hessian(double noise) const {
    const std::vector<double> weights = row_weights(noise);
    Matrix scaled = slopes_;
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t row = 0; row < rows_; ++row) scaled(row, i) *= std::sqrt(weights[row]);
    }
    Matrix hessian = gram(scaled);
    for (std::size_t i = 0; i < n_; ++i) {
      hessian(i, i) += 1 / (parameter(i).spread * parameter(i).spread * prior_bend(point_.u, i));
    }
    return hessian;
  }

  // Parameters that may move: not those at a bound that the gradient pushes across it.
  std::vector<std::size_t> not_held(const std::vector<double>& gradient) const {
    std::vector<std::size_t> moving;
    for (std::size_t i = 0; i < n_; ++i) {
      const bool held = (point_.u[i] <= lower(i) && gradient[i] > 0) || (point_.u[i] >= upper(i) && gradient[i] < 0);
      if (!held) moving.push_back(i);
    }
    return moving;
  }

  std::vector<double> step(const Matrix& hessian, const std::vector<double>& gradient,
                           const std::vector<std::size_t>& moving, double damping) const {
    Matrix h(moving.size(), moving.size());
    std::vector<double> downhill(moving.size());
    for (std::size_t i = 0; i < moving.size(); ++i) {
      for (std::size_t j = 0; j < moving.size(); ++j) h(i, j) = hessian(moving[i], moving[j]);
      h(i, i) *= 1 + damping;
      downhill[i] = -gradient[moving[i]];
    }
    const std::vector<double> solved = solve(h, downhill);
    std::vector<double> full(n_);
    for (std::size_t i = 0; i < moving.size(); ++i) full[moving[i]] = solved[i];
    return full;
  }

  // Moves to a better point, with more damping until there is one. False when there is none.
  bool improve(const Matrix& hessian, const std::vector<double>& gradient, const std::vector<std::size_t>& moving,
               double& damping) {
    constexpr double kLongest = 2;  // of a logarithm: farther away slopes say nothing
    for (; damping <= kMaxDamping; damping *= 8) {
      const std::vector<double> move = step(hessian, gradient, moving, damping);
      double longest = 0;
      for (const double m : move) longest = std::max(longest, std::abs(m));
      const double scale = longest > kLongest ? kLongest / longest : 1;
      Point trial = point_;
      for (std::size_t i = 0; i < n_; ++i) trial.u[i] = std::clamp(point_.u[i] + scale * move[i], lower(i), upper(i));
      evaluate(trial);
      base_is_point_ = false;
      if (std::isfinite(trial.cost) && trial.cost < point_.cost) {
        point_ = std::move(trial);
        base_is_point_ = true;
        damping = std::max(damping / 16, 1e-9);
        return true;
      }
    }
    damping = kMaxDamping;
    return false;
  }

  const FitProblem* problem_;
  std::vector<FreeParameter> free_;
  std::size_t n_;
  std::size_t rows_;
  Point point_;
  Matrix slopes_;  // [rows, free]
  bool base_is_point_ = true;
  int iterations_ = 0;
  int predictions_ = 0;
  bool converged_ = false;
};

void check(const FitProblem& problem) {
  for (const FreeParameter& p : problem.free) {
    if (!(p.min > 0 && p.min <= p.prior && p.prior <= p.max && p.spread > 0)) {
      throw Error::failed(fmt::format("parameter {} cannot be fitted: prior {} within {} and {}, spread {}", p.index,
                                      p.prior, p.min, p.max, p.spread));
    }
  }
}

FittedParameter& of_index(std::vector<FittedParameter>& parameters, std::size_t index) {
  return *std::find_if(parameters.begin(), parameters.end(),
                       [&](const FittedParameter& p) { return p.index == index; });
}

// A parameter that the rows seem not to determine.
struct Doubtful {
  std::size_t index;
  double shrinkage;
  bool no_effect;
};
// Records what was found about every one of the minimiser's parameters, and returns those that the rows narrow down by
// less than `min_shrinkage`, the least first.
std::vector<Doubtful> doubtful(const Minimiser& found, const Matrix& covariance, double min_shrinkage,
                               std::vector<FittedParameter>& parameters) {
  std::vector<Doubtful> list;
  for (std::size_t i = 0; i < covariance.rows; ++i) {
    const FreeParameter& free = found.free()[i];
    FittedParameter& p = of_index(parameters, free.index);
    p.value = found.point().values[free.index];
    p.relative_error = std::sqrt(covariance(i, i));
    p.shrinkage = std::max(0.0, 1 - p.relative_error / free.spread);
    p.at_bound = found.at_bound(i);
    const bool no_effect = !found.has_effect(i);
    // Where a pull gives way the Hessian says nothing of what it would cost to drop the parameter.
    if (free.outlier == 0 && min_shrinkage > 0 && (no_effect || p.shrinkage < min_shrinkage)) {
      list.push_back({free.index, no_effect ? -1 : p.shrinkage, no_effect});
    }
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Doubtful& a, const Doubtful& b) { return a.shrinkage < b.shrinkage; });
  return list;
}

std::vector<Correlation> strong_correlations(const Minimiser& found, const Matrix& covariance, double strong) {
  std::vector<Correlation> list;
  for (std::size_t i = 0; i < covariance.rows; ++i) {
    for (std::size_t j = i + 1; j < covariance.rows; ++j) {
      const double c = covariance(i, j) / std::sqrt(covariance(i, i) * covariance(j, j));
      if (std::abs(c) < strong) continue;
      list.push_back({found.free()[i].index, found.free()[j].index, c});
    }
  }
  std::stable_sort(list.begin(), list.end(), [](const Correlation& a, const Correlation& b) {
    return std::abs(a.coefficient) > std::abs(b.coefficient);
  });
  return list;
}

Slopes slopes_of(const Minimiser& found) {
  Slopes slopes;
  for (const FreeParameter& p : found.free()) slopes.parameters.push_back(p.index);
  slopes.values = found.slopes().values;
  return slopes;
}

// Goes back to defaults step by step. What a step costs is judged against the fit before it: parameters that are nearly
// collinear (launch times, gaps, fixed costs of a step) each look as if the rows said nothing about them, and only
// together carry the times. So several go at once only while the cost stays, a single one that it rises without is
// kept, and the noise that the rise is measured in is that of the fit that still has the parameter.
class Elimination {
 public:
  Elimination(const FitProblem& problem, const FitOptions& options, const Slopes* slopes)
      : problem_(&problem), options_(&options), free_(problem.free) {
    for (const FreeParameter& p : problem.free) result_.parameters.push_back({.index = p.index, .value = p.prior});
    found_.emplace(problem, free_, problem.values);
    minimise(*found_, slopes);
  }

  FitResult run() {
    for (;;) {
      const Matrix covariance = found_->covariance();
      std::vector<Doubtful> list = doubtful(*found_, covariance, options_->min_shrinkage, result_.parameters);
      std::erase_if(list,
                    [&](const Doubtful& d) { return std::find(kept_.begin(), kept_.end(), d.index) != kept_.end(); });
      if (list.empty()) return finish(covariance);
      drop(list);
    }
  }

 private:
  void minimise(Minimiser& minimiser, const Slopes* slopes) {
    minimiser.minimise(options_->max_iterations, slopes);
    result_.predictions += minimiser.predictions();
  }

  // The longest start of the list that the cost allows, by halves: first all that are hardly narrowed down at all.
  void drop(const std::vector<Doubtful>& list) {
    const auto hardly = std::count_if(list.begin(), list.end(),
                                      [&](const Doubtful& d) { return d.shrinkage < options_->min_shrinkage / 4; });
    for (std::size_t n = std::max<std::size_t>(1, static_cast<std::size_t>(hardly)); n > 0; n /= 2) {
      if (try_without(std::span(list).first(n))) return;
    }
    kept_.push_back(list.front().index);
  }

  bool try_without(std::span<const Doubtful> dropped) {
    std::vector<FreeParameter> rest = free_;
    std::vector<double> values = found_->point().values;
    double with_effect = 0;
    for (const Doubtful& d : dropped) {
      const auto at =
          std::find_if(rest.begin(), rest.end(), [&](const FreeParameter& p) { return p.index == d.index; });
      values[d.index] = at->prior;
      rest.erase(at);
      with_effect += d.no_effect ? 0 : 1;
    }
    Minimiser without(*problem_, rest, std::move(values));
    minimise(without, nullptr);
    // One per parameter, as Akaike's criterion has it, where residuals are the noise of measurements; in proportion
    // where the model does not reach that.
    const double noise = std::max(1.0, found_->residual_scale() / problem_->noise);
    const double slack = 1e-6 * (1 + found_->point().cost);
    if (without.point().cost > found_->point().cost + with_effect * noise * noise + slack) return false;
    for (const Doubtful& d : dropped) {
      FittedParameter& p = of_index(result_.parameters, d.index);
      const auto at =
          std::find_if(free_.begin(), free_.end(), [&](const FreeParameter& f) { return f.index == d.index; });
      p.identified = d.no_effect ? Identified::no_effect : Identified::weakly;
      p.value = at->prior;
      p.relative_error = at->spread;
      p.at_bound = false;
    }
    free_ = std::move(rest);
    found_.emplace(std::move(without));
    return true;
  }

  FitResult finish(const Matrix& covariance) {
    result_.values = found_->point().values;
    result_.predicted = found_->point().predicted;
    result_.correlations = strong_correlations(*found_, covariance, options_->strong_correlation);
    result_.slopes = slopes_of(*found_);
    result_.cost = found_->point().cost;
    result_.residual_scale = found_->residual_scale();
    result_.iterations = found_->iterations();
    result_.converged = found_->converged();
    return std::move(result_);
  }

  const FitProblem* problem_;
  const FitOptions* options_;
  std::vector<FreeParameter> free_;
  std::vector<std::size_t> kept_;  // that the cost does not let go
  std::optional<Minimiser> found_;
  FitResult result_;
};

}  // namespace

FitResult fit(const FitProblem& problem, const FitOptions& options, const Slopes* slopes) {
  check(problem);
  return Elimination(problem, options, slopes).run();
}

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
  std::vector<std::size_t> all(labels.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<RowsOfText> groups = rows_by_text(
      all, [&](std::size_t row) { return takes_part(weights, row) ? std::optional(labels[row]) : std::nullopt; });
  std::vector<int> fold(labels.size(), 0);
  const bool own = groups.size() <= static_cast<std::size_t>(max_folds);
  if (!own) {
    std::stable_sort(groups.begin(), groups.end(),
                     [](const auto& a, const auto& b) { return a.rows.size() > b.rows.size(); });
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

}  // namespace llmperf::measure
