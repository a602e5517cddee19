// Data that would make a silly profile are refused, or warned of.
#include "measure/data_checks.h"

#include <algorithm>
#include <numeric>

#include "catch.h"

namespace llmperf::measure::data_checks_test {
namespace {

const std::string kHeader = "hardware,op,dtype,m,n,k,latency_us\n";

DataCheck check(const std::string& rows, std::size_t parameters = 1) {
  const Measurements m = parse_measurements(kHeader + rows, "t.csv");
  std::vector<std::size_t> all(m.rows.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return check_rows(m, all, parameters);
}

bool warns(const std::vector<std::string>& warnings, const std::string& text) {
  return std::any_of(warnings.begin(), warnings.end(),
                     [&](const std::string& w) { return w.find(text) != std::string::npos; });
}

// Ten products from 1 us to 1 s of roof, measured at `factor` times a plausible time.
std::vector<std::string> check_factor(double factor, double scale = 1, bool timed_here = false) {
  std::string text = kHeader;
  std::vector<RowLimits> limits;
  for (std::size_t i = 0; i < 10; ++i) {
    const double roof = scale * 1e-6 * static_cast<double>(1U << (2 * i));
    const double latency = (roof / 0.7 + 5e-6) * factor;
    text += "a,gemm,bf16,1,1," + std::to_string(i + 1) + "," + std::to_string(latency * 1e6) + "\n";
    limits.push_back({i, roof, 1, "gemm"});
  }
  Measurements measurements = parse_measurements(text, "t.csv");
  measurements.timed_here = timed_here;
  return check_roofs(measurements, limits);
}

}  // namespace

TEST_CASE("fewer than three different measurements are refused, copies not counted", "[data_checks]") {
  CHECK_THROWS_WITH(check("a,gemm,bf16,1,2,3,4\n"), Catch::Contains("1 measurement of different things"));
  CHECK_THROWS_WITH(check("a,gemm,bf16,1,2,3,4\na,gemm,bf16,1,2,3,4\na,gemm,bf16,1,2,3,5\na,gemm,bf16,2,2,3,5\n"),
                    Catch::Contains("2 measurements of different things"));
  CHECK_NOTHROW(check("a,gemm,bf16,1,2,3,4\na,gemm,bf16,2,3,4,5\na,gemm,bf16,3,4,5,6\n"));
}

TEST_CASE("fewer measurements than parameters are warned of", "[data_checks]") {
  const std::string rows = "a,gemm,bf16,1,2,3,4\na,gemm,bf16,2,3,4,5\na,gemm,bf16,3,4,5,6\n";
  CHECK(warns(check(rows, 4).warnings, "3 different measurements for 4 parameters"));
  CHECK(check(rows, 3).warnings.empty());
}

TEST_CASE("copies share the weight of one row", "[data_checks]") {
  const DataCheck result = check(
      "a,gemm,bf16,1,2,3,4\na,gemm,bf16,2,3,4,5\na,gemm,bf16,1,2,3,4\na,gemm,bf16,3,4,5,6\n"
      "a,gemm,bf16,3,4,5,6.3\n");  // the last is a repeat with a time of its own
  CHECK(result.weights == std::vector<double>{0.5, 1, 0.5, 1, 1});
  REQUIRE(result.warnings.size() == 1);
  CHECK(result.warnings[0] == "1 row is a copy of another and counts no further (the first: t.csv:4)");
}

TEST_CASE("repeats that contradict each other are warned of", "[data_checks]") {
  CHECK(warns(check("a,gemm,bf16,1,2,3,4\na,gemm,bf16,2,3,4,5\na,gemm,bf16,1,2,3,8\na,gemm,bf16,3,4,5,6\n").warnings,
              "t.csv:2 and t.csv:4 measured the same (a gemm bf16 1 x 2 x 3) and differ by a factor of 2"));
}

TEST_CASE("the same latency for different work is refused", "[data_checks]") {
  CHECK_THROWS_WITH(check("a,gemm,bf16,1,2,3,4\na,gemm,bf16,2,3,4,4\na,gemm,bf16,3,4,5,4\n"),
                    Catch::Contains("t.csv:2: 3 different gemm rows and every latency is 4 us"));
}

TEST_CASE("a column that never changes is warned of", "[data_checks]") {
  const DataCheck result = check("a,gemm,bf16,1,2,3,4\na,gemm,bf16,1,2,4,5\na,gemm,bf16,1,2,5,6\n");
  CHECK(result.warnings ==
        std::vector<std::string>{"every gemm row has m 1, n 2: what depends on it cannot be learned from them"});
}

TEST_CASE("plausible latencies pass", "[data_checks]") { CHECK(check_factor(1).empty()); }

TEST_CASE("latencies a thousand times too short are refused with the likely unit", "[data_checks]") {
  CHECK_THROWS_WITH(check_factor(1e-3), Catch::Contains("more than 3 times faster than the hardware can be") &&
                                            Catch::Contains("latency_us looks like milliseconds"));
}

TEST_CASE("latencies a thousand times too long are refused with the likely unit", "[data_checks]") {
  CHECK_THROWS_WITH(check_factor(1e3), Catch::Contains("more than 300 times slower") &&
                                           Catch::Contains("latency_us looks like nanoseconds"));
}

TEST_CASE("of rows timed here the unit is known: a machine that was busy is warned of", "[data_checks]") {
  CHECK(check_factor(1e3, 1, true) ==
        std::vector<std::string>{
            "10 of 10 gemm rows are more than 300 times slower than roof and launches of the hardware"});
  CHECK(warns(check_factor(1e-3, 1, true), "times faster than the hardware can be"));
}

TEST_CASE("kernels that do nearly nothing have plausible and implausible times, too", "[data_checks]") {
  CHECK(check_factor(1, 1e-6).empty());  // 5 us of launch over a roof of picoseconds
  CHECK_THROWS_AS(check_factor(1e-3, 1e-6), Error);
  CHECK_THROWS_AS(check_factor(1e3, 1e-6), Error);
}

TEST_CASE("a few rows faster than the hardware are warned of", "[data_checks]") {
  const Measurements m =
      parse_measurements(kHeader + "a,gemm,bf16,1,2,3,10\na,gemm,bf16,2,3,4,10\na,gemm,bf16,3,4,5,2\n", "t.csv");
  const std::vector<RowLimits> limits = {{0, 8e-6, 1, "gemm"}, {1, 9e-6, 1, "gemm"}, {2, 9e-6, 1, "gemm"}};
  CHECK(warns(check_roofs(m, limits),
              "1 of 3 gemm rows is faster than the hardware's memory and engines allow (the "
              "first: t.csv:4)"));
}

}  // namespace llmperf::measure::data_checks_test
