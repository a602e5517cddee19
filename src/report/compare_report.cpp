#include "report/compare_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/number.h"
#include "base/text.h"
#include "report/compare_parts.h"
#include "report/op_json.h"
#include "report/plan_json.h"
#include "report/plan_report.h"
#include "report/runtime_text.h"

namespace llmperf::report {
namespace {

using estimate::CompareStep;
using estimate::Comparison;
using estimate::OpDifference;
using estimate::PhaseDifference;
using estimate::Setup;

std::string execution_text(const CompareStep& step) {
  std::string prefill(name(step.prefill));
  std::string decode(name(step.decode));
  std::string text = prefill == decode ? decode : prefill + " / " + decode;
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

Fields headline(const Setup& setup, const Comparison& c) {
  Fields f;
  const CompareStep& first = c.steps.front();
  const CompareStep& last = c.steps.back();
  if (first.fits && last.fits) {
    f.rows.emplace_back("prefill", change_text(*first.ttft, *last.ttft));
    if (first.tpot) f.rows.emplace_back("decode step", change_text(*first.tpot, *last.tpot));
  }
  f.rows.emplace_back("memory",
                      fmt::format("{} to {} of {}", format_bytes_binary(first.memory), format_bytes_binary(last.memory),
                                  format_bytes_binary(*setup.device->dram().capacity)));
  if (c.steps.size() == 1) {
    // A runtime that always does what it can has no more in "all" than in "none".
    f.rows.emplace_back("note", setup.profile
                                    ? fmt::format("the two sets of options are the same to {}: name switches, "
                                                  "as in all,no_fused_qkv, or take --runtime none",
                                                  setup.profile->name)
                                    : std::string("the two sets of options are the same"));
  }
  for (const std::string& note : setup.notes) f.rows.emplace_back("note", note);
  return f;
}

Table step_table(const Setup& setup, const Comparison& c) {
  Table t{"One option after the other (gain: time saved; share: of the row above)",
          {{"option", true}, {"prefill"}, {"gain"}, {"share"}, {"decode step"}, {"gain"}, {"share"}},
          {}};
  if (setup.profile) t.columns.push_back({"runs as", true});
  const auto time_cells = [](std::vector<std::string>& row, const std::optional<Seconds>& time, Seconds gain) {
    if (!time) {
      row.insert(row.end(), 3, "-");
      return;
    }
    const Seconds before = *time + gain;
    row.insert(row.end(), {format_seconds(*time), gain_cell(gain, before), gain_share_cell(gain, before)});
  };
  for (const CompareStep& step : c.steps) {
    std::vector<std::string> row = {option_cell(step.option, step.options)};
    time_cells(row, step.ttft, step.ttft_gain);
    time_cells(row, step.tpot, step.tpot_gain);
    if (!step.fits) row[1] = fmt::format("does not fit ({})", format_bytes_binary(step.memory));
    if (setup.profile) row.push_back(execution_text(step));
    t.rows.push_back(std::move(row));
  }
  return t;
}

// "q_proj 1.2 ms, k_proj 0.4 ms, qkv_proj -1.3 ms": the ops whose times differ most.
std::string largest_changes(const PhaseDifference& phase) {
  constexpr std::size_t kMost = 4;
  constexpr double kSmall = 0.05;  // of the largest: not worth a word
  std::vector<const OpDifference*> ops;
  for (const OpDifference& op : phase.ops) {
    if (differs(op.gain(), phase.before.time)) ops.push_back(&op);
  }
  std::stable_sort(ops.begin(), ops.end(), [](const OpDifference* a, const OpDifference* b) {
    return std::abs(a->gain().value) > std::abs(b->gain().value);
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, ops.size()); ++i) {
    if (std::abs(ops[i]->gain().value) < kSmall * std::abs(ops[0]->gain().value)) break;
    text += fmt::format("{}{} {}", i > 0 ? ", " : "", difference_name(*ops[i]), format_seconds(ops[i]->gain()));
  }
  return text.empty() ? "-" : text;
}

Table where_table(const Comparison& c) {
  Table t{"Where each gain is (ops whose time differs most; negative: they cost more)", {{"option", true}}, {}};
  for (const CompareStep& step : c.steps) {
    if (step.phases.empty()) continue;
    if (t.rows.empty()) {
      for (const PhaseDifference& phase : step.phases) t.columns.push_back({std::string(phase.name), true});
    }
    std::vector<std::string> row = {option_cell(step.option, step.options)};
    for (const PhaseDifference& phase : step.phases) row.push_back(largest_changes(phase));
    t.rows.push_back(std::move(row));
  }
  return t;
}

Document document(const Setup& setup, const estimate::Scenario& s, const Comparison& c) {
  const graph::Execution& x = setup.execution;
  std::string request = fmt::format(
      "batch {}, prompt {}, generate {}; weights {}, KV cache {}, activations {}; options {} to {}", s.batch, s.prompt,
      s.generate, x.weights.name, kv_text(setup), name(x.activations), c.steps.front().options, c.steps.back().options);
  if (x.plan.devices() > 1) request += "; " + plan_text(setup, x.split);
  Document doc{
      Heading{fmt::format("Runtime options: {} on {}", x.model->name, setup.device->title), compare_label(setup)},
      Paragraph{std::move(request)}, headline(setup, c), step_table(setup, c)};
  if (Table where = where_table(c); !where.rows.empty()) doc.emplace_back(std::move(where));
  if (c.steps.size() > 1) {
    for (const PhaseDifference& phase : c.phases) doc.emplace_back(difference_table(phase));
  }
  return doc;
}

Json execution_json(const Setup& setup, const CompareStep& step) {
  if (!setup.profile) return nullptr;
  return {{"prefill", std::string(name(step.prefill))}, {"decode", std::string(name(step.decode))}};
}

std::string compare_json(const Setup& setup, const estimate::Scenario& s, const std::string& execution,
                         const Comparison& c) {
  const graph::Execution& x = setup.execution;
  Json json = json_header("llmperf.compare");
  json["label"] = compare_label(setup);
  json["inputs"] = {{"model", {{"name", x.model->name}, {"source", x.model->source}}},
                    {"hardware", hardware_json(setup)},
                    {"runtime", setup.profile ? Json(setup.profile->name) : Json(nullptr)},
                    {"execution", execution.empty() ? Json(nullptr) : Json(execution)},
                    {"batch", s.batch},
                    {"prompt_tokens", s.prompt},
                    {"generate_tokens", s.generate},
                    {"weights", x.weights.name},
                    {"kv", x.kv.name()},
                    {"activations", std::string(name(x.activations))},
                    {"options", c.steps.front().options},
                    {"with", c.steps.back().options},
                    {"devices", x.plan.devices()},
                    {"plan", plan_json(x.plan)},
                    {"devices_per_node", setup.cluster.devices_per_node}};
  json["steps"] = Json::array();
  for (const CompareStep& step : c.steps) {
    json["steps"].push_back({{"option", step.option.empty() ? Json(nullptr) : Json(step.option)},
                             {"switches", step.switches},
                             {"options", step.options},
                             {"execution", execution_json(setup, step)},
                             {"fits", step.fits},
                             {"memory_bytes", number(step.memory)},
                             {"ttft_s", number(step.ttft)},
                             {"tpot_s", number(step.tpot)},
                             {"ttft_gain_s", number(step.ttft_gain)},
                             {"tpot_gain_s", number(step.tpot_gain)},
                             {"phases", phases_json(step.phases)}});
  }
  json["phases"] = phases_json(c.phases);
  json["notes"] = setup.notes;
  return dump(json);
}

Table step_csv(const Setup& setup, const Comparison& c) {
  Table t{"",
          {{"option"},
           {"switches"},
           {"options"},
           {"prefill_execution"},
           {"decode_execution"},
           {"fits"},
           {"memory_bytes"},
           {"ttft_s"},
           {"ttft_gain_s"},
           {"tpot_s"},
           {"tpot_gain_s"}},
          {}};
  const auto time = [](const std::optional<Seconds>& value) { return value ? plain(value->value) : std::string(); };
  for (const CompareStep& step : c.steps) {
    t.rows.push_back(
        {step.option, join(step.switches, "+"), step.options, setup.profile ? std::string(name(step.prefill)) : "",
         setup.profile ? std::string(name(step.decode)) : "", step.fits ? "true" : "false", plain(step.memory.value),
         time(step.ttft), plain(step.ttft_gain.value), time(step.tpot), plain(step.tpot_gain.value)});
  }
  return t;
}

}  // namespace

Report compare_report(const Setup& setup, const estimate::Scenario& scenario, const std::string& execution,
                      const Comparison& comparison) {
  return {document(setup, scenario, comparison), step_csv(setup, comparison),
          compare_json(setup, scenario, execution, comparison)};
}

}  // namespace llmperf::report
