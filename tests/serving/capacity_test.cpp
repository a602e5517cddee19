// The closed form by hand, and what the search for the highest rate promises.
#include "serving/capacity.h"

#include <algorithm>
#include <functional>

#include "catch.h"

namespace llmperf::serving::capacity_test {
namespace {

// A step takes 10 ms, and 0.1 ms for every token of a prompt.
Deployed deployed(std::int64_t seats = 4, std::int64_t replicas = 1) {
  Deployed d;
  d.settings.max_batched_tokens = 1000;
  d.settings.max_sequences = seats;
  d.deployment.pool = {.settings = d.settings,
                       .cost =
                           [](const estimate::StepShape& shape) {
                             double seconds = 10e-3;
                             for (const estimate::Chunk& c : shape.chunks)
                               seconds += 0.1e-3 * static_cast<double>(c.tokens);
                             return estimate::StepTime{Seconds{seconds}, Seconds{seconds}};
                           },
                       .blocks = 1000,
                       .replicas = replicas};
  return d;
}

Load load() {
  Load l;
  l.input = parse_lengths("input", "100");
  l.output = parse_lengths("output", "10");
  return l;
}

}  // namespace

TEST_CASE("alone a request takes its prompt's step and one for each further token", "[capacity]") {
  const ClosedForm c = closed_form(deployed(), load());
  CHECK(c.ttft.value == Approx(20e-3));
  CHECK(c.tpot.value == Approx(10e-3));
  CHECK(c.misses(parse_slo("ttft=21ms,tpot=11ms,e2e=111ms"), 10) == Binding::none);
  CHECK(c.misses(parse_slo("ttft=19ms"), 10) == Binding::ttft);
  CHECK(c.misses(parse_slo("tpot=9ms"), 10) == Binding::tpot);
  CHECK(c.misses(parse_slo("e2e=109ms"), 10) == Binding::e2e);  // 20 + 9 x 10
}

TEST_CASE("the ceiling is what full seats get through in steps that balance prompts and decodes", "[capacity]") {
  // Of four sequences 0.4 end with a step, so that 40 tokens of prompts are computed in it: 14 ms.
  CHECK(closed_form(deployed(), load()).ceiling == Approx(0.4 / 14e-3));
  CHECK(closed_form(deployed(4, 3), load()).ceiling == Approx(3 * 0.4 / 14e-3));
  // Half of the prompt is cached: 20 tokens.
  Load cached = load();
  cached.prefix = {.tokens = 50, .kinds = 1};
  CHECK(closed_form(deployed(), cached).ceiling == Approx(0.4 / 12e-3));
  // 16,000 tokens hold 152 sequences of 105.
  CHECK(closed_form(deployed(1000), load()).ceiling == Approx(15.2 * (848.0 / 1520) / 94.8e-3));
}

TEST_CASE("a bound on TPOT leaves as many sequences as do not exceed it", "[capacity]") {
  // With two there are 20 tokens of prompts in a step, which takes 12 ms.
  CHECK(closed_form(deployed(), load(), parse_slo("tpot=12ms")).ceiling == Approx(0.2 / 12e-3));
  CHECK(closed_form(deployed(), load(), parse_slo("tpot=12.9ms")).ceiling == Approx(0.2 / 12e-3));
  CHECK(closed_form(deployed(), load(), parse_slo("tpot=13.1ms")).ceiling == Approx(0.3 / 13e-3));
}

TEST_CASE("at the highest rate bounds hold, and beyond it they do not", "[capacity]") {
  const Deployed d = deployed();
  for (const char* text : {"ttft.p99=60ms", "ttft.p95=40ms,tpot.p95=13ms", "e2e.p90=150ms"}) {
    INFO(text);
    const Slo slo = parse_slo(text);
    const Capacity most = max_rate(d, load(), slo);
    REQUIRE(most.requests_per_second > 0);
    CHECK(most.requests_per_second <= most.ceiling);
    CHECK(most.binding != Binding::none);
    CHECK(most.at.excess(slo) <= 0);
    Load same = load();
    same.rate = most.requests_per_second;
    CHECK(judge(d.deployment, same, slo).summary.meets(slo));
    same.rate = most.requests_per_second * 1.15;
    CHECK_FALSE(judge(d.deployment, same, slo).summary.meets(slo));
  }
}

TEST_CASE("a closed form that is too low does not keep a rate down", "[capacity]") {
  // 40 tokens of prompts cost 4 ms one by one, and 1 ms where 1,000 of them come at once: a step in 25 has them all.
  Deployed d = deployed();
  d.deployment.pool.cost = [](const estimate::StepShape& shape) {
    const Seconds seconds{shape.chunks.empty() ? 10e-3 : 14e-3};
    return estimate::StepTime{seconds, seconds};
  };
  const Slo slo = parse_slo("ttft.p99=1s");
  const Capacity most = max_rate(d, load(), slo);
  CHECK(closed_form(d, load()).ceiling == Approx(0.4 / (10e-3 + 40 * 4e-3 / 996)));
  Load beyond = load();
  beyond.rate = most.requests_per_second * 1.15;
  CHECK_FALSE(judge(d.deployment, beyond, slo).summary.meets(slo));
  REQUIRE(!most.missed.empty());
  CHECK(most.missed.back() > most.requests_per_second);
}

TEST_CASE("a search ends where too few requests come for any rate to be missed", "[capacity]") {
  Load few = load();
  few.requests = 2;
  const Capacity most = max_rate(deployed(), few, parse_slo("ttft.p99=9s"));
  CHECK(most.requests_per_second >= 4 * most.ceiling * 0.99);
  CHECK(most.requests_per_second < 6 * most.ceiling);
  CHECK(most.missed.empty());
  CHECK(most.binding == Binding::throughput);
}

TEST_CASE("a load that extends has ten requests for each that is under way", "[capacity]") {
  // 1,000 seats; a request of 1,000 tokens takes 10 s, so that at 20 per second 200 are under way: 2,000 requests.
  Deployed d = deployed(1000);
  d.deployment.pool.blocks = 100'000;
  Load l = load();
  l.output = parse_lengths("output", "1000");
  l.rate = 20;
  CHECK(judge(d.deployment, l).requests == 1000);
  l.extends = true;
  const Verdict v = judge(d.deployment, l);
  CHECK(v.requests >= 2000);
  CHECK(v.requests <= 4000);  // steps with prompts take twice as long
  CHECK(v.summary.requests == v.requests);
  l.rate = 0.5;
  CHECK(judge(d.deployment, l).requests == 1000);
}

TEST_CASE("what is certain to miss a bound is not looked at to its end", "[capacity]") {
  const Slo slo = parse_slo("ttft.p99=60ms");
  Load l = load();
  l.rate = 100;
  const Verdict hasty = judge(deployed().deployment, l, slo, true);
  CHECK(hasty.summary.requests < 100);
  CHECK_FALSE(hasty.summary.meets(slo));
  CHECK_FALSE(judge(deployed().deployment, l, slo).summary.meets(slo));
  // Of what meets them all is looked at.
  l.rate = 1;
  CHECK(judge(deployed().deployment, l, slo, true).summary.ttft.p99 ==
        judge(deployed().deployment, l, slo).summary.ttft.p99);
}

TEST_CASE("looser bounds and more seats never lower the highest rate", "[capacity]") {
  const auto rate = [](std::int64_t seats, const char* slo) {
    return max_rate(deployed(seats), load(), parse_slo(slo)).requests_per_second;
  };
  const double slack = 0.97;  // the search's tolerance
  CHECK(rate(4, "ttft.p99=80ms") >= slack * rate(4, "ttft.p99=50ms"));
  CHECK(rate(8, "ttft.p99=50ms") >= slack * rate(4, "ttft.p99=50ms"));
}

TEST_CASE("a search ends with the first rate that is missed and leaves nothing of interest", "[capacity]") {
  const Slo slo = parse_slo("ttft.p99=60ms");
  const Capacity all = max_rate(deployed(), load(), slo);
  REQUIRE(all.missed.size() > 1);
  CHECK(std::ranges::is_sorted(all.missed, std::greater{}));
  CHECK(all.missed.back() > all.requests_per_second);
  const Capacity found =
      max_rate(deployed(), load(), slo, {.worthwhile = [&](double rate) { return rate > all.missed[1]; }});
  CHECK(found.missed == std::vector<double>(all.missed.begin(), all.missed.begin() + 2));
  CHECK(found.simulations < all.simulations);
}

TEST_CASE("where a request alone exceeds a bound no rate is found, and the bound is named", "[capacity]") {
  const Capacity found = max_rate(deployed(), load(), parse_slo("ttft.p99=15ms"));
  CHECK(found.requests_per_second == 0);
  CHECK(found.binding == Binding::ttft);
  CHECK(found.simulations == 1);
}

}  // namespace llmperf::serving::capacity_test
