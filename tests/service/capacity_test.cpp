// What `capacity` lists and what `serve` measures are one judgement: of random candidates the listed rate meets the
// bounds where it is served, and 1.15 times it does not.
#include "service/capacity.h"

#include <fmt/format.h>

#include <cmath>

#include "catch.h"
#include "service/serve.h"
#include "serving/random.h"

namespace llmperf::capacity_test {
namespace {

request::Request random_request(std::uint64_t seed) {
  serving::Random random(seed, 5);
  const auto one_of = [&](std::initializer_list<const char*> list) {
    const auto i = static_cast<std::size_t>(random.uniform() * static_cast<double>(list.size()));
    return std::string(list.begin()[i]);
  };
  request::Request q;
  q.model = one_of({"llama-3.2-1b", "qwen3-8b", "llama-3.1-8b", "mistral-nemo-12b", "qwen3-30b-a3b"});
  q.hw = one_of({"h100-sxm", "h200-sxm", "a100-sxm-80gb", "l40s", "rtx4090", "mi300x"});
  q.weights = one_of({"bf16", "fp8", "w4a16"});
  q.tp = one_of({"1", "2"});
  q.input = one_of({"512", "1500", "200-900", "lognormal:1155:0.8"});
  q.output = one_of({"32", "200", "64-300", "lognormal:211:0.7"});
  if (random.uniform() < 0.3) q.prefix = "100";
  if (random.uniform() < 0.3) q.engine = one_of({"sglang", "trtllm"});
  q.slo = fmt::format("ttft.{}={}ms,tpot.{}={}ms", one_of({"p99", "p95", "mean"}),
                      200 + std::floor(1800 * random.uniform()), one_of({"p99", "p50"}),
                      20 + std::floor(80 * random.uniform()));
  q.rate = 1e-3;
  return q;
}

// Of so many candidates for which there is a rate.
void holds(std::uint64_t first, int candidates) {
  request::Sources sources;
  for (std::uint64_t seed = first; candidates > 0 && seed < first + 400; ++seed) {
    request::Request q = random_request(seed);
    result::CapacityResult found;
    try {
      found = service::search_capacity({.request = q, .threads = 1}, sources);
    } catch (const Error&) {
      continue;  // such weights on such a device, or such an engine
    }
    const result::Candidate& k = found.candidates.front();
    if (k.max_requests_per_second == 0) continue;
    --candidates;
    INFO(seed << ": " << *q.model << " on " << *q.hw << " " << *q.weights << " tp " << *q.tp << ", " << *q.input
              << " in, " << *q.output << " out, " << *q.slo << ": " << k.max_requests_per_second << " of "
              << k.ceiling);
    const auto missed = [&](double rate) {
      q.rate = std::stod(fmt::format("{:.6g}", rate));
      return service::Served(q, sources, {.drawn = false}).misses();
    };
    // What is shown has three digits, and is what was judged.
    CHECK_FALSE(missed(std::stod(fmt::format("{:.3g}", k.max_requests_per_second))));
    CHECK(missed(1.15 * k.max_requests_per_second));
  }
  CHECK(candidates == 0);
}

}  // namespace

TEST_CASE("a rate that capacity lists is met where it is served, and 1.15 times it is missed") { holds(0, 6); }
TEST_CASE("… of 50 candidates", "[.fifty]") { holds(1000, test::cases(50)); }

}  // namespace llmperf::capacity_test
