// Which hardware, plan, weights and engine serve a rate of requests within bounds, and what that costs: the search
// behind `llmperf capacity`.
//
// Lists in `hw`, `tp`, `weights` and `engine` span the candidates. Each is screened in closed form (its weights fit, a
// request alone meets the bounds, a ceiling of its rate: serving/capacity.h), which bounds what it costs from below; in
// the order of that bound they are simulated, each until a rate that it misses puts what it costs beyond kNear times
// the best that was found. The answer does not depend on how many threads there are.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "request/request.h"
#include "request/sources.h"
#include "request/traffic.h"
#include "serving/capacity.h"

namespace llmperf::request {

enum class Minimise : std::uint8_t { cost, devices, energy };
inline constexpr std::array<std::string_view, 3> kMinimised = {"cost", "devices", "energy"};
constexpr std::string_view name(Minimise minimise) { return kMinimised[static_cast<std::size_t>(minimise)]; }

inline constexpr double kNear = 1.5;

struct CapacityQuery {
  Request request = {};        // `hw`, `tp`, `weights` and `engine` may be lists, `hw` all
  bool disaggregated = false;  // prompts and decode on replicas of their own as well
  Minimise minimise = Minimise::cost;
  unsigned threads = 0;  // 0: as many as there are cores
};

struct Candidate {
  std::string hardware;
  std::string plan;  // of a replica: "tp 4"
  std::string weights;
  std::string engine;         // with its rules' version
  std::string profile;        // that times its steps
  bool extrapolated = false;  // the profile is not the device's own
  std::int64_t replica_devices = 1;
  // Of what serves the rate; with disaggregation those that decode are apart.
  std::int64_t replicas = 0, decode_replicas = 0;
  std::int64_t devices = 0;
  double max_requests_per_second = 0;  // of one replica, with disaggregation of all
  double ceiling = 0;                  // … that no queue survives
  serving::Binding binding = serving::Binding::none;
  std::optional<serving::Cause> cause;
  std::string why;         // of a candidate that cannot be: "32 heads do not divide by 64"
  bool simulated = false;  // else replicas and costs are the least that its ceiling, or a rate that it misses, leave
  bool meets = false;
  std::optional<serving::Summary> at;  // of a replica at its share of the rate; of one that does not meet at its best
  std::optional<double> cost_per_hour, cost_per_million_output_tokens;
  std::string currency;
  std::optional<double> power_w;                  // board power of all devices: an upper bound
  std::optional<double> joules_per_output_token;  // likewise
  bool pareto = false;                            // none of those that meet is both cheaper and quicker (mean E2E)
  // What is minimised; nothing where it is not known.
  std::optional<double> objective(Minimise minimise) const;
};

struct CapacityResult {
  Request asked;
  Minimise minimise = Minimise::cost;
  double rate = 0;
  serving::Slo slo;
  serving::Load load;
  std::vector<Candidate> candidates;  // best first, those that meet before those that do not
  std::vector<std::string> notes;     // of its trace
  std::int64_t simulations = 0;       // of the candidates that were simulated
  bool interrupted = false;           // those that were not done by then say so
  std::size_t done = 0;               // candidates
  const Candidate* best() const {
    return !candidates.empty() && candidates.front().meets ? &candidates.front() : nullptr;
  }
};

// `progress` is told how many of how many candidates are done. Throws Error(bad_input).
CapacityResult search_capacity(const CapacityQuery& query, Sources& sources, const std::atomic<bool>* stop = nullptr,
                               const std::function<void(std::size_t, std::size_t)>& progress = {});

}  // namespace llmperf::request
