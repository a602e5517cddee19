// What each option is worth and where: the order of the changes, the ops that match, and sums that add up.
#include "estimate/compare.h"

#include "base/text.h"
#include "catch.h"
#include "estimate/builtin.h"
#include "graph/random_decoder.h"
#include "hardware/runtime_execution.h"

namespace llmperf::compare_test {

using estimate::Choices;
using estimate::CompareStep;
using estimate::OpDifference;
using estimate::OpEstimate;
using estimate::OptionChange;
using estimate::Phase;
using estimate::PhaseDifference;
using estimate::Scenario;
using hardware::Dispatch;
using hardware::RuntimeOptions;
using hardware::RuntimeProfile;
using test::decoder;
using test::device;

namespace {

using Ladder = std::vector<RuntimeProfile::NamedOption>;

RuntimeOptions options(const char* list) { return hardware::parse_runtime_options(list); }

// The switches of one set with everything else of another.
RuntimeOptions switches_of(RuntimeOptions options, const RuntimeOptions& rest) {
  options.chains = rest.chains;
  options.allocated_kv = rest.allocated_kv;
  options.attention_query_tile = rest.attention_query_tile;
  return options;
}

std::string words(const std::vector<OptionChange>& changes) {
  std::vector<std::string> names;
  for (const OptionChange& change : changes) {
    names.push_back(change.option + "=" + join(change.switches, "+"));
  }
  return join(names, " ");
}

OpEstimate op(std::string_view name, double seconds, std::int64_t count = 1, std::int32_t launches = 1) {
  OpEstimate e;
  e.op.name = name;
  e.op.count = count;
  e.op.launches = launches;
  e.op.body = graph::Vector{};
  e.work.activations_read = Bytes{10};
  e.time.total = Seconds{seconds};
  return e;
}
Phase phase(std::vector<OpEstimate> ops, double seconds) {
  Phase p;
  p.name = "prefill";
  p.ops = std::move(ops);
  p.time = Seconds{seconds};
  return p;
}

const OpDifference& find(const PhaseDifference& phase, std::string_view name) {
  for (const OpDifference& row : phase.ops) {
    if (row.name == name) return row;
  }
  FAIL("no op " << name);
  return phase.ops.front();
}

Approx near(double value, double scale) { return Approx(value).epsilon(1e-9).margin(1e-9 * scale); }
void check_sums(const PhaseDifference& phase) {
  double before = 0;
  double gain = 0;
  for (const OpDifference& row : phase.ops) {
    before += row.before.time.value;
    gain += row.gain().value;
  }
  const double step = phase.before.time.value;
  CHECK(before == near(step, step));
  CHECK(gain == near(step - phase.after.time.value, step));
}

Choices choices_with(const RuntimeProfile& profile, const char* list, const char* execution) {
  const hardware::RuntimeExecution runs = hardware::resolve_execution(profile, list, execution);
  Choices c;
  c.profile = &profile;
  c.run_as(runs);
  c.plan.tensor = 8;
  c.plan.shard_embedding = !profile.choices.replicates_embedding;
  return c;
}

}  // namespace

TEST_CASE("options change in the order of the ladder, then in that of the switches") {
  const Ladder ladder = {{"norms", {"fused_norm", "fused_add_norm"}}, {"static_kv", {"static_kv"}}};
  const auto changes =
      estimate::option_changes(options("none"), options("fused_norm,fused_add_norm,static_kv,fused_qkv,mc2"), ladder);
  CHECK(words(changes) ==
        "norms=fused_norm+fused_add_norm static_kv=static_kv fused_qkv=fused_qkv "
        "overlap_collectives=overlap_collectives");
  CHECK(changes[0].options == options("fused_norm,fused_add_norm"));
  CHECK(changes[3].options == options("fused_norm,fused_add_norm,static_kv,fused_qkv,mc2"));
}

TEST_CASE("options that the second set lacks are switched off") {
  const Ladder ladder = {{"norms", {"fused_norm", "fused_add_norm"}}};
  CHECK(words(estimate::option_changes(options("all"), options("all,no_fused_norm,no_fused_add_norm,no_fused_qkv"),
                                       ladder)) ==
        "no_norms=no_fused_norm+no_fused_add_norm no_fused_qkv=no_fused_qkv");
  CHECK(words(estimate::option_changes(options("static_kv"), options("fused_qkv"), {})) ==
        "fused_qkv=fused_qkv no_static_kv=no_static_kv");
  CHECK(estimate::option_changes(options("all"), options("all"), ladder).empty());
}

TEST_CASE("a rung of which only some switches differ is taken switch by switch") {
  const Ladder ladder = {{"flash_attention", {"flash_attention", "fused_rope"}}};
  CHECK(words(estimate::option_changes(options("none"), options("flash_attention"), ladder)) ==
        "flash_attention=flash_attention");
  // A switch that is on already does not stand in the way of its rung.
  CHECK(words(estimate::option_changes(options("fused_rope"), options("flash_attention,fused_rope"), ladder)) ==
        "flash_attention=flash_attention");
}

TEST_CASE("the changes lead from any set to any other, each switch turned once") {
  test::Random random(5);
  const Ladder ladder = {{"a", {"static_kv", "fused_qkv"}}, {"b", {"fused_qkv", "fused_norm"}}, {"c", {"mc2"}}};
  for (int i = 0; i < 200; ++i) {
    const RuntimeOptions from = test::random_options(random);
    const RuntimeOptions to = switches_of(test::random_options(random), from);
    std::size_t differ = 0;
    for (const std::string& name : hardware::runtime_option_names()) {
      RuntimeOptions a = from;
      RuntimeOptions b = to;
      hardware::set_option(a, name, true);
      hardware::set_option(b, name, true);
      differ += (a == from) != (b == to) ? 1 : 0;
    }
    std::size_t turned = 0;
    RuntimeOptions reached = from;
    for (const OptionChange& change : estimate::option_changes(from, to, ladder)) {
      turned += change.switches.size();
      reached = change.options;
    }
    CHECK(turned == differ);
    CHECK(reached == to);
  }
}

TEST_CASE("ops are matched by name, and those that only one set has are said to be") {
  OpEstimate overhead = op("runtime_overhead", 1);
  overhead.op.body = graph::Overhead{};
  OpEstimate on_host = op("norm", 2);
  on_host.op.place = graph::Place::host;
  const Phase before = phase({op("norm", 2, 3, 8), op("add", 1), op("norm", 4, 1, 8), overhead, on_host}, 14);
  const Phase after = phase({op("add_norm", 3, 2), overhead}, 7);
  const PhaseDifference p = estimate::phase_difference(before, after);
  check_sums(p);
  REQUIRE(p.ops.size() == 5);

  CHECK(p.ops.front().name == "norm");  // the largest gain: 3 x 2 + 4
  CHECK(p.ops.front().gain().value == 10);
  CHECK(p.ops.front().before.launches == 32);
  CHECK(p.ops.front().before.bytes.value == 40);
  CHECK_FALSE(p.ops.front().after.present);
  CHECK(p.ops[1].place == graph::Place::host);
  CHECK(p.ops[1].before.launches == 0);
  CHECK(p.ops.back().name == "add_norm");  // the largest loss
  CHECK(p.ops.back().gain().value == -6);
  CHECK_FALSE(p.ops.back().before.present);
  CHECK_FALSE(find(p, "runtime_overhead").changes());
  CHECK(find(p, "runtime_overhead").before.launches == 0);
  CHECK(p.before.launches == 33);
  CHECK(p.after.launches == 2);
}

TEST_CASE("a collective beside the op before it takes what is not hidden") {
  const auto with = [](bool overlaps, double hidden) {
    std::vector<OpEstimate> ops = {op("o_proj", 3), op("all_reduce", 2)};
    ops[1].op.overlaps = overlaps;
    ops[1].op.hidden = hidden;
    return ops;
  };
  const PhaseDifference p = estimate::phase_difference(phase(with(false, 1), 5), phase(with(true, 0.75), 3.5));
  check_sums(p);
  CHECK(p.ops.front().name == "all_reduce");
  CHECK(p.ops.front().after.time.value == 0.5);
  CHECK(find(p, "o_proj").gain().value == 0);
}

TEST_CASE("what pipeline stages do at the same time is an op that takes less than nothing") {
  Phase before = phase({op("mlp", 8)}, 8);
  Phase after = phase({op("mlp", 8)}, 5);
  after.pipelined = Seconds{3};
  const PhaseDifference p = estimate::phase_difference(before, after);
  check_sums(p);
  CHECK(find(p, estimate::kPipelineOverlap).after.time.value == -3);
  CHECK(find(p, estimate::kPipelineOverlap).gain().value == 3);
}

TEST_CASE("gains of the steps and of the ops add up to the difference of the two sets, whatever they are") {
  test::Random random(9);
  const Scenario scenario{8, 256, 16};
  for (int i = 0; i < 40; ++i) {
    Choices first;
    first.plan.pipeline = random.chance() ? 2 : 1;
    first.plan.tensor = first.plan.pipeline == 2 && random.chance() ? 4 : 8;
    first.runtime = test::random_options(random);
    Choices second = first;
    second.runtime = switches_of(test::random_options(random), first.runtime);
    const auto c =
        estimate::compare(decoder("llama-2-70b"), device("atlas-800i-a2"), first, second.runtime, "", scenario);
    REQUIRE(c.steps.back().fits);
    double ttft = 0;
    double tpot = 0;
    for (const CompareStep& step : c.steps) {
      ttft += step.times[0].gain.value;
      tpot += step.times[1].gain.value;
      for (const PhaseDifference& p : step.phases) check_sums(p);
    }
    estimate::Estimator a(estimate::make_setup(decoder("llama-2-70b"), device("atlas-800i-a2"), first));
    estimate::Estimator b(estimate::make_setup(decoder("llama-2-70b"), device("atlas-800i-a2"), second));
    const estimate::Estimate at_first = a.run(scenario);
    const estimate::Estimate at_second = b.run(scenario);
    CHECK(c.steps.back().times[0].time->value == at_second.ttft->value);
    CHECK(c.steps.back().times[1].time->value == at_second.tpot->value);
    CHECK(ttft == near((*at_first.ttft - *at_second.ttft).value, at_first.ttft->value));
    CHECK(tpot == near((*at_first.tpot - *at_second.tpot).value, at_first.tpot->value));
    REQUIRE(c.phases.size() == 2);
    for (const PhaseDifference& p : c.phases) check_sums(p);
    CHECK(c.phases[0].before.time.value == at_first.ttft->value);
    CHECK(c.phases[1].after.time.value == at_second.tpot->value);
  }
}

TEST_CASE("under a runtime each step runs as its options let it") {
  const RuntimeProfile profile = hardware::load_runtime_profile(device("atlas-800i-a2"), "torchair");
  const Scenario scenario{4, 1024, 64};
  const auto run = [&](const char* execution) {
    return estimate::compare(decoder("llama-2-70b"), device("atlas-800i-a2"), choices_with(profile, "none", execution),
                             choices_with(profile, "all", execution).runtime, execution, scenario);
  };
  const auto graph = run("graph");
  std::vector<std::string> names;
  for (const CompareStep& step : graph.steps) {
    names.push_back(step.option);
    // A graph stays on the host until attention is one kernel.
    CHECK(step.decode_dispatch == (names.size() < 3 ? Dispatch::dynamic_graph : Dispatch::graph));
    for (const PhaseDifference& p : step.phases) check_sums(p);
  }
  CHECK(join(names, " ") == " static_kv flash_attention fused_add_rmsnorm last_token_head fused_qkv mc2");
  CHECK(graph.steps.front().options == "none");
  CHECK(graph.steps.back().options == "all");

  const Choices all = choices_with(profile, "all", "graph");
  estimate::Estimator direct(estimate::make_setup(decoder("llama-2-70b"), device("atlas-800i-a2"), all));
  CHECK(graph.steps.back().times[1].time->value == direct.run(scenario).tpot->value);

  for (const CompareStep& step : run("eager").steps) CHECK(step.decode_dispatch == Dispatch::eager);
  for (const CompareStep& step : run("static-graph").steps) CHECK(step.decode_dispatch == Dispatch::graph);
}

TEST_CASE("a set that does not fit has no times, and the next gain is against the last that did") {
  // A device's scores of 3 sequences take 3 x 8 heads x 16384 squared x 2 bytes = 12 GiB beside 16 GiB of weights, and
  // as much again under the mask, of 29.5 GiB; without them the model fits.
  Choices first;
  first.plan.tensor = 8;
  first.runtime = options("none");
  Choices second = first;
  second.runtime = options("flash_attention,fused_qkv");
  const Scenario scenario{3, 16384, 8};
  const auto c =
      estimate::compare(decoder("llama-2-70b"), device("atlas-800i-a2"), first, second.runtime, "", scenario);
  REQUIRE(c.steps.size() == 3);
  CHECK_FALSE(c.steps[0].fits);
  CHECK_FALSE(c.steps[0].times[0].time);
  CHECK(c.steps[1].fits);
  CHECK(c.steps[1].times[0].gain.value == 0);
  CHECK(c.steps[1].phases.empty());
  CHECK(c.steps[2].phases.size() == 2);
  CHECK(c.phases.empty());
}

TEST_CASE("without decode steps there is nothing to compare in decode") {
  Choices first;
  first.runtime = options("none");
  Choices second;
  const auto c = estimate::compare(decoder("qwen-7b"), device("h100-sxm"), first, second.runtime, "", {1, 128, 1});
  CHECK(c.phases.size() == 1);
  CHECK_FALSE(c.steps.back().times[1].time);
  CHECK(c.steps.back().times[1].gain.value == 0);
}

}  // namespace llmperf::compare_test
