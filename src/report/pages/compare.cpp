// `llmperf compare` of two sets of runtime options.
#include "result/compare.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/pages/phase.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/document.h"
#include "result/generation.h"

namespace llmperf::report {
namespace {

using estimate::CompareStep;
using estimate::Comparison;
using estimate::OpDifference;
using estimate::OpSide;
using estimate::Setup;
using estimate::VideoSetup;

// Less than what sums of steps are rounded to counts as nothing.
bool differs(Seconds gain, Seconds of) { return std::abs(gain.value) > 1e-9 * of.value; }

// "-" for nothing.
std::optional<Seconds> some(Seconds gain, Seconds before) {
  return differs(gain, before) ? std::optional(gain) : std::nullopt;
}
std::optional<Share> some_share(Seconds gain, Seconds before) {
  return differs(gain, before) ? std::optional(Share{gain / before}) : std::nullopt;
}

// "+ static_kv", "- fused_qkv"; of the first step the options that the comparison starts from.
std::string option_cell(const CompareStep& step) {
  if (step.option.empty()) return step.options;
  return step.option.starts_with("no_") ? "- " + step.option.substr(3) : "+ " + step.option;
}

// "2.1 s to 1.4 s: 700 ms less (33.3 %), 1.5 times as fast".
std::string change_text(Seconds before, Seconds after) {
  const Seconds gain = before - after;
  const std::string text = fmt::format("{} to {}", before, after);
  if (!differs(gain, before)) return text + ": no difference";
  const bool faster = gain.value > 0;
  const Seconds difference = faster ? gain : after - before;
  return fmt::format("{}: {} {} ({}), {} times as fast", text, difference, faster ? "less" : "more",
                     Share{difference / before}, Rounded{before / after, 3});
}

std::string difference_name(const OpDifference& one) {
  return one.name + (one.place == graph::Place::host ? " (host)" : "");
}

// A row of a table of op, before, after, gain, and bytes and launches of both.
void add_difference_row(const std::string& name, const OpSide& before, const OpSide& after, Table& t) {
  const auto of = [](const OpSide& side, auto value) { return side.present ? std::optional(value) : std::nullopt; };
  add_row(t, name, of(before, before.time), of(after, after.time),
          some(before.time - after.time, std::max(before.time, after.time)), of(before, before.bytes + before.network),
          of(after, after.bytes + after.network), of(before, before.launches), of(after, after.launches));
}

// What changes, what does not in one row, and the sum in the last.
template <class Difference>
Table difference_table(std::string title, std::string_view heads, const std::vector<Difference>& all,
                       const std::string& whole) {
  Table t = titled(std::move(title), heads);
  OpSide before, after, before_same, after_same;
  std::int64_t same = 0;
  for (const Difference& one : all) {
    before += one.before;
    after += one.after;
    if (one.changes()) {
      add_difference_row(difference_name(one), one.before, one.after, t);
      continue;
    }
    before_same += one.before;
    after_same += one.after;
    ++same;
  }
  if (same > 0) add_difference_row(fmt::format("{} that stay as they are", same), before_same, after_same, t);
  add_difference_row(whole, before, after, t);
  return t;
}

// "q_proj 1.2 ms, k_proj 0.4 ms, qkv_proj -1.3 ms": those whose times differ most.
template <class Difference>
std::string largest_changes(const std::vector<Difference>& all, Seconds before) {
  constexpr std::size_t kMost = 4;
  constexpr double kSmall = 0.05;  // of the largest: not worth a word
  std::vector<const Difference*> shown;
  for (const Difference& one : all) {
    if (differs(one.gain(), before)) shown.push_back(&one);
  }
  const auto size = [](const Difference* one) { return std::abs(one->gain().value); };
  std::ranges::stable_sort(shown, std::greater(), size);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(kMost, shown.size()); ++i) {
    if (size(shown[i]) < kSmall * size(shown[0])) break;
    texts.push_back(fmt::format("{} {}", difference_name(*shown[i]), shown[i]->gain()));
  }
  return texts.empty() ? "-" : join(texts, ", ");
}

// What both kinds say first. `times`: what the two are called; `example`: switches that a profile may know.
template <class Setup>
Fields headline(const Setup& setup, const Comparison<Setup>& c, const char* const (&times)[2],
                std::string_view example) {
  Fields f;
  const CompareStep& first = c.steps.front();
  const CompareStep& last = c.steps.back();
  for (std::size_t i = 0; i < 2; ++i) {
    if (first.fits && last.fits && first.times[i].time)
      f.add(times[i], change_text(*first.times[i].time, *last.times[i].time));
  }
  if (first.fits && last.fits && first.step_utilisation > 0) {
    f.add("matrix peak", "{} to {} of it in a step", Share{first.step_utilisation}, Share{last.step_utilisation});
  }
  f.add("memory", "{} to {}", Held{first.memory}, of_capacity(last.memory, *setup.device->dram().capacity));
  if (c.steps.size() == 1) {
    // A runtime that always does what it can has no more in "all" than in "none".
    const std::string same = "the two sets of options are the same";
    f.add("note", setup.profile ? fmt::format("{} to {}: {}", same, setup.profile->name, example) : same);
  }
  for (const std::string& note : setup.notes) f.add("note", note);
  return f;
}

std::string execution_text(const CompareStep& step) {
  const std::string_view prefill = name(*step.dispatch);
  const std::string_view decode = name(*step.decode_dispatch);
  std::string text = prefill == decode ? std::string(decode) : fmt::format("{} / {}", prefill, decode);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

// `last`: behind a comma the heading of what the last column has of a step; empty: there is none.
template <class Setup, class Last>
Table step_table(const Comparison<Setup>& c, std::string_view first, std::string_view second, std::string_view last,
                 Last of) {
  Table t = titled("One option after the other (gain: time saved; share: of the row above)",
                   fmt::format("<option, {}, gain, share, {}, gain, share{}", first, second, last));
  for (const CompareStep& step : c.steps) {
    add_row(t, option_cell(step));
    std::vector<std::string>& row = t.rows.back();
    for (const CompareStep::Time& time : step.times) {
      std::vector<std::string> three(3, "-");
      const Seconds before = time.time.value_or(Seconds{}) + time.gain;
      if (time.time) three = cells(*time.time, some(time.gain, before), some_share(time.gain, before));
      row.insert(row.end(), three.begin(), three.end());
    }
    if (!step.fits) row[1] = fmt::format("does not fit ({})", Held{step.memory});
    if (!last.empty()) row.push_back(of(step));
  }
  return t;
}

Document document(const TextComparison& compared) {
  const Setup& setup = *compared.setup;
  const estimate::Scenario& s = compared.scenario;
  const Comparison<Setup>& c = *compared.comparison;
  const graph::Execution& x = setup.execution;
  const bool encodes = setup.encodes();
  std::string request = fmt::format("batch {}, prompt {}{}; weights {}, {}activations {}; options {} to {}", s.batch,
                                    s.prompt, encodes ? "" : fmt::format(", generate {}", s.generate), x.weights.name,
                                    encodes ? "" : fmt::format("KV cache {}, ", kv_text(setup)), x.activations,
                                    c.steps.front().options, c.steps.back().options);
  if (x.plan.devices() > 1) request += "; " + plan_text(setup, x.split);
  Document doc{
      Heading{fmt::format("Runtime options: {} on {}", x.model->name, title_text(*setup.device, x.plan.devices())),
              profile_label(setup)},
      Paragraph{std::move(request)},
      headline(setup, c, {"prefill", "decode step"}, "name switches, as in all,no_fused_qkv, or take --runtime none"),
      step_table(c, "prefill", "decode step", setup.profile ? ", <runs as" : "", execution_text)};
  Table where{"Where each gain is (ops whose time differs most; negative: they cost more)", {{"option", true}}, {}};
  for (const CompareStep& step : c.steps) {
    if (step.phases.empty()) continue;
    add_row(where, option_cell(step));
    for (const estimate::PhaseDifference& phase : step.phases) {
      if (where.rows.size() == 1) where.columns.push_back({std::string(phase.name), true});
      where.rows.back().push_back(largest_changes(phase.ops, phase.before.time));
    }
  }
  if (!where.rows.empty()) doc.emplace_back(std::move(where));
  for (const estimate::PhaseDifference& phase : c.phases) {
    if (c.steps.size() == 1) break;
    doc.emplace_back(
        difference_table(fmt::format("Where in {} (one step, all executions; -: the op does not run)", phase.name),
                         "<op, before, after, gain, bytes, after, launches, after", phase.ops, "the step"));
  }
  return doc;
}

Document document(const VideoComparison& compared) {
  const VideoSetup& setup = *compared.setup;
  const Comparison<VideoSetup>& c = *compared.comparison;
  Document doc{Heading{fmt::format("Runtime options: {} on {}", setup.execution.model->name,
                                   title_text(*setup.device, setup.devices())),
                       profile_label(setup)},
               Paragraph{fmt::format("{} to {}", request_text(setup), c.steps.back().options)},
               headline(setup, c, {"denoising step", "generation"},
                        "name switches that it lacks, as in fused_qk_norm,fused_modulate"),
               step_table(c, "step", "generation", ", of peak",
                          [](const CompareStep& s) { return s.fits ? format_share(s.step_utilisation) : "-"; })};
  Table where = titled("Where each gain is in a step (negative: it costs more)", "<option, <classes");
  for (const CompareStep& s : c.steps) {
    if (s.classes.empty()) continue;
    add_row(where, option_cell(s), largest_changes(s.classes, *s.times[0].time + s.times[0].gain));
  }
  if (!where.rows.empty()) doc.emplace_back(std::move(where));
  if (!c.classes.empty() && c.steps.size() > 1)
    doc.emplace_back(difference_table("A denoising step by what its kernels are for",
                                      "<class, before, after, gain, bytes, after, kernels, after", c.classes, "all"));
  return doc;
}

}  // namespace

Report compare_report(const TextComparison& compared) {
  return {document(compared),
          csv_of(compared.comparison->steps,
                 "option, switches, options, prefill_execution, decode_execution, fits, "
                 "memory_bytes, ttft_s, ttft_gain_s, tpot_s, tpot_gain_s"),
          result::document("llmperf.compare", compared)};
}

Report compare_report(const VideoComparison& compared) {
  return {document(compared),
          csv_of(compared.comparison->steps,
                 "option, switches, options, fits, memory_bytes, step_s, step_gain_s, generation_s, "
                 "generation_gain_s, step_utilisation"),
          result::document("llmperf.compare", compared)};
}

}  // namespace llmperf::report
