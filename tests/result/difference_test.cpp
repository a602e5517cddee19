// Results read back by their declarations, and what lies between two of them.
#include "result/difference.h"

#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "catch.h"

namespace llmperf::result::difference_test {
namespace {

std::string saved(const std::string& figures, const std::string& ops) {
  return fmt::format(R"({{"schema": "llmperf.estimate", "schema_version": 1, "tool": {{"version": "0"}}, "fits": true,
    "inputs": {{"batch": 2, "hardware": {{"name": "card", "figures": {{{}}}}}}},
    "phases": [{{"name": "decode", "time_s": 4, "bound": "matrix", "ops": [{}]}}]}})",
                     figures, ops);
}
const std::string kOld = R"("matrix_flops_per_s": {"value": 1e14}, "memory_bandwidth_bytes_per_s": {"value": 1e12})";
const std::string kNew = R"("matrix_flops_per_s": {"value": 5e14}, "memory_bandwidth_bytes_per_s": {"value": 2e12})";

}  // namespace

TEST_CASE("A faster op says what the device can do more, and how much of it is reached") {
  const SavedResult before = read_result(saved(kOld, R"({"name": "a", "time_s": 4, "flops": 8, "bound": "matrix"},
                     {"name": "b", "time_s": 4, "bytes": 8, "bound": "memory"})"),
                                         "before.json");
  const SavedResult after = read_result(saved(kNew, R"({"name": "a", "time_s": 1, "flops": 8, "bound": "matrix"},
                     {"name": "b", "time_s": 1, "bytes": 4, "bound": "memory"})"),
                                        "after.json");
  const Difference d = difference(before, after);
  REQUIRE(d.phases.size() == 1);
  REQUIRE(d.phases[0].ops.size() == 2);
  CHECK(d.phases[0].ops[0].why() == "matrix peak x 5, kernels x 0.8");     // 4 times as fast
  CHECK(d.phases[0].ops[1].why() == "bytes x 0.5, memory bandwidth x 2");  // 4 times: half the work, twice the rate
  CHECK(d.phases[0].ops[1].before.time == 4);
  REQUIRE(d.inputs.size() == 2);
  CHECK(d.inputs[0].name == "matrix_flops_per_s");
  CHECK(std::get<double>(d.inputs[0].after) == 5e14);
}

TEST_CASE("A value of another kind than its key is declared as is an error with its place") {
  const auto message = [](const std::string& op) -> std::string {
    try {
      read_result(saved(kOld, op), "bad.json");
    } catch (const Error& error) {
      CHECK(error.diagnostics().front().where.line == 3);
      return error.diagnostics().front().message;
    }
    return "read";
  };
  CHECK(message(R"({"name": "a", "time_s": 1, "unheard_of": [{}]})") == "read");
  CHECK(message(R"({"name": "a", "time_s": null})") == "read");
  CHECK(message(R"({"name": "a", "time_s": "1"})") == "'time_s' is not a number");
  CHECK(message(R"({"name": "a", "time_s": -1})") == "'time_s' is negative");
  CHECK(message(R"({"name": 1})") == "'name' is not text");
  CHECK(message(R"({"name": "a", "collective": []})") == "'collective' is not an object");
}

}  // namespace llmperf::result::difference_test
