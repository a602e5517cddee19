#include "points/values.h"

#include "base/error.h"
#include "catch.h"

namespace llmperf::values_test {

using llmperf::Error;
using llmperf::points::expand_values;
using Values = std::vector<std::string>;

TEST_CASE("numbers of a range take suffixes where they mean something") {
  CHECK(llmperf::points::expand_values("--prompt", "1k-4k*2", ',', 1024) ==
        std::vector<std::string>{"1024", "2048", "4096"});
  CHECK(llmperf::points::expand_values("--batch", "1k-2k+500,7", ',', 1000) ==
        std::vector<std::string>{"1000", "1500", "2000", "7"});
  CHECK(llmperf::points::expand_values("--x", "1k-4k*2") == std::vector<std::string>{"1k-4k*2"});
}

TEST_CASE("a range with a factor ends at the last value that is not beyond it") {
  CHECK(expand_values("--batch", "1-128*2") == Values{"1", "2", "4", "8", "16", "32", "64", "128"});
  CHECK(expand_values("--batch", "3-50*4") == Values{"3", "12", "48"});
  CHECK(expand_values("--batch", "7-7*2") == Values{"7"});
}

TEST_CASE("a range with a step ends at the last value that is not beyond it") {
  CHECK(expand_values("--prompt", "128-512+128") == Values{"128", "256", "384", "512"});
  CHECK(expand_values("--prompt", "1-10+4") == Values{"1", "5", "9"});
  CHECK(expand_values("--prompt", "0-2+1") == Values{"0", "1", "2"});
}

TEST_CASE("ranges and single values mix, in the order given") {
  CHECK(expand_values("--batch", "5, 1-4*2 ,9") == Values{"5", "1", "2", "4", "9"});
}

TEST_CASE("what only looks like a range stands for itself") {
  CHECK(expand_values("--model", "qwen1.5-7b,w4a16-g128") == Values{"qwen1.5-7b", "w4a16-g128"});
  CHECK(expand_values("--gguf-era", "2024-02") == Values{"2024-02"});
  CHECK(expand_values("--sp", "ulysses:4xring:2") == Values{"ulysses:4xring:2"});
}

TEST_CASE("the separator is the caller's: lists of lists") {
  CHECK(expand_values("--options", "none;all,no_static_kv", ';') == Values{"none", "all,no_static_kv"});
}

TEST_CASE("ranges that do not go up, empty items and values given twice are errors") {
  CHECK_THROWS_AS(expand_values("--batch", "8-1*2"), Error);
  CHECK_THROWS_AS(expand_values("--batch", "1-8*1"), Error);
  CHECK_THROWS_AS(expand_values("--batch", "0-8*2"), Error);
  CHECK_THROWS_AS(expand_values("--batch", "1-8+0"), Error);
  CHECK_THROWS_AS(expand_values("--batch", "1,,2"), Error);
  CHECK_THROWS_AS(expand_values("--batch", ""), Error);
  CHECK_THROWS_AS(expand_values("--batch", "1-4*2,2"), Error);
  CHECK_THROWS_AS(expand_values("--batch", "1-99999999999999999999*2"), Error);
}

TEST_CASE("the largest numbers do not overflow, and there is a limit on how many values") {
  CHECK(expand_values("--x", "9223372036854775806-9223372036854775807+1").size() == 2);
  CHECK(expand_values("--x", "4611686018427387904-9223372036854775807*2") == Values{"4611686018427387904"});
  CHECK_THROWS_AS(expand_values("--x", "1-1000000000+1"), Error);
}

}  // namespace llmperf::values_test
