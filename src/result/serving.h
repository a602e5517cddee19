// What `llmperf serve` and `llmperf capacity` answer: what is measured of requests that an engine serves, and what that
// rests on; which deployments serve a rate.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimate/band.h"
#include "request/request.h"
#include "result/field.h"
#include "result/parts.h"
#include "serving/capacity.h"
#include "serving/serve.h"
#include "serving/trace_file.h"

namespace llmperf::result {

// A stretch of the run, as means over it.
struct ServingMoment {
  Seconds begin;
  double running = 0;  // sequences in steps, of all replicas
  double waiting = 0;
  double kv_share = 0;
  double output_tokens_per_second = 0;
};
Type fields_of(Fields<ServingMoment> f);

// What so many of the requests are within.
struct ServingPercentile {
  double share = 0;
  std::optional<double> ttft, e2e;  // none: the queue grows without end
  std::optional<double> tpot;       // none: no request has a second token
};
Type fields_of(Fields<ServingPercentile> f);

// A bound, and what it bounds.
struct ServedBound {
  serving::Bound bound;
  std::optional<double> value;  // none: it grows without end
  bool full = false;            // … or more were rejected than may miss it
  bool met() const { return value && *value <= bound.limit.value; }
  // How far it is exceeded, 0.2 of what is 20 % too long; negative where there is room.
  std::optional<double> excess() const { return value ? std::optional(*value / bound.limit.value - 1) : std::nullopt; }
};
Type fields_of(Fields<ServedBound> f);
// `steady`: whether times of requests have an end.
std::vector<ServedBound> bounds_at(const serving::Slo& slo, const serving::Summary& summary, bool steady);

// What was measured under one seed. Where a queue grows that nothing ends, the times of whole requests say how long it
// was looked at, and no more: there are none.
struct Measured {
  const serving::Summary* summary;
  bool endless;
  bool steady() const { return !endless || summary->stable; }
};
Type fields_of(Fields<Measured> f);

Type fields_of(Fields<serving::ClassSummary> f);

struct SeedMeasured {
  std::uint64_t seed;
  Measured measured;
};
Type fields_of(Fields<SeedMeasured> f);

// Of the traffic that was sent.
struct TrafficSent {
  serving::Load load;  // as asked for
  std::string trace;   // empty: it was made
  std::int64_t requests = 0;
  std::optional<double> rate;  // none: as the closed loop lets them, or all at once
  std::optional<std::int64_t> concurrency;
  bool endless = false;  // at random times
  double mean_input = 0;
  double mean_output = 0;
};
// `load`: that was asked for; `requests`: what it became.
TrafficSent traffic_sent(const serving::Load& load, const serving::Workload& requests, bool of_trace);

struct Serving : Answer {
  explicit Serving(const estimate::Setup& s) : Answer(s, result::label(s)), setup(&s) {}

  const estimate::Setup* setup;
  const estimate::Setup* decode = nullptr;  // of what decodes apart, where its plan or devices are others
  const serving::Deployed* deployed = nullptr;
  const serving::Study* study = nullptr;
  serving::Replicas replicas;
  TrafficSent traffic;
  serving::Slo slo;
  // What stands for the run's steps of prompts and of decode where the profile is asked how far off it may be.
  estimate::Scenario prompts, decodes;
  Bands bands;  // of both
  std::vector<std::string> notes;
  std::vector<ServingMoment> timeline;
  std::vector<ServingPercentile> percentiles;
  bool interrupted = false;  // what had ended by then is in it

  Measured measured() const { return {&study->summary, traffic.endless}; }
  std::vector<ServedBound> bounds() const;
  std::optional<bool> meets() const;  // whether each of them is met; none: nothing was promised
  std::optional<double> cost_per_hour() const;
  std::optional<double> cost_per_million(double tokens_per_second) const;
  std::optional<double> power_w() const;  // of all boards at most
  // Of what a device has, the sum over all; nothing where one of them has none.
  std::optional<double> over_devices(const std::function<std::optional<double>(const estimate::Setup&)>& each) const;
  std::optional<double> joules_per_output_token() const;
  std::vector<std::string> beyond() const;
};
Type fields_of(Fields<Serving> f);

// A run as a row of many.
struct ServingRow {
  const Serving* of;
  const serving::Summary& summary() const { return of->study->summary; }
  bool steady() const { return of->measured().steady(); }
};
Type fields_of(Fields<ServingRow> f);

// Of a request that ended.
Type fields_of(Fields<serving::Served> f);
std::vector<serving::Served> ended(const serving::Run& run);

// How the run went, in at most `most` stretches of equal length; of a run without a timeline none.
std::vector<ServingMoment> moments(const serving::Run& run, std::int64_t most);
// In steps of 1 %.
// `steady`: whether a TTFT says anything.
std::vector<ServingPercentile> percentiles(const serving::Run& run, bool steady = true);

// ---- What `llmperf capacity` answers: deployments that serve a rate of requests within bounds, best first (found by
// service/capacity.h).

// Of a fleet that there is, the rate is what counts, and the highest is best.
enum class Minimise : std::uint8_t { cost, devices, energy, rate };
inline constexpr std::array<std::string_view, 4> kMinimised = {"cost", "devices", "energy", "rate"};
constexpr std::string_view name(Minimise minimise) { return kMinimised[static_cast<std::size_t>(minimise)]; }

struct Candidate {
  request::Request request;  // of a replica
  std::string hardware;
  std::string plan;  // of a replica: "tp 4"
  std::string weights;
  std::string engine;         // with its rules' version
  std::string profile;        // that times its steps
  bool extrapolated = false;  // the profile is not the device's own
  std::int64_t replica_devices = 1;
  Seconds start{};                           // that a replica takes to
  std::string start_formula;                 // of what wakes
  std::string decode_hardware, decode_plan;  // of what decodes apart, where these are others; else empty
  // Of what serves the rate; with disaggregation those that decode are apart.
  std::int64_t replicas = 0, decode_replicas = 0;
  std::int64_t devices = 0;
  double max_requests_per_second = 0;       // of one replica, with disaggregation of all
  double ceiling = 0;                       // … that no queue survives
  double requests_per_second = 0;           // of all replicas, where a fleet is given: the highest rate
  double tokens_per_second_per_device = 0;  // generated
  serving::Binding binding = serving::Binding::none;
  std::optional<serving::Cause> cause;
  std::string why;         // of a candidate that cannot be: "32 heads do not divide by 64"
  bool simulated = false;  // else replicas and costs are the least that its ceiling, or a rate that it misses, leave
  bool meets = false;
  std::optional<serving::Summary> at;  // of a replica at its share of the rate; of one that does not meet at its best
  std::vector<ServedBound> bounds;     // … and each bound there
  std::optional<double> cost_per_hour, cost_per_million_output_tokens;
  std::string currency;
  std::optional<double> power_w;                  // board power of all devices: an upper bound
  std::optional<double> joules_per_output_token;  // likewise
  std::optional<double> beyond_best;              // what is minimised over that of the best, less one
  bool pareto = false;                            // none of those that meet is both cheaper and quicker (mean E2E)
  // What is minimised; nothing where it is not known.
  std::optional<double> objective(Minimise minimise) const;
};

// Of a million tokens in and out, in the currency of the devices' price.
struct ApiPrice {
  double input = 0;
  double output = 0;
};
// What an API would cost for the answer's traffic, and from where on the devices win.
struct BreakEven {
  double per_hour = 0;           // of the API, at the rate
  double requests_per_second{};  // that cost as much there as the devices do, however few they serve
  double requests_per_day{};     // likewise
  double utilisation = 0;        // that rate as a share of what the devices take; above 1 they never win
};

// A part of a day: as many replicas as its rate needs, and at least one.
struct DayPart {
  double from_h = 0;  // hours since it began
  double rate = 0;
  std::int64_t replicas = 0;
  std::int64_t devices = 0;
  std::optional<double> cost = {};  // of the part; none: no price is known
};
// What a day costs with as many replicas as its highest rate needs all day long, and with as many as each part needs.
struct DayPlan {
  std::vector<DayPart> parts;
  std::optional<double> fixed_cost;
  std::optional<double> scaled_cost;
  Seconds start{};  // of a replica
  std::string start_formula;
};

struct CapacityResult {
  request::Request asked;
  Minimise minimise = Minimise::cost;
  double rate = 0;
  serving::Slo slo;
  serving::Load load;
  std::vector<Candidate> candidates;  // best first, those that meet before those that do not
  std::vector<std::string> notes;     // of its trace
  std::int64_t simulations = 0;       // of the candidates that were simulated
  bool interrupted = false;           // those that were not done by then say so
  std::size_t done = 0;               // candidates
  std::optional<ApiPrice> api_price;
  std::optional<BreakEven> break_even() const;
  std::vector<double> day;  // rates of equal parts of a day; empty: one rate
  double day_hours = 24;    // that they are together; of a trace as many as it lasts
  double part_hours() const { return day_hours / std::max(1.0, static_cast<double>(day.size())); }
  Seconds scale_time = {};  // that a replica takes to start, where it does not
  bool wakes = false;       // … from sleep, its weights in the host's memory or read from storage at a server's rate
  std::optional<BytesPerSecond> storage;
  std::optional<DayPlan> day_plan() const;
  const Candidate* best() const {
    return !candidates.empty() && candidates.front().meets ? &candidates.front() : nullptr;
  }
};

Type fields_of(Fields<Candidate> f);
Type fields_of(Fields<BreakEven> f);
Type fields_of(Fields<DayPart> f);
Type fields_of(Fields<DayPlan> f);
Type fields_of(Fields<CapacityResult> f);

}  // namespace llmperf::result
