// Attention and experts on devices of their own (Plan::afd): shapes, memory and schedule, by numbers to be checked by
// hand.
#include <algorithm>

#include "cost/formulas.h"
#include "cost/memory.h"
#include "estimate/plan_cases.h"
#include "estimate/schedule.h"

namespace llmperf::estimate {
namespace {

using graph::Tag;

// Eight experts of 4,096 x 14,336, of which a token has two, in each of 32 layers.
constexpr graph::Plan kEach = {.expert = 8, .afd = true, .data = 8};
constexpr double kExpert = 32 * 3.0 * 4096 * 14336 * 2;  // bytes of one in bf16, of all layers

Estimator mixtral(const graph::Plan& plan, std::int64_t micro_batches) {
  return test::estimator("mixtral-8x7b", "h100-sxm", plan, [&](Choices& choices) {
    choices.serving.phases = Served::decode;
    choices.pipeline_batches = micro_batches;
    choices.routing = {.balanced = true};
  });
}
const OpEstimate& op(const Phase& phase, Tag tag) {
  return *std::ranges::find_if(phase.ops, [&](const OpEstimate& o) { return o.op.tag == tag; });
}

TEST_CASE("experts on devices of their own get the tokens of all others") {
  Estimator estimator = mixtral(kEach, 3);
  const Estimate e = estimator.run({.batch = 8 * 192, .prompt = 1024, .generate = 2});
  const Phase& decode = *e.phase("decode");
  CHECK(estimator.setup().execution.plan.devices() == 16);
  CHECK(graph::to_text(kEach) == "ep 8, afd, dp 8");
  // 64 tokens of each of eight devices, two experts each, on eight devices; in 32 layers, three times.
  const auto& down = std::get<graph::Gemm>(op(decode, Tag::experts_down).op.body);
  CHECK(down.m == 64 * 8 * 2 / 8);
  CHECK(op(decode, Tag::experts_down).op.on_experts);
  CHECK(op(decode, Tag::experts_down).op.count == 32 * 3);
  CHECK(std::get<graph::Gemm>(op(decode, Tag::router).op.body).m == 64);
  CHECK_FALSE(op(decode, Tag::combine).op.on_experts);
  // A device of attention sends every token to two others, and keeps none: of 8 ranks of a collective 7 get something.
  const auto& sent = std::get<graph::Collective>(op(decode, Tag::experts_dispatch).op.body);
  CHECK(sent.rows * 7 / 8 == Approx(64 * 2));
  CHECK(sent.stride == 2);  // every other device has experts

  // Four devices of experts get twice as much as each of eight sends, and what they get takes as long.
  Estimator fewer = mixtral({.expert = 4, .afd = true, .data = 8}, 3);
  const Estimate narrow = fewer.run({.batch = 8 * 192, .prompt = 1024, .generate = 2});
  const Phase& step = *narrow.phase("decode");
  CHECK(std::get<graph::Gemm>(op(step, Tag::experts_down).op.body).m == 64 * 8 * 2 / 4);
  const double once = 1 - 15.0 / 28;  // chance of a device with two of eight experts: 1 - (6 5) / (8 7)
  CHECK(std::get<graph::Collective>(op(step, Tag::experts_dispatch).op.body).rows * 3 / 4 == Approx(64 * 2 * 4 * once));

  // Memory: one expert, or two, of each layer; the others hold all but these.
  CHECK(e.expert_memory.weights.value == Approx(kExpert));
  CHECK(narrow.expert_memory.weights.value == Approx(2 * kExpert));
  CHECK(e.expert_memory.kv_cache.value == 0);
  CHECK(e.memory.weights.value == Approx(narrow.memory.weights.value));
  CHECK(e.memory.weights.value + 8 * kExpert == Approx(46'702'792'704.0 * 2));
  // 512 tokens of two experts over eight devices: token, result, gate, up and their product in bf16.
  CHECK(e.expert_memory.activation.value ==
        Approx(128 * (2 * 4096 + 3 * 14336) * 2 * estimator.setup().activation_factor));
}

Estimator deepseek(const graph::Plan& plan) {
  return test::estimator("deepseek-v3", "h800-sxm", plan, [](Choices& choices) {
    choices.serving.phases = Served::decode;
    choices.pipeline_batches = 3;
  });
}

// Of nodes of eight 8 x 64 / (64 + A) devices have experts: 4.1 to 3.9, and 2.7.
TEST_CASE("exchanges take hardly longer with one device of attention more") {
  const auto exchanges = [](std::int64_t replicas) {
    Estimator estimator = deepseek({.expert = 64, .afd = true, .data = replicas});
    const Pools pools =
        pools_of(*estimator.run({.batch = replicas * 96, .prompt = 4096, .generate = 2}).phase("decode"));
    return pools[2] + pools[3];
  };
  double before = exchanges(60);
  for (std::int64_t replicas = 61; replicas <= 68; ++replicas) {
    const double now = exchanges(replicas);
    CHECK(now > before * 0.999);
    CHECK(now < before * 1.02);
    before = now;
  }
  CHECK(exchanges(128) / exchanges(127) == Approx(1).epsilon(0.01));
}

TEST_CASE("requests of a replica divide into micro-batches where none are asked for") {
  for (const std::int64_t requests : {5, 6, 7, 8}) {
    const Estimate e = mixtral(kEach, 0).run({.batch = 8 * requests, .prompt = 1024, .generate = 2});
    const Phase& decode = *e.phase("decode");
    CHECK(requests % decode.micro_batches == 0);
    CHECK(decode.work.kv_read.value <= e.memory.kv_cache.value);
  }
}

TEST_CASE("activations of devices of experts are of the rows that their busiest has") {
  // 32 tokens of each of 64 devices go to eight routed experts and a shared one, on 72 devices.
  Estimator shared = deepseek({.expert = 72, .shared_ranks = 8, .afd = true, .data = 64});
  const Scenario scenario{.batch = 64 * 96, .prompt = 4096, .generate = 2};
  CHECK(shared.run(scenario).expert_memory.activation.value ==
        Approx(2048.0 * 9 / 72 * (2 * 7168 + 3 * 2048) * 2 * shared.setup().activation_factor));
  // On eight, whose experts nobody balances, the busiest of the law; at the speed of light they are.
  graph::Execution law = test::execution(test::decoder("deepseek-v3"), {.expert = 8, .afd = true, .data = 8});
  const auto peak = [&] { return cost::expert_activation_peak(law, {.count = 32, .new_tokens = 1, .context = 1024}); };
  const Bytes busiest = peak();
  law.ideal = true;
  CHECK(busiest / peak() == Approx(graph::expert_load({}, 256, 8, 8 * 32, 8).imbalance));
  CHECK(busiest / peak() > 1.4);
  // One of eight experts gets 3 of 10 copies, 2.4 times the mean.
  const graph::MeasuredLoads loads("", {{3, 1, 1, 1, 1, 1, 1, 1}});
  const auto skewed = [&](std::int64_t replicas) {
    return test::estimator("mixtral-8x7b", "h100-sxm", {.expert = 8, .afd = true, .data = replicas},
                           [&](Choices& choices) {
                             choices.serving.phases = Served::decode;
                             choices.pipeline_batches = 1;
                             choices.routing = {.exponent = 0, .measured = &loads};
                           });
  };
  Estimator even = skewed(8);
  const Estimate busy = even.run({.batch = 8 * 64, .prompt = 1024, .generate = 2});
  CHECK(busy.expert_memory.activation.value ==
        Approx(2.4 * 128 * (2 * 4096 + 3 * 14336) * 2 * even.setup().activation_factor));
  // The busiest of eight gets what it is sent more than the mean by half of as many devices, or what each of these
  // sends.
  const double reached = loads.placed(2, 8, 0).reached;
  for (const std::int64_t replicas : {1, 4}) {
    const Estimate e = skewed(replicas).run({.batch = replicas * 64, .prompt = 1024, .generate = 2});
    const auto& sent = std::get<graph::Collective>(op(*e.phase("decode"), Tag::experts_dispatch).op.body);
    CHECK(sent.routing.busiest == Approx(8.0 / 7 * std::max(1.0, reached * static_cast<double>(replicas) / 8)));
  }
}

TEST_CASE("a device of attention holds nothing of routed experts") {
  graph::Execution e = test::execution(test::decoder("mixtral-8x7b"), kEach);
  const auto parts = cost::explained_activation(e, {.count = 64, .new_tokens = 1, .context = 1024}, "step");
  const auto mlp = std::ranges::find(parts, "MLP of the step", &cost::Alive::what);
  REQUIRE(mlp != parts.end());
  CHECK(mlp->bytes.value() == 64 * (2 + 2) * 4096 * 2);  // the residual stream, its norm and two copies, in bf16
  e.allocation = {.padding = 32, .granule = 512};
  const Bytes padding = cost::stage_allocation_bytes(e, 0);
  e.plan.expert = 2;  // four experts a device instead of one
  CHECK(cost::stage_allocation_bytes(e, 0) == padding);
}

TEST_CASE("a step lasts as long as the busiest of attention, experts and exchanges, or a micro-batch's own way") {
  for (const std::int64_t m : {1, 2, 3, 4}) {
    const Estimate e = mixtral(kEach, m).run({.batch = 8 * 192, .prompt = 1024, .generate = 2});
    const Phase& decode = *e.phase("decode");
    double sum = 0, experts = 0, exchanges = 0;
    for (const OpEstimate& o : decode.ops) {
      sum += o.step_time().value;
      if (o.op.tag >= Tag::experts_gate_up && o.op.tag <= Tag::experts_down) experts += o.step_time().value;
      if (o.op.place == graph::Place::network) exchanges += o.step_time().value;
    }
    const Pools pools = pools_of(decode);
    CHECK(pools[1] == Approx(experts));
    CHECK(pools[2] + pools[3] == Approx(exchanges));
    CHECK(pools[0] == Approx(sum - experts - exchanges));
    CHECK(e.tpot->value == Approx(std::max({sum / static_cast<double>(m), pools[0], pools[1], pools[2], pools[3]})));
    CHECK(decode.micro_batches == m);
  }
  // As many as take the least time where none are asked for.
  const Scenario scenario{.batch = 8 * 192, .prompt = 1024, .generate = 2};
  double least = 1;
  for (const std::int64_t m : {1, 2, 3, 4}) least = std::min(least, mixtral(kEach, m).run(scenario).tpot->value);
  CHECK(mixtral(kEach, 0).run(scenario).tpot->value == Approx(least));
}

// MegaScale-Infer (arXiv 2504.02263): with T_a = 3, T_e = 4 and T_c = 1 a layer, m T_f >= T_a + T_e + 2 T_c holds from
// m = 3 on (2 (1 + T_c / T_f) = 2.5), and ten layers then take 10 m T_f.
TEST_CASE("micro-batches hide attention and exchanges behind experts once they are 2 (1 + T_c / T_f)") {
  const auto timed = [](Tag tag, double seconds, bool on_experts, graph::Place place) {
    OpEstimate o;
    o.op = {
        .name = "op", .tag = tag, .layer_kind = 0, .place = place, .on_experts = on_experts, .body = graph::Vector{}};
    o.time.total = Seconds{seconds};
    return o;
  };
  const std::vector<OpEstimate> ops = {timed(Tag::attention, 3, false, graph::Place::device),
                                       timed(Tag::experts_dispatch, 1, false, graph::Place::network),
                                       timed(Tag::experts_up, 4, true, graph::Place::device),
                                       timed(Tag::experts_return, 1, false, graph::Place::network)};
  const std::pair<std::int64_t, double> steps[] = {{1, 90}, {2, 90}, {3, 120}, {4, 160}};
  for (const auto& [m, expected] : steps) {
    std::vector<double> seconds;
    for (const OpEstimate& o : ops) seconds.push_back(o.time.total.value * 10 * static_cast<double>(m));
    const Schedule s = schedule_step(ops, seconds, kWhole, m, Steady::yes);
    CHECK(s.time.value == Approx(expected));
    CHECK(s.bubble.value == Approx(expected - 40 * static_cast<double>(m)));
    CHECK(bound_of(pools_of(ops, seconds), s.time) == (m < 3 ? "turns" : "experts"));
  }
}

TEST_CASE("what experts on devices of their own cannot go with is refused") {
  const auto first = [](const std::string& model, const graph::Plan& plan) {
    const auto problems = graph::problems(test::decoder(model), plan);
    return problems.empty() ? "" : problems.front().message;
  };
  CHECK(first("mixtral-8x7b", kEach).empty());
  CHECK(first("mixtral-8x7b", {.tensor = 8, .expert = 4, .afd = true}).empty());  // `ep` divides the experts alone
  CHECK(first("mixtral-8x7b", {.afd = true}).find("`ep` says how many") != std::string::npos);
  CHECK(first("mixtral-8x7b", {.expert = 3, .afd = true}).find("do not divide by 3") != std::string::npos);
  CHECK(first("mixtral-8x7b", {.expert = 8, .afd = true, .pipeline = 2}).find("not modelled") != std::string::npos);
  CHECK(first("llama-2-70b", {.expert = 8, .afd = true}).find("the model has none") != std::string::npos);
}

}  // namespace
}  // namespace llmperf::estimate
