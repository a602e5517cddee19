#include "estimate/estimate.h"

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "estimate/context_sum.h"
#include "graph/random_decoder.h"

namespace llmperf::estimate_test {

using estimate::Choices;
using estimate::Estimate;
using estimate::Estimator;
using estimate::OpEstimate;
using estimate::Phase;
using estimate::Scenario;
using estimate::Setup;
using graph::SequenceGroup;

namespace {

// A device with a matrix engine for every type, so that only `cache` varies. 80 GB.
hardware::Device device(std::optional<Bytes> cache = std::nullopt) {
  hardware::Device d;
  d.name = "test";
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16, Dtype::fp8, Dtype::int8}) {
    hardware::Peak peak;
    peak.dtype = dtype;
    peak.rate = FlopsPerSecond{100e12};
    d.peaks.push_back(peak);
  }
  hardware::Peak vector;
  vector.engine = hardware::Engine::vector;
  vector.dtype = Dtype::fp32;
  vector.rate = FlopsPerSecond{10e12};
  d.peaks.push_back(vector);
  hardware::MemoryLevel level;
  level.name = "cache";
  level.capacity = cache;
  d.memory.push_back(level);
  level.name = "DRAM";
  level.capacity = Bytes{80e9};
  level.bandwidth = BytesPerSecond{1e12};
  d.memory.push_back(level);
  return d;
}

Setup setup_of(const graph::Execution& execution, const hardware::Device& device) {
  Setup setup;
  setup.execution = execution;
  setup.device = &device;
  return setup;
}

double step_seconds(Estimator& estimator, SequenceGroup group) { return estimator.step_time({&group, 1}).value; }

// Every step of the generation one by one.
void check_against_steps(Estimator& estimator, const Scenario& s) {
  const Estimate e = estimator.run(s);
  REQUIRE(e.fits);
  CHECK(e.ttft->value == Approx(step_seconds(estimator, {s.batch, s.prompt, 0})).epsilon(1e-12));
  double sum = 0;
  double flops = 0;
  double bytes = 0;
  for (std::int64_t context = s.prompt; context < s.prompt + s.generate - 1; ++context) {
    sum += step_seconds(estimator, {s.batch, 1, context});
    const SequenceGroup group{s.batch, 1, context};
    graph::Graph graph;
    graph::build_step(estimator.setup().execution, {&group, 1}, graph::Part::all, graph);
    for (const graph::Op& op : graph) {
      const cost::Work work = cost::work_of(op, estimator.roofline().cache()) * static_cast<double>(op.count);
      flops += (work.matrix + work.vector).value;
      bytes += work.bytes().value;
    }
  }
  const auto steps = static_cast<double>(s.generate - 1);
  REQUIRE(e.tpot);
  CHECK(e.tpot->value == Approx(sum / steps).epsilon(1e-9));
  CHECK(e.total.value == Approx(e.ttft->value + sum).epsilon(1e-9));
  CHECK(e.tpot_first->value == Approx(step_seconds(estimator, {s.batch, 1, s.prompt})).epsilon(1e-12));
  CHECK(e.tpot_last->value == Approx(step_seconds(estimator, {s.batch, 1, s.prompt + s.generate - 2})).epsilon(1e-12));
  CHECK((e.phases[1].work.matrix + e.phases[1].work.vector).value == Approx(flops / steps).epsilon(1e-9));
  CHECK(e.phases[1].work.bytes().value == Approx(bytes / steps).epsilon(1e-9));
}

void check_invariants(const Estimate& e) {
  for (const Phase& phase : e.phases) {
    cost::Work work;
    Seconds time;
    for (const OpEstimate& op : phase.ops) {
      const auto count = static_cast<double>(op.op.count);
      work += op.work * count;
      time += op.time.total * count;
      // A CHECK of each of millions of ops would take most of the time.
      const double least = std::max(op.time.roof.value * (1 - 1e-12), 0.0);
      if (!(op.time.total.value >= least)) FAIL_CHECK(op.time.total.value << " s, its roof " << op.time.roof.value);
    }
    CHECK(phase.work.matrix == work.matrix);
    CHECK(phase.work.vector == work.vector);
    CHECK(phase.work.bytes().value == Approx(work.bytes().value).epsilon(1e-15));
    CHECK(phase.time == time);
    CHECK(phase.time.value >= phase.roof.value * (1 - 1e-12));
    Seconds by_bound;
    for (const Seconds& share : phase.bound_time) by_bound += share;
    CHECK(by_bound.value == Approx(phase.time.value).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("the time per token is the mean over every step of the generation, windows included") {
  struct Case {
    const char *model, *options, *kv;
    Scenario scenario;
  };
  const Case cases[] = {
      {"qwen-7b", "all", "bf16", {1, 512, 128}},           {"qwen-7b", "none", "fp8", {3, 100, 50}},
      {"llama-3-8b", "all", "int4", {8, 1000, 200}},       {"mistral-7b-v0.1", "all", "bf16", {2, 3900, 400}},
      {"mistral-7b-v0.1", "none", "bf16", {1, 4000, 200}}, {"gemma-2-2b", "all", "bf16", {4, 4000, 300}},
      {"gpt-oss-20b", "all", "bf16", {1, 1, 400}},         {"gpt-oss-20b", "none", "fp8", {2, 100, 100}},
      {"deepseek-v2-lite", "all", "bf16", {4, 300, 200}},  {"deepseek-v2-lite", "none", "bf16", {1, 3, 2}},
  };
  for (const char* name : {"h100-sxm", "epyc-9654"}) {
    const hardware::Device hardware = hardware::load_device(name);
    for (const Case& c : cases) {
      INFO(name << " " << c.model << " " << c.options);
      const model::Decoder model = model::load_decoder(c.model);
      Choices choices;
      choices.runtime = hardware::parse_runtime_options(c.options);
      choices.kv = c.kv;
      Estimator estimator(estimate::make_setup(model, hardware, choices));
      check_against_steps(estimator, c.scenario);
    }
  }
}

TEST_CASE("times, FLOPs and bytes of random models are those of all steps one by one") {
  test::Random random(11);
  for (int i = 0; i < 120; ++i) {
    INFO("model " << i);
    const model::Decoder model = test::random_decoder(random);
    const double caches[] = {20e3, 300e3, 50e6};
    const hardware::Device hardware = device(Bytes{caches[random.in(0, 2)]});
    Estimator estimator(setup_of(test::random_execution(random, model), hardware));
    const Scenario scenario{random.in(1, 20), random.in(1, 300), random.in(2, 200)};
    check_against_steps(estimator, scenario);
    check_invariants(estimator.run(scenario));
  }
}

TEST_CASE("sums over ops equal totals exactly and nothing is faster than its roof") {
  test::Random random(12);
  for (int i = 0; i < 300; ++i) {
    const model::Decoder model = test::random_decoder(random);
    const hardware::Device hardware = device(Bytes{static_cast<double>(random.in(1, 1000)) * 1e5});
    Estimator estimator(setup_of(test::random_execution(random, model), hardware));
    const Estimate e = estimator.run({random.in(1, 64), random.in(1, 2000), random.in(1, 500)});
    check_invariants(e);
    if (!e.fits) continue;
    CHECK(e.ttft == e.phases[0].time);
    if (e.tpot) CHECK(*e.tpot == e.phases[1].time);
  }
}

// The devices have the memory that the largest model takes, so that none is only counted.
TEST_CASE("every built-in model on five devices: finite times, none faster than its roof") {
  for (const char* name : {"h100-sxm", "rtx4090", "atlas-800i-a2", "apple-m3-max", "epyc-9654"}) {
    hardware::Device hardware = hardware::load_device(name);
    hardware.memory.back().capacity = Bytes{1e14};
    for (const std::string& published : model::decoder_names()) {
      INFO(published << " on " << name);
      const model::Decoder model = model::load_decoder(published);
      Estimator estimator(estimate::make_setup(model, hardware, {}));
      const Estimate e = estimator.run({3, 300, 20});
      check_invariants(e);
      REQUIRE(e.fits);
      CHECK(std::isfinite(e.total.value));
      CHECK(e.ttft.has_value());
      CHECK(e.ttft->value > 0);
      // An encoder answers with its one pass.
      CHECK(e.tpot.has_value() == !model.encoder);
      if (e.tpot) CHECK(e.tpot->value > 0);
    }
  }
}

TEST_CASE("one generated token comes out of the prefill: no decode") {
  const model::Decoder model = model::load_decoder("qwen-7b");
  const hardware::Device hardware = hardware::load_device("rtx4090");
  Estimator estimator(estimate::make_setup(model, hardware, {}));
  estimator.run({1, 512, 128});
  const Estimate e = estimator.run({1, 512, 1});
  CHECK(e.phases.size() == 1);
  CHECK_FALSE(e.tpot);
  CHECK_FALSE(e.tpot_first);
  CHECK_FALSE(e.tpot_last);
  CHECK(e.total == e.ttft);
  CHECK(e.decode_tokens_per_second == 0);
  CHECK(e.tokens_per_second == Approx(1 / e.ttft->value));
}

TEST_CASE("rates are tokens over time, of one request and of all") {
  const model::Decoder model = model::load_decoder("llama-3-8b");
  const hardware::Device hardware = hardware::load_device("h100-sxm");
  Estimator estimator(estimate::make_setup(model, hardware, {}));
  const Estimate e = estimator.run({4, 1000, 101});
  CHECK(e.total.value == Approx(e.ttft->value + 100 * e.tpot->value));
  CHECK(e.tokens_per_second_per_request == Approx(101 / e.total.value));
  CHECK(e.tokens_per_second == Approx(404 / e.total.value));
  CHECK(e.prefill_tokens_per_second == Approx(4000 / e.ttft->value));
  CHECK(e.decode_tokens_per_second == Approx(4 / e.tpot->value));
}

TEST_CASE("decode of more sequences than a graph was captured for is launched as prompts are") {
  const model::Decoder model = model::load_decoder("llama-3-8b");
  const hardware::Device hardware = hardware::load_device("h100-sxm");
  hardware::RuntimeProfile profile = hardware::load_runtime_profile(hardware, "vllm");
  profile.choices.graph_rows = 8;
  profile.values[index(hardware::Parameter::host_layer)] = 1e-3;
  Choices choices;
  choices.profile = &profile;
  choices.dispatch = hardware::Dispatch::eager;
  choices.decode_dispatch = hardware::Dispatch::graph;
  Estimator estimator(estimate::make_setup(model, hardware, choices));
  CHECK(estimator.setup().dispatch_of(false, 8, 8) == hardware::Dispatch::graph);
  CHECK(estimator.setup().dispatch_of(false, 9, 9) == hardware::Dispatch::eager);
  CHECK(estimator.setup().dispatch_of(true, 1, 512) == hardware::Dispatch::eager);
  // The host needs a millisecond for each of 32 layers, and more than that for their kernels.
  CHECK(step_seconds(estimator, {8, 1, 512}) < 0.02);
  CHECK(step_seconds(estimator, {9, 1, 512}) > 0.032);
  CHECK(estimator.run({9, 512, 2}).tpot->value == Approx(step_seconds(estimator, {9, 1, 512})));
}

TEST_CASE("a graph waits for a host that tells its attention the lengths, where that is the slower of the two") {
  const model::Decoder model = model::load_decoder("llama-3-8b");
  const hardware::Device hardware = hardware::load_device("h100-sxm");
  hardware::RuntimeProfile profile = hardware::load_runtime_profile(hardware, "vllm");
  Choices choices;
  choices.profile = &profile;
  choices.dispatch = choices.decode_dispatch = hardware::Dispatch::graph;
  const auto decode = [&](double per_layer) {
    profile.values[index(hardware::Parameter::host_graph_layer)] = per_layer;
    Estimator estimator(estimate::make_setup(model, hardware, choices));
    return step_seconds(estimator, {1, 1, 512});
  };
  const double device = decode(1e-9);
  CHECK(device < 0.02);
  CHECK(decode(1e-4) == Approx(device));  // 3.2 ms for 32 layers: hidden behind the device
  // Twice as long per layer is twice as long for the step: nothing but the host is left of it.
  CHECK(decode(2e-3) - decode(1e-3) == Approx(32e-3));
}

TEST_CASE("what does not fit has memory and limits, and no times") {
  const model::Decoder model = model::load_decoder("llama-3-70b");
  const hardware::Device hardware = hardware::load_device("rtx4090");
  Estimator estimator(estimate::make_setup(model, hardware, {}));
  const Estimate e = estimator.run({1, 512, 128});
  CHECK_FALSE(e.fits);
  CHECK(e.phases.empty());
  CHECK_FALSE(e.tpot);
  CHECK(e.largest_batch == 0);
  CHECK(e.longest_context == 0);
  CHECK(e.memory.weights.value == 70'553'706'496.0 * 2);
}

TEST_CASE("limits that were found before are those of an estimator that has found none") {
  test::Random random(17);
  for (int i = 0; i < 20; ++i) {
    const model::Decoder model = test::random_decoder(random);
    const hardware::Device hardware = device();
    const Setup setup = setup_of(test::random_execution(random, model), hardware);
    Estimator used(setup);
    for (int n = 0; n < 10; ++n) {
      const Scenario s{random.in(1, 3), random.in(1, 3) * 1000, random.in(1, 2) * 100};
      const Estimate again = used.run(s);
      const Estimate fresh = Estimator(setup).run(s);
      CHECK(again.largest_batch == fresh.largest_batch);
      CHECK(again.longest_context == fresh.longest_context);
      CHECK(again.fits == fresh.fits);
    }
  }
}

TEST_CASE("the largest batch and the longest context fit, and one more does not") {
  test::Random random(13);
  int limited = 0;
  for (int i = 0; i < 200; ++i) {
    const model::Decoder model = test::random_decoder(random);
    const hardware::Device hardware = device();
    Estimator estimator(setup_of(test::random_execution(random, model), hardware));
    const Scenario s{random.in(1, 300), random.in(1, 20000), random.in(1, 2000)};
    const Estimate e = estimator.run(s);
    if (e.largest_batch > 0) CHECK(estimator.fits({e.largest_batch, s.prompt, s.generate}));
    if (e.largest_batch < estimate::kMaxBatch) {
      CHECK_FALSE(estimator.fits({e.largest_batch + 1, s.prompt, s.generate}));
      ++limited;
    }
    const std::int64_t prompt = e.longest_context - s.generate;
    if (e.longest_context > 0) {
      CHECK(prompt >= 1);
      CHECK(estimator.fits({s.batch, prompt, s.generate}));
      if (prompt < estimate::kMaxTokens) CHECK_FALSE(estimator.fits({s.batch, prompt + 1, s.generate}));
    } else {
      CHECK_FALSE(estimator.fits({s.batch, 1, s.generate}));
    }
    CHECK(e.fits == (s.batch <= e.largest_batch));
    CHECK(e.fits == (e.longest_context > 0 && s.prompt <= prompt));
  }
  CHECK(limited > 150);
}

TEST_CASE("a warm estimator gives what a fresh one gives") {
  const model::Decoder model = model::load_decoder("gemma-2-2b");
  const hardware::Device hardware = hardware::load_device("h100-sxm");
  Estimator warm(estimate::make_setup(model, hardware, {}));
  Estimate reused;
  warm.run({8, 5000, 300}, reused);
  warm.run({1, 100000000, 300}, reused);
  warm.run({2, 700, 30}, reused);
  const Estimate fresh = Estimator(estimate::make_setup(model, hardware, {})).run({2, 700, 30});
  CHECK(reused.ttft == fresh.ttft);
  CHECK(reused.tpot == fresh.tpot);
  CHECK(reused.total == fresh.total);
  CHECK(reused.memory.total() == fresh.memory.total());
  CHECK(reused.phases[1].ops.size() == fresh.phases[1].ops.size());
}

TEST_CASE("GQA shrinks the KV cache and what decode reads of it by kv_heads / heads") {
  test::Random random(14);
  for (int i = 0; i < 100; ++i) {
    model::Decoder gqa = test::plain_decoder(random);
    gqa.kinds.resize(1);
    std::fill(gqa.layer_kinds.begin(), gqa.layer_kinds.end(), static_cast<unsigned char>(0));
    model::Attention& a = gqa.kinds[0].attention;
    if (a.latent) continue;
    model::Decoder mha = gqa;
    mha.kinds[0].attention.kv_heads = a.heads;
    const graph::Execution e = test::random_execution(random, gqa);
    graph::Execution f = e;
    f.model = &mha;
    const double ratio = static_cast<double>(a.kv_heads) / static_cast<double>(a.heads);
    CHECK(cost::kv_cache_bytes(e, 999).device.value ==
          Approx(cost::kv_cache_bytes(f, 999).device.value * ratio).epsilon(1e-14));
    const hardware::Device hardware = device();
    const Estimate small = Estimator(setup_of(e, hardware)).run({2, 100, 1});
    const Estimate large = Estimator(setup_of(f, hardware)).run({2, 100, 1});
    CHECK(small.memory.kv_cache.value == Approx(large.memory.kv_cache.value * ratio).epsilon(1e-14));
    CHECK(small.phases[0].work.kv_written.value ==
          Approx(large.phases[0].work.kv_written.value * ratio).epsilon(1e-14));
    if (e.runtime.flash_attention) {
      CHECK(small.phases[0].work.kv_read.value == Approx(large.phases[0].work.kv_read.value * ratio).epsilon(1e-14));
    }
  }
}

TEST_CASE("a sum over contexts is exact for straight and broken lines") {
  std::vector<double> pool;
  const auto check = [&](std::int64_t first, std::int64_t last, auto&& f) {
    double sum = 0;
    estimate::sum_over_context(first, last, 1, pool, &sum,
                               [&](std::int64_t context, double* out) { *out = f(context); });
    double expected = 0;
    for (std::int64_t context = first; context <= last; ++context) expected += f(context);
    CHECK(sum == Approx(expected).epsilon(1e-9));
  };
  const auto line = [](std::int64_t context) { return 3.0 * static_cast<double>(context) + 7; };
  const auto bend = [](std::int64_t context) { return static_cast<double>(std::min<std::int64_t>(context, 77)); };
  const auto most = [](std::int64_t context) { return std::max(100.0, static_cast<double>(context) * 1.7); };
  const auto curve = [](std::int64_t context) { return std::sqrt(static_cast<double>(context)); };
  for (const std::int64_t first : {1, 5, 76, 77, 78}) {
    for (const std::int64_t steps : {1, 2, 3, 10, 500}) {
      check(first, first + steps - 1, line);
      check(first, first + steps - 1, bend);
      check(first, first + steps - 1, most);
      check(first, first + steps - 1, curve);
    }
  }
}

}  // namespace llmperf::estimate_test
