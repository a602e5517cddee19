// From a setup (model, device, plan, profile) and an engine to a deployment, and from that to what is measured of it:
// the middle of several seeds, with a band from the steps' own and from the seeds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "estimate/engine_memory.h"
#include "estimate/setup.h"
#include "serving/metrics.h"
#include "serving/simulation.h"
#include "serving/workload.h"

namespace llmperf::serving {

// What may be asked of an engine; nothing where its own default holds.
struct EngineChoices {
  std::string engine = "vllm";  // "sglang@0.5.6"
  std::optional<std::int64_t> max_batched_tokens, max_sequences, block_size, kv_blocks, max_model_len, recv_interval,
      max_queue;
  std::optional<double> kv_utilisation;
  std::optional<bool> prefix_caching, chunked_prefill;
  std::optional<Admission> admission;
  bool operator==(const EngineChoices&) const = default;
};
// Throws Error(bad_input).
EngineSettings choose_engine(const EngineChoices& choices, const estimate::Setup& setup);

// Lengths of a closed loop as `spread` has them, unless the model, or an engine that does not cut prompts, has no room
// for longer ones; returns the share within which they are.
double spread_lengths(Load& load, const EngineSettings& engine, std::optional<std::int64_t> max_position);

// What the engine is told of memory, which an estimate's KV cache is sized by as well.
estimate::EngineMemory memory_of(const EngineSettings& settings);

struct Replicas {
  std::int64_t count = 1;                       // each on the devices of a plan
  std::optional<std::int64_t> prefill, decode;  // disaggregated: of each kind
  Router router = Router::least_loaded;
  std::optional<BytesPerSecond> kv_link;  // of a device, one way; none: the network's, else the interconnect's
  bool kv_per_layer = false;
  std::vector<KvTier> tiers = {};
  Seconds per_prompt_token{};  // of what a prompt has beside the language model: a tower that sees its images
  bool operator==(const Replicas&) const = default;
};

// A deployment, and what it rests on. What the setup points to must outlive it.
struct Deployed {
  Deployment deployment;
  EngineSettings settings;
  estimate::KvCapacity kv;
  std::shared_ptr<const estimate::StepCost> cost;
  std::int64_t devices = 1;         // of all replicas
  std::int64_t decode_devices = 0;  // of these, that decode alone
  std::string slower = {};          // tiers that nothing is read from, since to compute it again takes less
  std::string adapted = {};  // what of the engine's defaults it would not start with, and what is taken; empty: nothing
};
// `sequence_tokens`: of the sequences that are sent, whose share of windows and states says how many tokens they hold
// together; 0: of the longest. Throws Error(infeasible) where the engine does not start, but for defaults that nobody
// asked for: then the longest sequence is as long as the pool, and there are as many as have a state.
Deployed deploy(const estimate::Setup& setup, const EngineSettings& engine, const Replicas& replicas = {},
                std::int64_t sequence_tokens = 0);

// Both with prompts and decode apart: the replicas for prompts stay, and send what they computed to those of the other
// that decode, over the slower link of the two.
void decode_on(Deployed& prompts, const Deployed& other);

// Least, middle and most of what several runs gave.
struct Range {
  double low = 0, middle = 0, high = 0;
};

// How far off steps may be: half-widths that nine of ten are within, of those with prompts and of those of decode
// alone; 0: not known.
struct StepBand {
  double prompts = 0;
  double decode = 0;
};

struct Study {
  Summary summary;             // of the first seed, at the cost as it is
  std::vector<Summary> seeds;  // of all, likewise
  StepBand band;
  Range ttft_p99, ttft_mean, tpot_mean, e2e_mean,
      output_tokens_per_second;  // over seeds, and steps that take the band longer and shorter
  Run run;                       // of the first seed
};
using WorkloadOf = std::function<Workload(std::uint64_t seed)>;
// Of a run, the band of its steps: which depends on what these are.
using BandOf = std::function<StepBand(const Summary&)>;
// A run that is ended early is left out, but for the first.
Study serve(const Deployed& deployed, const WorkloadOf& workload, std::uint64_t seed, std::int64_t seeds,
            const BandOf& band, const Slo& slo, const RunOptions& options = {});

}  // namespace llmperf::serving
