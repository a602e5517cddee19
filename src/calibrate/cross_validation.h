// How well a model predicts what it was not fitted on: rows are left out a group at a time (a whole model, a whole (n,
// k) site), the rest is fitted, and the group is predicted with that. Leaving single rows out would say little, because
// their neighbours with nearly the same shape stay.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibrate/fit.h"

namespace llmperf::calibrate {

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

}  // namespace llmperf::calibrate
