// Paths and the numbers at the top of an estimate. explain() finds what a path means and hands over: memory to
// explain_memory.cpp, an op to explain_op.cpp; phases and times are sums and quotients of those.
#include "estimate/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "estimate/explain_parts.h"
#include "estimate/schedule.h"

namespace llmperf::estimate {
namespace {

constexpr std::size_t kLargestParts = 3;  // ops of a sum that are explained themselves

double d(std::int64_t x) { return static_cast<double>(x); }

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
void concurrent(const Estimator& estimator, const Phase& phase, const std::vector<double>& seconds, Explanation& x) {
  const Schedule s = schedule_step(phase.ops, seconds, estimator.stages(), phase.batches(), phase.steady);
  if (s.overlapped.value > 0) {
    x.formula += " - " + let(x, "overlapped", s.overlapped.value,
                             "s that ops run beside the op before them: collectives, weights that come early");
  }
  if (s.pipelined.value > 0) {
    x.formula += " - " + let(x, "pipelined", s.pipelined.value,
                             fmt::format("s that the {} stages work at the same time, on {} micro-batches",
                                         estimator.stages().size(), phase.batches()));
  }
}

// A sum over the ops of a phase, `step`: at that step instead of the mean one. The largest terms are explained.
Explanation sum_of_ops(const Estimator& estimator, const Phase& phase, Metric metric, std::string path, double number,
                       const graph::SequenceGroup* step = nullptr) {
  Explanation x{.path = std::move(path), .unit = std::string(unit(metric))};
  const std::vector<std::string> keys = op_keys(phase);
  std::vector<Explanation> terms;
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    const OpEstimate& op = phase.ops[i];
    const bool at_step = step && (op.op.grows_with_context || std::holds_alternative<graph::Overhead>(op.op.body));
    Explanation term = at_step ? explain_op(estimator, phase, i, metric, op_path(phase, keys[i]), step) : Explanation{};
    if (!at_step) term.value = value(metric, op.work, op.time, d(op.op.count));
    std::string variable = keys[i];
    std::replace(variable.begin(), variable.end(), '#', '_');
    if (!x.formula.empty()) x.formula += " + ";
    x.formula += let(x, variable, term.value, executions(metric, op.op.count));
    if (at_step) term.path = variable;  // not the number that path names: that is the mean
    terms.push_back(std::move(term));
  }
  std::vector<double> terms_seconds(terms.size());
  std::transform(terms.begin(), terms.end(), terms_seconds.begin(), [](const Explanation& t) { return t.value; });
  std::vector<std::size_t> order(terms.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return terms[a].value > terms[b].value; });
  order.resize(std::min(order.size(), kLargestParts));
  for (const std::size_t i : order) {
    if (terms[i].value == 0) continue;
    x.parts.push_back(terms[i].formula.empty() ? explain_op(estimator, phase, i, metric, op_path(phase, keys[i]))
                                               : std::move(terms[i]));
  }
  if (metric == Metric::time_s || metric == Metric::roof_s) concurrent(estimator, phase, terms_seconds, x);
  if (step)
    x.notes.push_back(fmt::format("the decode step at {} cached tokens", step->context));
  else if (phase.steps > 1)
    x.notes.push_back(fmt::format("of the mean step: {} steps, at {} to {} cached tokens", phase.steps,
                                  phase.first.context, phase.last.context));
  return checked(std::move(x), number);
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
  Explanation x{.path = phase_path(phase, kIntensity), .unit = "FLOP/B", .formula = "flops / bytes"};
  for (const Metric metric : {Metric::flops, Metric::bytes}) {
    let(x, name(metric), phase_number(phase, metric), fmt::format("{} of the step", unit(metric)));
    x.parts.push_back(phase_metric(estimator, phase, metric));
  }
  return checked(std::move(x), phase.intensity().value);
}

Explanation phase_total(const Estimator& estimator, const Phase& phase) {
  Explanation x{.path = phase_path(phase, kPhaseTotal), .unit = "s", .formula = "steps * time_s"};
  let(x, "steps", phase.steps, "steps of the phase");
  let(x, "time_s", phase.time.value, "s of the mean step");
  x.parts.push_back(phase_metric(estimator, phase, Metric::time_s));
  return checked(std::move(x), phase.time.value * d(phase.steps));
}

// `path` below "phases.<name>."; nothing when the phase has no such number.
std::optional<Explanation> explain_phase(const Estimator& estimator, const Phase& phase, std::string_view path) {
  if (path == kIntensity) return intensity(estimator, phase);
  if (path == kPhaseTotal) return phase_total(estimator, phase);
  for (const Metric metric : kMetrics) {
    if (path == name(metric)) return phase_metric(estimator, phase, metric);
  }
  if (!path.starts_with("ops.")) return std::nullopt;
  path.remove_prefix(4);
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::optional<std::size_t> index = op_index(phase, path.substr(0, dot));
  const auto metric =
      std::find_if(kMetrics.begin(), kMetrics.end(), [&](Metric m) { return name(m) == path.substr(dot + 1); });
  if (!index || metric == kMetrics.end()) return std::nullopt;
  return explain_op(estimator, phase, *index, *metric, op_path(phase, path.substr(0, dot)));
}

// ---- Times and rates of the whole request

constexpr std::string_view kPrefillNumbers[] = {"ttft_s", "total_s", "tokens_per_second",
                                                "tokens_per_second_per_request", "prefill_tokens_per_second"};
constexpr std::string_view kDecodeNumbers[] = {"tpot_s", "tpot_first_s", "tpot_last_s", "decode_tokens_per_second"};

// The variable is itself a number of the estimate.
void let_number(Explanation& x, const Estimator& estimator, const Estimate& e, std::string_view path,
                std::string_view meaning) {
  Explanation part = explain(estimator, e, path);
  let(x, path, part.value, meaning);
  x.parts.push_back(std::move(part));
}

Explanation total_time(const Estimator& estimator, const Estimate& e) {
  Explanation x{.path = "total_s", .unit = "s", .formula = "ttft_s"};
  let_number(x, estimator, e, "ttft_s", "s to the first token");
  if (e.tpot) {
    let(x, "decode_steps", e.phases[1].steps, "tokens after the first");
    let_number(x, estimator, e, "tpot_s", "s per token after the first, on average");
    x.formula = "ttft_s + decode_steps * tpot_s";
  }
  return checked(std::move(x), e.total.value);
}

Explanation rate(const Estimator& estimator, const Estimate& e, std::string_view path, std::string formula,
                 double number) {
  Explanation x{.path = std::string(path), .unit = "token/s", .formula = std::move(formula)};
  const auto uses = [&](std::string_view name) { return x.formula.find(name) != std::string::npos; };
  if (uses("batch")) let(x, "batch", e.scenario.batch, "requests");
  if (uses("prompt")) let(x, "prompt", e.scenario.prompt, "prompt tokens of a request");
  if (uses("generate")) let(x, "generate", e.scenario.generate, "generated tokens of a request");
  if (uses("total_s")) let_number(x, estimator, e, "total_s", "s from the start to the last token");
  if (uses("ttft_s")) let_number(x, estimator, e, "ttft_s", "s to the first token");
  if (uses("tpot_s")) let_number(x, estimator, e, "tpot_s", "s per token after the first, on average");
  return checked(std::move(x), number);
}

std::optional<Explanation> explain_times(const Estimator& estimator, const Estimate& e, std::string_view path) {
  if (e.phases.empty()) return std::nullopt;
  const auto sum = [&](const Phase& phase, Seconds number, const graph::SequenceGroup* step = nullptr) {
    return sum_of_ops(estimator, phase, Metric::time_s, std::string(path), number.value, step);
  };
  if (path == "ttft_s") return sum(e.phases[0], e.ttft);
  if (path == "total_s") return total_time(estimator, e);
  if (path == "tokens_per_second") return rate(estimator, e, path, "batch * generate / total_s", e.tokens_per_second);
  if (path == "tokens_per_second_per_request")
    return rate(estimator, e, path, "generate / total_s", e.tokens_per_second_per_request);
  if (path == "prefill_tokens_per_second")
    return rate(estimator, e, path, "batch * prompt / ttft_s", e.prefill_tokens_per_second);
  if (!e.tpot) return std::nullopt;
  const Phase& decode = e.phases[1];
  if (path == "tpot_s") return sum(decode, *e.tpot);
  if (path == "tpot_first_s") return sum(decode, *e.tpot_first, &decode.first);
  if (path == "tpot_last_s") return sum(decode, *e.tpot_last, &decode.last);
  if (path == "decode_tokens_per_second") return rate(estimator, e, path, "batch / tpot_s", e.decode_tokens_per_second);
  return std::nullopt;
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
    if (estimate.host_capacity.value > 0 || !path.starts_with("host_")) paths.push_back(path);
  }
  return paths;
}

}  // namespace

std::vector<std::string> explainable_paths(const Estimate& estimate) {
  std::vector<std::string> paths;
  const auto add = [&](std::string path) { paths.push_back(std::move(path)); };
  for (const std::string_view path : paths_of_memory(estimate)) add(std::string(path));
  if (estimate.phases.empty()) return paths;
  for (const std::string_view path : kPrefillNumbers) add(std::string(path));
  if (estimate.tpot) {
    for (const std::string_view path : kDecodeNumbers) add(std::string(path));
  }
  for (const Phase& phase : estimate.phases) {
    for (const Metric metric : kMetrics) add(phase_path(phase, name(metric)));
    add(phase_path(phase, kIntensity));
    add(phase_path(phase, kPhaseTotal));
    for (const std::string& key : op_keys(phase)) {
      for (const Metric metric : kMetrics) add(fmt::format("{}.{}", op_path(phase, key), name(metric)));
    }
  }
  return paths;
}

Explanation explain(const Estimator& estimator, const Estimate& estimate, std::string_view path) {
  const auto memory = paths_of_memory(estimate);
  if (std::find(memory.begin(), memory.end(), path) != memory.end()) return explain_memory(estimator, estimate, path);
  if (auto found = explain_times(estimator, estimate, path)) return *std::move(found);
  for (const Phase& phase : estimate.phases) {
    const std::string prefix = phase_path(phase, "");
    if (!path.starts_with(prefix)) continue;
    if (auto found = explain_phase(estimator, phase, path.substr(prefix.size()))) return *std::move(found);
  }
  throw_unknown(estimate, path);
}

}  // namespace llmperf::estimate
