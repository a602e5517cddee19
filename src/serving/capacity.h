// How much a deployment can take: the highest rate of requests at which bounds on TTFT, TPOT, ITL and E2E hold, and how
// many replicas a given rate needs.
//
// A closed form brackets the rate before anything is simulated. Alone, a request takes what its prompt and its tokens
// take; where that is already longer than a bound allows, no rate meets it. And where B sequences are decoded in every
// step, B / output of them end with it, so that as many prompts have to be computed beside them:
//
//   rate = (B / output) / (c(B decodes) + B input / output tokens of prompts at the least that one adds to a step)
//
// B is the largest that there are seats and KV blocks for and that exceeds no bound on TPOT. From there on the rate is
// bisected by simulation, with the same requests and the same random numbers at every rate: only the times between
// arrivals are scaled. A rate that is found was judged as judge() does, and so was one less than a tolerance above it,
// which is missed: whoever asks what the deployment does at either is told the same.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "serving/metrics.h"
#include "serving/serve.h"
#include "serving/workload.h"

namespace llmperf::serving {

// What limits a rate.
enum class Binding : std::uint8_t { none, memory, length, ttft, tpot, itl, e2e, throughput };
inline constexpr std::array<std::string_view, 8> kBindings = {"none", "memory", "length", "ttft",
                                                              "tpot", "itl",    "e2e",    "throughput"};
constexpr std::string_view name(Binding binding) { return kBindings[static_cast<std::size_t>(binding)]; }

// What a deployment does with a load, and of how many requests. The fewest that are asked for are too few where they
// are not sent for as long as many of them take one after the other: the queue is then seen to fill and to empty, and
// little of what lies between. Where the load extends, there are as many as are wanted.
struct Verdict {
  Summary summary;
  std::int64_t requests = 0;
  std::int64_t simulations = 0;
};
// `hasty`: what is certain to miss a bound is not looked at for longer; the summary is of what had ended by then.
Verdict judge(const Deployment& deployment, Load load, const Slo& slo = {}, bool hasty = false,
              const std::atomic<bool>* stop = nullptr);

struct Capacity {
  double requests_per_second = 0;   // of the deployment, at most; 0: the bounds are missed at any rate
  double ceiling = 0;               // by the closed form, of all replicas
  Binding binding = Binding::none;  // what is exceeded first beyond that rate
  std::optional<Cause> cause;       // of a TTFT: what takes most of it there
  Summary at;                       // at that rate; of a request alone where there is none
  std::vector<double> missed;       // rates that were tried and at which bounds are missed, each below the one before
  std::int64_t simulations = 0;
};

struct CapacityOptions {
  double tolerance = 0.03;  // relative, of the rate
  // Whether it still is of interest what a deployment takes that does not take this rate. Where it is not, the search
  // ends, and what it found but `missed` means nothing.
  std::function<bool(double)> worthwhile = [](double) { return true; };
  const std::atomic<bool>* stop = nullptr;
};
// `load`: its rate is not read. Rates have three digits, as they are shown.
Capacity max_rate(const Deployed& deployed, const Load& load, const Slo& slo, const CapacityOptions& options = {});

// Time of a request by itself, and a rate that hardly any queue survives.
struct ClosedForm {
  Seconds ttft{}, tpot{};
  double ceiling = 0;  // requests per second of all replicas
  bool alike = true;   // of classes a bound is about others than the mean request: none is missed for certain
  double share_of(const Bound& bound, double output) const;  // what a request alone takes of its limit
  Binding misses(const Slo& slo, double output) const;       // a bound that a request alone exceeds; none: it meets all
};
ClosedForm closed_form(const Deployed& deployed, const Load& load, const Slo& slo = {});

}  // namespace llmperf::serving
