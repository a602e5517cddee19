#include "service/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "base/integer.h"
#include "base/list.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "estimate/price.h"
#include "graph/plan.h"
#include "model/parameters.h"
#include "model/quantization.h"
#include "model/weight_layout.h"
#include "request/resolve.h"
#include "request/traffic.h"
#include "request/training_options.h"

namespace llmperf::service {
namespace {

using request::Request;
using request::Sources;
using request::Text;
using result::Candidate;
using result::CapacityResult;

constexpr double kUnknown = std::numeric_limits<double>::infinity();
constexpr std::int64_t kPlenty = 4096;
constexpr std::int64_t kTraced = 20'000;  // requests of a trace, at most where nobody says how many
constexpr std::int64_t kFew = 32;         // replicas

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> list;
  for (const std::string_view part : split(text, ',')) {
    if (!trim(part).empty()) list.emplace_back(trim(part));
  }
  return list;
}

// … each as a field has it; nothing where nothing is said.
std::vector<Text> texts_of(const Text& text) {
  std::vector<Text> list;
  for (std::string& part : parts_of(text.value_or(""))) list.emplace_back(std::move(part));
  return list;
}

// Of a list, else of the one that the request has, else 1.
std::vector<std::int64_t> degrees_of(const char* field, const std::string& text, std::optional<std::int64_t> one) {
  std::vector<std::int64_t> list;
  for (const std::string& part : parts_of(text)) {
    list.push_back(request::count_value(field, part, 1, graph::kMostDevices));
  }
  if (list.empty()) list.push_back(one.value_or(1));
  return list;
}

// The smallest of what is tried of a model's weights, of a node's memory.
bool fits_a_node(const model::Decoder& model, const hardware::Device& device, double bits) {
  const double bytes = static_cast<double>(model::count_parameters(model).total) * bits / 8;
  return !device.dram().capacity || bytes < device.dram().capacity->value * d(device.devices_per_node);
}

// Names that a list stands for; "all" are the GPUs.
std::vector<std::string> devices_of(const std::string& text, Sources& sources) {
  if (text != "all") return parts_of(text);
  std::vector<std::string> names;
  for (const std::string& name : descriptor::names(descriptor::Kind::device)) {
    if (sources.device(name).kind == hardware::DeviceKind::gpu) names.push_back(name);
  }
  return names;
}

// A fleet dealt to replicas of prompts and of decode, and the rate that no queue of either survives.
struct Split {
  std::int64_t prompts = 0, decodes = 0;
  double ceiling = 0;
};

// A candidate and all that its simulation needs.
struct Case {
  Candidate candidate;
  std::unique_ptr<request::Resolved> resolved;
  std::optional<serving::Deployed> deployed;
  std::optional<Error> error;  // why there is none
  request::Traffic traffic;
  bool apart = false;
  // Of prompts and decode apart: whether a request alone keeps the bounds of each, and rates that no queue for one of
  // its replicas survives.
  bool prompts = false, decodes = false;
  double prompt_ceiling = 0, decode_ceiling = 0;
  std::int64_t fleet = 0;         // devices of its kind that there are; 0: as many as it takes
  std::int64_t decode_fleet = 0;  // … of what decodes on another kind; 0: it shares those
  std::vector<Split> splits;      // of prompts and decode apart on them
  double likely = 0;              // rate of a replica, by what a queue leaves of the ceiling
  double alone = kUnknown;        // how far a request by itself exceeds a bound, of what is ruled out by that
  bool done = false;
  // Rates that a replica does not take: what is beyond its ceiling, and then what simulations showed.
  std::vector<double> missed;
  std::int64_t simulations = 0;
};

const estimate::Setup& decode_setup_of(const Case& c) {
  return (c.resolved->decode ? *c.resolved->decode : *c.resolved).setup();
}

void price(const CapacityResult& result, const Case& c, Candidate& k) {
  const estimate::Setup& setup = c.resolved->setup();
  const estimate::Setup& decode = decode_setup_of(c);
  const auto prompts = d(k.replicas * k.replica_devices);
  const auto decodes = d(k.decode_replicas * decode.execution.plan.devices());
  k.devices = static_cast<std::int64_t>(prompts + decodes);
  const double rate = result.minimise == result::Minimise::rate ? k.requests_per_second : result.rate;
  const double output = rate * c.traffic.load.output.mean();  // tokens per second
  const auto devices = d(k.devices);
  k.tokens_per_second_per_device = output / devices;
  k.cost_per_hour.reset();
  if (setup.price && decode.price && setup.price->currency == decode.price->currency) {
    k.currency = setup.price->currency;
    const double each = (setup.price->amount * prompts + decode.price->amount * decodes) / devices;
    k.cost_per_hour = estimate::cost_per_hour<double>(each, devices, k.currency);
    if (!setup.encodes())
      k.cost_per_million_output_tokens = estimate::cost_per_million<double>(*k.cost_per_hour, output);
  }
  if (setup.device->power_w && decode.device->power_w) {
    k.power_w = *setup.device->power_w * prompts + *decode.device->power_w * decodes;
    if (!setup.encodes()) k.joules_per_output_token = *k.power_w / output;
  }
}

// Of what does not meet the bounds no number of replicas serves the rate.
void unprice(Candidate& k) {
  k.replicas = k.decode_replicas = k.devices = 0;
  for (std::optional<double>* number :
       {&k.cost_per_hour, &k.cost_per_million_output_tokens, &k.power_w, &k.joules_per_output_token})
    number->reset();
}

std::optional<result::ApiPrice> read_price(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::vector<std::string> parts = parts_of(text);
  constexpr double kMost = 1e6;
  if (parts.size() != 2) {
    throw Error::bad_input("`api-price`: of a million tokens in, and of a million out", "`api-price` 0.27,1.10");
  }
  return result::ApiPrice{request::number_value("`api-price`", parts[0], 0, kMost),
                          request::number_value("`api-price`", parts[1], 0, kMost)};
}

// Of one kind of devices those that leave none over for another replica, by the number of prompts'.
std::vector<Split> splits_of(const Case& prompts, const Case& decodes, std::int64_t decode_fleet) {
  const std::int64_t each = decode_setup_of(decodes).execution.plan.devices();
  std::vector<Split> all;
  for (std::int64_t n = 1; n * prompts.candidate.replica_devices <= prompts.fleet; ++n) {
    const std::int64_t left = prompts.fleet - n * prompts.candidate.replica_devices;
    const std::int64_t beside = (decode_fleet > 0 ? decode_fleet : left) / each;
    if (beside == 0) break;
    if (!all.empty() && all.back().decodes == beside) all.pop_back();
    all.push_back({n, beside, std::min(d(n) * prompts.prompt_ceiling, d(beside) * decodes.decode_ceiling)});
  }
  return all;
}
Split widest(const std::vector<Split>& splits) {
  return splits.empty() ? Split() : *std::ranges::max_element(splits, {}, &Split::ceiling);
}

// So many replicas at least share the rate at less than `missed` each.
std::int64_t sharing(double rate, double missed) {
  return static_cast<std::int64_t>(std::floor(rate / missed * (1 + 1e-9))) + 1;
}

// With as many replicas as share the rate at less than `missed` each: of what is minimised that is the least.
double bound(const CapacityResult& result, const Case& c, double missed, Candidate& k) {
  k.replica_devices = c.candidate.replica_devices;
  if (result.minimise == result::Minimise::rate) {  // all that there are
    const Split split = c.apart ? widest(c.splits) : Split{c.fleet / k.replica_devices, 0, 0};
    k.replicas = split.prompts;
    k.decode_replicas = split.decodes;
    k.requests_per_second = c.apart ? missed : missed * d(k.replicas);
  } else if (c.apart) {
    k.replicas = sharing(result.rate, c.prompt_ceiling);
    k.decode_replicas = sharing(result.rate, c.decode_ceiling);
  } else {
    k.replicas = sharing(result.rate, missed);
  }
  price(result, c, k);
  return k.objective(result.minimise).value_or(kUnknown);
}
double least(const CapacityResult& result, const Case& c) {
  Candidate k;
  return c.missed.empty() ? kUnknown : bound(result, c, c.missed.back(), k);
}

// Of one replica of the kind, as the case is deployed.
double ceiling_of(const serving::Deployed& deployed, const serving::Load& load, const serving::Slo& slo, bool decode) {
  serving::Deployed one = deployed;
  (decode ? one.deployment.pool.replicas : one.deployment.decode->replicas) = kPlenty;
  return serving::closed_form(one, load, slo).ceiling;
}

// What a queue leaves of a replica's ceiling: where requests that each take s wait for one another, as they do for the
// steps of their prompts, 99 of 100 wait less than ln(100) s u / 2 (1 - u) of utilisation u, which is what a bound on
// TTFT has room for beside s. It says who is looked at first, and no more.
double likely_rate(const serving::ClosedForm& closed, const serving::Slo& slo) {
  if (!closed.alike) return closed.ceiling;
  const double tail = std::log(100.0) / 2;
  double share = 1;
  for (const serving::Bound& b : slo) {
    if (b.metric != serving::Metric::ttft) continue;
    const double room = std::max(0.0, (b.limit - closed.ttft) / closed.ttft) / tail;
    share = std::min(share, room / (1 + room));
  }
  return closed.ceiling * share;
}

// A trace that is sent at the rate asked for, and lengths that the closed form may take for its requests'.
void send(serving::Load& load, const std::shared_ptr<const serving::Trace>& trace) {
  const auto fixed = [](double mean) { return serving::Lengths{serving::Lengths::Kind::fixed, std::round(mean), 0}; };
  const serving::Workload& all = trace->workload;
  load.trace = trace;
  load.input = fixed(all.mean_input());
  load.output = fixed(all.mean_output());
  load.prefix.tokens = std::llround(serving::mean_known_tokens(all));
  load.requests = static_cast<std::int64_t>(all.requests.size());
  load.extends = false;
}

// A replica whose engine sleeps: its weights wait in the host's memory (vLLM's level 1) and come over each device's
// link, or they come from what stores them for the whole server (level 2).
void wake(const CapacityResult& result, const estimate::Setup& setup, Bytes weights, Candidate& k) {
  const auto& link = setup.device->host_link;
  if (!result.storage && !link)
    throw Error::bad_input(fmt::format("`scale-time` wake: {} has no link to a host", k.hardware), "`scale-time` 60s");
  const std::int64_t sharers = result.storage ? std::min(k.replica_devices, setup.cluster.devices_per_node) : 1;
  const BytesPerSecond rate = result.storage ? *result.storage : link->per_direction;
  k.start = weights * d(sharers) / rate;
  if (k.start.value > result.part_hours() * 3600) {
    throw Error::infeasible(
        fmt::format("`scale-time` wake: {} to wake, longer than a part of the day", format_seconds(k.start)),
        "`scale-time` wake, or of quicker storage");
  }
  k.start_formula = fmt::format("{} x {} of weights / {} of {}", sharers, format_bytes(weights), format_bandwidth(rate),
                                result.storage ? "storage" : "the host's link");
}

void screen(const CapacityResult& result, Sources& sources, const Request& request,
            const std::shared_ptr<const serving::Trace>& trace, Case& c) {
  Candidate& k = c.candidate;
  k.request = request;
  try {
    c.resolved = request::resolve_serving(request, sources);
    c.traffic = request::read_traffic(*c.resolved);
    if (trace) send(c.traffic.load, trace);
    const estimate::Setup& setup = c.resolved->setup();
    k.hardware = setup.device->name;
    k.plan = graph::to_text(setup.execution.plan);
    k.weights = setup.execution.weights.name;
    k.replica_devices = setup.execution.plan.devices();
    k.profile = setup.profile ? setup.profile->name : "none";
    const auto foreign = [](const estimate::Setup& s) {
      return s.profile == nullptr || !s.profile->measured_on(*s.device);
    };
    const estimate::Setup& decode = decode_setup_of(c);
    k.extrapolated = foreign(setup) || foreign(decode);
    const auto tokens = static_cast<std::int64_t>(c.traffic.load.input.mean() + c.traffic.load.output.mean());
    if (c.apart) c.traffic.replicas.prefill = c.traffic.replicas.decode = 1;
    if (c.resolved->decode) {
      k.decode_plan = graph::to_text(decode.execution.plan);
      k.decode_hardware = decode.device->name;
    }
    if (c.fleet > 0 && k.replica_devices > c.fleet) {
      throw Error::infeasible(fmt::format("takes {} devices, and there are {}", k.replica_devices, c.fleet), "");
    }
    c.deployed = request::deploy(*c.resolved, c.traffic, serving::choose_engine(c.traffic.engine, setup), tokens);
    k.start = result.scale_time;
    if (result.wakes) wake(result, setup, c.deployed->kv.weights, k);
    k.binding = serving::Binding::length;
    requests_of(c.traffic, c.traffic.load.seed, c.resolved->model(), c.deployed->settings);
    k.engine = std::string(name(c.deployed->settings.kind));
    if (!c.deployed->settings.version.empty()) k.engine += "@" + c.deployed->settings.version;
    const serving::ClosedForm closed = serving::closed_form(*c.deployed, c.traffic.load, result.slo);
    if (c.apart) {
      c.prompt_ceiling = ceiling_of(*c.deployed, c.traffic.load, result.slo, false);
      c.decode_ceiling = ceiling_of(*c.deployed, c.traffic.load, result.slo, true);
      c.prompts = c.decodes = true;
      for (const serving::Bound& b : result.slo) {
        if (!closed.alike) break;
        if (b.metric == serving::Metric::ttft) c.prompts = c.prompts && closed.ttft <= b.limit;
        if (b.metric == serving::Metric::tpot) c.decodes = c.decodes && closed.tpot <= b.limit;
      }
    }
    const double output = c.traffic.load.output.mean();
    k.binding = closed.misses(result.slo, output);
    if (k.binding != serving::Binding::none) {
      k.why = fmt::format("a request alone has a TTFT of {} and a TPOT of {}", format_seconds(closed.ttft),
                          format_seconds(closed.tpot));
      c.alone = 0;  // of the bound that it exceeds most
      for (const serving::Bound& b : result.slo) c.alone = std::max(c.alone, closed.share_of(b, output));
      return;
    }
    // Of a fleet that is dealt to both kinds the ceiling is that of all.
    if (c.apart) c.splits = splits_of(c, c, c.decode_fleet);
    k.ceiling = c.apart && c.fleet > 0 ? widest(c.splits).ceiling : closed.ceiling;
    if (k.ceiling <= 0) throw Error::infeasible("the fleet has no room for replicas of both kinds", "");
    c.missed = {k.ceiling};
    c.likely = likely_rate(closed, result.slo) * (k.ceiling / closed.ceiling);
  } catch (const Error& error) {
    c.error = error;
    k.why = error.diagnostics().front().message;
    if (error.kind() == ErrorKind::infeasible) k.binding = serving::Binding::memory;
  }
}

bool stopped(const std::atomic<bool>* stop) { return stop != nullptr && stop->load(); }

// What a deployment does with the load: of as many seeds as are asked for the run that exceeds the bounds most.
serving::Summary judged(const CapacityResult& result, Case& c, const serving::Deployment& deployment,
                        serving::Load load, const std::atomic<bool>* stop) {
  std::optional<serving::Summary> worst;
  for (std::int64_t i = 0; i < c.traffic.seeds; ++i, ++load.seed) {
    const serving::Verdict v = serving::judge(deployment, load, result.slo, false, stop);
    c.simulations += v.simulations;
    const auto rank = [&](const serving::Summary& of) { return std::pair(!of.stable, of.excess(result.slo)); };
    if (!worst || rank(v.summary) > rank(*worst)) worst = v.summary;
  }
  return *worst;
}

// As many replicas of one kind as the rate needs, unless they turn out not to be of interest.
void search_replicas(const CapacityResult& result, Case& c, const std::function<bool()>& worthwhile,
                     const std::atomic<bool>* stop) {
  Candidate& k = c.candidate;
  const auto goes_on = [&](double missed) {
    c.missed.push_back(missed);
    return worthwhile();
  };
  const serving::Capacity found =
      serving::max_rate(*c.deployed, c.traffic.load, result.slo, {.worthwhile = goes_on, .stop = stop});
  std::erase_if(c.missed, [&](double rate) { return rate <= found.requests_per_second; });
  c.simulations += found.simulations;
  k.max_requests_per_second = found.requests_per_second;
  k.ceiling = std::max(k.ceiling, found.requests_per_second);
  k.binding = found.binding;
  k.cause = found.cause;
  k.at = found.at;
  k.meets = found.requests_per_second > 0 && worthwhile();
  if (!k.meets) return;
  if (result.minimise == result::Minimise::rate) {
    k.replicas = c.fleet / k.replica_devices;
    k.requests_per_second = found.requests_per_second * d(k.replicas);
    return;
  }
  k.replicas = static_cast<std::int64_t>(std::ceil(result.rate / found.requests_per_second * (1 - 1e-9)));
  // The answer is held against all seeds; where they do not meet the bounds a replica more shares the rate, of many as
  // many as take off what the search is unsure of.
  for (int more = 0; more < 4; ++more, k.replicas += divide_up(k.replicas, kFew)) {
    serving::Load load = c.traffic.load;
    load.rate = result.rate / d(k.replicas);
    k.at = judged(result, c, c.deployed->deployment, load, stop);
    k.meets = k.at->meets(result.slo);
    if (k.meets || stopped(stop) || !goes_on(*load.rate)) break;
  }
}

// Replicas of prompts and of decode: at first as many as keep each of the two busy for four fifths of the time, then
// one more of the kind whose bound is exceeded.
void search_apart(const CapacityResult& result, Case& c, const std::atomic<bool>* stop) {
  Candidate& k = c.candidate;
  serving::Deployment deployment = c.deployed->deployment;
  const auto busy = [&](double most) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(result.rate / (0.8 * most))));
  };
  k.replicas = busy(c.prompt_ceiling);
  k.decode_replicas = busy(c.decode_ceiling);
  serving::Load load = c.traffic.load;
  load.rate = result.rate;
  const auto run = [&] {
    deployment.pool.replicas = k.replicas * c.deployed->deployment.pool.replicas;
    deployment.decode->replicas = k.decode_replicas * c.deployed->deployment.decode->replicas;
    return judged(result, c, deployment, load, stop);
  };
  for (int more = 0; more < 24 && !stopped(stop); ++more) {
    const serving::Summary s = run();
    k.at = s;
    k.meets = s.meets(result.slo);
    if (k.meets) break;
    double prompts = 0;
    double decodes = 0;
    for (const serving::Bound& b : result.slo) {
      const std::optional<double> value = s.value(b);  // requests are rejected where prompts are computed
      double& most = !value || b.metric == serving::Metric::ttft ? prompts : decodes;
      most = std::max(most, value.value_or(1e9) / b.limit.value);
    }
    k.binding = prompts > decodes ? serving::Binding::ttft : serving::Binding::tpot;
    ++(prompts > decodes ? k.replicas : k.decode_replicas);
  }
  k.max_requests_per_second = k.meets ? result.rate : 0;
  // What was one more than is needed of the other kind.
  for (const auto& [count, ceiling] :
       {std::pair{&k.replicas, c.prompt_ceiling}, {&k.decode_replicas, c.decode_ceiling}}) {
    std::int64_t most = *count;
    std::int64_t too_few = static_cast<std::int64_t>(std::floor(result.rate / ceiling * (1 - 1e-9)));
    while (k.meets && most - too_few > 1 && !stopped(stop)) {
      *count = too_few + (most - too_few) / 2;
      const serving::Summary s = run();
      const bool meets = s.meets(result.slo);
      (meets ? most : too_few) = *count;
      if (meets) k.at = s;
    }
    *count = most;
  }
}

// The split of a fleet that takes the highest rate: from the one that no queue survives longest to those beside it, by
// ever smaller steps, as prompts hold back the ones and decode the others. What cannot be better is left out.
void search_splits(const CapacityResult& result, Case& c, const std::function<bool()>& worthwhile,
                   const std::atomic<bool>* stop) {
  Candidate& k = c.candidate;
  const std::vector<Split>& splits = c.splits;
  double above = 1;  // a rate that was found, over the closed form's ceiling
  const auto better = [&](std::size_t i) {
    const Split& split = splits[i];
    if (stopped(stop) || split.ceiling * above <= k.requests_per_second) return false;
    serving::Deployed deployed = *c.deployed;
    deployed.deployment.pool.replicas *= split.prompts;
    deployed.deployment.decode->replicas *= split.decodes;
    const auto goes_on = [&](double missed) { return missed > k.requests_per_second; };
    const serving::Capacity found =
        serving::max_rate(deployed, c.traffic.load, result.slo, {.worthwhile = goes_on, .stop = stop});
    c.simulations += found.simulations;
    above = std::max(above, found.requests_per_second / split.ceiling);
    k.ceiling = std::max(k.ceiling, found.requests_per_second);
    std::erase_if(c.missed, [&](double missed) { return missed <= found.requests_per_second; });
    if (k.replicas > 0 && found.requests_per_second <= k.requests_per_second) return false;
    k.replicas = split.prompts;
    k.decode_replicas = split.decodes;
    k.requests_per_second = k.max_requests_per_second = found.requests_per_second;
    k.binding = found.binding;
    k.cause = found.cause;
    k.at = found.at;
    return true;
  };
  auto at = static_cast<std::size_t>(std::ranges::max_element(splits, {}, &Split::ceiling) - splits.begin());
  better(at);
  for (std::size_t step = std::max<std::size_t>(1, splits.size() / 8); step > 0; step /= 2) {
    while (at + step < splits.size() && better(at + step)) at += step;
    while (at >= step && better(at - step)) at -= step;
  }
  k.meets = k.requests_per_second > 0 && worthwhile();
}

// Every combination of the lists of a request; what serves prompts and decode apart is another.
class Search {
 public:
  Search(const CapacityQuery& query, Sources& sources, const std::atomic<bool>* stop,
         const std::function<void(std::size_t, std::size_t)>& progress)
      : query_(query), sources_(sources), stop_(stop), progress_(progress) {}
  CapacityResult run() {
    read();
    list_cases();
    screen_all();
    pair_pools();
    order();
    for_all([&](std::size_t i) { simulate(cases_[i]); });
    conclude();
    rank();
    return std::move(result_);
  }

 private:
  void read();
  void read_fleet();
  void read_day(const serving::Trace& all);
  struct Shape {
    Text tp;
    std::int64_t pp, dp, ep;
  };
  std::vector<Shape> shapes(const std::string& hw, std::int64_t most);
  std::vector<Text> weights(const std::string& hw);
  void list_cases();
  void add_case(Request one, const Text& engine, bool apart, std::int64_t there_are);
  void screen_all();
  void pair_pools();
  void order();
  void simulate(Case& c);
  bool search(Case& c);
  void conclude();
  void rank();

  template <class Work>
  void for_all(const Work& work) {
    in_parallel(cases_.size(), query_.threads, [&](std::size_t i) {
      if (!stopped(stop_)) work(i);
    });
  }
  bool all_devices() const { return query_.request.hw.value_or("all") == "all"; }
  // What nobody asked for by name and has no price is not ranked by it. A rate counts as negative, the highest is best.
  bool far(double value) const {
    return value > (best_ < 0 ? best_ / kNear : kNear * best_) && (all_devices() || value != kUnknown);
  }
  double value_of(const Candidate& k) const { return k.objective(result_.minimise).value_or(kUnknown); }

  const CapacityQuery& query_;
  Sources& sources_;
  const std::atomic<bool>* stop_;
  const std::function<void(std::size_t, std::size_t)>& progress_;
  CapacityResult result_;
  std::shared_ptr<const serving::Trace> trace_;
  std::vector<std::pair<std::string, std::int64_t>> fleet_;  // devices, and how many there are
  std::vector<Request> requests_;                            // of each case
  std::vector<Case> cases_;
  std::atomic<double> best_ = kUnknown;
  std::mutex telling_;
};

void Search::read() {
  const Request& q = query_.request;
  result_.asked = q;
  result_.minimise = query_.minimise;
  read_fleet();
  if (query_.dp == "auto" && !(query_.ep + query_.pp).empty()) {
    throw Error::bad_input("`dp` auto chooses what shares the experts, and stages", "leave out `ep` and `pp`");
  }
  const bool traced = query_.day == "trace";
  if (traced && !q.trace) throw Error::bad_input("`day` trace: of which trace", "`trace` FILE, or rates: 2,1,1,4,9,7");
  const std::int64_t most = q.requests.value_or(kTraced);
  serving::Trace trace = q.trace ? serving::load_trace(*q.trace, traced ? 0 : most) : serving::Trace();
  if (traced) read_day(trace);
  for (const std::string& part : parts_of(traced ? "" : query_.day)) {
    constexpr double kMost = 1e6;
    result_.day.push_back(request::number_value("`day`", part, 0, kMost));
  }
  const double peak = result_.day.empty() ? 0 : std::ranges::max(result_.day);
  if (!query_.day.empty() && (q.rate || !query_.fleet.empty() || peak <= 0)) {
    throw Error::bad_input("`day`: the highest of its rates is what is to be served",
                           "rates of which one is above 0, without `rate` and `fleet`");
  }
  if (const std::string& text = query_.scale_time; !text.empty()) {
    constexpr std::string_view kStored = "wake:";
    result_.wakes = text == "wake" || text.starts_with(kStored);
    if (text.starts_with(kStored)) result_.storage = parse_bytes_per_second(text.substr(kStored.size()));
    const std::optional<Seconds> time = result_.wakes ? Seconds{} : parse_seconds(text);
    if (!time || time->value < 0 || result_.day.empty() || time->value > result_.part_hours() * 3600 ||
        (text.starts_with(kStored) && !(result_.storage && result_.storage->value > 0))) {
      throw Error::bad_input("`scale-time` is a time, of a `day`, and no longer than one of its parts",
                             "`day` 2,1,1,4,9,7 and `scale-time` 180s, wake (weights wait in the host's memory) or "
                             "wake:7GB/s (of a server's storage)");
    }
    result_.scale_time = *time;
  }
  if (!q.rate && query_.fleet.empty() && peak <= 0) {
    throw Error::bad_input("nothing says what is to be served",
                           "`rate` 20 (requests per second), what there is: `fleet`, or a `day` of rates");
  }
  if (!q.slo) throw Error::bad_input("nothing says what is promised", "`slo` ttft.p99=1s,tpot.p95=50ms");
  result_.rate = q.rate.value_or(peak);
  result_.api_price = read_price(query_.api_price);
  result_.slo = serving::parse_slo(*q.slo);
  request::check_capacity(q, query_.disaggregated);
  for (const std::string& weights : parts_of(q.weights.value_or(""))) {
    if (model::gguf_weights(weights) == nullptr) model::parse_weight_scheme(weights);
  }
  for (const std::string& engine : parts_of(q.engine.value_or(""))) serving::parse_engine_kind(engine);
  if (!q.trace) return;
  if (traced) trace = serving::first_of(trace, most);
  if (sources_.model(*q.model).decoder.encoder) serving::read_alone(trace);
  trace_ = std::make_shared<const serving::Trace>(std::move(trace));
  result_.notes = trace_->notes;
  if (trace_->timed && (q.burstiness || q.seeds.value_or(1) > 1))
    throw Error::bad_input("`burstiness` and `seeds`: nothing of a trace with times is random", "leave them out");
}

// The hours of a trace with times: how many requests come in each.
void Search::read_day(const serving::Trace& all) {
  constexpr double kHour = 3600;
  constexpr double kMostHours = 24 * 31;
  const std::vector<serving::Request>& sent = all.workload.requests;
  const Seconds begin = sent.front().sent;
  const double span = (sent.back().sent - begin).value;
  if (!all.timed || span > kMostHours * kHour || span <= 0) {
    throw Error::bad_input(!all.timed ? "`day`: the trace has no times"
                           : span > 0 ? fmt::format("`day`: the trace is longer than {} days", kMostHours / 24)
                                      : "`day`: all requests of the trace are sent at once",
                           "rates: 2,1,1,4,9,7");
  }
  // Equal parts of about an hour; of less than one and a half hours one.
  const double parts = std::max(1.0, std::round(span / kHour));
  result_.day.assign(static_cast<std::size_t>(parts), 0);
  for (const serving::Request& r : sent) {
    const double at = (r.sent - begin).value / span * parts;
    result_.day[std::min(result_.day.size() - 1, static_cast<std::size_t>(at))] += parts / span;
  }
  result_.day_hours = span / kHour;
}

// "16xh200-sxm": of each kind how many there are.
void Search::read_fleet() {
  if (query_.fleet.empty()) return;
  const Request& q = query_.request;
  result_.minimise = result::Minimise::rate;
  if (q.rate) throw Error::bad_input("`fleet` asks for the highest rate, and `rate` says one", "leave one of them out");
  if (q.hw) throw Error::bad_input("`fleet` and `hw` both name devices", "leave out `hw`");
  for (const std::string& part : parts_of(query_.fleet)) {
    const std::size_t x = part.find('x');
    const auto count = x == std::string::npos ? std::nullopt : parse_int(part.substr(0, x));
    if (!count || *count < 1 || *count > kPlenty) {
      throw Error::bad_input(fmt::format("`fleet`: {} is no number of devices and their name", quote(part)),
                             "16xh200-sxm, or 16xh200-sxm,8xh100-sxm");
    }
    fleet_.emplace_back(part.substr(x + 1), *count);
  }
  if (fleet_.empty()) throw Error::bad_input("`fleet`: no device is named", "16xh200-sxm");
}

// Those that the request names; else those that are usual.
std::vector<Search::Shape> Search::shapes(const std::string& hw, std::int64_t most) {
  const Request& q = query_.request;
  const hardware::Device& device = sources_.device(hw);
  const std::int64_t node = std::max<std::int64_t>(device.devices_per_node, 1);
  const bool named = q.tp || q.ep || q.dp || q.pp || !(query_.ep + query_.dp + query_.pp).empty();
  const model::Decoder& model = sources_.model(*q.model).decoder;
  std::vector<Shape> list;
  const auto powers = [](std::int64_t first, std::int64_t last) {
    std::vector<std::int64_t> all;
    for (std::int64_t n = first; n <= last; n *= 2) all.push_back(n);
    return all;
  };
  constexpr std::int64_t kNodes = 4;
  const std::int64_t wide = most > 0 ? most : kNodes * node;
  const bool automatic = query_.dp == "auto";
  std::vector<Text> tensor = texts_of(q.tp);
  if (tensor.empty()) {
    for (const std::int64_t tp : powers(1, node)) tensor.emplace_back(std::to_string(tp));
  }
  if (named && !automatic) {
    // Devices that serve sequences of their own are no reason to try all widths of the tensor axis as well.
    const bool own = !q.tp && (q.dp.value_or(1) > 1 || !query_.dp.empty());
    if (own) tensor = {Text("1")};
    const std::vector<std::int64_t> pipeline = degrees_of("`pp`", query_.pp, q.pp);
    const std::vector<std::int64_t> data = degrees_of("`dp`", query_.dp, q.dp);
    const std::vector<std::int64_t> expert = degrees_of("`ep`", query_.ep, q.ep);
    for (const Text& tp : tensor) {
      for (const std::int64_t pp : pipeline) {
        for (const std::int64_t dp : data) {
          for (const std::int64_t ep : expert) list.push_back({tp, pp, dp, ep});
        }
      }
    }
    return list;
  }
  for (const Text& tp : tensor) list.push_back({tp, 1, 1, 1});
  const std::vector<std::string> schemes = parts_of(q.weights.value_or(""));
  const bool dealt =
      std::ranges::none_of(schemes, [](const std::string& w) { return model::gguf_weights(w) != nullptr; });
  if (model.has_experts() && dealt) {
    for (const std::int64_t n : powers(2, node)) {
      if (!q.tp) list.push_back({std::to_string(n), 1, 1, n});
    }
    for (const std::int64_t n : powers(2, wide)) list.push_back({Text("1"), 1, n, n});
  }
  constexpr double kNarrow = 8;
  if (!fits_a_node(model, device, kNarrow)) {
    for (const std::int64_t pp : powers(2, kNodes)) list.push_back({std::to_string(node), pp, 1, 1});
  }
  return list;
}

// Those that the request names; else the checkpoint's own, and of wide ones what the device multiplies in fewer bits.
std::vector<Text> Search::weights(const std::string& hw) {
  std::vector<Text> list = texts_of(query_.request.weights);
  if (!list.empty()) return list;
  list.emplace_back(std::nullopt);
  const hardware::Device& device = sources_.device(hw);
  const model::ModelFile& file = sources_.model(*query_.request.model);
  const bool wide = !file.weights && !file.stored && !request::trained_weights(file.decoder) && !file.decoder.encoder;
  if (!wide || device.kind != hardware::DeviceKind::gpu || query_.request.engine) return list;
  if (device.find_peak(hardware::Engine::matrix, Dtype::fp8)) list.emplace_back("fp8");
  list.emplace_back("w4a16");
  return list;
}

void Search::list_cases() {
  const Request& q = query_.request;
  std::vector<Text> engines = texts_of(q.engine);
  if (engines.empty()) engines.emplace_back(std::nullopt);
  std::vector<std::pair<std::string, std::int64_t>> kinds = fleet_;
  if (kinds.empty()) {
    for (std::string& hw : devices_of(q.hw.value_or("all"), sources_)) kinds.emplace_back(std::move(hw), 0);
  }
  for (const auto& [hw, there_are] : kinds) {
    const std::vector<Text> formats = weights(hw);
    for (const Shape& shape : shapes(hw, there_are)) {
      for (const Text& scheme : formats) {
        for (const Text& engine : engines) {
          Request one = q;
          one.hw = hw;
          one.tp = shape.tp;
          const auto degree = [](std::int64_t n) { return n > 1 ? std::optional(n) : std::nullopt; };
          one.pp = degree(shape.pp);
          one.dp = degree(shape.dp);
          one.ep = degree(shape.ep);
          one.weights = scheme;
          if (!one.rate) one.rate = result_.rate > 0 ? result_.rate : 1;  // any: the highest is looked for
          add_case(one, engine, false, there_are);
          if (query_.disaggregated) add_case(std::move(one), engine, true, there_are);
        }
      }
    }
  }
  if (cases_.empty()) throw Error::bad_input("`hw`: no device is named", "`hw` h100-sxm,h200-sxm, or all");
}

void Search::add_case(Request one, const Text& engine, bool apart, std::int64_t there_are) {
  one.engine = engine;
  one.trace.reset();
  one.devices.reset();  // of all replicas
  if (apart) {
    one.prefill_replicas = one.decode_replicas = 2;  // found later; of one there is nothing to route
  } else {
    for (Text* of_both : {&one.kv_link, &one.kv_transfer, &one.decode_plan, &one.decode_hw}) of_both->reset();
    if (one.dp.value_or(1) == 1) one.router.reset();
  }
  cases_.emplace_back().apart = apart;
  cases_.back().fleet = there_are;
  Candidate& k = cases_.back().candidate;
  k.hardware = *one.hw;
  k.plan = one.tp ? "tp " + *one.tp : "";
  k.weights = one.weights.value_or("");
  k.engine = engine.value_or("");
  requests_.push_back(std::move(one));
}

void Search::screen_all() {
  for_all([&](std::size_t i) { screen(result_, sources_, requests_[i], trace_, cases_[i]); });
  // Where nothing could be read at all, what is wrong is wrong with the request.
  if (std::ranges::all_of(cases_, [](const Case& c) { return c.error && c.error->kind() == ErrorKind::bad_input; }))
    throw Error(*cases_.front().error);
  const auto read = std::ranges::find_if(cases_, [](const Case& c) { return c.traffic.load.rate.has_value(); });
  if (read != cases_.end()) result_.load = read->traffic.load;
}

// Pools for prompts and for decode of unlike plans, or on unlike devices, where both multiply the same weights by the
// same engine: of all pairs those that cost least by the closed form, if that is less than one pool costs for both.
void Search::pair_pools() {
  if (query_.request.decode_plan || query_.request.decode_hw) return;  // there is nothing to choose
  constexpr std::size_t kMost = 12;
  struct Pair {
    double value;
    std::size_t prompts, decodes;
  };
  std::vector<Pair> pairs;
  // Of what is minimised, for so many replicas of the case as one kind.
  const auto value = [&](const Case& c, double ceiling) {
    Candidate k;
    k.replica_devices = c.candidate.replica_devices;
    k.replicas = sharing(result_.rate, ceiling);
    price(result_, c, k);
    return value_of(k);
  };
  const auto other_kind = [&](std::size_t i, std::size_t j) {
    return cases_[i].candidate.request.hw == cases_[j].candidate.request.hw ? 0 : cases_[j].fleet;
  };
  double one_plan = kUnknown;
  std::vector<double> for_prompts(cases_.size(), kUnknown), for_decode(cases_.size(), kUnknown);
  const auto value_of_both = [&](std::size_t i, std::size_t j) {
    if (fleet_.empty() || !cases_[i].prompts || !cases_[j].decodes) return for_prompts[i] + for_decode[j];
    const double rate = widest(splits_of(cases_[i], cases_[j], other_kind(i, j))).ceiling;
    return rate > 0 ? -rate : kUnknown;
  };
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    const Case& c = cases_[i];
    if (c.prompts) for_prompts[i] = value(c, c.prompt_ceiling);
    if (c.decodes) for_decode[i] = value(c, c.decode_ceiling);
    one_plan = std::min(one_plan, value_of_both(i, i));
  }
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    for (std::size_t j = 0; j < cases_.size(); ++j) {
      const double both = value_of_both(i, j);
      if (i == j || !(both < one_plan)) continue;
      const Candidate& one = cases_[i].candidate;
      const Candidate& other = cases_[j].candidate;
      const bool alike =
          one.weights == other.weights && one.engine == other.engine &&
          cases_[i].resolved->setup().execution.kv.name() == cases_[j].resolved->setup().execution.kv.name();
      if (alike) pairs.push_back({both, i, j});
    }
  }
  std::ranges::stable_sort(pairs, {}, &Pair::value);
  if (pairs.size() > kMost) pairs.resize(kMost);
  const std::size_t first = cases_.size();
  for (const Pair& pair : pairs) {
    Request one = cases_[pair.prompts].candidate.request;
    const Request& other = cases_[pair.decodes].candidate.request;
    if (other.hw != one.hw) one.decode_hw = other.hw;
    std::string plan = "tp " + other.tp.value_or("1");
    for (const auto& [axis, degree] : {std::pair{"pp", other.pp}, {"dp", other.dp}, {"ep", other.ep}}) {
      if (degree) plan += fmt::format(" {} {}", axis, *degree);
    }
    one.decode_plan = plan;
    const Text engine = one.engine;
    add_case(std::move(one), engine, true, cases_[pair.prompts].fleet);
    cases_.back().decode_fleet = other_kind(pair.prompts, pair.decodes);
  }
  in_parallel(pairs.size(), query_.threads, [&](std::size_t i) {
    if (!stopped(stop_)) screen(result_, sources_, requests_[first + i], trace_, cases_[first + i]);
  });
}

// By what each is likely to cost.
void Search::order() {
  std::ranges::stable_sort(cases_, {}, [&](const Case& c) {
    Candidate k;
    const double cost = c.likely > 0 ? bound(result_, c, c.likely, k) : kUnknown;
    return std::tuple(cost, least(result_, c), c.alone);
  });
}

// Whether it came to an end.
bool Search::search(Case& c) {
  Candidate& k = c.candidate;
  const auto worthwhile = [&] { return !far(least(result_, c)); };
  if (k.ceiling <= 0 || !worthwhile()) return true;
  try {
    if (c.apart && c.fleet > 0) {
      search_splits(result_, c, worthwhile, stop_);
    } else if (c.apart) {
      search_apart(result_, c, stop_);
    } else {
      search_replicas(result_, c, worthwhile, stop_);
    }
  } catch (const Error& error) {  // a request that the cache has no room for
    c.error = error;
    k.why = error.diagnostics().front().message;
    k.binding = serving::Binding::length;
    k.ceiling = 0;
  }
  if (stopped(stop_)) return false;  // a run that ended early says nothing
  k.simulated = !c.error;
  if (k.meets) price(result_, c, k);
  const std::int64_t there_are = c.fleet > 0 ? c.fleet + c.decode_fleet : query_.request.devices.value_or(k.devices);
  if (k.meets && k.devices > there_are) {
    k.meets = false;
    k.why = fmt::format("takes {} devices, and there are {}", k.devices, there_are);
  }
  if (!k.meets) unprice(k);
  if (!k.simulated || !k.meets) return true;
  const double value = value_of(k);
  for (double best = best_; value < best && !best_.compare_exchange_weak(best, value);) {
  }
  return true;
}

void Search::simulate(Case& c) {
  if (!search(c)) return;
  c.deployed.reset();
  c.done = true;
  const std::scoped_lock lock(telling_);
  ++result_.done;
  if (progress_) progress_(result_.done, cases_.size());
}

// How much of those that are far was simulated hangs on how soon others were done, which is chance. What is said of
// them is the first rate that shows it; of one that was stopped nothing is known.
void Search::conclude() {
  result_.interrupted = stopped(stop_);
  for (Case& c : cases_) {
    Candidate& k = c.candidate;
    const auto shown = std::ranges::find_if(c.missed, [&](double missed) {
      Candidate one;
      return far(bound(result_, c, missed, one));
    });
    if (k.ceiling > 0 && (!k.simulated || shown != c.missed.end())) {
      k.simulated = k.meets = false;
      k.binding = serving::Binding::none;
      k.cause.reset();
      k.at.reset();
      k.max_requests_per_second = 0;
      k.decode_replicas = 0;
      const double value = bound(result_, c, shown != c.missed.end() ? *shown : k.ceiling, k);
      if (!c.done) {
        k.why = "interrupted";
      } else if (all_devices() && value == kUnknown) {
        k.why = fmt::format("no {} is known", result_.minimise == result::Minimise::energy ? "board power" : "price");
      }
    } else if (!c.done && !c.error) {
      k.why = "interrupted";
    }
    if (k.simulated) result_.simulations += c.simulations;
    if (k.at) k.bounds = result::bounds_at(result_.slo, *k.at, k.at->stable);
    result_.candidates.push_back(std::move(k));
  }
}

// Those that meet by what is minimised, the quicker of two that take the same first; then those that were not near,
// then by how close they come.
void Search::rank() {
  std::ranges::stable_sort(result_.candidates, {}, [&](const Candidate& k) {
    const int group = k.meets ? 0 : k.ceiling > 0 && !k.simulated ? 1 : k.simulated ? 2 : 3;
    const double value = group == 2 && k.at ? k.at->excess(result_.slo) : value_of(k);
    return std::tuple(group, value, group == 0 && k.at ? k.at->e2e.mean : 0, k.devices);
  });
  const Candidate* best = result_.best();
  if (best != nullptr && result_.minimise == result::Minimise::rate) result_.rate = best->requests_per_second;
  double quickest = kUnknown;
  for (Candidate& k : result_.candidates) {
    if (!k.meets || !k.objective(result_.minimise)) continue;
    if (best->objective(result_.minimise)) k.beyond_best = std::abs(value_of(k) / value_of(*best) - 1);
    if (!k.at) continue;
    k.pareto = k.at->e2e.mean < quickest;
    quickest = std::min(quickest, k.at->e2e.mean);
  }
}

}  // namespace

CapacityResult search_capacity(const CapacityQuery& query, Sources& sources, const std::atomic<bool>* stop,
                               const std::function<void(std::size_t, std::size_t)>& progress) {
  return Search(query, sources, stop, progress).run();
}

}  // namespace llmperf::service
