#include "request/capacity_search.h"

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
#include "model/quantization.h"
#include "model/weight_layout.h"
#include "request/resolve.h"

namespace llmperf::request {
namespace {

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

// Names that a list stands for; "all" are the GPUs.
std::vector<std::string> devices_of(const std::string& text, Sources& sources) {
  if (text != "all") return parts_of(text);
  std::vector<std::string> names;
  for (const std::string& name : descriptor::names(descriptor::Kind::device)) {
    if (sources.device(name).kind == hardware::DeviceKind::gpu) names.push_back(name);
  }
  return names;
}

// A candidate and all that its simulation needs.
struct Case {
  Candidate candidate;
  std::unique_ptr<Resolved> resolved;
  std::optional<serving::Deployed> deployed;
  std::optional<Error> error;  // why there is none
  Traffic traffic;
  bool apart = false;
  double alone = kUnknown;  // how far a request by itself exceeds a bound, of what is ruled out by that
  bool done = false;
  // Rates that a replica does not take: what is beyond its ceiling, and then what simulations showed.
  std::vector<double> missed;
  std::int64_t simulations = 0;
};

const estimate::Setup& setup_of(const Case& c) { return std::get<Generation>(c.resolved->work).estimator->setup(); }

void price(const CapacityResult& result, const Case& c, Candidate& k) {
  const estimate::Setup& setup = setup_of(c);
  k.devices = (k.replicas + k.decode_replicas) * k.replica_devices;
  const double output = result.rate * c.traffic.load.output.mean();  // tokens per second
  const auto devices = d(k.devices);
  k.cost_per_hour.reset();
  if (setup.price) {
    k.currency = setup.price->currency;
    k.cost_per_hour = estimate::cost_per_hour<double>(setup.price->amount, devices, k.currency);
    k.cost_per_million_output_tokens = estimate::cost_per_million<double>(*k.cost_per_hour, output);
  }
  if (setup.device->power_w) {
    k.power_w = *setup.device->power_w * devices;
    k.joules_per_output_token = *k.power_w / output;
  }
}

// Of what does not meet the bounds no number of replicas serves the rate.
void unprice(Candidate& k) {
  k.replicas = k.decode_replicas = k.devices = 0;
  for (std::optional<double>* number :
       {&k.cost_per_hour, &k.cost_per_million_output_tokens, &k.power_w, &k.joules_per_output_token})
    number->reset();
}

// As many replicas as share the rate at less than `missed` each: of what is minimised that is the least.
double bound(const CapacityResult& result, const Case& c, double missed, Candidate& k) {
  k.replica_devices = c.candidate.replica_devices;
  k.replicas = static_cast<std::int64_t>(std::floor(result.rate / missed * (1 + 1e-9))) + 1;
  price(result, c, k);
  return k.objective(result.minimise).value_or(kUnknown);
}
double least(const CapacityResult& result, const Case& c) {
  Candidate k;
  return c.missed.empty() ? kUnknown : bound(result, c, c.missed.back(), k);
}

// How far a request alone exceeds the bound that it exceeds most.
double excess_alone(const serving::ClosedForm& closed, const serving::Slo& slo, double output) {
  double most = 0;
  for (const serving::Bound& b : slo) {
    const Seconds alone = b.metric == serving::Metric::ttft  ? closed.ttft
                          : b.metric == serving::Metric::e2e ? closed.ttft + closed.tpot * (output - 1)
                                                             : closed.tpot;
    most = std::max(most, alone / b.limit);
  }
  return most;
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

void screen(const CapacityResult& result, Sources& sources, const Request& request,
            const std::shared_ptr<const serving::Trace>& trace, Case& c) {
  Candidate& k = c.candidate;
  try {
    c.resolved = resolve_serving(request, sources);
    c.traffic = read_traffic(*c.resolved);
    if (trace) send(c.traffic.load, trace);
    const estimate::Setup& setup = setup_of(c);
    k.hardware = setup.device->name;
    k.plan = graph::to_text(setup.execution.plan);
    k.weights = setup.execution.weights.name;
    k.replica_devices = setup.execution.plan.devices();
    k.profile = setup.profile ? setup.profile->name : "none";
    k.extrapolated = setup.profile == nullptr || !setup.profile->measured_on(*setup.device);
    const auto tokens = static_cast<std::int64_t>(c.traffic.load.input.mean() + c.traffic.load.output.mean());
    serving::Replicas replicas = c.traffic.replicas;
    if (c.apart) replicas.prefill = replicas.decode = 1;
    c.deployed = serving::deploy(setup, serving::choose_engine(c.traffic.engine, setup), replicas, tokens);
    k.binding = serving::Binding::length;
    requests_of(c.traffic, c.traffic.load.seed, c.resolved->model(), c.deployed->settings);
    k.engine = std::string(name(c.deployed->settings.kind));
    if (!c.deployed->settings.version.empty()) k.engine += "@" + c.deployed->settings.version;
    const serving::ClosedForm closed = serving::closed_form(*c.deployed, c.traffic.load, result.slo);
    k.binding = closed.misses(result.slo, c.traffic.load.output.mean());
    if (k.binding != serving::Binding::none) {
      k.why = fmt::format("a request alone has a TTFT of {} and a TPOT of {}", format_seconds(closed.ttft),
                          format_seconds(closed.tpot));
      c.alone = excess_alone(closed, result.slo, c.traffic.load.output.mean());
      return;
    }
    k.ceiling = closed.ceiling;
    c.missed = {closed.ceiling};
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
  const auto busy = [&](bool decode) {
    serving::Deployed one = *c.deployed;
    one.deployment.pool.replicas = decode ? kPlenty : 1;
    one.deployment.decode->replicas = decode ? 1 : kPlenty;
    const double most = serving::closed_form(one, c.traffic.load, result.slo).ceiling;
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(result.rate / (0.8 * most))));
  };
  k.replicas = busy(false);
  k.decode_replicas = busy(true);
  serving::Load load = c.traffic.load;
  load.rate = result.rate;
  for (int more = 0; more < 24 && !stopped(stop); ++more) {
    deployment.pool.replicas = k.replicas;
    deployment.decode->replicas = k.decode_replicas;
    const serving::Summary s = judged(result, c, deployment, load, stop);
    k.at = s;
    k.meets = s.meets(result.slo);
    if (k.meets) break;
    double prompts = 0;
    double decodes = 0;
    for (const serving::Bound& b : result.slo) {
      const double excess = s.of(b.metric).of(b.statistic) / b.limit.value;
      (b.metric == serving::Metric::ttft ? prompts : decodes) =
          std::max(b.metric == serving::Metric::ttft ? prompts : decodes, excess);
    }
    k.binding = prompts > decodes ? serving::Binding::ttft : serving::Binding::tpot;
    ++(prompts > decodes ? k.replicas : k.decode_replicas);
  }
  k.max_requests_per_second = k.meets ? result.rate : 0;
}

}  // namespace

std::optional<double> Candidate::objective(Minimise minimise) const {
  switch (minimise) {
    case Minimise::cost: return cost_per_hour;
    case Minimise::devices: return d(devices);
    case Minimise::energy: break;
  }
  return power_w;
}

CapacityResult search_capacity(const CapacityQuery& query, Sources& sources, const std::atomic<bool>* stop,
                               const std::function<void(std::size_t, std::size_t)>& progress) {
  const Request& q = query.request;
  CapacityResult result;
  result.asked = q;
  result.minimise = query.minimise;
  if (!q.rate) throw Error::bad_input("nothing says what is to be served", "`rate` 20 (requests per second)");
  if (!q.slo) throw Error::bad_input("nothing says what is promised", "`slo` ttft.p99=1s,tpot.p95=50ms");
  result.rate = *q.rate;
  result.slo = serving::parse_slo(*q.slo);
  check_capacity(q, query.disaggregated);
  for (const std::string& weights : parts_of(q.weights.value_or(""))) {
    if (model::gguf_weights(weights) == nullptr) model::parse_weight_scheme(weights);
  }
  for (const std::string& engine : parts_of(q.engine.value_or("")))
    serving::parse_engine_kind(std::string_view(engine).substr(0, engine.find('@')));
  std::shared_ptr<const serving::Trace> trace;
  if (q.trace)
    trace = std::make_shared<const serving::Trace>(serving::load_trace(*q.trace, q.requests.value_or(kTraced)));
  if (trace) result.notes = trace->notes;
  if (trace && trace->timed && (q.burstiness || q.seeds.value_or(1) > 1))
    throw Error::bad_input("`burstiness` and `seeds`: nothing of a trace with times is random", "leave them out");

  std::vector<Case> cases;
  const std::vector<std::string> hardware = devices_of(q.hw.value_or("all"), sources);
  const bool all = q.hw.value_or("all") == "all";
  const auto list = [&](const Text& text) {
    std::vector<Text> values;
    if (!text) return std::vector<Text>{std::nullopt};
    for (std::string& item : parts_of(*text)) values.emplace_back(std::move(item));
    return values;
  };
  std::vector<Request> requests;
  for (const std::string& hw : hardware) {
    std::vector<Text> tp = list(q.tp);
    if (!q.tp) {
      tp.clear();
      const std::int64_t node = sources.device(hw).devices_per_node;
      for (std::int64_t n = 1; n <= std::max<std::int64_t>(node, 1); n *= 2) tp.emplace_back(std::to_string(n));
    }
    for (const Text& n : tp) {
      for (const Text& weights : list(q.weights)) {
        for (const Text& engine : list(q.engine)) {
          for (const bool apart : {false, true}) {
            if (apart && !query.disaggregated) continue;
            Request one = q;
            one.hw = hw;
            one.tp = n;
            one.weights = weights;
            one.engine = engine;
            one.trace.reset();
            one.devices.reset();  // of all replicas
            if (apart) {
              one.prefill_replicas = one.decode_replicas = 2;  // found later; of one there is nothing to route
            } else {
              one.kv_link.reset();
              one.kv_transfer.reset();
              if (q.dp.value_or(1) == 1) one.router.reset();
            }
            requests.push_back(std::move(one));
            cases.emplace_back().apart = apart;
            Candidate& k = cases.back().candidate;
            k.hardware = hw;
            k.plan = n ? "tp " + *n : "";
            k.weights = weights.value_or("");
            k.engine = engine.value_or("");
          }
        }
      }
    }
  }
  std::mutex telling;
  const auto for_all = [&](const auto& work) {
    in_parallel(cases.size(), query.threads, [&](std::size_t i) {
      if (!stopped(stop)) work(i);
    });
  };
  if (cases.empty()) throw Error::bad_input("`hw`: no device is named", "`hw` h100-sxm,h200-sxm, or all");
  for_all([&](std::size_t i) { screen(result, sources, requests[i], trace, cases[i]); });
  // Where nothing could be read at all, what is wrong is wrong with the request.
  if (std::ranges::all_of(cases, [](const Case& c) { return c.error && c.error->kind() == ErrorKind::bad_input; }))
    throw Error(*cases.front().error);
  if (const auto read = std::ranges::find_if(cases, [](const Case& c) { return c.traffic.load.rate.has_value(); });
      read != cases.end()) {
    result.load = read->traffic.load;
  }
  std::ranges::stable_sort(cases, {}, [&](const Case& c) { return std::pair(least(result, c), c.alone); });
  std::atomic<double> best = kUnknown;
  // What nobody asked for by name and has no price is not ranked by it.
  const auto far = [&](double value) { return value > kNear * best && (all || value != kUnknown); };
  for_all([&](std::size_t i) {
    Case& c = cases[i];
    Candidate& k = c.candidate;
    const auto worthwhile = [&] { return !far(least(result, c)); };
    if (k.ceiling > 0 && worthwhile()) {
      try {
        if (c.apart) {
          search_apart(result, c, stop);
        } else {
          search_replicas(result, c, worthwhile, stop);
        }
      } catch (const Error& error) {  // a request that the cache has no room for
        c.error = error;
        k.why = error.diagnostics().front().message;
        k.binding = serving::Binding::length;
        k.ceiling = 0;
      }
      if (stopped(stop)) return;  // a run that ended early says nothing
      k.simulated = !c.error;
      if (k.meets) price(result, c, k);
      if (k.meets && k.devices > q.devices.value_or(k.devices)) {
        k.meets = false;
        k.why = fmt::format("takes {} devices, and there are {}", k.devices, *q.devices);
      }
      if (!k.meets) unprice(k);
      if (k.simulated && k.meets) {
        const double value = k.objective(result.minimise).value_or(kUnknown);
        for (double b = best; value < b && !best.compare_exchange_weak(b, value);) {
        }
      }
    }
    c.deployed.reset();
    c.done = true;
    const std::scoped_lock lock(telling);
    ++result.done;
    if (progress) progress(result.done, cases.size());
  });
  result.interrupted = stopped(stop);
  // How much of those that are far was simulated hangs on how soon others were done, which is chance. What is said of
  // them is the first rate that shows it; of one that was stopped nothing is known.
  for (Case& c : cases) {
    Candidate& k = c.candidate;
    const auto shown = std::ranges::find_if(c.missed, [&](double missed) {
      Candidate one;
      return far(bound(result, c, missed, one));
    });
    if (k.ceiling > 0 && (!k.simulated || shown != c.missed.end())) {
      k.simulated = k.meets = false;
      k.binding = serving::Binding::none;
      k.cause.reset();
      k.at.reset();
      k.max_requests_per_second = 0;
      k.decode_replicas = 0;
      const double value = bound(result, c, shown != c.missed.end() ? *shown : k.ceiling, k);
      if (!c.done) {
        k.why = "interrupted";
      } else if (all && value == kUnknown) {
        k.why = fmt::format("no {} is known", result.minimise == Minimise::energy ? "board power" : "price");
      }
    } else if (!c.done && !c.error) {
      k.why = "interrupted";
    }
    if (k.simulated) result.simulations += c.simulations;
    result.candidates.push_back(std::move(k));
  }
  std::ranges::stable_sort(result.candidates, [&](const Candidate& a, const Candidate& b) {
    const auto rank = [&](const Candidate& k) {
      // Those that meet by what is minimised, the quicker of two that take the same first; then those that were not
      // near, then by how close they come.
      const int group = k.meets ? 0 : k.ceiling > 0 && !k.simulated ? 1 : k.simulated ? 2 : 3;
      const double value =
          group == 2 && k.at ? k.at->excess(result.slo) : k.objective(result.minimise).value_or(kUnknown);
      return std::tuple(group, value, group == 0 && k.at ? k.at->e2e.mean : 0, k.devices);
    };
    return rank(a) < rank(b);
  });
  double quickest = kUnknown;
  for (Candidate& k : result.candidates) {
    if (!k.meets || !k.at || !k.objective(result.minimise)) continue;
    k.pareto = k.at->e2e.mean < quickest;
    quickest = std::min(quickest, k.at->e2e.mean);
  }
  return result;
}

}  // namespace llmperf::request
