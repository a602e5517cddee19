// What a row would tell, where it can be worked out by hand.
#include "measure/advice.h"

#include <algorithm>
#include <cmath>

#include "catch.h"

namespace llmperf::measure::advice_test {

TEST_CASE("the most telling row comes first, and the next is judged with it", "[advice]") {
  // Two numbers known to a factor of e, noise 1. The first row is 2 u1, which tells log(1 + 4) / 2 and leaves u1 a
  // variance of 1 / 5; u1 + u2 then has one of 1.2, and leaves 1 / 5 - 1 / 25 / 2.2 and 1 - 1 / 2.2.
  const std::vector<double> spreads = {1, 1};
  const SlopeRows candidates = {{1, 1}, {2, 0}, {0, 0}};
  const std::vector<Pick> picks = most_telling({}, spreads, 1, candidates, 5);
  REQUIRE(picks.size() == 2);  // none twice, and none that nothing depends on
  CHECK(picks[0].candidate == 1);
  CHECK(picks[0].gain == Approx(std::log(5) / 2));
  CHECK(picks[0].before == std::vector<double>{1, 1});
  CHECK(picks[0].after[0] == Approx(std::sqrt(0.2)));
  CHECK(picks[0].after[1] == Approx(1));
  CHECK(picks[1].candidate == 0);
  CHECK(picks[1].gain == Approx(std::log(2.2) / 2));
  CHECK(picks[1].before == picks[0].after);
  CHECK(picks[1].after[0] == Approx(std::sqrt(0.2 - 0.04 / 2.2)));
  CHECK(picks[1].after[1] == Approx(std::sqrt(1 - 1 / 2.2)));
}

TEST_CASE("what was measured is not worth measuring again", "[advice]") {
  // A noise of .1 on u1 leaves a variance of 1 / 101: another such row tells log(1 + 100 / 101) / 2, u2 log(101) / 2.
  const std::vector<double> spreads = {1, 1};
  const std::vector<Pick> picks = most_telling({{1, 0}}, spreads, 0.1, {{1, 0}, {0, 1}}, 1);
  REQUIRE(picks.size() == 1);
  CHECK(picks[0].candidate == 1);
  CHECK(picks[0].gain == Approx(std::log(101) / 2));
  CHECK(picks[0].before[0] == Approx(std::sqrt(1 / 101.0)));
  CHECK(most_telling({{1, 0}}, spreads, 0.1, {{1, 0}}, 1).front().gain == Approx(std::log(201 / 101.0) / 2));
  CHECK(most_telling({{1, 0}}, spreads, 100, {{1, 0}}, 1).empty());
}

TEST_CASE("sizes that are not there yet are those of the rows' own models and shapes", "[advice]") {
  const Measurements steps = parse_measurements(
      "hardware,runtime,model,weights,batch,phase,new_tokens,context,latency_ms\n"
      "rtx4090,vllm,qwen1.5-7b,bf16,8,decode,1,512,1\n"
      "rtx4090,vllm,qwen1.5-7b,bf16,1,decode,1,300,1\n",
      "t.csv");
  const std::vector<Row> of_steps = sizes_not_measured(steps);
  CHECK(of_steps.size() == 4 * 2 - 1 + 2);  // batches times contexts without the one that is there; prompts
  for (const Row& row : of_steps) CHECK(configuration(row).starts_with("rtx4090 vllm qwen1.5-7b bf16 batch "));
  const Measurements ops = parse_measurements(
      "hardware,op,dtype,m,n,k,ranks,bytes,latency_us\n"
      "rtx4090,gemm,bf16,16,4096,4096,,,1\n"
      "rtx4090,all_reduce,bf16,,,,2,1000000,1\n",
      "t.csv");
  std::vector<std::string> of_ops;
  for (const Row& row : sizes_not_measured(ops)) of_ops.push_back(configuration(row));
  CHECK(of_ops.size() == 4 + 2);
  CHECK(std::count(of_ops.begin(), of_ops.end(), "rtx4090 gemm bf16 1024 x 4096 x 4096") == 1);
  CHECK(std::count(of_ops.begin(), of_ops.end(), "rtx4090 all_reduce bf16 2 ranks 64000000 B") == 1);
}

}  // namespace llmperf::measure::advice_test
