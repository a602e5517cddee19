// A discrete-event simulation of serving: requests arrive, a router deals them to replicas, each replica's engine makes
// up step after step (scheduler.h), and a step takes what StepCost says. Between two events of a replica's queue all
// that decodes moves on in lockstep, so that such steps cost a table look-up and not a walk over the batch.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "estimate/step_cost.h"
#include "serving/scheduler.h"

namespace llmperf::serving {

enum class Router : std::uint8_t { round_robin, least_loaded, prefix_aware };
inline constexpr std::array<std::string_view, 3> kRouters = {"round-robin", "least-loaded", "prefix-aware"};
constexpr std::string_view name(Router router) { return kRouters[static_cast<std::size_t>(router)]; }

// What a step takes: estimate::StepCost, or anything else.
using Cost = std::function<estimate::StepTime(const estimate::StepShape&)>;

// Replicas that are alike: of prompts and decode, or with disaggregation of one of the two.
struct Pool {
  EngineSettings settings;
  Cost cost;
  std::int64_t blocks = 0;  // of a replica's KV cache
  std::int64_t replicas = 1;
  std::int64_t ranks = 1;   // data-parallel ranks of a replica that step together; blocks are those of one
  std::int64_t stages = 1;  // of a pipeline, each of which works on a step of its own
  // Beside the cache, with their rates; tokens of all of them that a byte holds are KvTransfer's.
  std::vector<KvTier> tiers = {};
};

// How keys and values get from the replicas of prompts to those of decode.
struct KvTransfer {
  Bytes per_token;         // of all devices of a replica
  BytesPerSecond rate;     // … at which they send
  Seconds latency{};       // of a hand-over
  bool per_layer = false;  // sent while the prompt is computed; else when it has been
  std::int64_t layers = 1;
};

struct Deployment {
  Pool pool;                        // with disaggregation of prompts
  std::optional<Pool> decode = {};  // with disaggregation
  KvTransfer transfer = {};
  Router router = Router::least_loaded;
  std::int64_t drafts = 0;
  estimate::Acceptance acceptance = {};
  double pace = 1;  // of the steps' cost: what a band makes longer or shorter
};

struct Served {
  Seconds sent{}, first{}, last{};
  std::int64_t input = 0;
  std::int64_t output = 0;
  std::int64_t reused = 0;   // tokens of the prompt that the cache had, or a tier
  std::int64_t fetched = 0;  // … of these a tier
  std::int32_t preemptions = 0;
  std::int32_t replica = 0;
  Causes causes = {};     // of its TTFT, in seconds
  std::int32_t of = -1;   // its class, of Workload::classes
  bool ended = false;     // not, where the simulation was interrupted
  bool rejected = false;  // the queue was full

  Seconds ttft() const { return first - sent; }
  Seconds latency() const { return last - sent; }
  // Between tokens after the first; 0 where there is one alone.
  Seconds tpot() const { return output > 1 ? (last - first) / static_cast<double>(output - 1) : Seconds{}; }
};

// A step or a run of alike ones.
struct Interval {
  Seconds begin{}, end{};
  std::int32_t replica = 0;
  std::int32_t steps = 1;
  std::int32_t decodes = 0;
  std::int32_t prompts = 0;  // pieces of prompts
  std::int64_t prompt_tokens = 0;
  std::int64_t waiting = 0;
  std::int64_t blocks = 0;  // held
  double kv_share = 0;      // … of those that the replica has
};

// What keeps a token from coming at once after the one before: its step, what prompts add to it, and steps that it is
// not in.
struct GapCauses {
  double decode = 0;
  double prefill = 0;
  double stall = 0;
};

struct Run {
  std::vector<Served> requests;                       // in the order of the workload
  std::vector<std::pair<double, std::int64_t>> gaps;  // between tokens in seconds, and how many there are of each
  GapCauses gap_causes;
  Seconds end{};  // the last token's; the first request is sent at `begin`
  Seconds begin{};
  std::int64_t steps = 0;
  std::int64_t preemptions = 0;
  std::int64_t prompt_tokens = 0;  // computed, those that were computed again among them
  std::int64_t replicas = 1;
  double busy = 0;             // seconds of replicas in which a step runs
  double decode_seconds = 0;   // sum over time of sequences in steps
  double waiting_seconds = 0;  // … and of sequences that wait
  double kv_seconds = 0;       // … and of the share of their blocks that requests hold
  double kv_peak_share = 0;    // of those of one replica
  bool interrupted = false;
  std::vector<Interval> timeline;  // where it was asked for
};

struct RunOptions {
  std::uint64_t seed = 0;  // of what drafts are kept
  bool timeline = false;
  bool gaps = true;                                 // times between tokens are kept, which ITL is made of
  const std::atomic<bool>* stop = nullptr;          // ends early when it is set
  std::function<void(std::int64_t)> progress = {};  // is told now and then how many requests have ended
  std::function<bool(const Served&)> goes_on = {};  // asked of each that ended: false ends the run early
};

// Throws Error(infeasible) for a request that the cache, or without chunks a step, has no room for at all.
Run simulate(const Deployment& deployment, const Workload& workload, const RunOptions& options = {});

}  // namespace llmperf::serving
