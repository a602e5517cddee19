// The fit finds known constants, says how well, and leaves alone what the data do not know.
#include "measure/fit.h"

#include <algorithm>

#include "base/error.h"
#include "catch.h"
#include "measure/synthetic.h"

namespace llmperf::measure::fit_test {
namespace {

constexpr double kTruth[] = {kLaunch, kShare, kMemory};

// How many of its own standard errors a parameter is off the truth.
double standard_errors_off(const FittedParameter& p) {
  return std::abs(std::log(p.value / kTruth[p.index])) / p.relative_error;
}

}  // namespace

TEST_CASE("constants behind exact measurements are found exactly", "[fit]") {
  const std::vector<Kernel> list = kernels(50);
  const FitResult result = fit(kernel_problem(list, 0));
  CHECK(result.converged);
  CHECK(result.iterations <= 12);
  // The priors pull by (noise / spread)^2 / rows, far less than a percent.
  for (const FittedParameter& p : result.parameters) CHECK(p.value == Approx(kTruth[p.index]).epsilon(0.005));
}

TEST_CASE("constants behind 200 noisy measurements are found within the stated uncertainty", "[fit]") {
  const std::vector<Kernel> list = kernels(200);
  const FitResult result = fit(kernel_problem(list, 0.05));
  REQUIRE(result.converged);
  for (const FittedParameter& p : result.parameters) {
    INFO("parameter " << p.index << " is " << p.value << " +- " << p.relative_error);
    CHECK(p.identified == Identified::yes);
    CHECK(p.relative_error < 0.04);
    CHECK(p.relative_error > 0.003);  // 5 % / sqrt(200) is 0.0035: no data can say more
    CHECK(standard_errors_off(p) < 3);
    CHECK_FALSE(p.at_bound);
  }
  CHECK(result.residual_scale == Approx(0.05).epsilon(0.15));
}

TEST_CASE("every twentieth measurement off by a factor of ten moves constants by little", "[fit]") {
  const std::vector<Kernel> list = kernels(200);
  FitProblem problem = kernel_problem(list, 0.05);
  for (std::size_t i = 0; i < list.size(); i += 20) problem.measured[i] *= 10;
  const FitResult result = fit(problem);
  REQUIRE(result.converged);
  // Least squares would take them for 5 % * ln 10 = 12 % of slowness all over.
  for (const FittedParameter& p : result.parameters) CHECK(p.value == Approx(kTruth[p.index]).epsilon(0.06));
}

TEST_CASE("a parameter no row depends on stays at its default and is said to have no effect", "[fit]") {
  const std::vector<Kernel> list = kernels(50);
  FitProblem problem = kernel_problem(list, 0.05);
  problem.values[unused] = 3;
  problem.free.push_back({unused, 2, 0.5, 0.1, 10});
  const FitResult result = fit(problem);
  const FittedParameter& p = result.parameters.back();
  CHECK(p.identified == Identified::no_effect);
  CHECK(p.value == 2);
  CHECK(result.values[unused] == 2);
  CHECK(p.relative_error == 0.5);
  CHECK(p.shrinkage == 0);
}

TEST_CASE("a parameter the rows barely touch goes back to its default", "[fit]") {
  // 5 rows of about 1 ms, of which the launch is less than a percent: 5 % of noise hides it.
  std::vector<Kernel> list(5, Kernel{kPeak * 0.5e-3, kBandwidth * 0.1e-3});
  for (std::size_t i = 0; i < list.size(); ++i) list[i].flops *= 1 + 0.1 * static_cast<double>(i);
  FitProblem problem = kernel_problem(list, 0.05);
  problem.free.resize(1);  // the launch only
  problem.values = {10e-6, kShare, kMemory, 1};
  const FitResult result = fit(problem);
  CHECK(result.parameters[0].identified == Identified::weakly);
  CHECK(result.parameters[0].value == 10e-6);
  CHECK(result.parameters[0].shrinkage < 0.1);
  CHECK(result.slopes.parameters.empty());
}

TEST_CASE("of parameters that only their sum is known of, one is kept", "[fit]") {
  // Thirty fixed costs of 1 us where 300 us were measured: of each alone the rows say next to nothing, since the others
  // can take its place, and one of them has to explain what the defaults leave out.
  constexpr std::size_t kCosts = 30;
  FitProblem problem;
  problem.measured.assign(20, 300e-6);
  problem.values.assign(kCosts, 1e-6);
  problem.predict = [](std::span<const double> values, std::optional<std::size_t>, std::span<double> predicted) {
    double sum = 0;
    for (const double v : values) sum += v;
    for (double& p : predicted) p = sum;
  };
  for (std::size_t i = 0; i < kCosts; ++i) problem.free.push_back({i, 1e-6, 1, 1e-9, 1e-3});
  const FitResult result = fit(problem);
  CHECK(result.predicted[0] == Approx(300e-6).epsilon(0.05));
  CHECK(std::any_of(result.parameters.begin(), result.parameters.end(),
                    [](const FittedParameter& p) { return p.identified == Identified::yes; }));
}

TEST_CASE("the rest is fitted again once a parameter is back at its default", "[fit]") {
  // Rows that only compute: of a wrong start of `memory` nothing may remain in `share`.
  std::vector<Kernel> list = kernels(50);
  for (Kernel& k : list) k.bytes = 0;
  FitProblem problem = kernel_problem(list, 0);
  const FitResult result = fit(problem);
  CHECK(result.parameters[memory].identified == Identified::no_effect);
  CHECK(result.values[memory] == 0.5);
  CHECK(result.values[share] == Approx(kShare).epsilon(0.005));
}

TEST_CASE("a fitted value stays within its bounds and says that it stands at one", "[fit]") {
  const std::vector<Kernel> list = kernels(100);
  FitProblem problem = kernel_problem(list, 0.02);
  problem.free[share].max = 0.9;
  problem.free[share].min = 0.75;  // the truth, 0.6, is out of reach
  const FitResult result = fit(problem);
  CHECK(result.converged);
  CHECK(result.values[share] == Approx(0.75));
  CHECK(result.parameters[share].at_bound);
  CHECK_FALSE(result.parameters[memory].at_bound);
}

TEST_CASE("a pull that gives way lets a number go that is far off", "[fit]") {
  // One row, 40 % above the default of the one number, which is its time. Of both terms the slopes are equal in the
  // end: r / s^2 / sqrt(1 + (r / c)^2) of the row's residual and z / spread / sqrt(1 + z^2) of what the number is off.
  FitProblem problem;
  problem.measured = {1.4};
  problem.values = {1};
  problem.predict = [](std::span<const double> values, std::optional<std::size_t>, std::span<double> predicted) {
    predicted[0] = values[0];
  };
  problem.free = {{0, 1, 0.1, 0.1, 10, 1}};
  const double found = std::log(fit(problem).values[0]);
  const double r = std::log(1.4) - found;
  CHECK(r / (0.05 * 0.05 * std::hypot(1, r / 0.15)) ==
        Approx(found / (0.1 * 0.1 * std::hypot(1, found / 0.1))).epsilon(0.01));
  CHECK(r == Approx(0.024).margin(0.001));
  problem.free[0].outlier = 0;
  CHECK(std::log(1.4) - std::log(fit(problem).values[0]) == Approx(0.073).margin(0.005));
}

TEST_CASE("without rows every parameter stays at its default", "[fit]") {
  const std::vector<Kernel> list = kernels(20);
  FitProblem problem = kernel_problem(list, 0.05);
  problem.weights.assign(20, 0.0);
  const FitResult result = fit(problem);
  CHECK(result.values == std::vector<double>{10e-6, 0.9, 0.5, 1});
}

TEST_CASE("a row of weight 0 has no say and is predicted nevertheless", "[fit]") {
  const std::vector<Kernel> list = kernels(60);
  FitProblem problem = kernel_problem(list, 0.02);
  const FitResult all = fit(problem);
  problem.measured[5] *= 1000;
  problem.weights.assign(60, 1.0);
  problem.weights[5] = 0;
  const FitResult without = fit(problem);
  CHECK(without.predicted[5] == Approx(all.predicted[5]).epsilon(0.02));
  problem.measured[5] /= 500;
  CHECK(fit(problem).values == without.values);
}

TEST_CASE("two copies of a row of weight one half are that row", "[fit]") {
  std::vector<Kernel> list = kernels(30);
  const FitResult once = fit(kernel_problem(list, 0.03));
  std::vector<Kernel> twice = list;
  twice.insert(twice.end(), list.begin(), list.end());
  FitProblem problem = kernel_problem(twice, 0);
  const FitProblem single = kernel_problem(list, 0.03);
  std::copy(single.measured.begin(), single.measured.end(), problem.measured.begin());
  std::copy(single.measured.begin(), single.measured.end(), problem.measured.begin() + 30);
  problem.weights.assign(60, 0.5);
  const FitResult result = fit(problem);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(result.values[i] == Approx(once.values[i]).epsilon(1e-4));
    CHECK(result.parameters[i].relative_error == Approx(once.parameters[i].relative_error).epsilon(1e-3));
  }
}

TEST_CASE("parameters that only work together are reported as correlated", "[fit]") {
  // t = flops / (peak * share * unused): the rows know the product only.
  const std::vector<Kernel> list = kernels(100);
  FitProblem problem = kernel_problem(list, 0);
  problem.predict = [&list](std::span<const double> v, std::optional<std::size_t>, std::span<double> predicted) {
    for (std::size_t i = 0; i < list.size(); ++i) predicted[i] = list[i].flops / (kPeak * v[share] * v[unused]);
  };
  for (std::size_t i = 0; i < list.size(); ++i) problem.measured[i] = list[i].flops / (kPeak * 0.36);
  problem.values = {1, 0.6, 1, 0.6};
  problem.free = {{share, 0.7, 0.5, 0.01, 1}, {unused, 0.7, 0.5, 0.01, 1}};
  const FitResult result = fit(problem);
  REQUIRE(result.correlations.size() == 1);
  CHECK(result.correlations[0].coefficient < -0.99);
  CHECK(result.values[share] * result.values[unused] == Approx(0.36).epsilon(0.001));
  CHECK(result.values[share] == Approx(0.6).epsilon(0.001));  // equal priors share what there is to explain
}

TEST_CASE("the predictor is asked for changes of one parameter against its last full prediction", "[fit]") {
  const std::vector<Kernel> list = kernels(20);
  FitProblem problem = kernel_problem(list, 0.05);
  const Predict plain = problem.predict;
  std::vector<double> base;
  bool sound = true;
  problem.predict = [&](std::span<const double> values, std::optional<std::size_t> changed,
                        std::span<double> predicted) {
    if (!changed) {
      base.assign(values.begin(), values.end());
    } else {
      for (std::size_t i = 0; i < values.size(); ++i) sound = sound && (values[i] != base[i]) == (i == *changed);
      std::vector<double> expected(predicted.size());
      plain(base, std::nullopt, expected);
      sound = sound && std::equal(expected.begin(), expected.end(), predicted.begin());
    }
    plain(values, changed, predicted);
  };
  CHECK(fit(problem).converged);
  CHECK(sound);
}

TEST_CASE("rows a predictor leaves as they are count as not affected", "[fit]") {
  const std::vector<Kernel> list = kernels(50);
  FitProblem problem = kernel_problem(list, 0.05);
  const FitResult expected = fit(problem);
  const Predict plain = problem.predict;
  problem.free.push_back({unused, 2, 0.5, 0.1, 10});
  problem.predict = [&](std::span<const double> values, std::optional<std::size_t> changed,
                        std::span<double> predicted) {
    if (changed != unused) plain(values, changed, predicted);
  };
  const FitResult result = fit(problem);
  CHECK(result.parameters.back().identified == Identified::no_effect);
  for (std::size_t i = 0; i < 3; ++i) CHECK(result.values[i] == Approx(expected.values[i]).epsilon(1e-4));
}

TEST_CASE("equal problems have equal results to the last bit", "[fit]") {
  const std::vector<Kernel> list = kernels(80);
  const FitProblem problem = kernel_problem(list, 0.1);
  CHECK(fit(problem).values == fit(problem).values);
}

TEST_CASE("known slopes at the start save predictions and change nothing", "[fit]") {
  const std::vector<Kernel> list = kernels(80);
  FitProblem problem = kernel_problem(list, 0.05);
  const FitResult first = fit(problem);
  problem.values = first.values;
  const FitResult again = fit(problem, {}, &first.slopes);
  CHECK(again.predictions == 1);
  CHECK(again.values[share] == Approx(first.values[share]).epsilon(1e-12));
}

TEST_CASE("thirty parameters of a thousand rows converge within thirty iterations", "[fit]") {
  // Row i depends on parameters i and i + 1 (modulo 30), as a time and as a share.
  constexpr std::size_t kRows = 1000;
  constexpr std::size_t kParameters = 30;
  const auto time = [](std::span<const double> v, std::size_t i) {
    const double work = 1 + 0.01 * static_cast<double>(i);
    return v[i % kParameters] + work / v[(i + 1) % kParameters];
  };
  std::vector<double> truth(kParameters);
  Noise noise(3);
  for (double& v : truth) v = std::exp(noise.normal());
  FitProblem problem;
  for (std::size_t i = 0; i < kRows; ++i) problem.measured.push_back(time(truth, i) * std::exp(0.05 * noise.normal()));
  problem.predict = [&](std::span<const double> v, std::optional<std::size_t>, std::span<double> predicted) {
    for (std::size_t i = 0; i < kRows; ++i) predicted[i] = time(v, i);
  };
  problem.values.assign(kParameters, 1);
  for (std::size_t i = 0; i < kParameters; ++i) problem.free.push_back({i, 1, 1, 1e-3, 1e3});
  const FitResult result = fit(problem);
  CHECK(result.converged);
  CHECK(result.iterations <= 15);
  for (const FittedParameter& p : result.parameters) {
    INFO("parameter " << p.index);
    CHECK(std::abs(std::log(p.value / truth[p.index])) < 4 * p.relative_error);
  }
}

TEST_CASE("a prediction that is no positive time is an error, not a fit", "[fit]") {
  const std::vector<Kernel> list = kernels(5);
  FitProblem problem = kernel_problem(list, 0);
  problem.predict = [](std::span<const double>, std::optional<std::size_t>, std::span<double> predicted) {
    std::fill(predicted.begin(), predicted.end(), 1.0);
    predicted[2] = 0;
  };
  CHECK_THROWS_WITH(fit(problem), "the prediction of measurement 3 is not a positive time");
}

TEST_CASE("a default outside of its bounds is an error", "[fit]") {
  const std::vector<Kernel> list = kernels(5);
  FitProblem problem = kernel_problem(list, 0);
  problem.free[0].prior = 1;  // s; at most 1 ms
  CHECK_THROWS_AS(fit(problem), Error);
}

}  // namespace llmperf::measure::fit_test
