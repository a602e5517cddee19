#include "estimate/schedule.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "catch.h"
#include "graph/random_decoder.h"

namespace llmperf::schedule_test {

using estimate::OpEstimate;
using estimate::Schedule;
using estimate::Stage;
using estimate::Steady;

namespace {

OpEstimate op(std::string_view name, int layer_kind, bool overlaps = false) {
  OpEstimate e;
  e.op.name = name;
  e.op.layer_kind = layer_kind;
  e.op.overlaps = overlaps;
  return e;
}
OpEstimate stage_send() {
  OpEstimate e = op("stage_send", -1);
  e.op.body = graph::Collective{.kind = graph::CollectiveKind::send, .axis = graph::Axis::pipeline, .ranks = 2};
  return e;
}
std::vector<Stage> equal_stages(std::int64_t stages, std::int64_t layers_each) {
  return std::vector<Stage>(static_cast<std::size_t>(stages), Stage{.layers = {layers_each}, .weights = {}});
}

}  // namespace

TEST_CASE("micro-batches of a prompt overlap as far as the cards' launch queue goes, four at most") {
  hardware::ParameterValues values{};
  values[index(hardware::Parameter::split_queue)] = 1000;
  values[index(hardware::Parameter::split_kernels)] = 50;
  const auto in_flight = [&](double layers, double cards, double micro_batches = 100, bool unpacks = true) {
    return estimate::prompts_in_flight(values, layers, cards, micro_batches, unpacks);
  };
  // 20 layers of 50 launches fill the queue: the next micro-batch begins once the last of four cards begins this one.
  CHECK(in_flight(80, 4) == Approx(4.0 / 3));
  // Half a micro-batch pending: two cards take 2 - 0.5 stages' time for each.
  CHECK(in_flight(80, 2) == Approx(2 / 1.5));
  // Two and a half: three take 4 - 1 + 3 - 2.5 stages' times.
  CHECK(in_flight(32, 4) == Approx(4 / (3.5 / 3)));
  CHECK(in_flight(8, 4) == 4);   // ten fit
  CHECK(in_flight(16, 8) == 4);  // eight cards, and copies of four inputs
  CHECK(in_flight(80, 4, 1) == 4);
  CHECK(in_flight(70, 4, 100, false) == Approx(in_flight(70 * 7.0 / 8, 4)));  // no weights are unpacked
}

TEST_CASE("decode of more sequences than were captured, or of longer ones, is launched as prompts are") {
  using enum hardware::Dispatch;
  hardware::RuntimeProfile profile;
  profile.choices.graph_rows = 8;
  profile.choices.graph_context = 8192;
  estimate::Platform platform;
  platform.profile = &profile;
  platform.dispatch = eager;
  platform.decode_dispatch = graph;
  CHECK(platform.dispatch_of(false, 8, 8, 8192) == graph);
  CHECK(platform.dispatch_of(false, 9, 9, 8192) == eager);
  CHECK(platform.dispatch_of(false, 8, 8, 8193) == eager);
  CHECK(platform.dispatch_of(true, 1, 100, 0) == eager);
}

TEST_CASE("of micro-batches in flight the limit counts where stages would take more") {
  const std::vector<OpEstimate> ops = {op("layer", 0)};
  // Two micro-batches of 20 s on four stages of 5 s each.
  CHECK(schedule_step(ops, std::vector<double>{40}, equal_stages(4, 2), 2, Steady::no).time.value == 25);
  CHECK(schedule_step(ops, std::vector<double>{40}, equal_stages(4, 2), 2, Steady::no, 2).time.value == 30);
  CHECK(schedule_step(ops, std::vector<double>{40}, equal_stages(4, 2), 2, Steady::no, 8).time.value == 25);
}

TEST_CASE("on one stage ops follow one another, whatever the number of micro-batches") {
  const std::vector<OpEstimate> ops = {op("embed", -1), op("layer", 0), op("lm_head", -1)};
  const std::vector<double> seconds = {1, 20, 3};
  for (const Steady steady : {Steady::no, Steady::yes}) {
    const Schedule s = schedule_step(ops, seconds, equal_stages(1, 10), 4, steady);
    CHECK(s.time.value == 24);
    CHECK(s.ops.value == 24);
    CHECK(s.overlapped.value == 0);
    CHECK(s.pipelined.value == 0);
    CHECK(s.bubble.value == 0);
  }
}

TEST_CASE("an overlapping collective costs what it takes beyond the op before it") {
  const std::vector<OpEstimate> ops = {op("attention", 0), op("kv_ring", 0, true), op("o_proj", 0)};
  CHECK(schedule_step(ops, std::vector<double>{5, 3, 1}, equal_stages(1, 1), 1, Steady::no).time.value == 6);
  CHECK(schedule_step(ops, std::vector<double>{5, 3, 1}, equal_stages(1, 1), 1, Steady::no).overlapped.value == 3);
  CHECK(schedule_step(ops, std::vector<double>{3, 5, 1}, equal_stages(1, 1), 1, Steady::no).time.value == 6);
  CHECK(schedule_step(ops, std::vector<double>{3, 5, 1}, equal_stages(1, 1), 1, Steady::no).overlapped.value == 3);
}

TEST_CASE("a collective that does not overlap is waited for") {
  const std::vector<OpEstimate> ops = {op("o_proj", 0), op("attention_reduce", 0), op("norm", 0)};
  const Schedule s = schedule_step(ops, std::vector<double>{5, 3, 1}, equal_stages(1, 1), 1, Steady::no);
  CHECK(s.time.value == 9);
  CHECK(s.overlapped.value == 0);
}

TEST_CASE("a prompt takes micro-batches + stages - 1 slots of equal stages") {
  const std::vector<OpEstimate> ops = {op("layer", 0)};
  for (std::int64_t stages = 2; stages <= 8; ++stages) {
    for (std::int64_t batches = 1; batches <= 16; ++batches) {
      const double slot = 0.25;  // of one micro-batch in one stage
      const std::vector<double> seconds = {slot * static_cast<double>(stages * batches)};
      const Schedule s = schedule_step(ops, seconds, equal_stages(stages, 3), batches, Steady::no);
      CHECK(s.time.value == Approx(slot * static_cast<double>(batches + stages - 1)).epsilon(1e-12));
      CHECK(s.bubble.value == Approx(slot * static_cast<double>(stages - 1)).margin(1e-12));
      CHECK(s.bubble / s.time == Approx(static_cast<double>(stages - 1) / static_cast<double>(batches + stages - 1)));
    }
  }
}

TEST_CASE("decode steps fill the pipeline once there are as many micro-batches as stages") {
  const std::vector<OpEstimate> ops = {op("layer", 0)};
  const auto step = [&](std::int64_t batches) {  // each micro-batch takes 1 s in each of 4 stages
    const std::vector<double> seconds = {4.0 * static_cast<double>(batches)};
    return schedule_step(ops, seconds, equal_stages(4, 2), batches, Steady::yes);
  };
  CHECK(step(1).time.value == 4);  // the token has to come out before the next goes in
  CHECK(step(2).time.value == 4);
  CHECK(step(2).bubble.value == 2);
  CHECK(step(4).time.value == 4);
  CHECK(step(4).bubble.value == 0);
  CHECK(step(8).time.value == 8);
  CHECK(step(8).pipelined.value == 24);
}

TEST_CASE("what comes before the layers is the first stage's, what comes after the last one's") {
  // 2 stages, 4 layers of 1 s each per stage, two micro-batches together: 8 s; embed 2, head 6, one send of 1.
  const std::vector<OpEstimate> ops = {op("embed", -1), op("layer", 0), stage_send(), op("lm_head", -1)};
  const std::vector<double> seconds = {2, 8, 1, 6};
  // busy: first 2 + 4 + 1 = 7, last 4 + 6 = 10.
  const Schedule prompt = schedule_step(ops, seconds, equal_stages(2, 4), 2, Steady::no);
  CHECK(prompt.time.value == 17.0 / 2 + 10.0 / 2);
  CHECK(prompt.bubble.value == 3.5);
  const Schedule decode = schedule_step(ops, seconds, equal_stages(2, 4), 2, Steady::yes);
  CHECK(decode.time.value == 10);
  CHECK(decode.bubble.value == 0);
}

TEST_CASE("stages with different kinds of layers are busy for the layers they have") {
  // One dense layer of 1 s and three expert layers of 3 s each, in two stages of two.
  const std::vector<OpEstimate> ops = {op("dense", 0), op("experts", 1)};
  const std::vector<Stage> stages = {{.layers = {1, 1}, .weights = {}}, {.layers = {0, 2}, .weights = {}}};
  const std::vector<double> seconds = {1, 9};
  // busy: 1 + 3 and 6.
  CHECK(schedule_step(ops, seconds, stages, 1, Steady::yes).time.value == 10);
  CHECK(schedule_step(ops, seconds, stages, 2, Steady::yes).time.value == 6);
  CHECK(schedule_step(ops, seconds, stages, 2, Steady::no).time.value == 5 + 3);
}

TEST_CASE("whatever runs, its time is that of its ops less what is hidden, and no less than the busiest stage") {
  test::Random random(31);
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t kinds = random.in(1, 3);
    std::vector<OpEstimate> ops = {op("embed", -1)};
    for (int kind = 0; kind < kinds; ++kind) {
      for (std::int64_t n = random.in(1, 4); n > 0; --n) ops.push_back(op("layer", kind, random.chance()));
    }
    std::vector<Stage> stages(static_cast<std::size_t>(random.in(1, 5)));
    for (Stage& stage : stages) {
      for (std::int64_t kind = 0; kind < kinds; ++kind) stage.layers.push_back(random.in(1, 6));
    }
    if (stages.size() > 1) ops.push_back(stage_send());
    ops.push_back(op("lm_head", -1));
    std::vector<double> seconds;
    for (std::size_t k = 0; k < ops.size(); ++k) seconds.push_back(static_cast<double>(random.in(0, 1000)) / 64);
    const std::int64_t batches = random.in(1, 9);
    double most_hidden = 0;
    for (std::size_t k = 1; k < ops.size(); ++k) {
      if (ops[k].op.overlaps) most_hidden += std::min(seconds[k], seconds[k - 1]);
    }
    for (const Steady steady : {Steady::no, Steady::yes}) {
      const Schedule s = schedule_step(ops, seconds, stages, batches, steady);
      CHECK(s.ops.value == Approx(std::accumulate(seconds.begin(), seconds.end(), 0.0)).epsilon(1e-12));
      CHECK(s.ops.value == Approx(s.time.value + s.overlapped.value + s.pipelined.value).epsilon(1e-12));
      CHECK(s.overlapped.value <= most_hidden);
      CHECK(s.pipelined.value >= -1e-9);
      CHECK(s.bubble.value >= -1e-9);
      // No stage can be busy for less than its fair share, nor a micro-batch go through faster than its ops.
      const double chain = s.ops.value - s.overlapped.value;
      CHECK(s.time.value * static_cast<double>(stages.size()) >= chain * (1 - 1e-12));
      CHECK(s.time.value * static_cast<double>(batches) >= chain * (1 - 1e-12));
    }
  }
}

TEST_CASE("of the shorter of a product and its sum the hidden share takes no time") {
  std::vector<OpEstimate> ops = {op("o_proj", 0), op("attention_reduce", 0, true), op("norm", 0)};
  const auto overlapped = [&](double product, double sum, double hidden) {
    ops[1].op.hidden = hidden;
    const Schedule s = schedule_step(ops, std::vector<double>{product, sum, 1}, equal_stages(1, 1), 1, Steady::no);
    CHECK(s.time.value == product + sum + 1 - s.overlapped.value);
    return s.overlapped.value;
  };
  CHECK(overlapped(5, 3, 0.5) == 1.5);
  CHECK(overlapped(2, 3, 0.5) == 1);
  CHECK(overlapped(5, 3, 0) == 0);
  CHECK(overlapped(5, 3, 1) == 3);
}

}  // namespace llmperf::schedule_test
