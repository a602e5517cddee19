// llama.cpp by micro-batch: every row of the published tables. Profiles of AMD's Instinct cards are fitted to theirs;
// no fit has seen the others.
#include <fmt/format.h>

#include <cmath>

#include "catch.h"
#include "measure/validation.h"

namespace llmperf::measure::micro_batches_test {

// What is off stands here by name: IQ1_S in the vector kernel of few rows, whose tables cost more than its bytes, and
// hipBLAS of July 2025, which unpacked Q5_K on an MI100 at a tenth of the rate of later builds.
TEST_CASE("prompts in micro-batches of 1 to 512 rows take what is published, within a quarter", "[validation]") {
  const std::string names[] = {"llama.cpp-micro-batches"};
  const Validation tables = validate(read_measurements(names), "");
  REQUIRE(tables.rows.size() == tables.measurements.rows.size());
  REQUIRE(tables.rows.size() > 50);
  std::vector<std::string> off;
  for (const ValidatedRow& row : tables.rows) {
    if (std::abs(tables.error(row)) < 0.25) continue;
    const Row& measured = tables.measurements.rows[row.row];
    const auto& step = std::get<StepRow>(measured.of);
    off.push_back(fmt::format("{} {} {}", measured.hardware, step.weights, step.ubatch));
  }
  CHECK(off == std::vector<std::string>{"mi100 iq1_s 1", "mi100 iq1_s 2", "mi100 q5_k_m 512", "mi100 q5_k_m 1024"});
}

}  // namespace llmperf::measure::micro_batches_test
