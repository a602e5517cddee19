// llama.cpp by micro-batch: every row of the published tables, which no fit has seen but for those of AMD's Instinct.
#include <fmt/format.h>

#include <cmath>

#include "calibrate/validation.h"
#include "catch.h"

namespace llmperf::calibrate::micro_batches_test {
namespace {

const Validation& tables() {
  static const std::string names[] = {"llama.cpp-micro-batches"};
  static const Validation v = validate(read_measurements(names), "");
  return v;
}

}  // namespace

TEST_CASE("prompts in micro-batches of 1 to 512 rows take what is published, within a quarter", "[validation]") {
  REQUIRE(tables().rows.size() == tables().measurements.rows.size());
  for (const ValidatedRow& row : tables().rows) {
    const Row& measured = tables().measurements.rows[row.row];
    INFO("line " << measured.line << ", " << row.profile << ": " << 1e3 * row.predicted << " ms");
    CHECK(std::abs(tables().error(row)) < 0.25);
  }
}

}  // namespace llmperf::calibrate::micro_batches_test
