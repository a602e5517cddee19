// What is left for keys and values. vLLM V1 runs a step of as many tokens and sequences as it may ever batch, sees what
// that took at its peak, and gives the cache the rest of its share of the memory:
//
//   KV = utilisation x memory - weights - max(forward, sampler) - tables of positions - graphs - other
//
// forward   activations of the largest step (cost::activation_peak), of which no more than one token's logits per
//           sequence are made
// sampler   of every sequence its logits in 16 bits (1/2 of an fp32 row), widened (1), sorted by value (1) with 64-bit
//           indices (2) through a second buffer of both (3): 7.5 fp32 rows of the vocabulary, beside the residual
//           stream and the hidden states of the step
// positions cos and sin of every position that the model was trained for, in 16 bits (1,024,000 of Mistral-Nemo: 262
//           MB)
// other     libraries' workspaces, and with several devices what exchanges stage in; the context itself is there
//           before vLLM first looks
//
// The two constants of `other` are assumptions, alike for all models. Checked on the seven caches in
// tests/estimate/kv_capacity_test.cpp. Up to vLLM 0.19 graphs are captured once the cache is sized, and do not count.
//
// SGLang sizes weights and cache together (mem_fraction_static), the rest is for everything else; TensorRT-LLM takes a
// share of what is free once weights are loaded and the largest step was run (free_gpu_memory_fraction).
#include "estimate/kv_capacity.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/integer.h"

namespace llmperf::estimate {
namespace {

constexpr double kSamplerRows = 7.5;  // of fp32 logits, per sequence
constexpr Bytes kLibraries{0.15e9};
constexpr Bytes kExchanges{0.15e9};
// Of a captured graph: its nodes' parameters on the device, per layer. Of 102 graphs of 32 layers 0.65 GB, where vLLM
// prints 0.5 to 0.7 GiB for models of 8B.
constexpr Bytes kGraphLayer{2e5};
constexpr double kGraphKinds = 2;  // of pure decode whole, of steps with prompts in pieces

// Sizes that vLLM captures up to `rows`: 1, 2, 4, then multiples of 8 and from 256 on of 16.
double captured_sizes(std::int64_t rows) {
  constexpr std::int64_t kEights = 256;
  const std::int64_t small = rows >= 4 ? 3 : rows >= 2 ? 2 : 1;
  return d(small + std::min(rows, kEights) / 8 + std::max<std::int64_t>(0, rows - kEights) / 16);
}

}  // namespace

KvCapacity kv_capacity(const Estimator& estimator, const EngineMemory& memory) {
  const Setup& setup = estimator.setup();
  const graph::Execution& e = setup.execution;
  const model::Decoder& m = *e.model;
  KvCapacity least;
  for (std::size_t stage = 0; stage < estimator.stages().size(); ++stage) {
    const Stage& own = estimator.stages()[stage];
    const bool last = stage + 1 == estimator.stages().size();
    KvCapacity c;
    c.block_size = memory.block_size;
    c.weights = own.weights;
    const std::int64_t tokens = memory.batched_tokens;
    const std::int64_t sequences = std::min(memory.max_sequences, tokens);
    const double rows = d(sequences) * 4 * d(m.vocab);
    const Bytes streams{2 * d(tokens) * d(m.hidden) * bytes_per_element(e.activations)};
    c.activation = cost::activation_peak(e, {1, tokens, 0});
    if (last && !m.encoder) c.activation = std::max(c.activation, Bytes{kSamplerRows * rows} + streams);
    c.other = kLibraries;
    if (e.plan.devices() > 1) c.other += kExchanges;
    std::int64_t rotated = 0;
    for (const model::Layer& layer : m.kinds) rotated = std::max(rotated, layer.attention.rotary_dim);
    c.other += Bytes{2 * d(m.max_position.value_or(0)) * d(rotated)};
    if (memory.graph_rows > 0) {
      c.graphs = kGraphLayer * (kGraphKinds * captured_sizes(memory.graph_rows) * d(m.num_layers()));
    }
    c.state = cost::stage_state_bytes(e, own.layers);
    const std::int64_t counted = memory.sequence_tokens > 0 ? (memory.sequence_tokens + memory.block_size - 1) /
                                                                  memory.block_size * memory.block_size
                                                            : memory.block_size;
    c.block = cost::stage_kv_bytes(e, own.layers, counted) * (d(memory.block_size) / d(counted));
    if (const Estimator* draft = estimator.draft(); draft && last) {
      const Stage& drafts = draft->stages().front();
      c.weights += drafts.weights;
      c.state += cost::stage_state_bytes(draft->setup().execution, drafts.layers);
      c.block +=
          cost::stage_kv_bytes(draft->setup().execution, drafts.layers, counted) * (d(memory.block_size) / d(counted));
    }
    const Bytes all = estimator.capacity(stage);
    const Bytes beside = c.activation + c.graphs + c.other;
    switch (memory.room) {
      case EngineMemory::Room::share_of_all:
        c.usable = all * memory.utilisation;
        c.kv = c.usable - c.weights - beside;
        break;
      case EngineMemory::Room::weights_and_cache:
        c.usable = (all - c.other) * memory.utilisation;
        c.kv = c.usable - c.weights;
        break;
      case EngineMemory::Room::share_of_free:
        c.usable = all;
        c.kv = (all - c.weights - beside) * memory.utilisation;
        break;
    }
    if (c.block.value > 0) c.blocks = static_cast<std::int64_t>(std::max(0.0, std::floor(c.kv / c.block)));
    if (stage == 0 || c.blocks < least.blocks) least = c;
  }
  return least;
}

namespace {

constexpr int kPowers = 16;

std::set<std::int64_t> contexts(const Estimator& estimator, const Estimate& e) {
  const std::int64_t own = estimator.tokens(e.scenario);
  const std::int64_t trained = estimator.setup().execution.model->max_position.value_or(0);
  // What fits far beyond the length that the model is made for is of no use, where that length is known.
  const std::int64_t fitting = trained > 0 ? std::min(4 * trained, e.longest_context) : e.longest_context;
  const std::int64_t last = std::max({own, trained, fitting});
  std::set<std::int64_t> points = {own, last};
  if (fitting > 0) points.insert(fitting);
  std::int64_t power = 1;
  while (power <= last / 2) power *= 2;
  for (int i = 0; i < kPowers && power >= estimator.prompt_unit(); ++i, power /= 2) points.insert(power);
  return points;
}

// Prompts that a plan cuts are multiples of a unit; of a shorter context nothing is left to cut.
Scenario scenario_of(const Estimator& estimator, const Scenario& s, std::int64_t context) {
  const std::int64_t unit = estimator.prompt_unit();
  const std::int64_t generate = estimator.tokens(s) - s.prompt;  // and what was cached before
  const std::int64_t prompt = std::max(unit, (context - std::min(generate, context)) / unit * unit);
  Scenario other = s;
  other.prompt = prompt;
  other.generate = std::max<std::int64_t>(context - prompt, 0);
  other.depth = 0;
  return other;
}

}  // namespace

std::vector<ContextPoint> context_curve(Estimator& estimator, const Estimate& estimate) {
  std::vector<ContextPoint> curve;
  Phase step;
  for (const std::int64_t context : contexts(estimator, estimate)) {
    const Scenario s = scenario_of(estimator, estimate.scenario, context);
    ContextPoint point{context, estimator.memory(s).kv_cache, estimator.fits(s), {}};
    if (point.fits && estimator.setup().serving.decodes()) {
      estimator.decode_step(s, context, step);
      point.decode_step = step.time;
    }
    curve.push_back(point);
  }
  return curve;
}

}  // namespace llmperf::estimate
