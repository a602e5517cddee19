#include "replay/replay.h"

#include "base/error.h"
#include "catch.h"

namespace llmperf::replay_test {

using namespace llmperf::replay;
using measure::OpRow;

namespace {

// Every op takes as many microseconds as its product has rows; products of 7 rows do not run.
struct FakeOp : Prepared {
  double seconds;
  std::int64_t copies;
  int* alive;
  FakeOp(double s, std::int64_t c, int* a) : seconds(s), copies(c), alive(a) { ++*alive; }
  ~FakeOp() override { --*alive; }
};
struct FakeBackend : Backend {
  int alive = 0;
  int prepared = 0;
  std::vector<std::int64_t> copies;
  std::vector<double> last_sequence;
  Description describe() const override { return {"fake", "fake-1", "A fake", {{"threads", "1"}}}; }
  std::unique_ptr<Prepared> make(const OpRow& op, std::int64_t c) override {
    const auto m = std::get<measure::GemmShape>(op.shape).m;
    require(m != 7, "seven rows are too many");
    ++prepared;
    copies.push_back(c);
    return std::make_unique<FakeOp>(1e-6 * static_cast<double>(m), c, &alive);
  }
  Seconds run(std::span<Prepared* const> sequence, std::int64_t passes) override {
    double sum = 0;
    last_sequence.clear();
    for (Prepared* op : sequence) {
      last_sequence.push_back(static_cast<FakeOp*>(op)->seconds * 1e6);
      sum += static_cast<FakeOp*>(op)->seconds;
    }
    return Seconds{sum * static_cast<double>(passes)};
  }
  std::vector<float> result(Prepared&) override { return {}; }
};

OpRow product(std::int64_t m) { return {"gemm", Dtype::fp32, measure::GemmShape{m, 8, 8, 1, {}}}; }
DistinctOp distinct(const char* name, std::int64_t count, std::int64_t m) { return {{name}, count, product(m)}; }

}  // namespace

TEST_CASE("a pass is timed by samples of many passes", "[timing]") {
  constexpr double kPass = 1.0 / (1 << 19);  // s; powers of two, so that nothing is rounded
  std::vector<std::int64_t> asked;
  const Timing t = time_passes(
      [&](std::int64_t passes) {
        asked.push_back(passes);
        return Seconds{kPass * static_cast<double>(passes)};
      },
      {.sample = Seconds{1024 * kPass}, .budget = Seconds{8 * 1024 * kPass}, .fewest = 5, .most = 31});
  CHECK(t.median.value == kPass);
  CHECK(t.spread.value == 0);
  CHECK(asked.front() == 1);
  CHECK(asked.back() == 1024);
  CHECK(t.samples == 8);
  CHECK(t.passes == 8 * 1024);
}

TEST_CASE("one disturbed look does not make the samples short", "[timing]") {
  int calls = 0;
  const Timing t = time_passes(
      [&](std::int64_t passes) { return Seconds{++calls == 1 ? 6e-3 : 2e-6 * static_cast<double>(passes)}; });
  CHECK(t.passes >= 2000 * t.samples);
}

TEST_CASE("a long pass is sampled the fewest times", "[timing]") {
  int calls = 0;
  const Timing t = time_passes([&](std::int64_t passes) { return ++calls, Seconds{0.5 * static_cast<double>(passes)}; },
                               {.fewest = 5});
  CHECK(t.samples == 5);
  CHECK(calls == 6);
}

TEST_CASE("median, minimum and spread are of the samples", "[timing]") {
  int call = 0;
  const double samples[] = {1, 1, 2, 3, 4, 100};  // the first is the look before
  const Timing t = time_passes([&](std::int64_t) { return Seconds{samples[call++]}; }, {.fewest = 5, .most = 5});
  CHECK(t.median.value == 3);
  CHECK(t.minimum.value == 1);
  CHECK(t.spread.value == 2);  // 2 to 4
}

TEST_CASE("every distinct op is timed once, and what cannot run says why", "[replay]") {
  FakeBackend backend;
  Step step{{distinct("a", 2, 3), distinct("b", 1, 7), {{"c"}, 1, std::string("is no op")}}, {}};
  Replayer replayer(backend);
  const Replay r = replayer.run(step);
  REQUIRE(r.ops.size() == 3);
  CHECK(r.ops[0].time().value == Approx(3e-6));
  CHECK(r.ops[1].unavailable == "seven rows are too many");
  CHECK(r.ops[2].unavailable == "is no op");
  CHECK(backend.alive == 0);
  replayer.run(step);
  CHECK(backend.prepared == 1);
}

TEST_CASE("a whole step runs layer after layer, with weights for each", "[replay]") {
  FakeBackend backend;
  const Step step{{distinct("embed", 1, 1), distinct("qkv", 2, 2), distinct("norm", 4, 3), distinct("seven", 1, 7)},
                  {{{{0, 1}}, 1}, {{{1, 1}, {2, 2}}, 2}, {{{3, 1}}, 1}}};
  Replayer replayer(backend, {.whole_step = true, .timing = {}, .progress = {}});
  const Replay r = replayer.run(step);
  REQUIRE(r.whole);
  CHECK(backend.last_sequence == std::vector<double>{1, 2, 3, 3, 2, 3, 3});
  CHECK(r.whole->timing.median.value == Approx(17e-6));
  CHECK(r.whole->ops.value == Approx(17e-6));
  CHECK(r.whole->left_out == std::vector<std::string>{"seven"});
  CHECK(backend.copies == std::vector<std::int64_t>{0, 0, 0, 1, 2, 4});  // alone: what caches cannot hold
  CHECK(backend.alive == 0);
}

TEST_CASE("a replay that is interrupted keeps what is done", "[replay]") {
  FakeBackend backend;
  const Step step{{distinct("a", 1, 1), distinct("b", 1, 2)}, {}};
  Replayer replayer(backend, {.whole_step = true,
                              .timing = {},
                              .progress = [](std::size_t done, std::size_t, const std::string&) { return done < 1; }});
  const Replay r = replayer.run(step);
  CHECK_FALSE(r.complete);
  CHECK(r.ops.size() == 1);
  CHECK_FALSE(r.whole);
}

TEST_CASE("a step of which nothing runs is no step", "[replay]") {
  FakeBackend backend;
  Replayer replayer(backend, {.whole_step = true, .timing = {}, .progress = {}});
  CHECK_FALSE(replayer.run({{distinct("seven", 1, 7)}, {{{{0, 1}}, 1}}}).whole);
}

TEST_CASE("a failure of the device ends the replay, and what was measured is kept", "[replay]") {
  struct Failing : FakeBackend {
    Seconds run(std::span<Prepared* const> sequence, std::int64_t passes) override {
      if (static_cast<FakeOp*>(sequence.front())->seconds > 4e-6) throw Error::failed("aclrtSynchronizeStream: 507015");
      return FakeBackend::run(sequence, passes);
    }
  } backend;
  Replayer replayer(backend);
  const Replay r = replayer.run({{distinct("a", 1, 3), distinct("b", 1, 5), distinct("c", 1, 1)}, {}});
  CHECK(r.ops.size() == 1);
  CHECK_FALSE(r.complete);
  REQUIRE(r.failure);
  CHECK(r.failure->diagnostics().front().message == "aclrtSynchronizeStream: 507015");
  CHECK(backend.alive == 0);
}

TEST_CASE("measurements of a study have every op once, with all its names", "[replay]") {
  FakeBackend backend;
  Replayer replayer(backend);
  Study study{.what = "a test", .device = backend.describe(), .hardware = "fake-1"};
  study.phases.push_back({"prefill", replayer.run({{distinct("a", 1, 1), distinct("b", 1, 2)}, {}}), {}, {}});
  study.phases.push_back({"decode", replayer.run({{distinct("c", 1, 2)}, {}}), {}, {}});
  const measure::Measurements m = measurements_of(study);
  REQUIRE(m.rows.size() == 2);
  CHECK(m.extra_columns == std::vector<std::string>{"spread_us", "repetitions", "name"});
  CHECK(m.rows[1].extra[2] == "b+c");
  CHECK(m.rows[1].latency.value == Approx(2e-6));
  CHECK(m.files[0].notes.back() == "threads: 1");
  const measure::Measurements again = measure::parse_measurements(format_measurements(m), "again.csv");
  CHECK(again.rows.size() == 2);
}

TEST_CASE("a sweep goes from one row to many, on matrices of several sizes", "[replay]") {
  const std::vector<OpRow> ops = sweep("gemm", Dtype::bf16);
  std::int64_t least = 1'000'000;
  std::int64_t most = 0;
  for (const OpRow& op : ops) {
    least = std::min(least, std::get<measure::GemmShape>(op.shape).m);
    most = std::max(most, std::get<measure::GemmShape>(op.shape).m);
    CHECK(op.dtype == Dtype::bf16);
  }
  CHECK(least == 1);
  CHECK(most >= 1024);
  CHECK(list_of(ops).ops.size() == ops.size());
  CHECK_THROWS_WITH(sweep("gem", Dtype::bf16), "`sweep`: there is no 'gem'\n  hint: did you mean 'gemm'?");
}

}  // namespace llmperf::replay_test
