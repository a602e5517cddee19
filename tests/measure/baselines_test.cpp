#include <cmath>

#include "catch.h"
#include "measure/synthetic.h"
#include "measure/validation.h"

namespace llmperf::measure::baselines_test {

TEST_CASE("the bare roofline is the longer of compute and memory", "[baselines]") {
  const std::vector<double> measured = {1, 2, 3};
  const std::vector<RooflineTimes> times = {{0.5, 0.2, "a"}, {0.1, 0.4, "a"}, {1, 1, "a"}};
  CHECK(baselines(measured, times).roofline == std::vector<double>{0.5, 0.4, 1});
}

TEST_CASE("three constants behind exact times are found, for every kind of row its own", "[baselines]") {
  Noise noise(5);
  std::vector<double> measured;
  std::vector<RooflineTimes> times;
  for (int i = 0; i < 100; ++i) {
    const bool a = i % 2 == 0;
    times.push_back({1e-6 * std::pow(1000, noise.uniform()), 1e-6 * std::pow(1000, noise.uniform()), a ? "a" : "b"});
    const RooflineTimes& t = times.back();
    measured.push_back(a ? 4e-6 + std::max(t.compute / 0.7, t.memory / 0.85)
                         : 20e-6 + std::max(t.compute / 0.3, t.memory / 0.5));
  }
  const Baselines result = baselines(measured, times);
  REQUIRE(result.constants.size() == 2);
  const RooflineConstants& a = result.constants[0];
  CHECK(a.kind == "a");
  CHECK(a.rows == 50);
  CHECK(a.launch == Approx(4e-6).epsilon(0.01));
  CHECK(a.compute_share == Approx(0.7).epsilon(0.01));
  CHECK(a.memory_share == Approx(0.85).epsilon(0.01));
  CHECK(result.constants[1].launch == Approx(20e-6).epsilon(0.01));
  CHECK(result.constants[1].compute_share == Approx(0.3).epsilon(0.01));
  for (std::size_t i = 0; i < measured.size(); ++i) CHECK(result.fitted[i] == Approx(measured[i]).epsilon(0.01));
}

TEST_CASE("rows that are not scored have no say in the constants", "[baselines]") {
  std::vector<double> measured;
  std::vector<RooflineTimes> times;
  for (int i = 0; i < 20; ++i) {
    const double memory = 1e-6 * (1 + i);
    const bool scored = i < 10;
    times.push_back({0, memory, "a", scored});
    measured.push_back((scored ? 1 : 5) * (4e-6 + memory / 0.8));
  }
  times.push_back({1e-6, 2e-6, "b", false});
  measured.push_back(1);
  const Baselines result = baselines(measured, times);
  for (std::size_t i = 10; i < 20; ++i) CHECK(result.fitted[i] == Approx(measured[i] / 5).epsilon(0.01));
  CHECK(result.fitted.back() == 2e-6);
}

TEST_CASE("a single row is met by its constants", "[baselines]") {
  const std::vector<double> measured = {10e-6};
  const std::vector<RooflineTimes> times = {{2e-6, 1e-6, "a"}};
  CHECK(baselines(measured, times).fitted[0] == Approx(10e-6).epsilon(0.01));
}

TEST_CASE("rows without bytes or without work have baselines", "[baselines]") {
  const std::vector<double> measured = {10e-6, 12e-6, 5e-6};
  const std::vector<RooflineTimes> times = {{2e-6, 0, "a"}, {3e-6, 0, "a"}, {0, 0, "a"}};
  const Baselines result = baselines(measured, times);
  CHECK(result.roofline[2] == 0);
  for (const double t : result.fitted) CHECK((t > 4e-6 && t < 14e-6));
}

}  // namespace llmperf::measure::baselines_test
