// What is left out has no part in its own prediction.
#include "catch.h"
#include "measure/fit.h"
#include "measure/synthetic.h"

namespace llmperf::measure::cross_validation_test {

TEST_CASE("few groups are a fold each, in order of appearance", "[cross_validation]") {
  const std::vector<std::string> labels = {"a", "b", "a", "c", "c", "c"};
  CHECK(deal_folds(labels, {}) == std::vector<int>{0, 1, 0, 2, 2, 2});
}

TEST_CASE("many groups are dealt to folds of nearly equal size and never divided", "[cross_validation]") {
  std::vector<std::string> labels;
  for (int group = 0; group < 40; ++group)
    labels.insert(labels.end(), static_cast<std::size_t>(1 + group % 4), std::to_string(group));
  const std::vector<int> folds = deal_folds(labels, {}, 10);  // 10 groups each of 1, 2, 3 and 4 rows: 100 rows
  std::vector<int> size(10, 0);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    ++size[static_cast<std::size_t>(folds[i])];
    if (i > 0 && labels[i] == labels[i - 1]) CHECK(folds[i] == folds[i - 1]);
  }
  CHECK(size == std::vector<int>(10, 10));
  CHECK(deal_folds(labels, {}, 10) == folds);
}

TEST_CASE("rows without weight make no fold", "[cross_validation]") {
  const std::vector<std::string> labels = {"a", "b", "c"};
  const std::vector<double> weights = {0, 1, 1};
  CHECK(deal_folds(labels, weights) == std::vector<int>{0, 0, 1});
}

TEST_CASE("a group's own measurements do not change its prediction", "[cross_validation]") {
  const std::vector<Kernel> list = kernels(60);
  FitProblem problem = kernel_problem(list, 0.03);
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < list.size(); ++i) labels.push_back(std::to_string(i % 3));
  const CrossValidation honest = cross_validate(problem, fit(problem), labels);
  REQUIRE(honest.folds == 3);
  for (std::size_t i = 0; i < list.size(); i += 3) problem.measured[i] *= 1.3;
  const CrossValidation spoilt = cross_validate(problem, fit(problem), labels);
  for (std::size_t i = 0; i < list.size(); ++i) {
    INFO("row " << i);
    if (i % 3 == 0) {
      CHECK(spoilt.predicted[i] == Approx(honest.predicted[i]).epsilon(2e-3));
    } else {
      CHECK(spoilt.predicted[i] > honest.predicted[i] * 1.02);  // its neighbours learned from the spoilt group
    }
  }
}

TEST_CASE("a parameter that only the group left out knows is its default there", "[cross_validation]") {
  // Group b alone moves bytes; without it `memory` is 0.5, and its predictions use that.
  std::vector<Kernel> list = kernels(40);
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < list.size(); ++i) {
    labels.emplace_back(i < 20 ? "a" : "b");
    if (i < 20) list[i].bytes = 0;
    if (i >= 20) list[i].bytes = kBandwidth * 1e-3 * (1 + static_cast<double>(i));
  }
  const FitProblem problem = kernel_problem(list, 0);
  const FitResult full = fit(problem);
  CHECK(full.values[memory] == Approx(kMemory).epsilon(0.005));
  const CrossValidation result = cross_validate(problem, full, labels);
  CHECK(result.predicted[30] == Approx(problem.measured[30] * kMemory / 0.5).epsilon(0.02));
  // Over both folds the logarithm of `memory` is ln 0.8 once and ln 0.5 once: sqrt(1/2 * 2 * (ln(1.6) / 2)^2).
  CHECK(result.spread[memory] == Approx(std::log(1.6) / 2).epsilon(0.01));
}

TEST_CASE("one group cannot be left out", "[cross_validation]") {
  const std::vector<Kernel> list = kernels(10);
  const FitProblem problem = kernel_problem(list, 0.03);
  const std::vector<std::string> labels(10, "same");
  const CrossValidation result = cross_validate(problem, fit(problem), labels);
  CHECK(result.folds == 0);
  CHECK(result.predicted.empty());
}

}  // namespace llmperf::measure::cross_validation_test
