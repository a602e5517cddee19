// What `llmperf serve` says beside the simulation's own summary: how a run went, its percentiles, bounds and costs.
#include "result/serving.h"

#include "catch.h"

namespace llmperf::result::serving_test {
namespace {

// Two requests: three tokens at 1 s, 2 s and 3 s, of a prompt that is computed in the first second; one token at 2 s.
serving::Run two_requests() {
  serving::Run run;
  run.requests = {{.sent = Seconds{0}, .first = Seconds{1}, .last = Seconds{3}, .input = 8, .output = 3, .ended = true},
                  {.sent = Seconds{1}, .first = Seconds{2}, .last = Seconds{2}, .input = 8, .output = 1, .ended = true},
                  {.sent = Seconds{2}, .input = 8, .output = 9}};
  run.end = Seconds{3};
  run.timeline = {
      {.begin = Seconds{0}, .end = Seconds{1}, .prompts = 1, .prompt_tokens = 8, .waiting = 1, .kv_share = 0.25},
      {.begin = Seconds{1}, .end = Seconds{2}, .decodes = 1, .prompts = 1, .prompt_tokens = 8, .kv_share = 0.5},
      {.begin = Seconds{2}, .end = Seconds{3}, .decodes = 1, .kv_share = 0.25}};
  return run;
}

}  // namespace

TEST_CASE("A stretch of a run has the means of its steps, and as many tokens as came in it") {
  const auto thirds = moments(two_requests(), 3);
  REQUIRE(thirds.size() == 3);
  const double running[] = {1, 2, 1};
  const double waiting[] = {1, 0, 0};
  const double kv[] = {0.25, 0.5, 0.25};
  // The first request's three tokens: one at 1 s, two evenly until 3 s; the second's at 2 s.
  const double tokens[] = {0, 2, 2};
  for (std::size_t i = 0; i < 3; ++i) {
    INFO(i);
    CHECK(thirds[i].begin.value == Approx(static_cast<double>(i)));
    CHECK(thirds[i].running == Approx(running[i]));
    CHECK(thirds[i].waiting == Approx(waiting[i]));
    CHECK(thirds[i].kv_share == Approx(kv[i]));
    CHECK(thirds[i].output_tokens_per_second == Approx(tokens[i]));
  }
  // A step over two stretches is half in each.
  const auto halves = moments(two_requests(), 2);
  CHECK(halves[0].running == Approx((1 + 0.5 * 2) / 1.5));
}

TEST_CASE("A run without a timeline, and one in which nothing happened, have no stretches") {
  serving::Run run = two_requests();
  run.timeline.clear();
  CHECK(moments(run, 3).empty());
  CHECK(moments({}, 3).empty());
  CHECK(percentiles({}).empty());
}

TEST_CASE("Percentiles are of the requests that ended, those of TPOT of those with two tokens") {
  const auto all = percentiles(two_requests());
  REQUIRE(all.size() == 101);
  CHECK(all[0].e2e == 1);
  CHECK(all[50].e2e.value() == Approx(2));
  CHECK(all[100].e2e == 3);
  CHECK(all[50].ttft == 1);
  CHECK(all[99].tpot == 1.0);
  CHECK(ended(two_requests()).size() == 2);
}

TEST_CASE("Where a queue has no end there are percentiles of TPOT alone") {
  const auto all = percentiles(two_requests(), false);
  REQUIRE(all.size() == 101);
  CHECK_FALSE(all[50].ttft);
  CHECK_FALSE(all[50].e2e);
  CHECK(all[99].tpot == 1.0);
}

TEST_CASE("A bound is exceeded by a share of itself, and by nothing that can be said where a queue has no end") {
  const serving::Bound second{serving::Metric::ttft, "p99", Seconds{1}};
  const ServedBound over{second, 1.2};
  CHECK_FALSE(over.met());
  CHECK(*over.excess() == Approx(0.2));
  CHECK(ServedBound{second, 1.0}.met());
  CHECK_FALSE(ServedBound{second, {}}.met());
  CHECK_FALSE(ServedBound{second, {}}.excess());
}

TEST_CASE("Made traffic says the rate that was asked for, a trace the one that it has") {
  serving::Load load;
  load.rate = 4;
  load.requests = 8;
  load.input = load.output = {serving::Lengths::Kind::fixed, 10, 0};
  const TrafficSent made = traffic_sent(load, serving::make_workload(load), false);
  CHECK(made.rate == 4.0);
  CHECK(made.endless);
  CHECK(text_of(made.load.input) == "10");
  serving::Workload trace;
  trace.name = "t.csv";
  trace.requests = {
      {.sent = Seconds{0}, .input = 10}, {.sent = Seconds{1}, .input = 30}, {.sent = Seconds{4}, .input = 20}};
  const TrafficSent sent = traffic_sent({}, trace, true);
  CHECK(sent.rate == 0.5);  // two intervals in four seconds
  CHECK(sent.mean_input == 20);
  CHECK_FALSE(sent.endless);
  CHECK(sent.trace == "t.csv");
}

}  // namespace llmperf::result::serving_test
