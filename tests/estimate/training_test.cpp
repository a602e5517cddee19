#include "estimate/training.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/integer.h"
#include "catch.h"
#include "graph/random_decoder.h"

namespace llmperf::training_test {

using estimate::TrainingEstimate;
using estimate::TrainingEstimator;
using estimate::TrainingMemory;
using estimate::TrainingScenario;
using graph::Plan;
using graph::Recompute;
using graph::TrainingOptions;

namespace {

Approx near(double value) { return Approx(value).epsilon(1e-9); }

// Keeps what a setup points to.
struct Study {
  model::Decoder model;
  hardware::Device device = hardware::load_device("a100-sxm-80gb");
  TrainingEstimator estimator;

  explicit Study(model::Decoder m, const char* options = "none", const char* weights = "bf16")
      : model(std::move(m)), estimator(setup(options, weights)) {}
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;

  TrainingEstimate run(const TrainingScenario& s, const Plan& plan, const TrainingOptions& o = {}) {
    REQUIRE(graph::legal(model, plan));
    REQUIRE(estimate::legal(model, s, plan, o));
    TrainingEstimate e;
    estimator.run(s, plan, o, e);
    return e;
  }

 private:
  estimate::Setup setup(const char* options, const char* weights) {
    estimate::Choices choices;
    choices.weights = weights;
    choices.runtime = hardware::parse_runtime_options(options);
    return estimate::make_setup(model, device, choices);
  }
};

// Table 3 of arXiv 2205.05198; seconds per iteration of its table 5: full recomputation, and sequence parallelism with
// selective recomputation.
struct Megatron {
  const char* name;
  std::int64_t layers, hidden, heads;
  std::int64_t tensor, pipeline, chunks;
  std::int64_t global_batch, micro_batch;
  double billions;
  double full_s, selective_s;
  std::int64_t sequence = 2048;
  std::int64_t vocab = 51200;

  Plan plan(bool sequence_parallel) const {
    return {.tensor = tensor, .sequence_parallel = sequence_parallel, .pipeline = pipeline};
  }
  TrainingScenario scenario() const { return {global_batch, micro_batch, sequence}; }
  double bsh() const { return d(micro_batch * sequence * hidden); }
  double scores_ratio() const { return 5 * d(heads * sequence) / d(hidden); }  // 5 a s / h
  // Layers whose activations the first stage keeps.
  double kept_layers() const { return d(layers) * (chunks == 1 ? 1 : 1 + d(pipeline - 1) / d(pipeline * chunks)); }
};
constexpr Megatron kMegatron[] = {
    {"megatron-22b", 48, 6144, 64, 8, 1, 1, 4, 4, 22, 1.42, 1.10},
    {"megatron-175b", 96, 12288, 96, 8, 8, 3, 64, 1, 175, 18.13, 13.75},
    {"megatron-530b", 105, 20480, 128, 8, 35, 3, 280, 1, 530, 49.05, 37.83},
    {"megatron-1t", 128, 25600, 160, 8, 64, 1, 512, 1, 1008, 94.42, 71.49},
};

double sent_bytes(const TrainingEstimate& e, std::string_view name) {
  double sum = 0;
  for (const estimate::Phase& p : e.phases) {
    for (const estimate::OpEstimate& o : p.ops) {
      if (o.op.name == name) sum += o.work.network.value * d(o.op.count) * d(p.steps);
    }
  }
  return sum;
}

model::Decoder small_gpt(std::int64_t layers) {
  model::Decoder m = model::load_decoder("megatron-22b");
  const model::Layer layer = m.kinds[0];
  m.kinds.clear();
  m.layer_kinds.clear();
  m.kind_counts.clear();
  for (std::int64_t i = 0; i < layers; ++i) m.add_layer(layer);
  return m;
}

}  // namespace

TEST_CASE("the Megatron models have the sizes of their names") {
  for (const Megatron& g : kMegatron) {
    INFO(g.name);
    const model::Decoder m = model::load_decoder(g.name);
    CHECK(m.num_layers() == g.layers);
    CHECK(m.hidden == g.hidden);
    CHECK(m.vocab == g.vocab);
    const model::ParameterCounts counts = model::count_parameters(m);
    CHECK(counts.layers == (12 * g.hidden * g.hidden + 13 * g.hidden) * g.layers);
    CHECK(counts.total == counts.layers + (g.vocab + g.sequence + 2) * g.hidden);
    CHECK(std::round(d(counts.total) / 1e9) == Approx(g.billions).epsilon(0.01));
  }
}

TEST_CASE("the first stage of the Megatron models keeps what Korthikanti et al. say") {
  for (const Megatron& g : kMegatron) {
    INFO(g.name);
    Study study(model::load_decoder(g.name));
    const double t = d(g.tensor);
    // Dropout of the embedding; the final norm, lm_head and the logits where the first stage is the last too.
    const double masks = g.bsh() * d(g.pipeline);
    const double head = g.pipeline == 1 ? 4 * g.bsh() : 0;
    const double logits = head * d(g.vocab) / d(g.hidden) / t;
    const auto kept = [&](bool sequence_parallel, Recompute recompute) {
      const TrainingOptions o{.recompute = recompute, .chunks = g.chunks};
      const TrainingMemory m = study.estimator.memory(g.scenario(), g.plan(sequence_parallel), o);
      CHECK(m.stage == 0);
      return m.activation.value;
    };
    const double layers = g.bsh() * g.kept_layers();
    CHECK(kept(false, Recompute::none) == near(layers * (10 + 24 / t + g.scores_ratio() / t) + masks + head + logits));
    CHECK(kept(true, Recompute::none) == near((layers * (34 + g.scores_ratio()) + masks + head) / t + logits));
    CHECK(kept(false, Recompute::selective) == near(layers * (10 + 24 / t) + masks + head + logits));
    CHECK(kept(true, Recompute::selective) == near((layers * 34 + masks + head) / t + logits));
    CHECK(kept(false, Recompute::full) == near(layers * 2 + masks + head + logits));
    CHECK(kept(true, Recompute::full) == near((layers * 2 + masks + head) / t + logits));
  }
}

TEST_CASE("weights, gradients and optimiser of the Megatron models take 2 + 2 + 12 bytes of a device's parameters") {
  for (const Megatron& g : kMegatron) {
    INFO(g.name);
    Study study(model::load_decoder(g.name));
    const TrainingMemory m = study.estimator.memory(g.scenario(), g.plan(true), {.chunks = g.chunks});
    const double t = d(g.tensor);
    const double h = d(g.hidden);
    // Matrices and the biases of their divided outputs; two norms and two biases whole; the tables.
    const double layer = (12 * h * h + 7 * h) / t + 6 * h;
    double first = d(g.layers / g.pipeline) * layer + d(g.vocab) * h / t + d(g.sequence) * h;
    if (g.pipeline == 1) first += 2 * h;
    CHECK(m.weights.value == near(2 * first));
    CHECK(m.gradients.value == near(2 * first));
    CHECK(m.optimizer.value == near(12 * first));
  }
}

TEST_CASE("FLOPs of the Megatron models are those of the paper's formula, and selective recomputation adds 2/9 s / h") {
  for (const Megatron& g : kMegatron) {
    INFO(g.name);
    Study study(model::load_decoder(g.name));
    const TrainingEstimate e =
        study.run(g.scenario(), g.plan(true), {.recompute = Recompute::selective, .chunks = g.chunks});
    const double h = d(g.hidden);
    const double base = 72 * d(g.global_batch * g.layers * g.sequence) * h * h;
    const double ratio = d(g.sequence) / h;
    const double logits = d(g.vocab) / (12 * h * d(g.layers));
    CHECK(e.model_flops.value == near(base * (1 + ratio / 6 + logits)));
    // 12 forward and backward and 4 again of 72; the paper prints ratio / 3, which is 24 of 72.
    CHECK(e.hardware_flops.value == near(base * (1 + ratio * 2 / 9 + logits)));
    CHECK(e.hfu / e.mfu == near(e.hardware_flops / e.model_flops));
  }
}

TEST_CASE("an upper bound: no Megatron iteration was measured faster") {
  for (const Megatron& g : kMegatron) {
    INFO(g.name);
    Study study(model::load_decoder(g.name));
    const TrainingEstimate full =
        study.run(g.scenario(), g.plan(false), {.recompute = Recompute::full, .chunks = g.chunks});
    const TrainingEstimate selective =
        study.run(g.scenario(), g.plan(true), {.recompute = Recompute::selective, .chunks = g.chunks});
    CHECK(full.fits);
    CHECK(selective.fits);
    CHECK(full.time.value < g.full_s);
    CHECK(full.time.value > g.full_s / 2);
    CHECK(selective.time.value < g.selective_s);
    CHECK(selective.time.value > g.selective_s / 2);
    CHECK(full.time > selective.time);
    // Without either technique none of them fits.
    CHECK_FALSE(study.run(g.scenario(), g.plan(false), {.chunks = g.chunks}).fits);
  }
}

TEST_CASE("stages, micro-batches and chunks: the bubble is (p - 1) / (m M) of the computation, less the ends' share") {
  test::Random random(1);
  for (int i = 0; i < 20; ++i) {
    const std::int64_t p = random.in(1, 8);
    const std::int64_t m = p == 1 ? 1 : random.in(1, 4);
    const std::int64_t batches = p * random.in(1, 5);
    Study study(small_gpt(p * m * random.in(1, 2)));
    const TrainingEstimate e = study.run({batches, 1, 256}, {.pipeline = p}, {.chunks = m});
    CHECK(e.micro_batches == batches);
    // The last stage computes the logits, for which the others do not wait.
    const double alike = d(p - 1) / d(m * batches);
    CHECK(e.bubble / e.compute <= alike * (1 + 1e-9));
    double layers = 0;
    double all = 0;
    for (const estimate::Phase* phase : {&e.phases[0], &e.phases[1]}) {
      for (const estimate::OpEstimate& op : phase->ops) {
        const double shown = (op.step_time() - op.hidden).value;
        all += shown;
        if (op.op.layer_kind >= 0) layers += shown;
      }
    }
    CHECK(e.bubble / e.compute >= alike * layers / all * (1 - 1e-9));
  }
}

TEST_CASE("a pipeline's first stage keeps L layers of activations, L (1 + (p - 1) / (p m)) interleaved") {
  test::Random random(2);
  for (int i = 0; i < 20; ++i) {
    const std::int64_t p = random.in(2, 8);
    const std::int64_t m = random.in(1, 4);
    const std::int64_t layers = p * m * random.in(1, 3);
    Study study(small_gpt(layers));
    const std::int64_t b = 2;
    const std::int64_t s = 128;
    const double mask = d(b * s * study.model.hidden);
    const auto kept = [&](std::int64_t batches, std::int64_t chunks) {
      return study.estimator.memory({batches * b, b, s}, {.pipeline = p}, {.chunks = chunks}).activation.value;
    };
    const double layer = mask * (34 + 5 * 64 * d(s) / d(study.model.hidden));
    CHECK(kept(4 * p, 1) == near(d(layers) * layer + d(p) * mask));
    if (m > 1) CHECK(kept(4 * p, m) == near(d(layers) * (1 + d(p - 1) / d(p * m)) * layer + d(p) * mask));
  }
}

TEST_CASE("ZeRO divides the optimiser, then gradients, then weights over the replicas") {
  Study study(small_gpt(2));
  const Plan plan{.tensor = 2, .ulysses = 2, .data = 4};
  const TrainingScenario s{8, 1, 256};
  const auto memory = [&](int zero) { return study.estimator.memory(s, plan, {.zero = zero}); };
  const TrainingMemory whole = memory(0);
  const auto check = [&](const TrainingMemory& m, double weights, double gradients, double optimizer) {
    CHECK(m.weights.value == near(whole.weights.value / weights));
    CHECK(m.gradients.value == near(whole.gradients.value / gradients));
    CHECK(m.optimizer.value == near(whole.optimizer.value / optimizer));
    CHECK(m.activation.value == whole.activation.value);
  };
  check(memory(1), 1, 1, 8);
  check(memory(2), 1, 8, 8);
  check(memory(3), 8, 8, 8);
}

TEST_CASE("what ZeRO sends: once a step up to stage 1, for every micro-batch beyond") {
  Study study(small_gpt(2));
  const Plan plan{.data = 4};
  const TrainingScenario s{24, 2, 256};
  const auto run = [&](int zero) { return study.run(s, plan, {.zero = zero, .gradient_bits = 32}); };
  const double parameters = d(model::count_parameters(study.model).total);
  const double alpha = 3.0 / 4;
  const double gradients = alpha * 4 * parameters;
  const double weights = alpha * 2 * parameters;
  CHECK(sent_bytes(run(0), "gradient_reduce") == near(2 * gradients));
  CHECK(sent_bytes(run(1), "gradient_scatter") == near(gradients));
  CHECK(sent_bytes(run(1), "weights_gather") == near(weights));
  CHECK(sent_bytes(run(2), "gradient_scatter") == near(3 * gradients));
  CHECK(sent_bytes(run(2), "weights_gather") == near(weights));
  CHECK(sent_bytes(run(3), "gradient_scatter") == near(3 * gradients));
  CHECK(sent_bytes(run(3), "weights_gather") == near(6 * weights));
}

TEST_CASE("experts have their own replicas: dense gradients go over all, experts' over those that hold the same") {
  model::Decoder m = small_gpt(2);
  for (model::Layer& layer : m.kinds) {
    layer.feed_forward.intermediate = 0;
    layer.feed_forward.experts = model::Experts{.count = 8, .per_token = 2, .intermediate = 1024};
  }
  Study study(std::move(m));
  const TrainingEstimate e = study.run({8, 1, 256}, {.tensor = 2, .expert = 4, .data = 8});
  const auto ranks = [&](std::string_view name) {
    for (const estimate::OpEstimate& o : e.phases[2].ops) {
      if (o.op.name == name) return std::get<graph::Collective>(o.op.body).ranks;
    }
    return std::int64_t{0};
  };
  CHECK(ranks("gradient_reduce") == 8);
  CHECK(ranks("expert_gradient_reduce") == 4);
}

TEST_CASE("an update moves 32 bytes for each parameter that a device owns") {
  Study study(small_gpt(2));
  for (const int zero : {0, 2}) {
    const TrainingEstimate e = study.run({4, 1, 256}, {.data = 4}, {.zero = zero});
    const double owned = e.memory.optimizer.value / 12;
    double bytes = 0;
    for (const estimate::OpEstimate& o : e.phases[2].ops) bytes += o.work.bytes().value;
    CHECK(bytes == Approx(32 * owned).epsilon(1e-6));  // rows are whole
    CHECK(e.phases[2].time.value == near((e.optimizer + e.gradient_exposed).value));
  }
}

TEST_CASE("a tied embedding lies on the first and the last stage of a pipeline, which sum its gradients") {
  Study study(small_gpt(4));
  const double table = d(study.model.vocab * study.model.hidden);
  const TrainingEstimate e = study.run({8, 1, 256}, {.pipeline = 4});
  CHECK(sent_bytes(e, "tied_embedding_reduce") == near(2 * table));  // 2 bytes, half of them twice
  CHECK(sent_bytes(study.run({8, 1, 256}, {}), "tied_embedding_reduce") == 0);
}

TEST_CASE("times add up: ops to phases, phases to the step, whatever the model, the plan and the options") {
  test::Random random(3);
  int runs = 0;
  for (int i = 0; i < 150; ++i) {
    model::Decoder m = test::plain_decoder(random);
    m.dropout = random.chance();
    const Plan plan = test::random_plan(random, m);
    Study study(std::move(m), random.chance() ? "all" : "none");
    TrainingOptions o;
    o.recompute = static_cast<Recompute>(random.in(0, 2));
    o.zero = static_cast<int>(random.in(0, 3));
    const std::int64_t b = random.in(1, 3);
    const TrainingScenario s{plan.data * b * plan.pipeline * random.in(1, 3), b, 2 * test::smallest_prompt(plan)};
    const std::int64_t layers = study.model.num_layers() / plan.pipeline;
    if (plan.pipeline > 1 && random.chance()) o.chunks = layers;
    if (!estimate::legal(study.model, s, plan, o)) continue;
    ++runs;
    const TrainingEstimate e = study.run(s, plan, o);
    CHECK(e.time.value == near((e.compute + e.bubble + e.gradient_exposed + e.optimizer).value));
    const double steps = d(e.micro_batches);
    CHECK(e.compute.value == near((e.phases[0].time + e.phases[1].time).value * steps));
    CHECK(e.overlapped.value ==
          Approx(((e.phases[0].overlapped + e.phases[1].overlapped) * steps + e.phases[2].overlapped).value)
              .epsilon(1e-9)
              .margin(1e-15));
    for (const estimate::Phase& p : e.phases) {
      double time = 0;
      double hidden = 0;
      for (const estimate::OpEstimate& op : p.ops) {
        time += op.step_time().value;
        hidden += op.hidden.value;
        CHECK(op.hidden.value <= op.step_time().value * (1 + 1e-12));
        if (op.hidden.value > 0) CHECK(op.op.place == graph::Place::network);
      }
      CHECK(p.ops_time.value == near(time));
      CHECK(p.time.value == near(time - hidden));
    }
    CHECK(e.hardware_flops.value >= e.model_flops.value * (1 - 1e-9));
    CHECK(e.mfu <= e.hfu * (1 + 1e-9));
    CHECK(e.hfu <= 1);
    // Alone, the same.
    const TrainingMemory alone = study.estimator.memory(s, plan, o);
    CHECK(alone.total().value == e.memory.total().value);
    TrainingEstimate summary;
    study.estimator.summary(s, plan, o, summary);
    CHECK(summary.time.value == e.time.value);
    CHECK(summary.phases.empty());
  }
  CHECK(runs > 100);
}

TEST_CASE("results do not depend on what the estimator ran before") {
  test::Random random(4);
  Study study(small_gpt(4));
  const Plan plans[] = {
      {},         {.tensor = 4}, {.tensor = 4, .sequence_parallel = true}, {.pipeline = 2}, {.data = 4}, {.ulysses = 2},
      {.ring = 2}};
  for (int i = 0; i < 40; ++i) {
    const Plan& plan = plans[random.in(0, 6)];
    const TrainingScenario s{8, random.in(1, 2), 256 * random.in(1, 2)};
    const TrainingOptions o{.recompute = static_cast<Recompute>(random.in(0, 2)),
                            .gradient_bits = random.chance() ? 16.0 : 32.0};
    Study fresh(small_gpt(4));
    const TrainingEstimate a = study.run(s, plan, o);
    const TrainingEstimate b = fresh.run(s, plan, o);
    CHECK(a.time.value == b.time.value);
    CHECK(a.memory.total().value == b.memory.total().value);
    CHECK(a.hardware_flops.value == b.hardware_flops.value);
    CHECK(a.model_flops.value == b.model_flops.value);
  }
}

TEST_CASE("one stage holds the whole model, and the fullest of several no less than their mean") {
  Study study(model::load_decoder("deepseek-v2-lite"), "all");  // one dense layer and 26 of experts
  const double whole = d(model::count_parameters(study.model).total);
  for (const std::int64_t stages : {1, 3, 9, 27}) {
    const double held = study.estimator.memory({stages, 1, 256}, {.pipeline = stages}, {}).weights.value / 2;
    if (stages == 1) CHECK(held == near(whole));
    CHECK(held * d(stages) >= whole * (1 - 1e-9));
  }
}

TEST_CASE("a step that the plan does not divide is refused with the nearest legal values") {
  const model::Decoder m = small_gpt(12);
  const auto hints = [&](const TrainingScenario& s, const Plan& plan, const TrainingOptions& o = {}) {
    std::string text;
    for (const graph::Problem& p : estimate::problems(m, s, plan, o)) text += p.message + " / " + p.hint + "\n";
    CHECK(estimate::legal(m, s, plan, o) == text.empty());
    return text;
  };
  CHECK(hints({16, 2, 256}, {.data = 8}).empty());
  CHECK(hints({20, 2, 256}, {.data = 8}) ==
        "`global-batch`: 20 sequences do not divide into micro-batches of 2 on 8 replicas / nearest legal: 16 or 32\n");
  CHECK(hints({1, 1, 250}, {.ring = 4}) ==
        "`seq`: 250 tokens do not divide into the 8 parts of the plan / nearest legal: 248 or 256\n");
  CHECK(hints({1, 1, 6}, {.tensor = 8, .sequence_parallel = true}) ==
        "`seq`: 6 tokens do not divide into the 8 parts of the plan / nearest legal: 8\n");
  CHECK(hints({8, 1, 256}, {.pipeline = 2}, {.chunks = 4}).empty());
  CHECK(
      hints({8, 1, 256}, {.pipeline = 2}, {.chunks = 8}) ==
      "`interleave`: 12 layers are too few for 8 runs on each of 2 stages: all but the first and the last run need one "
      "/ at most 7\n");
  CHECK(hints({8, 1, 256}, {}, {.chunks = 4}).starts_with("`interleave` divides the layers of a pipeline stage"));
  CHECK(hints({9, 1, 256}, {.pipeline = 2}, {.chunks = 3}) ==
        "`interleave`: 9 micro-batches are no multiple of the 2 pipeline stages / nearest legal `global-batch`: 8 or "
        "10\n");
}

TEST_CASE("quantised weights cannot be trained") {
  CHECK_NOTHROW(Study(small_gpt(1), "all", "fp32"));
  for (const char* weights : {"int8", "w4a16", "fp8", "q4_k_m", "4.5"}) {
    INFO(weights);
    const Study study(small_gpt(1), "all", weights);
    const model::WeightLayout& layout = study.estimator.setup().execution.weights;
    CHECK_FALSE(estimate::trains_whole(layout));
    CHECK_THROWS_AS(estimate::check_trained(layout, false), Error);
  }
}

}  // namespace llmperf::training_test
