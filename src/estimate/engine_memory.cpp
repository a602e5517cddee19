// vLLM V1 runs a step of as many tokens and sequences as it may ever batch, sees what that took at its peak, and gives
// the cache the rest of its share of the memory:
//
//   KV = utilisation x memory - weights - max(forward, sampler, tower) - tables of positions - graphs - other
//
// weights   as loaded: kernels of mxfp4 experts fill up their matrices (ExpertLayout)
// forward   activations of the largest step (cost::activation_peak), of which no more than one token's logits per
//           sequence are made
// sampler   of every sequence its logits in 16 bits (1/2 of an fp32 row), widened (1), sorted by value (1) with 64-bit
//           indices (2) through a second buffer of both (3): 7.5 fp32 rows of the vocabulary, before 0.11.1 two copies
//           more, beside the residual stream and the hidden states of the step
// tower     the pass over as many of the largest images as the tokens of a step hold, one at least
// positions cos and sin of every position that the model was trained for, in 16 bits (1,024,000 of Mistral-Nemo: 262
//           MB)
// other     libraries' workspaces, and with several devices what exchanges stage in; the context itself is there
//           before vLLM first looks, and from 0.11.1 on NCCL's buffers are, too
//
// SGLang sizes weights and cache together (mem_fraction_static), the rest is for everything else; TensorRT-LLM takes a
// share of what is free once weights are loaded and the largest step was run (free_gpu_memory_fraction).
#include "estimate/engine_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/integer.h"
#include "base/number.h"
#include "cost/memory.h"
#include "model/parameters.h"
#include "model/vision.h"

namespace llmperf::estimate {
namespace {

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

// What kernels add to the matrices of mxfp4 experts that are stored in 2,880 rows and columns, as a share of them.
double filled_up(ExpertLayout layout, std::int64_t inner, std::int64_t hidden) {
  const auto to = [](std::int64_t width, std::int64_t multiple) {
    return d(divide_up(width, multiple) * multiple) / d(width);
  };
  switch (layout) {
    case ExpertLayout::stored: return 0;
    case ExpertLayout::triton: return to(hidden, 256) - 1;
    case ExpertLayout::marlin: return to(inner, 128) * to(hidden, 256) - 1;
    case ExpertLayout::both: return to(inner, 256) * to(hidden, 256) - 1;
  }
  return 0;
}

Bytes expert_padding(const graph::Execution& e, std::int64_t stage, ExpertLayout layout) {
  Bytes sum;
  for (const model::LayerGroup& group : e.weights.groups) {
    const model::Layer layer = graph::shard(e.model->kinds[group.kind], e.plan);
    if (!layer.feed_forward.experts) continue;
    const double more = filled_up(layout, layer.feed_forward.experts->intermediate, e.model->hidden);
    for (const model::Tensor& tensor : model::layer_tensors(*e.model, layer)) {
      if (!model::is_expert(tensor.role) || group[tensor.role].kernel != FormatKernel::mxfp4) continue;
      sum += model::tensor_bytes(e.weights, group[tensor.role], tensor) * (more * d(e.stage_layers(group, stage)));
    }
  }
  return sum;
}

// The pass over the largest image, as often as the tokens of a step hold its rows, and beside it the pixels in 16 bits.
Bytes tower_peak(const graph::Execution& e, const EngineMemory& memory) {
  constexpr std::int64_t kHuge = 8192;  // pixels of a side, which every model's preprocessing makes smaller
  const model::SeenImage image = model::see(*e.model->vision, {kHuge, kHuge});
  const std::int64_t count = std::clamp<std::int64_t>(memory.batched_tokens / std::max<std::int64_t>(1, image.tokens),
                                                      1, memory.max_sequences);
  const model::VisionTower& tower = *e.model->vision;
  const double pixels =
      d(count * image.tiles * image.patches) * 3 * d(tower.temporal_patch * tower.patch * tower.patch);
  return cost::vision_activation_peak(e, {count, image}) + Bytes{pixels * bytes_per_element(e.activations)};
}

// Of the profile run, and in `c.images` what of it the tower took.
Bytes profiled(const graph::Execution& e, const EngineMemory& memory, bool first, bool last, KvCapacity& c) {
  const model::Decoder& m = *e.model;
  const std::int64_t tokens = memory.batched_tokens;
  const std::int64_t sequences = std::min(memory.max_sequences, tokens);
  const Bytes streams{2 * d(tokens) * d(m.hidden) * bytes_per_element(e.activations)};
  Bytes peak = cost::activation_peak(e, {1, tokens, 0});
  if (last && !m.encoder) {
    const double row = 4 * d(m.vocab);
    peak = std::max(peak, Bytes{memory.sampler_rows * d(sequences) * row} + streams);
    peak = std::max(peak, Bytes{memory.token_logits * d(tokens) * d(m.vocab)} + streams);
  }
  if (first && memory.profiles_images && m.vision) {
    c.images = tower_peak(e, memory);
    peak = std::max(peak, c.images);
  }
  return peak;
}

Bytes positions(const model::Decoder& m) {
  std::int64_t rotated = 0;
  for (const model::Layer& layer : m.kinds) rotated = std::max(rotated, layer.attention.rotary_dim);
  return Bytes{2 * d(m.max_position.value_or(0)) * d(rotated)};
}

// The engine's own start-up checks, and the nearest that passes them.
void judge(const EngineMemory& memory, Bytes all, KvCapacity& c) {
  const auto share_for = [&](Bytes more) {  // of the memory, in whole per cent
    const double share = std::ceil((memory.utilisation + more / all) * 100) / 100;
    return share <= 0.98 && memory.room != EngineMemory::Room::share_of_free
               ? fmt::format("`kv-utilisation` {}, ", share)
               : std::string();
  };
  const std::string others = "keys and values in fp8 (`kv`), or more devices (`tp`)";
  const bool few_states = memory.counts_states && c.pool->has_states() && c.blocks < memory.max_sequences;
  if (c.blocks <= 0 && c.kv.value > 0) {
    c.refusal = fmt::format("a block takes {}, and {} are left for keys and values", format_bytes_binary(c.block),
                            format_bytes_binary(c.kv));
    c.remedy = "smaller blocks (`block-size`), fewer `max-seqs`, or more devices (`tp`)";
  } else if (c.blocks <= 0) {
    c.refusal = fmt::format(
        "no memory is left for keys and values: of {} weights take {}, the largest step {}, graphs {} "
        "and the rest {}",
        format_bytes_binary(c.usable), format_bytes_binary(c.weights), format_bytes_binary(c.activation),
        format_bytes_binary(c.graphs), format_bytes_binary(c.other));
    c.remedy = share_for(c.sequence - c.kv) +
               (c.weights < c.usable ? "fewer `max-seqs` or `max-batched-tokens`, " : "") +
               "narrower weights or more devices (`tp`)";
  } else if (memory.holds_longest && c.longest < c.max_model_len) {
    c.refusal =
        fmt::format("one sequence of {} tokens takes {}, and {} are left for keys and values",
                    format_count(d(c.max_model_len)), format_bytes_binary(c.sequence), format_bytes_binary(c.kv));
    c.remedy = fmt::format("`max-model-len` {}{}, {}{}", c.longest,
                           few_states ? fmt::format(" with `max-seqs` {}", c.blocks) : "",
                           few_states ? "" : share_for(c.sequence - c.kv), others);
  } else if (memory.holds_longest && few_states) {
    c.refusal = fmt::format("{} sequences would each need a block for their state, and there are {}",
                            format_count(d(memory.max_sequences)), format_count(d(c.blocks)));
    c.remedy = fmt::format("`max-seqs` {}", c.blocks);
  }
}

}  // namespace

std::int64_t KvCapacity::tokens_of(std::int64_t length) const {
  return static_cast<std::int64_t>(d(blocks) / pool->running_pages(length) * d(length));
}

// By bisection: pages grow with a sequence's tokens.
std::int64_t KvCapacity::longest_of(std::int64_t count) const {
  std::int64_t fits = 0;
  std::int64_t not_fit = kMaxTokens;
  while (not_fit - fits > 1) {
    const std::int64_t middle = fits + (not_fit - fits) / 2;
    const double pages = count == 1 ? pool->pages(middle) : d(count) * pool->running_pages(middle);
    (pages <= d(blocks) ? fits : not_fit) = middle;
  }
  // Where nothing grows with a sequence's tokens the model's own length is the limit.
  return not_fit == kMaxTokens ? max_model_len : fits;
}

void compare(EngineLog& log, const KvCapacity& room, const cost::Memory& whole) {
  const bool buffers = std::ranges::any_of(log.parts, [](const LogPart& p) { return p.name == "compute buffers"; });
  const std::pair<std::string_view, double> ours[] = {
      {"weights", (buffers ? whole.weights : room.weights).value},
      {"activations", room.activation.value},
      {"graphs", room.graphs.value},
      {"compute buffers", whole.activation.value},
      {"keys and values", (buffers ? whole.kv_cache + whole.state : room.kv).value},
      {"a sequence", room.sequence.value},
      {"longest sequence", d(room.longest)},
      {"tokens", d(room.tokens)},
      {"blocks", d(room.blocks)},
      {"sequences", room.sequences},
  };
  for (LogPart& part : log.parts) {
    for (const auto& [name, predicted] : ours) {
      if (part.name == name) part.predicted = predicted;
    }
  }
}

KvCapacity kv_capacity(const Estimator& estimator, const EngineMemory& memory) {
  const graph::Execution& e = estimator.setup().execution;
  KvCapacity least;
  Bytes memory_of_least;
  const std::int64_t longest = memory.max_model_len > 0 ? memory.max_model_len : e.model->max_position.value_or(0);
  for (std::size_t stage = 0; stage < estimator.stages().size(); ++stage) {
    const Stage& own = estimator.stages()[stage];
    const bool last = stage + 1 == estimator.stages().size();
    KvCapacity c;
    c.padding = expert_padding(e, static_cast<std::int64_t>(stage), memory.experts);
    c.weights = own.weights + c.padding;
    c.activation = profiled(e, memory, stage == 0, last, c);
    c.other = memory.libraries + positions(*e.model);
    if (e.plan.devices() > 1) c.other += memory.exchanges;
    if (memory.graph_rows > 0) {
      const std::int64_t layers = std::accumulate(own.layers.begin(), own.layers.end(), std::int64_t{0});
      c.graphs = kGraphLayer * (kGraphKinds * captured_sizes(memory.graph_rows) * d(layers));
    }
    c.pool.emplace(e, own.layers, memory.pool);
    if (const Estimator* draft = estimator.draft(); draft && last) {
      const Stage& drafts = draft->stages().front();
      c.weights += drafts.weights;
      c.pool->add_draft(draft->setup().execution, drafts.layers);
    }
    c.block = c.pool->page();
    c.block_size = c.pool->page_tokens();
    c.state = c.pool->state();
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
    c.at_once = memory.max_sequences;
    if (c.pool->has_states() && memory.pool.layout == PoolRules::Layout::slots) {
      const double share = memory.pool.state_share;
      const double held = std::max(0.0, c.kv * (share / (1 + share)) / c.state);
      if (share > 0) c.at_once = std::min(c.at_once, static_cast<std::int64_t>(held));
    }
    if (c.block.value > 0) c.blocks = static_cast<std::int64_t>(std::max(0.0, std::floor(c.kv / c.block)));
    // Stages may have blocks of unlike groups: what counts is how many sequences they hold.
    const auto held = [&](const KvCapacity& of) { return d(of.blocks) / of.pool->pages(longest); };
    if (stage > 0 && held(c) >= held(least)) continue;
    least = std::move(c);
    memory_of_least = all;
  }
  KvCapacity& c = least;
  constexpr std::int64_t kUnpublished = 131'072;  // what is taken of models whose length is not
  c.max_model_len = longest > 0 ? longest : std::clamp<std::int64_t>(c.longest_of(1), 1, kUnpublished);
  c.sequence = c.block * c.pool->pages(c.max_model_len);
  c.sequences = d(c.blocks) / c.pool->pages(c.max_model_len);
  c.tokens = memory.prints_concurrency ? static_cast<std::int64_t>(c.sequences * d(c.max_model_len))
                                       : c.pool->tokens_in_all_groups(c.blocks);
  c.longest = c.longest_of(1);
  judge(memory, memory_of_least, c);
  return least;
}

}  // namespace llmperf::estimate
