// The search finds what made the data, leaves what the data say nothing about, and stays within bounds.
#include <cmath>

#include "base/error.h"
#include "catch.h"
#include "measure/fit.h"

namespace llmperf::measure::pattern_search_test {
namespace {

// Times a + b x with a jump that no derivative sees: in whole tenths.
FitProblem steps_of(double a, double b) {
  const auto time = [](double constant, double slope, double x) {
    return std::round(10 * (constant + slope * x)) / 10;
  };
  FitProblem problem;
  for (double x = 1; x <= 64; x *= 2) problem.measured.push_back(time(a, b, x));
  problem.predict = [time](std::span<const double> values, std::optional<std::size_t>, std::span<double> out) {
    double x = 1;
    for (double& seconds : out) {
      seconds = time(values[0], values[1], x);
      x *= 2;
    }
  };
  problem.values = {5, 5, 1};
  problem.free = {{0, 5, 1, 0.1, 100}, {1, 5, 1, 0.1, 100}, {2, 1, 1, 0.1, 10}};
  return problem;
}

}  // namespace

TEST_CASE("a search finds the numbers behind data that jump", "[fit]") {
  const FitProblem problem = steps_of(20, 2);
  const FitResult found = pattern_search(problem);
  CHECK(found.converged);
  CHECK(found.values[0] == Approx(20).epsilon(0.1));
  CHECK(found.values[1] == Approx(2).epsilon(0.1));
  CHECK(found.parameters[0].identified == Identified::yes);
  CHECK(found.parameters[1].identified == Identified::yes);
  // Nothing depends on the third.
  CHECK(found.values[2] == 1);
  CHECK(found.parameters[2].identified != Identified::yes);
  CHECK(found.residual_scale < 0.1);
}

TEST_CASE("a search stops at bounds, and where it has predicted enough", "[fit]") {
  FitProblem problem = steps_of(20, 2);
  problem.free[0].max = 10;
  const FitResult bounded = pattern_search(problem);
  CHECK(bounded.values[0] == 10);
  CHECK(bounded.parameters[0].at_bound);
  const FitResult few = pattern_search(steps_of(20, 2), {.most_predictions = 5});
  CHECK_FALSE(few.converged);
  CHECK(few.predictions <= 5 + 6 + 6);  // a round of three parameters, and two for each of how well they are known
}

TEST_CASE("a search counts no rows of weight 0, and refuses predictions that are no times", "[fit]") {
  FitProblem problem = steps_of(20, 2);
  problem.measured.back() *= 100;
  problem.weights.assign(problem.measured.size(), 1);
  problem.weights.back() = 0;
  CHECK(pattern_search(problem).values[1] == Approx(2).epsilon(0.1));
  problem.predict = [](std::span<const double>, std::optional<std::size_t>, std::span<double> out) { out[0] = -1; };
  CHECK_THROWS_AS(pattern_search(problem), Error);
}

}  // namespace llmperf::measure::pattern_search_test
