// `llmperf capacity`.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/number.h"
#include "base/text.h"
#include "report/pages/phase.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/document.h"
#include "result/serving.h"
#include "serving/trace_file.h"

namespace llmperf::report {
namespace {

using result::Candidate;
using result::CapacityResult;

constexpr std::size_t kShown = 20;  // of those that do not meet the bounds

std::string money(const std::optional<double>& amount) { return amount ? fmt::format("{:.2f}", *amount) : "-"; }

std::string counted_text(std::size_t n, std::string_view what) {
  return fmt::format("{} {}{}", Count(n), what, n == 1 ? "" : "s");
}

std::string binding_text(const Candidate& k) {
  std::string text(name(k.binding));
  if (k.cause) text += fmt::format(" ({})", serving::kCauses[static_cast<std::size_t>(*k.cause)]);
  return text;
}

bool several_engines(const CapacityResult& r) {
  // What could not be read has none.
  const std::string& first = r.candidates.front().engine;
  return std::ranges::any_of(r.candidates, [&](const Candidate& k) { return !k.engine.empty() && k.engine != first; });
}

// "3 replicas of tp 4 on h100-sxm, fp8: 12 devices".
std::string title_of(const CapacityResult& r, const Candidate& k) {
  const auto replicas = [](std::int64_t n) { return fmt::format("{} replica{}", n, n == 1 ? "" : "s"); };
  std::string text = k.plan;
  if (k.decode_replicas > 0) {
    if (!k.decode_plan.empty()) {
      return fmt::format("{} of {} on {} for prompts, {} of {} on {} for decode, {}: {} devices", replicas(k.replicas),
                         k.plan, k.hardware, k.decode_replicas, k.decode_plan, k.decode_hardware, k.weights, k.devices);
    }
    text = fmt::format("{} for prompts and {} for decode, of {}", replicas(k.replicas), k.decode_replicas, k.plan);
  } else if (k.replicas > 0) {
    text = fmt::format("{} of {}", replicas(k.replicas), k.plan);
  }
  text += fmt::format(" on {}, {}", k.hardware, k.weights);
  if (several_engines(r)) text += ", " + k.engine;
  if (k.devices > 0) text += fmt::format(": {} device{}", k.devices, k.devices == 1 ? "" : "s");
  return text;
}

// What the table has of a run: the statistics that are bounded, and of TTFT and TPOT at least one.
struct Shown {
  serving::Metric metric;
  std::string statistic;
};
std::vector<Shown> shown_times(const CapacityResult& r) {
  const serving::Slo& slo = r.slo;
  const bool one_token = r.load.output.mean() <= 1;  // as the one result of an encoder
  std::vector<Shown> all;
  for (const serving::Metric metric :
       {serving::Metric::ttft, serving::Metric::tpot, serving::Metric::itl, serving::Metric::e2e}) {
    const bool always = metric == serving::Metric::ttft || (metric == serving::Metric::tpot && !one_token);
    const std::size_t before = all.size();
    for (const serving::Bound& b : slo) {
      const bool there =
          std::ranges::any_of(all, [&](const Shown& s) { return s.metric == b.metric && s.statistic == b.statistic; });
      if (b.metric == metric && !there) all.push_back({metric, b.statistic});
    }
    if (always && all.size() == before) all.push_back({metric, "p99"});
  }
  return all;
}

// Of what decodes on others.
std::string other_devices(const Candidate& k) {
  return k.decode_hardware == k.hardware ? "" : k.decode_hardware + ", ";
}

Table meeting_table(const CapacityResult& r) {
  const bool engines = several_engines(r);
  const std::vector<Shown> times = shown_times(r);
  const bool fleet = r.minimise == result::Minimise::rate;
  Table t = titled(
      fleet ? "What the fleet takes within the bounds, the highest rate first"
            : fmt::format("What serves {} requests/s within the bounds, by {}", Rounded{r.rate}, name(r.minimise)),
      "#, <hardware, <replicas, <weights");
  if (engines) t.columns.push_back({"engine", true});
  if (!engines) t.columns.push_back({"dev."});  // for one of the two there is room
  for (const char* column : {fleet ? "in all" : "req/s", "per h", "per M"}) t.columns.push_back({column});
  constexpr std::array<const char*, serving::kMetrics.size()> kTitles = {"TTFT", "TPOT", "ITL", "E2E"};
  for (const Shown& s : times)
    t.columns.push_back({fmt::format("{} {}", kTitles[static_cast<std::size_t>(s.metric)], s.statistic)});
  t.columns.push_back({"binds", true});
  std::size_t i = 0;
  for (const Candidate& k : r.candidates) {
    if (!k.meets) continue;
    const std::string replicas =
        k.decode_replicas > 0 ? fmt::format("{}+{}", k.replicas, k.decode_replicas) : std::to_string(k.replicas);
    std::vector<std::string>& row = t.rows.emplace_back(std::vector<std::string>{
        std::to_string(++i) + (k.pareto ? "+" : ""), k.hardware + (k.extrapolated ? "*" : ""),
        k.decode_plan.empty()
            ? replicas + " x " + k.plan
            : fmt::format("{} x {} + {} x {}", k.replicas, k.plan, k.decode_replicas, other_devices(k) + k.decode_plan),
        k.weights});
    if (engines) row.push_back(k.engine);
    if (!engines) row.push_back(std::to_string(k.devices));
    row.insert(row.end(), {format_significant(fleet ? k.requests_per_second : k.max_requests_per_second, 3),
                           money(k.cost_per_hour), money(k.cost_per_million_output_tokens)});
    for (const Shown& s : times) row.push_back(format_seconds(Seconds{k.at->of(s.metric).of(s.statistic)}));
    row.push_back(binding_text(k));
  }
  return t;
}

// Why a candidate is not among those.
std::string why_not(const Candidate& k) {
  if (!k.why.empty()) {  // how many bytes of what take the room is more than a row has
    return k.binding == serving::Binding::memory ? k.why.substr(0, k.why.find(": ")) : k.why;
  }
  if (k.ceiling > 0 && !k.simulated) {
    std::string why = fmt::format("given up: at least {}", counted_text(static_cast<std::size_t>(k.devices), "device"));
    if (k.cost_per_hour) why += fmt::format(", {} {} per hour", money(k.cost_per_hour), k.currency);
    return why;
  }
  if (!k.at) return "";
  std::vector<std::string> missed;
  for (const ServedBound& b : k.bounds) {
    if (!b.met()) missed.push_back(slo_bound_text(b));
  }
  return join(missed, "; ");
}

Table others_table(const CapacityResult& r) {
  const bool engines = several_engines(r);
  Table t = titled("What does not, or is far from the best", "<hardware, <replica, <weights");
  if (engines) t.columns.push_back({"engine", true});
  t.columns.push_back({"binds", true});
  t.columns.push_back({"", true});
  for (const Candidate& k : r.candidates) {
    if (k.meets) continue;
    if (t.rows.size() == kShown) {
      const auto rest = std::ranges::count_if(r.candidates, [](const Candidate& c) { return !c.meets; }) -
                        static_cast<std::ptrdiff_t>(kShown);
      add_row(t, fmt::format("and {} more", rest));
      t.rows.back().resize(t.columns.size());
      break;
    }
    std::vector<std::string>& row = t.rows.emplace_back(std::vector<std::string>{k.hardware, k.plan, k.weights});
    if (engines) row.push_back(k.engine);
    row.insert(row.end(), {binding_text(k), why_not(k)});
  }
  return t;
}

// "1024 tokens in, 128 out, 512 tokens of the prompt alike in all".
std::string requests_text(const serving::Load& load) {
  if (load.trace) {
    return fmt::format("{}: {} tokens in and {} out on the mean", load.trace->workload.name, text_of(load.input),
                       text_of(load.output));
  }
  std::string text = text_of(load, ", ");
  if (!std::isfinite(load.burstiness)) return text + ", at equal intervals";
  if (load.burstiness != 1) text += fmt::format(", burstiness {}", Rounded{load.burstiness});
  return text;
}

Document document(const CapacityResult& r) {
  const std::string model = r.asked.model.value_or("");
  const bool fleet = r.minimise == result::Minimise::rate;
  Document doc{
      Heading{fleet && r.rate == 0 ? model : fmt::format("{} at {} requests/s", model, Rounded{r.rate, 3}), ""},
      Paragraph{fmt::format("{}; {}; {}, {}", serving::text_of(r.slo), requests_text(r.load),
                            counted_text(r.candidates.size(), "candidate"),
                            counted_text(static_cast<std::size_t>(r.simulations), "simulation"))}};
  Fields f;
  if (r.interrupted) f.add("interrupted", "{} of {} candidates were done", r.done, r.candidates.size());
  const Candidate* best = r.best();
  if (best == nullptr) {
    f.add("answer", r.interrupted ? "nothing found yet that meets the bounds" : "nothing meets the bounds");
    if (const Candidate& nearest = r.candidates.front(); nearest.binding != serving::Binding::memory) {
      f.add("nearest", "{}; {}", title_of(r, nearest), why_not(nearest));
    }
  } else {
    std::string text = title_of(r, *best);
    if (best->cost_per_hour) {
      text += fmt::format("; {} {} per hour", money(best->cost_per_hour), best->currency);
      if (const auto& million = best->cost_per_million_output_tokens)
        text += fmt::format(", {} per million output tokens", money(million));
    }
    f.add("answer", text);
    if (r.candidates.size() > 1 && r.candidates[1].meets) {
      const Candidate& next = r.candidates[1];
      text = title_of(r, next);
      if (next.beyond_best) {
        text += *next.beyond_best > 0
                    ? fmt::format("; {} {} {}", Share{*next.beyond_best},
                                  r.minimise == result::Minimise::rate ? "less" : "more", name(r.minimise))
                    : fmt::format("; the same {}", name(r.minimise));
      }
      f.add("runner-up", text);
    }
    if (best->binding != serving::Binding::none) {
      f.add("binds", "{}, beyond {} requests/s of {}", binding_text(*best), Rounded{best->max_requests_per_second, 3},
            best->decode_replicas > 0 ? "all" : "a replica");
    }
    if (best->extrapolated) f.add("extrapolated", "the profile is not " + best->hardware + "'s own");
    if (best->joules_per_output_token) {
      f.add("energy", "{} J for an output token by board power, an upper bound",
            Rounded{*best->joules_per_output_token, 3});
    }
  }
  if (best != nullptr && r.minimise == result::Minimise::rate) {
    f.add("fleet", "{} requests/s of all, {} tokens/s generated on each device", Rounded{best->requests_per_second, 3},
          Rounded{best->tokens_per_second_per_device, 3});
  }
  if (const std::optional<result::BreakEven> even = r.break_even()) {
    const double saved = 1 - *best->cost_per_hour / even->per_hour;
    f.add("API", "{} {} per hour for the same traffic: own devices are {} {}", money(even->per_hour), best->currency,
          Share{std::abs(saved)}, saved > 0 ? "cheaper" : "dearer");
    f.add("break-even", even->utilisation <= 1
                            ? fmt::format("{} requests a day ({}/s), {} of what the devices take",
                                          Count(std::round(even->requests_per_day)),
                                          Rounded{even->requests_per_second, 3}, Share{even->utilisation})
                            : fmt::format("none: {} requests/s would cost as much, and the devices take fewer",
                                          Rounded{even->requests_per_second, 3}));
  }
  for (const std::string& note : r.notes) f.add("note", note);
  const std::optional<result::DayPlan> day = r.day_plan();
  if (day && day->fixed_cost) {
    f.add("day", "{} {} with the replicas of its highest rate all day, {} with those of each part: {} less",
          money(day->fixed_cost), best->currency, money(day->scaled_cost),
          Share{1 - *day->scaled_cost / *day->fixed_cost});
  }
  if (day && !day->start_formula.empty()) f.add("wake", "{} = {} a replica", day->start_formula, day->start);
  doc.emplace_back(std::move(f));
  if (day) {
    doc.emplace_back(
        table_of("Replicas by part of the day", day->parts, "from_h: from h, rate: req/s, replicas, devices, cost"));
  }
  if (best != nullptr) doc.emplace_back(meeting_table(r));
  if (std::ranges::any_of(r.candidates, [](const Candidate& k) { return !k.meets; })) doc.emplace_back(others_table(r));
  if (best != nullptr) {
    doc.emplace_back(Paragraph{fmt::format(
        "req/s: that one replica takes within the bounds (of prompts and decode apart all replicas, and at least); per "
        "h, per M: {} of all devices for an hour, and for a million output tokens with their prompts and idle time; "
        "times: of a replica at its share of the rate; binds: what is exceeded beyond its "
        "req/s. +: none is both cheaper and quicker from end to end. *: the profile is not this device's own.",
        best->currency.empty() ? "cost" : best->currency)});
  }
  return doc;
}

}  // namespace

Report capacity_report(const CapacityResult& r) {
  return {document(r), csv_of(r.candidates), result::document("llmperf.capacity", r)};
}

}  // namespace llmperf::report
