// Requests that are made: when, how long, and which of their tokens are shared.
#include "serving/workload.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "catch.h"
#include "serving/random.h"

namespace llmperf::workload_test {

using namespace llmperf::serving;

namespace {

Load load_of(double rate, double burstiness = 1) {
  Load load;
  load.rate = rate;
  load.burstiness = burstiness;
  load.requests = 20000;
  load.input = {Lengths::Kind::fixed, 100, 0};
  load.output = {Lengths::Kind::fixed, 10, 0};
  return load;
}
// Mean and variance over the square of the mean.
std::pair<double, double> intervals(const Workload& w) {
  double sum = 0, squares = 0;
  for (std::size_t i = 1; i < w.requests.size(); ++i) {
    const double gap = (w.requests[i].sent - w.requests[i - 1].sent).value;
    sum += gap;
    squares += gap * gap;
  }
  const double n = static_cast<double>(w.requests.size() - 1);
  return {sum / n, squares / n / (sum / n) / (sum / n) - 1};
}
bool alike(const Workload& a, const Workload& b, bool times, bool lengths) {
  for (std::size_t i = 0; i < a.requests.size(); ++i) {
    if (times && a.requests[i].sent != b.requests[i].sent) return false;
    if (lengths && a.requests[i].input != b.requests[i].input) return false;
    if (lengths && a.requests[i].output != b.requests[i].output) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("lengths take suffixes wherever they have a number") {
  const auto same = [](const char* a, const char* b) {
    return text_of(parse_lengths("input", a)) == text_of(parse_lengths("input", b));
  };
  CHECK(same("1k", "1024"));
  CHECK(same("1K", "1024"));
  CHECK(same("1.5k", "1536"));
  CHECK(same("1M", "1048576"));
  CHECK(same("1k-2k", "1024-2048"));
  CHECK(same("uniform:1k-2k", "1024-2048"));
  CHECK(same("lognormal:1k:0.8", "lognormal:1024:0.8"));
  CHECK(parse_prefix("1k:8", parse_lengths("input", "4k")).tokens == 1024);
  CHECK(parse_prefix("0.5", parse_lengths("input", "4k")).tokens == 2048);
  for (const char* text : {"k", "1kk", "1.0001k", "uniform:", "uniform:1k", "-1k", "0k", "10M", "1g", "lognormal:1k"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_lengths("input", text), Error);
  }
}

TEST_CASE("intervals are gamma distributed: their variance is that of the burstiness") {
  // Of shape k the variance is mean^2 / k. 20,000 intervals: three standard deviations are some 6 %.
  for (const double burstiness : {0.25, 1.0, 4.0}) {
    const auto [mean, variance] = intervals(make_workload(load_of(5, burstiness)));
    CHECK(mean == Approx(0.2).epsilon(0.001));  // by the scaling
    CHECK(variance == Approx(1 / burstiness).epsilon(0.08));
  }
  const auto [mean, variance] = intervals(make_workload(load_of(5, std::numeric_limits<double>::infinity())));
  CHECK(mean == Approx(0.2));
  CHECK(std::abs(variance) < 1e-9);
}

TEST_CASE("one length is spread evenly within a share of it, and ranges are as they were") {
  CHECK(text_of(spread(parse_lengths("input", "1000"))) == "970-1030");
  CHECK(text_of(spread(parse_lengths("input", "128"))) == "125-131");  // 3.84 on either side would be more than 3 %
  CHECK(text_of(spread(parse_lengths("input", "32"))) == "32");
  CHECK(text_of(spread(parse_lengths("input", "1000"), 0.001)) == "999-1001");
  CHECK(text_of(spread(parse_lengths("input", "1000"), -0.5)) == "1000");
  CHECK(text_of(spread(parse_lengths("input", "800-1024"))) == "800-1024");
  CHECK(text_of(spread(parse_lengths("input", "lognormal:1024:0.8"))) == "lognormal:1024:0.8");
}

TEST_CASE("the last request is sent at requests / rate") {
  for (const double burstiness : {0.5, 1.0}) {
    const Workload w = make_workload(load_of(8, burstiness));
    CHECK(w.requests.back().sent.value == Approx(2500));
    CHECK(w.requests.front().sent.value > 0);
  }
  Load at_once = load_of(1);
  at_once.rate.reset();
  CHECK(make_workload(at_once).requests.back().sent.value == 0);
  CHECK_FALSE(make_workload(at_once).open);
}

TEST_CASE("lengths have the mean that was asked for") {
  Load load = load_of(1);
  load.input = parse_lengths("input", "800-1000");
  load.output = parse_lengths("output", "lognormal:300:0.8");
  const Workload w = make_workload(load);
  CHECK(w.mean_input() == Approx(900).epsilon(0.002));  // of a standard deviation of 58 in 20,000
  CHECK(w.mean_output() == Approx(300).epsilon(0.03));
  std::int64_t least = 10000, most = 0;
  for (const Request& r : w.requests) {
    least = std::min(least, r.input);
    most = std::max(most, r.input);
  }
  CHECK(least == 800);
  CHECK(most == 1000);
}

TEST_CASE("a seed gives the same workload, another one another") {
  Load load = load_of(3);
  load.requests = 500;
  load.input = parse_lengths("input", "1-1000");
  CHECK(alike(make_workload(load), make_workload(load), true, true));
  Load other = load;
  other.seed = 1;
  CHECK_FALSE(alike(make_workload(load), make_workload(other), true, false));
  CHECK_FALSE(alike(make_workload(load), make_workload(other), false, true));
}

TEST_CASE("arrivals do not depend on lengths, nor lengths on arrivals") {
  Load load = load_of(3);
  load.requests = 500;
  load.input = parse_lengths("input", "1-1000");
  Load longer = load;
  longer.input = parse_lengths("input", "lognormal:500:1");
  longer.output = parse_lengths("output", "5-9");
  CHECK(alike(make_workload(load), make_workload(longer), true, false));
  Load burstier = load;
  burstier.burstiness = 0.3;
  CHECK(alike(make_workload(load), make_workload(burstier), false, true));
}

TEST_CASE("random numbers are the same everywhere, and streams differ") {
  // splitmix64 from state 0, whose first two numbers its authors' code gives.
  Random random(0, 0);
  CHECK(random.next() == 0xe220a8397b1dcdafU);
  CHECK(random.next() == 0x6e789e6aa1b965f4U);
  CHECK(Random(0, 1).next() != Random(0, 2).next());
  Random r(7);
  double normal = 0, squares = 0, exponential = 0;
  for (int i = 0; i < 100000; ++i) {
    const double x = r.normal();
    normal += x;
    squares += x * x;
    exponential += r.exponential();
  }
  CHECK(std::abs(normal / 1e5) < 0.01);
  CHECK(squares / 1e5 == Approx(1).epsilon(0.015));
  CHECK(exponential / 1e5 == Approx(1).epsilon(0.01));
}

TEST_CASE("prefixes are shares of the mean prompt or tokens, of several kinds") {
  const Lengths input = parse_lengths("input", "800-1000");
  CHECK(parse_prefix("0.5", input).tokens == 450);
  CHECK(parse_prefix("512", input).tokens == 512);
  CHECK(parse_prefix("512:8", input).kinds == 8);
  for (const char* wrong : {"", "x", "-1", "512:0", "512:x", "1e99"})
    CHECK_THROWS_AS(parse_prefix(wrong, input), Error);
  Load load = load_of(1);
  load.requests = 8000;
  load.prefix = {64, 8};
  const Workload w = make_workload(load);
  std::vector<int> kinds;
  for (const Request& r : w.requests) {
    REQUIRE(w.content(r).size() == 1);
    CHECK(w.content(r)[0].end == 64);
    const std::size_t kind = w.content(r)[0].id & 0xff;
    kinds.resize(std::max(kinds.size(), kind + 1));
    ++kinds[kind];
  }
  REQUIRE(kinds.size() == 8);
  for (const int n : kinds) CHECK(std::abs(n - 1000) < 100);  // three standard deviations
  // A prompt that is shorter has as much of it as it is long.
  load.prefix = {5000, 1};
  CHECK(make_workload(load).requests.front().input == 100);
  CHECK(make_workload(load).segments.front().end == 100);
}

TEST_CASE("a turn of a session begins with all that was said before") {
  Load load = load_of(1);
  load.requests = 12;
  load.turns = 3;
  load.prefix = {30, 4};
  load.input = parse_lengths("input", "50-60");
  const Workload w = make_workload(load);
  for (std::size_t session = 0; session < 4; ++session) {
    std::int64_t said = 0;
    for (std::size_t turn = 0; turn < 3; ++turn) {
      const Request& r = w.requests[turn * 4 + session];
      CHECK(r.session);
      CHECK(r.input - said >= 50);
      CHECK(r.input - said <= 60);
      said = r.input + r.output;
      const std::span<const Segment> content = w.content(r);
      const std::span<const Segment> first = w.content(w.requests[session]);
      REQUIRE(content.size() == 2);
      CHECK(content[0].id == first[0].id);  // the prefix of the first turn, whatever others have
      CHECK(content[0].end == 30);
      CHECK(content[1].id == first[1].id);
      CHECK(content[1].end == r.input);
    }
  }
}

TEST_CASE("sessions start at the rate over their turns, and a turn comes a time to think after the one before") {
  Load load = load_of(8);
  load.turns = 4;
  load.think = Seconds{30};
  const Workload w = make_workload(load);
  double starts = 0, thought = 0, squares = 0;
  for (std::size_t i = 0; i < w.requests.size(); ++i) {
    const Request& r = w.requests[i];
    if (r.after < 0) {
      starts = r.sent.value;  // the last one
      continue;
    }
    REQUIRE(static_cast<std::size_t>(r.after) < i);
    const Request& before = w.requests[static_cast<std::size_t>(r.after)];
    CHECK(w.content(before)[0].id == w.content(r)[0].id);
    CHECK(r.input == before.input + before.output + 100);
    const double think = (r.sent - before.sent).value;
    thought += think / 15'000;
    squares += think * think / 15'000;
  }
  CHECK(starts == Approx(2500));  // 5,000 sessions, two a second
  CHECK(thought == Approx(30).epsilon(0.03));
  CHECK(squares == Approx(2 * 30 * 30).epsilon(0.08));  // exponential, as the intervals of a Poisson process
  load.burstiness = std::numeric_limits<double>::infinity();
  const Workload even = make_workload(load);
  for (const Request& r : even.requests) {
    if (r.after >= 0) CHECK((r.sent - even.requests[static_cast<std::size_t>(r.after)].sent).value == Approx(30));
  }
}

TEST_CASE("requests of several classes have the shares, lengths and prefixes of these") {
  Load load;
  load.requests = 20'000;
  load.rate = 10;
  load.turns = 2;
  load.classes = parse_classes("chat:3 input=100-300 output=50 prefix=40; batch input=4k priority=2 prefix=40",
                               {.input = parse_lengths("input", "7"), .output = parse_lengths("output", "9")});
  REQUIRE(load.classes.size() == 2);
  CHECK(load.classes[1].priority == 2);
  CHECK(load.classes[1].output.low == 9);  // as all
  CHECK(text_of(load.classes) == "75.0 % chat (100-300 in, 50 out), 25.0 % batch (4096 in, 9 out, priority 2)");
  const Workload w = make_workload(load);
  CHECK(w.classes == std::vector<std::string>{"chat", "batch"});
  std::int64_t chats = 0;
  std::array<std::uint64_t, 2> prefix = {};
  for (std::size_t i = 0; i < w.requests.size(); ++i) {
    const Request& r = w.requests[i];
    chats += r.of == 0 ? 1 : 0;
    CHECK(r.output == (r.of == 0 ? 50 : 9));
    CHECK(r.priority == (r.of == 0 ? 0 : 2));
    if (i < 10'000) CHECK((r.of == 0 ? r.input >= 100 && r.input <= 300 : r.input == 4096));
    if (i >= 10'000) CHECK(r.of == w.requests[i - 10'000].of);  // of a session
    prefix[static_cast<std::size_t>(r.of)] = w.content(r).front().id;
  }
  CHECK(static_cast<double>(chats) / 20'000 == Approx(0.75).epsilon(0.02));  // of 10,000 sessions: 0.43 % of spread
  CHECK(prefix[0] != prefix[1]);
  for (const char* bad :
       {"", "chat;", "chat:0 input=1", "chat wide=3", "chat input=none", "chat; chat", ":3 input=4"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_classes(bad, {}), Error);
  }
}

TEST_CASE("lengths that cannot be are refused") {
  for (const char* wrong : {"", "0", "-5", "1.5", "10-5", "10-", "lognormal:10", "lognormal:0:1", "lognormal:10:9",
                            "lognormal:10:x", "99999999999", "1e3"}) {
    CHECK_THROWS_AS(parse_lengths("input", wrong), Error);
  }
  for (const char* text : {"1024", "800-1024", "lognormal:1024:0.8"}) {
    CHECK(text_of(parse_lengths("input", text)) == text);
  }
}

}  // namespace llmperf::workload_test
