#include "serving/serve.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/integer.h"
#include "base/number.h"
#include "cost/memory.h"

namespace llmperf::serving {
namespace {

// Keys and values of a token, in all layers.
Bytes kv_per_token(const estimate::Setup& setup) {
  constexpr std::int64_t kTokens = 4096;
  const model::PlacedBytes bytes = cost::kv_cache_bytes(setup.execution, kTokens);
  return (bytes.device + bytes.host) / d(kTokens);
}

}  // namespace

EngineSettings choose_engine(const EngineChoices& choices, const estimate::Setup& setup) {
  EngineSettings s = engine_defaults(choices.engine, *setup.device, setup.execution.plan.devices());
  const auto take = [](auto& setting, const auto& choice) {
    if (choice) setting = *choice;
  };
  take(s.max_batched_tokens, choices.max_batched_tokens);
  take(s.max_sequences, choices.max_sequences);
  s.sequences_asked = choices.max_sequences.has_value();
  take(s.block_size, choices.block_size);
  take(s.kv_utilisation, choices.kv_utilisation);
  take(s.prefix_caching, choices.prefix_caching);
  if (!s.prefix_caching) s.memory.pool.state_pages = 1;
  if (setup.draft) s.memory.pool.state_pages += setup.draft->tokens;  // of each token that a step verifies
  take(s.chunked_prefill, choices.chunked_prefill);
  take(s.admission, choices.admission);
  take(s.max_model_len, choices.max_model_len);
  take(s.recv_interval, choices.recv_interval);
  s.max_queue = choices.max_queue;
  if (choices.kv_blocks) s.kv_blocks = choices.kv_blocks;
  if (setup.encodes()) {  // a text is in one step, which leaves nothing behind
    s.chunked_prefill = s.prefix_caching = false;
    const std::optional<std::int64_t>& longest = setup.execution.model->max_position;
    if (!choices.max_batched_tokens && longest) s.max_batched_tokens = std::max(s.max_batched_tokens, *longest);
  }
  if (setup.profile) s.frontend = Seconds{hardware::get(setup.profile->values, hardware::Parameter::host_request)};
  if (s.kind == EngineKind::vllm) {  // which captures no graphs of more rows than its sequences may have
    const std::int64_t each = 1 + (setup.draft ? setup.draft->tokens : 0);
    s.graph_rows = std::min({s.graph_rows, 2 * s.max_sequences * each, s.max_batched_tokens});
  }
  return s;
}

double spread_lengths(Load& load, const EngineSettings& engine, std::optional<std::int64_t> max_position) {
  if (load.rate || std::min(load.concurrency.value_or(1), load.requests) < 2) return 0;
  const auto room = [](std::int64_t most, double mean) { return std::max(0.0, d(most) / mean - 1); };
  const double whole = (load.input.mean() + load.output.mean()) * static_cast<double>(load.turns);
  double share = max_position ? std::min(kSpread, room(*max_position, whole)) : kSpread;
  const std::int64_t alone = engine.max_batched_tokens - *load.concurrency;  // beside those that decode
  if (!engine.chunked_prefill) share = std::min(share, room(alone, load.input.mean()));
  load.input = spread(load.input, share);
  load.output = spread(load.output, share);
  return share;
}

estimate::EngineMemory memory_of(const EngineSettings& s) {
  using Room = estimate::EngineMemory::Room;
  estimate::EngineMemory m = s.memory;
  m.room = s.kind == EngineKind::sglang   ? Room::weights_and_cache
           : s.kind == EngineKind::trtllm ? Room::share_of_free
                                          : Room::share_of_all;
  m.utilisation = s.kv_utilisation;
  m.batched_tokens = s.max_batched_tokens;
  m.max_sequences = s.max_sequences;
  m.max_model_len = s.max_model_len;
  m.graph_rows = s.captures_graphs && s.counts_graphs ? s.graph_rows : 0;
  m.pool.page = s.block_size;
  m.pool.in_flight = m.steps_in_flight * s.max_batched_tokens;
  return m;
}

Deployed deploy(const estimate::Setup& setup, const EngineSettings& settings, const Replicas& replicas,
                std::int64_t sequence_tokens) {
  Deployed d_;
  EngineSettings s = settings;
  const estimate::Estimator estimator(setup);
  d_.kv = estimate::kv_capacity(estimator, memory_of(s));
  if (s.max_model_len > 0 && sequence_tokens > s.max_model_len) {
    throw Error::infeasible(fmt::format("requests of {} tokens are longer than `max-model-len`", sequence_tokens),
                            fmt::format("`max-model-len` {}", sequence_tokens));
  }
  if (setup.encodes()) {  // which need no room for keys and values: blocks are those of steps under way
    if (d_.kv.kv.value < 0) throw Error::infeasible(setup.execution.model->name + ": " + d_.kv.refusal, d_.kv.remedy);
    constexpr std::int64_t kSteps = 4;
    s.kv_blocks = kSteps * (s.max_batched_tokens / s.block_size + s.max_sequences);
  }
  const bool adapts = !s.kv_blocks && s.memory.holds_longest;
  if (adapts && s.memory.counts_states && !s.sequences_asked && d_.kv.blocks > 0 && d_.kv.pool->has_states() &&
      d_.kv.blocks < s.max_sequences) {
    s.max_sequences = d_.kv.blocks;
    d_.kv = estimate::kv_capacity(estimator, memory_of(s));
    d_.adapted = fmt::format("`max-seqs` {}", s.max_sequences);
  }
  if (adapts && !d_.kv.refusal.empty() && s.max_model_len == 0 &&
      d_.kv.longest >= std::max<std::int64_t>(1, sequence_tokens)) {
    s.max_model_len = d_.kv.longest;
    d_.kv = estimate::kv_capacity(estimator, memory_of(s));
    d_.adapted += fmt::format("{}`max-model-len` {}", d_.adapted.empty() ? "" : ", ", s.max_model_len);
  }
  s.max_sequences = std::max<std::int64_t>(1, std::min(s.max_sequences, d_.kv.at_once));
  d_.settings = s;
  if (!s.kv_blocks && !d_.kv.refusal.empty()) {
    const bool shorter = s.max_model_len == 0 && d_.kv.longest > 0;  // than what is sent
    throw Error::infeasible(
        fmt::format("{} does not start: {}", setup.execution.model->name, d_.kv.refusal),
        shorter ? "keys and values in fp8 (`kv`), narrower weights, or more devices (`tp`)" : d_.kv.remedy);
  }
  const std::int64_t asked = sequence_tokens > 0 ? sequence_tokens : d_.kv.max_model_len;
  const std::int64_t length = divide_up(asked, s.block_size) * s.block_size;  // sequences are of whole blocks
  const std::int64_t blocks = s.kv_blocks.value_or(d_.kv.tokens_of(length) / s.block_size);
  d_.cost = std::make_shared<const estimate::StepCost>(setup);
  const graph::Plan& plan = setup.execution.plan;
  Deployment& deployment = d_.deployment;
  deployment.router = replicas.router;
  Pool pool{.settings = s,
            .cost = [cost = d_.cost](const estimate::StepShape& shape) { return (*cost)(shape); },
            .blocks = blocks,
            .replicas = replicas.count,
            .stages = plan.pipeline};
  if (replicas.per_prompt_token.value > 0) {
    pool.cost = [cost = pool.cost, each = replicas.per_prompt_token](const estimate::StepShape& shape) {
      std::int64_t tokens = 0;
      for (const estimate::Chunk& chunk : shape.chunks) tokens += chunk.tokens;
      const estimate::StepTime t = cost(shape);
      return estimate::StepTime{t.latency + each * d(tokens), t.interval + each * d(tokens)};
    };
  }
  const bool moves = !replicas.tiers.empty() || replicas.prefill || replicas.decode;
  if (moves) deployment.transfer.per_token = kv_per_token(setup);
  for (KvTier tier : replicas.tiers) {
    const hardware::Device& device = *setup.device;
    std::optional<BytesPerSecond> link =
        device.host_link ? std::optional(device.host_link->per_direction) : std::nullopt;
    if (tier.shared() && device.network) link = device.network->per_direction;
    // Ranks that share experts have one cache; others are replicas, each with its part of what is on the host.
    const std::int64_t apart = plan.expert > 1 ? 1 : plan.data;
    if (!tier.shared()) tier.size = tier.size / d(apart);
    if (!tier.rate && link) tier.rate = *link * d(plan.devices() / apart);
    if (!tier.rate) {
      throw Error::bad_input(fmt::format("`kv-tier`: {} has no link to the {}", device.name, tier.name),
                             fmt::format("`kv-tier` {}:200GB:25GB/s says its rate", tier.name));
    }
    // Of a prompt as long as a step; where reading takes longer than that it is computed again.
    const estimate::Chunk whole{s.max_batched_tokens, 0};
    const Seconds again = pool.cost({.chunks = {&whole, 1}}).interval / d(whole.tokens);
    if (deployment.transfer.per_token / *tier.rate < again) {
      pool.tiers.push_back(tier);
    } else {
      d_.slower += (d_.slower.empty() ? "" : ", ") + tier.name;
    }
  }
  // Ranks that share experts step together; others are replicas of their own.
  if (plan.expert > 1) {
    pool.ranks = plan.data;
  } else {
    pool.replicas *= plan.data;
  }
  if (setup.draft) {
    deployment.drafts = setup.draft->tokens;
    deployment.acceptance = setup.draft->acceptance;
  }
  d_.devices = replicas.count * plan.devices();
  if (replicas.prefill || replicas.decode) {
    deployment.decode = pool;
    deployment.decode->tiers.clear();  // what it is sent is kept where it was computed
    pool.replicas = replicas.prefill.value_or(1) * (pool.replicas / replicas.count);
    deployment.decode->replicas = replicas.decode.value_or(1) * (deployment.decode->replicas / replicas.count);
    const hardware::Device& device = *setup.device;
    std::optional<BytesPerSecond> link = replicas.kv_link;
    if (!link && device.network) link = device.network->per_direction;
    if (!link && device.interconnect) link = device.interconnect->per_direction;
    if (!link && device.host_link) link = device.host_link->per_direction;
    if (!link)
      throw Error::bad_input(fmt::format("{} has no link that a KV cache could be sent over", device.name),
                             "say `kv-link`");
    deployment.transfer = {.per_token = deployment.transfer.per_token,
                           .rate = BytesPerSecond{link->value * d(plan.devices())},
                           .per_layer = replicas.kv_per_layer,
                           .layers = setup.execution.model->num_layers()};
    d_.decode_devices = replicas.decode.value_or(1) * plan.devices();
    d_.devices = replicas.prefill.value_or(1) * plan.devices() + d_.decode_devices;
  }
  deployment.pool = std::move(pool);
  return d_;
}

void decode_on(Deployed& prompts, const Deployed& other) {
  prompts.devices += other.decode_devices - prompts.decode_devices;
  prompts.decode_devices = other.decode_devices;
  prompts.deployment.decode = other.deployment.decode;
  BytesPerSecond& link = prompts.deployment.transfer.rate;
  link = std::min(link, other.deployment.transfer.rate);
}

Study serve(const Deployed& deployed, const WorkloadOf& workload, std::uint64_t seed, std::int64_t seeds,
            const BandOf& band_of, const Slo& slo, const RunOptions& options) {
  Study study;
  std::vector<Summary> all;
  // With prompts and without a step takes so many times what it costs.
  const auto run = [&](std::uint64_t s, StepBand paces, bool first) {
    Deployment deployment = deployed.deployment;
    const auto paced = [&](Pool& pool) {
      if (paces.prompts == 1 && paces.decode == 1) return;
      pool.cost = [cost = pool.cost, paces](const estimate::StepShape& shape) {
        const double pace = shape.chunks.empty() ? paces.decode : paces.prompts;
        const estimate::StepTime t = cost(shape);
        return estimate::StepTime{t.latency * pace, t.interval * pace};
      };
    };
    paced(deployment.pool);
    if (deployment.decode) paced(*deployment.decode);
    const Workload w = workload(s);
    RunOptions one = options;
    one.seed = s;
    one.timeline = options.timeline && first;
    Run r = simulate(deployment, w, one);
    if (r.interrupted && !first) return false;
    all.push_back(summarise(r, w, slo));
    if (first) study.run = std::move(r);
    return !(options.stop != nullptr && options.stop->load());
  };
  constexpr StepBand kAsIs{1, 1};
  bool goes_on = run(seed, kAsIs, true);
  for (std::int64_t i = 1; i < seeds && goes_on; ++i) goes_on = run(seed + static_cast<std::uint64_t>(i), kAsIs, false);
  study.seeds = all;
  study.summary = all.front();
  const StepBand band = study.band = band_of(study.summary);
  const bool wide = band.prompts > 0 || band.decode > 0;
  // Steps that all take longer, or all shorter, are the worst case of a band that says it of each.
  if (wide && goes_on) goes_on = run(seed, {1 + band.prompts, 1 + band.decode}, false);
  if (wide && goes_on) run(seed, {1 / (1 + band.prompts), 1 / (1 + band.decode)}, false);
  const auto range = [&](auto of) {
    Range r{of(all.front()), of(all.front()), of(all.front())};
    for (const Summary& s : all) {
      r.low = std::min(r.low, of(s));
      r.high = std::max(r.high, of(s));
    }
    return r;
  };
  study.ttft_mean = range([](const Summary& s) { return s.ttft.mean; });
  study.ttft_p99 = range([](const Summary& s) { return s.ttft.p99; });
  study.tpot_mean = range([](const Summary& s) { return s.tpot.mean; });
  study.e2e_mean = range([](const Summary& s) { return s.e2e.mean; });
  study.output_tokens_per_second = range([](const Summary& s) { return s.output_tokens_per_second; });
  return study;
}

}  // namespace llmperf::serving
