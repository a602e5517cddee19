// Paths and the numbers at the top of an estimate. explain() finds what a path means and hands over: memory to
// explain_memory.cpp, an op to explain_op.cpp; phases and times are sums and quotients of those.
#include "estimate/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/integer.h"
#include "base/text.h"
#include "estimate/explain_parts.h"
#include "estimate/schedule.h"

namespace llmperf::estimate {
namespace {

constexpr std::size_t kLargestParts = 3;  // ops of a sum that are explained themselves

// "norm", "norm#2", …: the ops of a phase as paths name them.
std::vector<std::string> op_keys(const Phase& phase) {
  std::map<std::string_view, int> seen;
  std::vector<std::string> keys;
  for (const OpEstimate& op : phase.ops) {
    const int n = ++seen[op.op.name];
    keys.push_back(n == 1 ? std::string(op.op.name) : fmt::format("{}#{}", op.op.name, n));
  }
  return keys;
}

std::optional<std::size_t> op_index(const Phase& phase, std::string_view key) {
  std::map<std::string_view, int> seen;
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    const std::string_view op = phase.ops[i].op.name;
    if (!key.starts_with(op)) continue;
    const int n = ++seen[op];
    if (key.size() == op.size() ? n == 1 : n > 1 && key.substr(op.size()) == fmt::format("#{}", n)) return i;
  }
  return std::nullopt;
}

std::string op_path(const Phase& phase, std::string_view key) {
  return fmt::format("phases.{}.ops.{}", phase.name, key);
}

// What is done at the same time as something else does not take time of its own.
Term concurrent(const Estimator& estimator, const Phase& phase, const std::vector<double>& seconds, double in_flight,
                const Term& sum) {
  const Schedule s =
      schedule_step(phase.ops, seconds, estimator.stages(phase), phase.batches(), phase.steady, in_flight);
  Term rest = sum;
  if (s.overlapped.value > 0) {
    rest =
        rest - named("overlapped", s.overlapped.value,
                     phase.overlap_batches > 1
                         ? "s that exchanges of one micro-batch run beside the other's ops: of each the smaller of it "
                           "and the ops before it, and of it and those after it, by half"
                         : "s that ops run beside the op before them: collectives, weights that come early");
  }
  if (s.pipelined.value > 0) {
    rest = rest - named("pipelined", s.pipelined.value,
                        fmt::format("s that the {} stages work at the same time, on {} micro-batches",
                                    estimator.stages().size(), phase.batches()));
  }
  return rest;
}

// A sum over the ops of a phase, `step`: at that step instead of the mean one. The largest terms are explained.
// No number: none is known that it has to be.
Explanation sum_of_ops(const Estimator& estimator, const Phase& phase, Metric metric, std::string path,
                       std::optional<double> number, const graph::SequenceGroup* step = nullptr) {
  const std::vector<std::string> keys = op_keys(phase);
  std::vector<Explanation> parts(phase.ops.size());
  std::vector<double> values(phase.ops.size());
  std::vector<std::size_t> order(phase.ops.size());
  Term sum;
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    const OpEstimate& op = phase.ops[i];
    std::string variable = keys[i];
    std::replace(variable.begin(), variable.end(), '#', '_');
    order[i] = i;
    values[i] = value(metric, op.work, op.time, d(op.op.count));
    if (step && (op.op.grows_with_context || std::holds_alternative<graph::Overhead>(op.op.body))) {
      parts[i] = explain_op(estimator, phase, i, metric, op_path(phase, keys[i]), step);
      parts[i].path = variable;  // not the number that its path names: that is the mean
      values[i] = parts[i].value;
    }
    sum = sum + named(variable, values[i], executions(metric, op.op.count));
  }
  if (metric == Metric::time_s) sum = concurrent(estimator, phase, values, phase.in_flight, sum);
  // No queue holds up the speed of light.
  if (metric == Metric::roof_s) {
    sum = concurrent(estimator, phase, values, std::numeric_limits<double>::infinity(), sum);
  }
  if (step) {
    sum = sum.noted(fmt::format("the decode step at {} cached tokens", step->context));
  } else if (phase.steps > 1) {
    sum = sum.noted(fmt::format("of the mean step: {} steps, at {} to {} cached tokens", phase.steps,
                                phase.first.context, phase.last.context));
  }
  Explanation x = number ? checked(sum, std::move(path), unit(metric), *number)
                         : sum.explained(std::move(path), std::string(unit(metric)));
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  order.resize(std::min(order.size(), kLargestParts));
  for (const std::size_t i : order) {
    if (values[i] == 0) continue;
    const bool known = !parts[i].formula.empty();
    x.parts.push_back(known ? std::move(parts[i]) : explain_op(estimator, phase, i, metric, op_path(phase, keys[i])));
  }
  return x;
}

double phase_number(const Phase& phase, Metric metric) {
  mapper::OpTime time;
  time.total = phase.time;
  time.roof = phase.roof;
  return value(metric, phase.work, time, 1);
}

std::string phase_path(const Phase& phase, std::string_view key) {
  return fmt::format("phases.{}.{}", phase.name, key);
}

Explanation phase_metric(const Estimator& estimator, const Phase& phase, Metric metric) {
  return sum_of_ops(estimator, phase, metric, phase_path(phase, name(metric)), phase_number(phase, metric));
}

constexpr std::string_view kIntensity = "intensity_flop_per_byte";
constexpr std::string_view kPhaseTotal = "total_s";

Explanation intensity(const Estimator& estimator, const Phase& phase) {
  const auto sum = [&](Metric metric) {
    const Explanation part = phase_metric(estimator, phase, metric);
    return named(name(metric), part.value, fmt::format("{} of the step", unit(metric))).with_part(part);
  };
  return checked(sum(Metric::flops) / sum(Metric::bytes), phase_path(phase, kIntensity), "FLOP/B",
                 phase.intensity().value);
}

Explanation phase_total(const Estimator& estimator, const Phase& phase) {
  const Term step =
      named("time_s", phase.time.value, "s of the mean step").with_part(phase_metric(estimator, phase, Metric::time_s));
  return checked(named("steps", phase.steps, "steps of the phase") * step, phase_path(phase, kPhaseTotal), "s",
                 phase.time.value * d(phase.steps));
}

// `path` below "phases.<name>."; nothing when the phase has no such number.
std::optional<Explanation> explain_phase(const Estimator& estimator, const Phase& phase, std::string_view path) {
  if (path == kIntensity) return intensity(estimator, phase);
  if (path == kPhaseTotal) return phase_total(estimator, phase);
  const auto metric_of = [](std::string_view text) {
    return std::ranges::find_if(kMetrics, [&](const MetricInfo& m) { return m.name == text; });
  };
  if (const auto metric = metric_of(path); metric != kMetrics.end()) {
    return phase_metric(estimator, phase, metric->metric);
  }
  if (!path.starts_with("ops.")) return std::nullopt;
  path.remove_prefix(4);
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::optional<std::size_t> index = op_index(phase, path.substr(0, dot));
  const auto metric = metric_of(path.substr(dot + 1));
  if (!index || metric == kMetrics.end()) return std::nullopt;
  return explain_op(estimator, phase, *index, metric->metric, op_path(phase, path.substr(0, dot)));
}

// ---- Times and rates of the whole request

// In their order; those of phases that there are.
constexpr std::pair<std::string_view, std::string_view> kNumbers[] = {{"ttft_s", "prefill"},
                                                                      {"total_s", ""},
                                                                      {"tokens_per_second", "tokens"},
                                                                      {"tokens_per_second_per_request", "tokens"},
                                                                      {"prefill_tokens_per_second", "prefill"},
                                                                      {"sequences_per_second", "encode"},
                                                                      {"tpot_s", "decode"},
                                                                      {"tpot_first_s", "decode"},
                                                                      {"tpot_last_s", "decode"},
                                                                      {"decode_tokens_per_second", "decode"}};
bool has_number(const Estimate& e, std::string_view of) {
  if (of == "prefill") return e.ttft.has_value();
  return of.empty() || (of == "tokens" ? e.tokens_per_second > 0 : e.phase(of) != nullptr);
}

// ---- What it costs and draws.

constexpr std::pair<std::string_view, std::optional<double> Spending::*> kSpending[] = {
    {"cost_per_hour", &Spending::cost_per_hour},
    {"cost_per_million_input_tokens", &Spending::cost_per_million_input_tokens},
    {"cost_per_million_output_tokens", &Spending::cost_per_million_output_tokens},
    {"request_cost_per_million_output_tokens", &Spending::request_cost_per_million_output},
    {"average_power_w", &Spending::average_power_w},
    {"joules_per_input_token", &Spending::joules_per_input_token},
    {"joules_per_output_token", &Spending::joules_per_output_token}};

// The mean over phases, of all devices.
Term mean_power(const Estimator& estimator, std::span<const Phase> phases) {
  const BoardPower board = *estimator.board();
  const Term devices("devices", d(estimator.setup().execution.plan.devices()), "devices of the plan");
  if (board.shares == nullptr) return (devices * power<Term>(board, {})).noted("an upper bound: no device draws more");
  const std::string measured = "shares measured: " + board.shares->source;
  if (phases.size() == 1) return (devices * power<Term>(board, estimator.load(phases.front()))).noted(measured);
  Term joules = 0;
  Term time = 0;
  for (const Phase& phase : phases) {
    const Load load = estimator.load(phase);
    const Term drawn = power<Term>(board, load);
    const std::string name(phase.name);
    const Term seconds("seconds_" + name, load.time.value, "s of all its steps");
    joules = joules +
             Term("power_" + name, drawn.value(), "W of one device").with_part(drawn.explained("power_" + name, "W")) *
                 seconds;
    time = time + seconds;
  }
  return (devices * joules.in_parentheses() / time.in_parentheses()).noted(measured);
}

std::optional<Explanation> explain_spending(const Estimator& estimator, const Estimate& e, std::string_view path) {
  const auto* found =
      std::ranges::find(kSpending, path, &std::pair<std::string_view, std::optional<double> Spending::*>::first);
  if (found == std::end(kSpending) || !(e.spending.*found->second)) return std::nullopt;
  const double number = *(e.spending.*found->second);
  const auto rate = [&](std::string_view of) { return named(explain(estimator, e, of), "tokens a second"); };
  if (path == "average_power_w") {
    return checked(mean_power(estimator, e.phases), std::string(path), "W", number);
  }
  if (path.starts_with("joules")) {
    const bool input = path == "joules_per_input_token";
    const auto phases = input ? Estimator::prompt_phases(e) : Estimator::decode_phases(e);
    const Term watts = mean_power(estimator, phases);
    return checked(watts / rate(input ? "prefill_tokens_per_second" : "decode_tokens_per_second"), std::string(path),
                   "J", number);
  }
  const HourPrice& price = *estimator.setup().price;
  if (path == "cost_per_hour") {
    const double devices = d(estimator.setup().execution.plan.devices());
    return checked(cost_per_hour<Term>(price.amount, devices, price.currency).noted("price of " + price.text()),
                   std::string(path), price.currency, number);
  }
  const Term hour = named(explain(estimator, e, "cost_per_hour"), price.currency + " for an hour of all devices");
  const std::string_view tokens = path == "cost_per_million_input_tokens"    ? "prefill_tokens_per_second"
                                  : path == "cost_per_million_output_tokens" ? "decode_tokens_per_second"
                                                                             : "tokens_per_second";
  return checked(cost_per_million(hour, rate(tokens)), std::string(path), price.currency, number);
}

// Variables that are themselves numbers of the estimate, or of the request.
struct Known {
  const Estimator& estimator;
  const Estimate& e;
  Term operator()(std::string_view path) const {
    return named(explain(estimator, e, path),
                 path == "ttft_s"    ? estimator.setup().encodes() ? "s of the pass" : "s to the first token"
                 : path == "total_s" ? "s from the start to the last token"
                                     : "s per token after the first, on average");
  }
  Term batch() const { return named("batch", e.scenario.batch, "requests"); }
  Term prompt() const { return named("prompt", e.scenario.prompt, "prompt tokens of a request"); }
  Term generate() const {
    return named("generate", estimator.generated(e.scenario),
                 e.ttft ? "generated tokens of a request" : "generated tokens of a request but the first");
  }
  Term total() const {
    if (!e.tpot) return (*this)("ttft_s");
    const std::int64_t steps = e.phase("decode")->steps;
    const auto kept = [&] {
      const Term step = named(explain(estimator, e, "phases.decode.time_s"), "s of the mean step");
      if (estimator.draft() == nullptr) return step;
      return (step + named(explain(estimator, e, "phases.draft.time_s"), "s of what drafts for it")).in_parentheses();
    };
    const Term decode = estimator.setup().serving.accepted == 1
                            ? named("decode_steps", steps, "tokens after the first") * (*this)("tpot_s")
                            : named("decode_steps", steps, "steps that keep the tokens after the first") * kept();
    return e.ttft ? (*this)("ttft_s") + decode : decode;
  }
};

std::optional<Explanation> explain_times(const Estimator& estimator, const Estimate& e, std::string_view path) {
  if (e.phases.empty()) return std::nullopt;
  const auto sum = [&](const Phase& phase, Seconds number, const graph::SequenceGroup* step = nullptr) {
    return sum_of_ops(estimator, phase, Metric::time_s, std::string(path), number.value, step);
  };
  // At each phase's first or last step, or of the mean one.
  using At = graph::SequenceGroup Phase::*;
  const auto per_token = [&](const Phase& phase, Seconds number, At at = nullptr) {
    const Serving& serving = estimator.setup().serving;
    const auto step_of = [&](const Phase& p) { return at == nullptr ? nullptr : &(p.*at); };
    if (serving.accepted == 1 && estimator.draft() == nullptr) return sum(phase, number, step_of(phase));
    Term whole = named(sum_of_ops(estimator, phase, Metric::time_s, "step_s", std::nullopt, step_of(phase)),
                       fmt::format("s of a step that verifies {} tokens of every sequence", serving.verify));
    if (const Estimator* draft = estimator.draft()) {
      const Phase& drafts = *e.phase("draft");
      whole = (whole + named(sum_of_ops(*draft, drafts, Metric::time_s, "draft_s", std::nullopt, step_of(drafts)),
                             fmt::format("s of drafting {} of them", serving.verify - 1)))
                  .in_parentheses();
    }
    return checked(whole / named("accepted_tokens", serving.accepted, "tokens of a sequence that a step keeps, mean"),
                   std::string(path), "s", number.value);
  };
  const Known known{estimator, e};
  const auto rate = [&](const Term& formula, double number) {
    return checked(formula, std::string(path), "token/s", number);
  };
  const auto* known_number = std::ranges::find(kNumbers, path, &std::pair<std::string_view, std::string_view>::first);
  if (known_number == std::end(kNumbers) || !has_number(e, known_number->second)) return std::nullopt;
  if (path == "ttft_s") {
    const std::span<const Phase> phases = Estimator::prompt_phases(e);
    if (e.phases[0].steps == 1 && e.phases[0].name == estimator.prompt_phase() && phases.size() == 1)
      return sum(e.phases[0], *e.ttft);
    Term all;
    for (const Phase& phase : phases) {
      all = all + (phase.name == "vision"
                       ? named(phase_metric(estimator, phase, Metric::time_s), "s of the pass over the images")
                   : phase.steps == 1 ? named(phase_metric(estimator, phase, Metric::time_s), "s of the prefill")
                                      : named(phase_total(estimator, phase),
                                              fmt::format("s of {} pieces of the prompt", phase.steps)));
    }
    return checked(all, std::string(path), "s", e.ttft->value);
  }
  if (path == "sequences_per_second") {
    return checked(known.batch() / known("ttft_s"), std::string(path), "sequence/s", e.sequences_per_second);
  }
  if (path == "total_s") return checked(known.total(), std::string(path), "s", e.total.value);
  if (path == "tokens_per_second") {
    return rate(known.batch() * known.generate() / known("total_s"), e.tokens_per_second);
  }
  if (path == "tokens_per_second_per_request") {
    return rate(known.generate() / known("total_s"), e.tokens_per_second_per_request);
  }
  if (path == "prefill_tokens_per_second") {
    return rate(known.batch() * known.prompt() / known("ttft_s"), e.prefill_tokens_per_second);
  }
  const Phase& decode = *e.phase("decode");
  if (path == "tpot_s") return per_token(decode, *e.tpot);
  if (path == "tpot_first_s") return per_token(decode, *e.tpot_first, &Phase::first);
  if (path == "tpot_last_s") return per_token(decode, *e.tpot_last, &Phase::last);
  return rate(known.batch() / known("tpot_s"), e.decode_tokens_per_second);
}

[[noreturn]] void throw_unknown(const Estimate& e, std::string_view path) {
  std::string hint = name_hint(path, explainable_paths(e));
  if (!e.fits) hint = "it does not fit in memory, so only the memory and the limits are known; " + hint;
  throw Error::bad_input(fmt::format("the estimate has no number {}", quote(path)), std::move(hint));
}

// Those of the host only where there is one.
std::vector<std::string_view> paths_of_memory(const Estimate& estimate) {
  std::vector<std::string_view> paths;
  for (const std::string_view path : memory_paths()) {
    const cost::Memory& memory = path.starts_with("host_") ? estimate.host_memory : estimate.memory;
    if (path.find("draft_") != std::string_view::npos && memory.draft.value == 0) continue;
    if (path.ends_with("state_bytes") && memory.state.value == 0) continue;
    if (estimate.host_capacity.value > 0 || !path.starts_with("host_")) paths.push_back(path);
  }
  return paths;
}

constexpr double kTolerance = 1e-9;

}  // namespace

double value(Metric metric, const cost::Work& work, const mapper::OpTime& time, double count) {
  switch (metric) {
    case Metric::flops: return (work.matrix + work.vector).value * count;
    case Metric::matrix_flops: return work.matrix.value * count;
    case Metric::vector_flops: return work.vector.value * count;
    case Metric::bytes: return work.bytes().value * count;
    case Metric::weight_bytes: return work.weights.value * count;
    case Metric::activation_read_bytes: return work.activations_read.value * count;
    case Metric::activation_written_bytes: return work.activations_written.value * count;
    case Metric::kv_read_bytes: return work.kv_read.value * count;
    case Metric::kv_written_bytes: return work.kv_written.value * count;
    case Metric::network_bytes: return work.network.value * count;
    case Metric::time_s: return time.total.value * count;
    case Metric::roof_s: return time.roof.value * count;
  }
  return 0;
}

Term named(Explanation part, std::string meaning) {
  Term term(part.path, part.value, std::move(meaning));
  return term.with_part(std::move(part));
}

std::string executions(Metric metric, std::int64_t count) {
  return count == 1 ? std::string(unit(metric)) : fmt::format("{}, all {} executions together", unit(metric), count);
}

Explanation checked(const Term& formula, std::string path, std::string_view unit, double number) {
  Explanation x = formula.explained(std::move(path), unit);
  if (!(std::abs(x.value - number) <= kTolerance * std::max(std::abs(x.value), std::abs(number)))) {
    throw std::logic_error(
        fmt::format("internal error: {} is {}, but its formula {} gives {}", x.path, number, x.formula, x.value));
  }
  x.value = number;
  return x;
}

std::vector<std::string> explainable_paths(const Estimate& estimate) {
  std::vector<std::string> paths;
  const auto add = [&](std::string path) { paths.push_back(std::move(path)); };
  for (const std::string_view path : paths_of_memory(estimate)) add(std::string(path));
  if (estimate.phases.empty()) return paths;
  for (const auto& [path, of] : kNumbers) {
    if (has_number(estimate, of)) add(std::string(path));
  }
  for (const auto& [path, member] : kSpending) {
    if (estimate.spending.*member) add(std::string(path));
  }
  for (const Phase& phase : estimate.phases) {
    for (const MetricInfo& metric : kMetrics) add(phase_path(phase, metric.name));
    add(phase_path(phase, kIntensity));
    add(phase_path(phase, kPhaseTotal));
    for (const std::string& key : op_keys(phase)) {
      for (const MetricInfo& metric : kMetrics) add(fmt::format("{}.{}", op_path(phase, key), metric.name));
    }
  }
  return paths;
}

Explanation explain(const Estimator& estimator, const Estimate& estimate, std::string_view path) {
  const auto memory = paths_of_memory(estimate);
  if (std::ranges::find(memory, path) != memory.end()) return explain_memory(estimator, estimate, path);
  if (auto found = explain_times(estimator, estimate, path)) return *std::move(found);
  if (auto found = explain_spending(estimator, estimate, path)) return *std::move(found);
  for (const Phase& phase : estimate.phases) {
    const std::string prefix = phase_path(phase, "");
    if (!path.starts_with(prefix)) continue;
    const Estimator& of = phase.name == "draft" ? *estimator.draft() : estimator;
    if (auto found = explain_phase(of, phase, path.substr(prefix.size()))) return *std::move(found);
  }
  throw_unknown(estimate, path);
}

}  // namespace llmperf::estimate
