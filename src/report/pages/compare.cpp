// `llmperf compare` of two sets of runtime options.
#include "result/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/number.h"
#include "base/text.h"
#include "report/pages/phase.h"
#include "report/reports.h"
#include "report/rows.h"
#include "result/document.h"
#include "result/generation.h"

namespace llmperf::report {
namespace {

using estimate::OpDifference;
using estimate::PhaseDifference;

// Less than what sums of steps are rounded to counts as nothing.
bool differs(Seconds gain, Seconds of) { return std::abs(gain.value) > 1e-9 * of.value; }

// "-" for nothing.
std::string gain_cell(Seconds gain, Seconds before) { return differs(gain, before) ? format_seconds(gain) : "-"; }
std::string gain_share_cell(Seconds gain, Seconds before) {
  return differs(gain, before) ? format_share(gain / before) : "-";
}

// "+ static_kv", "- fused_qkv"; without an option `options`, those that the comparison starts from.
std::string option_cell(const std::string& option, const std::string& options) {
  if (option.empty()) return options;
  return option.starts_with("no_") ? "- " + option.substr(3) : "+ " + option;
}

// "2.1 s to 1.4 s: 700 ms less (33.3 %), 1.5 times as fast".
std::string change_text(Seconds before, Seconds after) {
  const Seconds gain = before - after;
  std::string text = fmt::format("{} to {}", format_seconds(before), format_seconds(after));
  if (!differs(gain, before)) return text + ": no difference";
  const bool faster = gain.value > 0;
  const Seconds difference = faster ? gain : after - before;
  return text + fmt::format(": {} {} ({}), {} times as fast", format_seconds(difference), faster ? "less" : "more",
                            format_share(difference / before), format_significant(before / after, 3));
}

std::string difference_name(const OpDifference& op) {
  return std::string(op.name) + (op.place == graph::Place::host ? " (host)" : "");
}

// A row of a table of op, before, after, gain, and bytes and launches of both.
void add_difference_row(const std::string& name, const estimate::OpSide& before, const estimate::OpSide& after,
                        Table& t) {
  const auto cell = [](const estimate::OpSide& side, const std::string& text) {
    return side.present ? text : std::string("-");
  };
  t.rows.push_back({name, cell(before, format_seconds(before.time)), cell(after, format_seconds(after.time)),
                    gain_cell(before.time - after.time, std::max(before.time, after.time)),
                    cell(before, format_bytes(before.bytes + before.network)),
                    cell(after, format_bytes(after.bytes + after.network)),
                    cell(before, std::to_string(before.launches)), cell(after, std::to_string(after.launches))});
}

Table difference_table(const PhaseDifference& phase) {
  Table t{fmt::format("Where in {} (one step, all executions; -: the op does not run)", phase.name),
          {{"op", true}, {"before"}, {"after"}, {"gain"}, {"bytes"}, {"after"}, {"launches"}, {"after"}},
          {}};
  estimate::OpSide before;
  estimate::OpSide after;
  std::int64_t same = 0;
  for (const OpDifference& op : phase.ops) {
    if (op.changes()) {
      add_difference_row(difference_name(op), op.before, op.after, t);
    } else {
      before += op.before;
      after += op.after;
      ++same;
    }
  }
  if (same > 0) add_difference_row(fmt::format("{} that stay as they are", same), before, after, t);
  add_difference_row("the step", phase.before, phase.after, t);
  return t;
}

// ---- Text

using estimate::CompareStep;
using estimate::Comparison;
using estimate::Setup;

std::string execution_text(const CompareStep& step) {
  std::string prefill(name(step.dispatch));
  std::string decode(name(step.decode_dispatch));
  std::string text = prefill == decode ? decode : prefill + " / " + decode;
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

Fields headline(const Setup& setup, const Comparison& c) {
  Fields f;
  const CompareStep& first = c.steps.front();
  const CompareStep& last = c.steps.back();
  if (first.fits && last.fits) {
    f.rows.emplace_back("prefill", change_text(*first.times[0].time, *last.times[0].time));
    const std::optional<Seconds>& decode = first.times[1].time;
    if (decode) f.rows.emplace_back("decode step", change_text(*decode, *last.times[1].time));
  }
  f.rows.emplace_back("memory", fmt::format("{} to {}", format_bytes_binary(first.memory),
                                            of_capacity(last.memory, *setup.device->dram().capacity)));
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
  for (const CompareStep& step : c.steps) {
    std::vector<std::string> row = {option_cell(step.option, step.options)};
    for (const CompareStep::Time& time : step.times) {
      if (!time.time) {
        row.insert(row.end(), 3, "-");
        continue;
      }
      const Seconds before = *time.time + time.gain;
      row.insert(row.end(),
                 {format_seconds(*time.time), gain_cell(time.gain, before), gain_share_cell(time.gain, before)});
    }
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
  const bool encodes = setup.encodes();
  std::string request = fmt::format("batch {}, prompt {}{}; weights {}, {}activations {}; options {} to {}", s.batch,
                                    s.prompt, encodes ? "" : fmt::format(", generate {}", s.generate), x.weights.name,
                                    encodes ? "" : fmt::format("KV cache {}, ", kv_text(setup)), name(x.activations),
                                    c.steps.front().options, c.steps.back().options);
  if (x.plan.devices() > 1) request += "; " + plan_text(setup, x.split);
  Document doc{
      Heading{fmt::format("Runtime options: {} on {}", x.model->name, title_text(*setup.device, x.plan.devices())),
              profile_label(setup)},
      Paragraph{std::move(request)}, headline(setup, c), step_table(setup, c)};
  if (Table where = where_table(c); !where.rows.empty()) doc.emplace_back(std::move(where));
  if (c.steps.size() > 1) {
    for (const PhaseDifference& phase : c.phases) doc.emplace_back(difference_table(phase));
  }
  return doc;
}

// ---- Video

using estimate::ClassDifference;
using estimate::OpSide;
using estimate::VideoSetup;

Fields headline(const VideoSetup& setup, const Comparison& c) {
  Fields f;
  const CompareStep& first = c.steps.front();
  const CompareStep& last = c.steps.back();
  if (first.fits && last.fits) {
    f.rows.emplace_back("generation", change_text(*first.times[1].time, *last.times[1].time));
    f.rows.emplace_back("denoising step", change_text(*first.times[0].time, *last.times[0].time));
    f.rows.emplace_back("matrix peak", fmt::format("{} to {} of it in a step", format_share(first.step_utilisation),
                                                   format_share(last.step_utilisation)));
  }
  f.rows.emplace_back("memory", fmt::format("{} to {}", format_bytes_binary(first.memory),
                                            of_capacity(last.memory, *setup.device->dram().capacity)));
  if (c.steps.size() == 1) {
    f.rows.emplace_back("note", setup.profile ? fmt::format("the two sets of options are the same to {}: name switches "
                                                            "that it lacks, as in fused_qk_norm,fused_modulate",
                                                            setup.profile->name)
                                              : std::string("the two sets of options are the same"));
  }
  for (const std::string& note : setup.notes) f.rows.emplace_back("note", note);
  return f;
}

Table step_table(const Comparison& c) {
  Table t{"One option after the other (gain: time saved; share: of the row above)",
          {{"option", true}, {"step"}, {"gain"}, {"share"}, {"generation"}, {"gain"}, {"of peak"}},
          {}};
  for (const CompareStep& s : c.steps) {
    std::vector<std::string> row = {option_cell(s.option, s.options)};
    if (s.fits) {
      const auto& [step, generation] = s.times;
      const Seconds before = *step.time + step.gain;
      row.insert(row.end(),
                 {format_seconds(*step.time), gain_cell(step.gain, before), gain_share_cell(step.gain, before),
                  format_seconds(*generation.time), gain_cell(generation.gain, *generation.time + generation.gain),
                  format_share(s.step_utilisation)});
    } else {
      row.insert(row.end(), {fmt::format("does not fit ({})", format_bytes_binary(s.memory)), "-", "-", "-", "-", "-"});
    }
    t.rows.push_back(std::move(row));
  }
  return t;
}

// "frame mask 410 ms, modulate -12 ms": the classes whose times differ most.
std::string largest_changes(const CompareStep& step) {
  constexpr std::size_t kMost = 3;
  constexpr double kSmall = 0.05;  // of the largest: not worth a word
  std::vector<const ClassDifference*> rows;
  const Seconds before = *step.times[0].time + step.times[0].gain;
  for (const ClassDifference& c : step.classes) {
    if (differs(c.gain(), before)) rows.push_back(&c);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const ClassDifference* a, const ClassDifference* b) {
    return std::abs(a->gain().value) > std::abs(b->gain().value);
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, rows.size()); ++i) {
    if (std::abs(rows[i]->gain().value) < kSmall * std::abs(rows[0]->gain().value)) break;
    text += fmt::format("{}{} {}", i > 0 ? ", " : "", rows[i]->name, format_seconds(rows[i]->gain()));
  }
  return text.empty() ? "-" : text;
}

Table where_class_table(const Comparison& c) {
  Table t{"Where each gain is in a step (negative: it costs more)", {{"option", true}, {"classes", true}}, {}};
  for (const CompareStep& s : c.steps) {
    if (!s.classes.empty()) t.rows.push_back({option_cell(s.option, s.options), largest_changes(s)});
  }
  return t;
}

Table class_table(const Comparison& c) {
  Table t{"A denoising step by what its kernels are for",
          {{"class", true}, {"before"}, {"after"}, {"gain"}, {"bytes"}, {"after"}, {"kernels"}, {"after"}},
          {}};
  OpSide before;
  OpSide after;
  for (const ClassDifference& d : c.classes) {
    add_difference_row(d.name, d.before, d.after, t);
    before += d.before;
    after += d.after;
  }
  add_difference_row("all", before, after, t);
  return t;
}

Document document(const VideoSetup& setup, const Comparison& c) {
  Document doc{Heading{fmt::format("Runtime options: {} on {}", setup.execution.model->name,
                                   title_text(*setup.device, setup.devices())),
                       profile_label(setup)},
               Paragraph{fmt::format("{} to {}", request_text(setup), c.steps.back().options)}, headline(setup, c),
               step_table(c)};
  if (Table where = where_class_table(c); !where.rows.empty()) doc.emplace_back(std::move(where));
  if (!c.classes.empty() && c.steps.size() > 1) doc.emplace_back(class_table(c));
  return doc;
}

}  // namespace

Report compare_report(const estimate::Setup& setup, const estimate::Scenario& scenario, const std::string& execution,
                      const Comparison& comparison) {
  const TextComparison result{&setup, scenario, execution, &comparison};
  return {document(setup, scenario, comparison),
          csv_of(steps_of(result), {"option", "switches", "options", "prefill_execution", "decode_execution", "fits",
                                    "memory_bytes", "ttft_s", "ttft_gain_s", "tpot_s", "tpot_gain_s"}),
          result::document("llmperf.compare", result)};
}

Report compare_report(const VideoSetup& setup, const Comparison& comparison) {
  const result::VideoComparison result{&setup, &comparison};
  return {document(setup, comparison),
          csv_of(steps_of(result), {"option", "switches", "options", "fits", "memory_bytes", "step_s", "step_gain_s",
                                    "generation_s", "generation_gain_s", "step_utilisation"}),
          result::document("llmperf.compare", result)};
}

}  // namespace llmperf::report
