// `llmperf capacity`.
#include "result/capacity.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "report/reports.h"
#include "report/rows.h"
#include "result/document.h"

namespace llmperf::report {
namespace {

using request::Candidate;
using request::CapacityResult;

constexpr std::size_t kShown = 20;  // of those that do not meet the bounds

std::string money(const std::optional<double>& amount) { return amount ? fmt::format("{:.2f}", *amount) : "-"; }

std::string replicas_text(const Candidate& k) {
  if (k.decode_replicas > 0) return fmt::format("{}+{}", k.replicas, k.decode_replicas);
  return std::to_string(k.replicas);
}

std::string binding_text(const Candidate& k) {
  std::string text(name(k.binding));
  if (k.cause) text += fmt::format(" ({})", serving::kCauses[static_cast<std::size_t>(*k.cause)]);
  return text;
}

std::string title_of(const Candidate& k) {
  return fmt::format("{} {} x {}, {}{}", replicas_text(k), k.plan, k.hardware, k.weights,
                     k.decode_replicas > 0 ? ", prompts and decode apart" : "");
}

Table meeting_table(const CapacityResult& r) {
  Table t{
      fmt::format("What serves {} requests/s within the bounds, by {}", format_significant(r.rate), name(r.minimise)),
      {{"#"},
       {"hardware", true},
       {"replicas", true},
       {"weights", true},
       {"dev."},
       {"req/s"},
       {"per h"},
       {"per M"},
       {"TTFT p99"},
       {"TPOT p95"},
       {"binds", true}},
      {}};
  std::size_t i = 0;
  for (const Candidate& k : r.candidates) {
    if (!k.meets) continue;
    t.rows.push_back({std::to_string(++i) + (k.pareto ? "+" : ""), k.hardware + (k.extrapolated ? "*" : ""),
                      replicas_text(k) + " x " + k.plan, k.weights, std::to_string(k.devices),
                      format_significant(k.max_requests_per_second, 3), money(k.cost_per_hour),
                      money(k.cost_per_million_output_tokens), format_seconds(Seconds{k.at->ttft.p99}),
                      format_seconds(Seconds{k.at->tpot.p95}), binding_text(k)});
  }
  return t;
}

Table others_table(const CapacityResult& r) {
  Table t{"What does not, or is far from the best",
          {{"hardware", true}, {"replica", true}, {"weights", true}, {"binds", true}, {"", true}},
          {}};
  for (const Candidate& k : r.candidates) {
    if (k.meets) continue;
    if (t.rows.size() == kShown) {
      const auto rest = std::ranges::count_if(r.candidates, [](const Candidate& c) { return !c.meets; }) -
                        static_cast<std::ptrdiff_t>(kShown);
      t.rows.push_back({fmt::format("and {} more", rest), "", "", "", ""});
      break;
    }
    std::string why = k.why;
    if (why.empty() && k.ceiling > 0 && !k.simulated) {
      why = fmt::format("given up: at least {} devices", k.devices);
      if (k.cost_per_hour) why += fmt::format(", {} {} per hour", money(k.cost_per_hour), k.currency);
    } else if (why.empty() && k.at) {
      why = fmt::format("alone TTFT p99 {}, TPOT p95 {}", format_seconds(Seconds{k.at->ttft.p99}),
                        format_seconds(Seconds{k.at->tpot.p95}));
    }
    if (why.size() > 60) why = why.substr(0, 57) + "...";
    t.rows.push_back({k.hardware, k.plan, k.weights, binding_text(k), why});
  }
  return t;
}

Document document(const CapacityResult& r) {
  Document doc{
      Heading{fmt::format("{} at {} requests/s", r.asked.model.value_or(""), format_significant(r.rate)), ""},
      Paragraph{fmt::format("{}; {} tokens in, {} out; {} candidates, {} simulations{}", serving::text_of(r.slo),
                            serving::text_of(r.load.input), serving::text_of(r.load.output), r.candidates.size(),
                            r.simulations, r.interrupted ? "; interrupted" : "")}};
  Fields f;
  const Candidate* best = r.best();
  if (best == nullptr) {
    f.add("answer", r.interrupted ? "nothing found yet that meets the bounds" : "nothing meets the bounds");
    if (!r.candidates.empty() && r.candidates.front().at) f.add("nearest", title_of(r.candidates.front()));
  } else {
    std::string text = title_of(*best);
    if (best->cost_per_hour) {
      text += fmt::format(": {} {} per hour, {} per million output tokens", money(best->cost_per_hour), best->currency,
                          money(best->cost_per_million_output_tokens));
    }
    f.add("answer", text);
    const auto candidates = candidates_of(r);
    if (candidates.size() > 1 && candidates[1].of().meets) {
      const std::optional<double> beyond = candidates[1].beyond_best();
      f.add("runner-up",
            title_of(candidates[1].of()) + (beyond ? fmt::format(": {} more", format_share(*beyond)) : std::string()));
    }
    f.add("binds", binding_text(*best));
    if (best->joules_per_output_token) {
      f.add("energy", fmt::format("{} J per output token by board power, an upper bound",
                                  format_significant(*best->joules_per_output_token, 3)));
    }
  }
  doc.emplace_back(std::move(f));
  if (best != nullptr) doc.emplace_back(meeting_table(r));
  if (std::ranges::any_of(r.candidates, [](const Candidate& k) { return !k.meets; })) doc.emplace_back(others_table(r));
  if (best != nullptr) {
    doc.emplace_back(Paragraph{
        "req/s: that one replica takes within the bounds; per h, per M: cost of all devices for an hour, and for a "
        "million output tokens; binds: what is exceeded beyond that rate. +: none is both cheaper and quicker from end "
        "to end. *: nothing was measured on this device."});
  }
  return doc;
}

}  // namespace

Report capacity_report(const CapacityResult& r) {
  return {document(r), csv_of(candidates_of(r)), result::document("llmperf.capacity", r)};
}

}  // namespace llmperf::report
