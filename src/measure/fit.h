// Fitting positive parameters to measured times.
//
// The unknowns are the logarithms u of the parameters: a share of 0.4 is as far from 0.8 as a launch of 4 us is from
// 8 us, and none becomes negative. With the residual r = log(predicted / measured) of every row, weight w, noise s of a
// measurement and scale c beyond which a row counts as an outlier, the fit minimises
//
//   sum w (c / s)^2 (sqrt(1 + (r / c)^2) - 1)  +  sum ((u - u_prior) / spread)^2 / 2
//
// The first term (soft L1) is r^2 / 2 s^2 for small residuals and grows linearly for large ones; the second is a
// log-normal prior. The method is Levenberg-Marquardt with reweighting (Nocedal & Wright, Numerical Optimization,
// section 10.3) within box bounds: a parameter at a bound that would leave it stays out of the step, and what a step
// carries across one is put back on it.
//
// A parameter is identified when the rows say something about it: when its standard deviation, from the Hessian of both
// terms, is clearly smaller than the prior's. Others go back to their default, the least identified first, and the rest
// is fitted again: a number that the data could not know is not changed by it. One without which the refitted cost
// rises by more than one (times the squared ratio of residuals to noise) is identified all the same: together with
// others it carries the times, whichever of them does.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace llmperf::measure {

struct FreeParameter {
  std::size_t index = 0;  // in FitProblem::values
  double prior = 0;       // default, where the parameter stays when rows say nothing
  double spread = 0.5;    // standard deviation of its logarithm
  double min = 0;         // positive
  double max = 0;
  // Spreads beyond which the pull is soft L1 too, so that one far off is not shared out among others; 0: a normal
  // prior.
  double outlier = 0;
};

// Writes the predicted time of every row, in seconds. With `changed`, `values` differ in that one parameter from those
// of the last call without it, and `predicted` comes filled with that call's result: rows that do not depend on the
// parameter may be left as they are.
using Predict = std::function<void(std::span<const double> values, std::optional<std::size_t> changed,
                                   std::span<double> predicted)>;

struct FitProblem {
  std::vector<double> measured;  // s
  std::vector<double> weights;   // of rows; 0 leaves one out; empty: all 1
  Predict predict;
  std::vector<double> values;  // of all parameters: where the free ones start, and what the others are
  std::vector<FreeParameter> free;
  double noise = 0.05;    // relative standard deviation of a measurement
  double outlier = 0.15;  // relative residual from where on a row loses influence
};

struct FitOptions {
  int max_iterations = 30;
  double min_shrinkage = 0.1;  // of the prior's standard deviation, for a parameter to be identified; 0: all are
  double strong_correlation = 0.9;
};

enum class Identified : unsigned char {
  yes,
  no_effect,  // no row depends on it
  weakly,     // rows barely narrow the prior down
};

struct FittedParameter {
  std::size_t index = 0;
  double value = 0;  // the default unless identified
  Identified identified = Identified::yes;
  double relative_error = 0;  // standard deviation of the logarithm, given rows and prior; not identified: the prior's
  double shrinkage = 0;       // 1 - that over the prior's, when it was last fitted
  bool at_bound = false;
};

struct Correlation {
  std::size_t first = 0;  // indices in FitProblem::values
  std::size_t second = 0;
  double coefficient = 0;
};

// d log(predicted) / d log(parameter) at the result, for the identified parameters in their order: column after column.
struct Slopes {
  std::vector<std::size_t> parameters;
  std::vector<double> values;
};

struct FitResult {
  std::vector<double> values;               // of all parameters
  std::vector<FittedParameter> parameters;  // of FitProblem::free, in its order
  std::vector<Correlation> correlations;    // strong ones, the strongest first
  std::vector<double> predicted;            // s, of all rows, also of those left out
  Slopes slopes;
  double cost = 0;
  double residual_scale = 0;  // 1.48 times the median absolute residual: the noise if residuals were normal
  int iterations = 0;         // of the last fit, after the last parameter was dropped
  int predictions = 0;        // calls of predict in all
  bool converged = false;
};

// `slopes` of an earlier fit that ended at problem.values save the first derivatives. Throws Error(failed) when a row's
// first prediction is not a positive number.
FitResult fit(const FitProblem& problem, const FitOptions& options = {}, const Slopes* slopes = nullptr);

// ---- How well a model predicts what it was not fitted on: rows are left out a group at a time (a whole model, a whole
// (n, k) site), the rest is fitted, and the group is predicted with that. Leaving single rows out would say little,
// because their neighbours with nearly the same shape stay.

struct CrossValidation {
  int folds = 0;                  // 0: all rows are one group, so nothing can be left out
  std::vector<int> fold;          // of each row: in which it was left out
  std::vector<double> predicted;  // s, by the fit without the row's fold; empty without folds
  // Of problem.free in its order: delete-a-group jackknife standard deviation of the logarithm. It covers what the
  // Hessian cannot know, that the model is not exact. Empty without folds.
  std::vector<double> spread;
  int predictions = 0;  // calls of predict
};

// The fold of each row, from 0 on. Every label is a fold of its own while there are at most `max_folds`; else labels
// are dealt out, the largest first, each to the fold with the fewest rows. `weights` of 0 mark rows that take no part;
// they get fold 0. Depends on nothing but its arguments.
std::vector<int> deal_folds(std::span<const std::string> labels, std::span<const double> weights, int max_folds = 10);

// `full` is the fit of all of `problem`; its identified parameters are fitted again for every fold, from its values.
CrossValidation cross_validate(const FitProblem& problem, const FitResult& full, std::span<const std::string> labels,
                               int max_folds = 10, const FitOptions& options = {});

// ---- A fit by predictions alone, for few parameters of what has no derivatives: a simulation jumps where one more
// request is preempted. The cost is that above. From where the parameters start, one after the other is moved by a
// step of its logarithm either way, and kept where the cost falls; once none falls the steps are halved (Hooke and
// Jeeves, J. ACM 8 (1961) 212, without the pattern move). What a parameter is known to follows from how the cost bends
// over the last steps around the result.

struct SearchOptions {
  double first_step = 0.5;  // of a logarithm, as a share of the prior's spread
  double last_step = 0.03;  // likewise
  int most_predictions = 120;
  double min_shrinkage = 0.1;
};

// The result has neither correlations nor slopes. Throws Error(failed) as fit() does.
FitResult pattern_search(const FitProblem& problem, const SearchOptions& options = {});

}  // namespace llmperf::measure
