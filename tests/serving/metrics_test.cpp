// What is measured of a run, by hand.
#include "serving/metrics.h"

#include "base/error.h"
#include "catch.h"
#include "serving/random.h"

namespace llmperf::metrics_test {

using namespace llmperf::serving;

namespace {

Served served(double sent, double first, double last, std::int64_t output) {
  Served s;
  s.sent = Seconds{sent};
  s.first = Seconds{first};
  s.last = Seconds{last};
  s.input = 10;
  s.output = output;
  s.ended = true;
  return s;
}
// One server that takes `seconds` for each of 2,000 requests, at random times 1 / s.
Run queue(double seconds, std::uint64_t seed) {
  Random random(seed);
  Run run;
  double now = 0, free = 0;
  for (int i = 0; i < 2000; ++i) {
    now += random.exponential();
    free = std::max(free, now) + seconds;
    run.requests.push_back(served(now, free, free, 1));
  }
  return run;
}
std::string refusal(const char* text) {
  try {
    parse_slo(text);
  } catch (const Error& error) {
    return error.diagnostics().front().message + " / " + error.diagnostics().front().hint;
  }
  return "";
}

}  // namespace

TEST_CASE("percentiles are interpolated as numpy does") {
  // numpy.percentile([1, 2, 3, 4, 10], [50, 90, 95, 99]): positions 2, 3.6, 3.8, 3.96.
  const Distribution five = distribution(std::vector<double>{10, 3, 1, 4, 2});
  CHECK(five.mean == 4);
  CHECK(five.p50 == 3);
  CHECK(five.p90 == Approx(7.6));
  CHECK(five.p95 == Approx(8.8));
  CHECK(five.p99 == Approx(9.76));
  const Distribution two = distribution(std::vector<double>{1, 2});
  CHECK(two.p50 == 1.5);
  CHECK(two.p99 == Approx(1.99));
  const Distribution one = distribution(std::vector<double>{7});
  CHECK(one.p99 == 7);
  CHECK(distribution(std::vector<double>{}).mean == 0);
  CHECK(five.of("mean") == 4);
  CHECK(five.of("p95") == five.p95);
}

TEST_CASE("values with how often each is there are distributed as if written out") {
  Random random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> plain;
    std::vector<std::pair<double, std::int64_t>> counted;
    for (int i = 0; i < 20; ++i) {
      const double value = std::floor(random.uniform() * 12);
      const auto count = static_cast<std::int64_t>(1 + random.uniform() * 30);
      counted.emplace_back(value, count);
      plain.insert(plain.end(), static_cast<std::size_t>(count), value);
    }
    const Distribution a = distribution(plain);
    const Distribution b = distribution(counted);
    CHECK(a.mean == Approx(b.mean));
    for (const char* q : {"p50", "p90", "p95", "p99"}) CHECK(a.of(q) == b.of(q));
  }
}

TEST_CASE("a run of three requests, by hand") {
  Run run;
  run.requests = {served(0, 1, 3, 5), served(1, 1.5, 1.5, 1), served(2, 4, 10, 4)};
  run.requests[0].reused = 6;
  run.requests[0].causes = {0.25, 0, 0, 0.75, 0};
  run.requests[1].causes = {0, 0, 0, 0.25, 0.25};
  run.requests[2].causes = {0.5, 1, 0, 0.5, 0};
  run.gaps = {{0.5, 4}, {2, 3}};
  run.gap_causes = {4, 3, 1};
  run.end = Seconds{10};
  run.busy = 5;
  run.replicas = 2;
  run.decode_seconds = 20;
  run.waiting_seconds = 2.5;
  run.kv_seconds = 1.5;
  run.kv_peak_share = 0.6;
  const Summary s = summarise(run, {}, parse_slo("ttft=1.5s,tpot=1s"));
  CHECK(s.requests == 3);
  CHECK(s.ttft.mean == Approx((1 + 0.5 + 2) / 3));
  CHECK(s.ttft.p50 == 1);
  CHECK(s.tpot.mean == Approx((0.5 + 2) / 2));  // of those of several tokens: 2 s / 4 and 6 s / 3
  CHECK(s.itl.mean == Approx(8.0 / 7));         // of tokens, not of requests
  CHECK(s.itl.p50 == 0.5);
  CHECK(s.e2e.p50 == 3);
  CHECK(s.duration.value == 10);
  CHECK(s.requests_per_second == Approx(0.3));
  CHECK(s.output_tokens_per_second == Approx(1));
  CHECK(s.input_tokens_per_second == Approx(3));
  // The first two: a request of one token has a TPOT of 0.
  CHECK(s.goodput_per_second == Approx(0.2));
  CHECK(s.met_share == Approx(2.0 / 3));
  CHECK(s.prefix_hit_share == Approx(0.2));
  CHECK(s.busy_share == 0.25);
  CHECK(s.mean_batch == 4);
  CHECK(s.mean_waiting == 0.5);
  CHECK(s.kv_mean_share == Approx(0.3));
  CHECK(s.kv_peak_share == Approx(0.6));
  CHECK(s.ttft_causes[0] == Approx(0.75 / 3.5));
  CHECK(s.ttft_causes[4] == Approx(0.25 / 3.5));
  CHECK(s.itl_causes.decode == 0.5);
  CHECK(s.itl_causes.stall == 0.125);
  CHECK_FALSE(summarise(run, {}).goodput_per_second);
  // ITL is about no request.
  CHECK(summarise(run, {}, parse_slo("itl=1ms")).met_share == 1);
}

TEST_CASE("the excess is that of the worst bound") {
  Summary s;
  s.ttft.p99 = 1.2;
  s.tpot.mean = 0.04;
  CHECK(s.excess(parse_slo("ttft=1s,tpot.mean=50ms")) == Approx(0.2));
  CHECK(s.excess(parse_slo("tpot.mean=50ms")) == Approx(-0.2));
  CHECK(s.excess({}) == -1);
}

TEST_CASE("a bound may be about one class, whose times are kept apart") {
  Run run;
  Workload w;
  w.classes = {"chat", "batch"};
  for (int i = 0; i < 4; ++i) {
    run.requests.push_back(served(i, i + (i % 2 == 0 ? 0.1 : 2), i + 3, 2));
    run.requests.back().of = i % 2;
    w.requests.push_back({.of = i % 2});
  }
  run.requests.back().rejected = true;
  run.requests.back().ended = false;
  const Slo slo = parse_slo("chat:ttft.p99=200ms,batch:ttft.p50=1s");
  CHECK(text_of(slo) == "chat:ttft.p99=200 ms,batch:ttft.p50=1 s");
  const Summary s = summarise(run, w, slo);
  REQUIRE(s.classes.size() == 2);
  CHECK(s.classes[0].name == "chat");
  CHECK(s.classes[0].requests == 2);
  CHECK(s.classes[0].ttft.mean == Approx(0.1));
  CHECK(s.classes[0].met_share == 1);
  CHECK(s.classes[1].requests == 1);
  CHECK(s.classes[1].rejected == 1);
  CHECK(s.classes[1].ttft.p99 == Approx(2));
  CHECK(s.classes[1].met_share == 0);
  CHECK(*s.value(slo[0]) == Approx(0.1));
  CHECK_FALSE(s.value(slo[1]).has_value());  // halfway from 2 s to one that never ends
  CHECK(s.excess(slo) > 1e9);
  CHECK(s.excess({slo[0]}) == Approx(-0.5));
  CHECK(s.met_share == Approx(2.0 / 4));
}

TEST_CASE("bounds are read and written") {
  const Slo slo = parse_slo("ttft=1s, tpot.mean=50ms,e2el.median=2s,itl.p90=20ms");
  REQUIRE(slo.size() == 4);
  CHECK(slo[0].metric == Metric::ttft);
  CHECK(slo[0].statistic == "p99");
  CHECK(slo[1].metric == Metric::tpot);
  CHECK(slo[1].limit.value == Approx(0.05));
  CHECK(slo[2].metric == Metric::e2e);
  CHECK(slo[2].statistic == "p50");
  CHECK(text_of(slo) == "ttft.p99=1 s,tpot.mean=50 ms,e2e.p50=2 s,itl.p90=20 ms");
  CHECK(text_of(parse_slo(text_of(slo))) == text_of(slo));
  CHECK(refusal("ttft") == "`slo`: 'ttft' is no bound / ttft.p99=1s,tpot.p95=50ms");
  CHECK(refusal("tttf=1s") == "`slo`: 'tttf=1s' is no bound / did you mean 'ttft'?");
  CHECK(refusal("ttft.p98=1s") == "`slo`: 'ttft.p98=1s' is no bound / statistics are mean, p50, p90, p95 and p99");
  for (const char* wrong : {"", "ttft=", "ttft=1", "ttft=0s", "ttft=-1s", "ttft=1s,", "ttft.=1s", "=1s"}) {
    CHECK_FALSE(refusal(wrong).empty());
  }
}

TEST_CASE("a queue grows where more is sent than is served, and by that much") {
  double half_more = 0, thrice = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CHECK(queue_growth(queue(0.5, seed)) == 0);
    CHECK(queue_growth(queue(0.8, seed)) == 0);
    half_more += queue_growth(queue(1.5, seed)) / 40;
    thrice += queue_growth(queue(3, seed)) / 40;
  }
  // One request a second is sent, and 1 / 1.5 or 1 / 3 served.
  CHECK(half_more == Approx(1.0 / 3).epsilon(0.05));
  CHECK(thrice == Approx(2.0 / 3).epsilon(0.05));
}

TEST_CASE("a run that was ended early knows nothing of what would have been sent later") {
  Run run = queue(0.5, 1);
  for (std::size_t i = 400; i < run.requests.size(); ++i) run.requests[i].ended = false;
  CHECK(queue_growth(run) > 0.5);  // all that is sent after the 400th stays
  run.interrupted = true;
  CHECK(queue_growth(run) == 0);
}

}  // namespace llmperf::metrics_test
