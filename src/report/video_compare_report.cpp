// The outputs of `llmperf compare` for a model that generates video.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/number.h"
#include "base/text.h"
#include "report/compare_parts.h"
#include "report/compare_report.h"
#include "report/op_json.h"
#include "report/plan_json.h"
#include "report/video_report.h"

namespace llmperf::report {
namespace {

using estimate::ClassDifference;
using estimate::OpSide;
using estimate::VideoCompareStep;
using estimate::VideoComparison;
using estimate::VideoSetup;

Fields headline(const VideoSetup& setup, const VideoComparison& c) {
  Fields f;
  const VideoCompareStep& first = c.steps.front();
  const VideoCompareStep& last = c.steps.back();
  if (first.fits && last.fits) {
    f.rows.emplace_back("generation", change_text(*first.generation, *last.generation));
    f.rows.emplace_back("denoising step", change_text(*first.step, *last.step));
    f.rows.emplace_back("matrix peak", fmt::format("{} to {} of it in a step", format_share(first.step_utilisation),
                                                   format_share(last.step_utilisation)));
  }
  f.rows.emplace_back("memory",
                      fmt::format("{} to {} of {}", format_bytes_binary(first.memory), format_bytes_binary(last.memory),
                                  format_bytes_binary(*setup.device->dram().capacity)));
  if (c.steps.size() == 1) {
    f.rows.emplace_back("note", setup.profile ? fmt::format("the two sets of options are the same to {}: name switches "
                                                            "that it lacks, as in fused_qk_norm,fused_modulate",
                                                            setup.profile->name)
                                              : std::string("the two sets of options are the same"));
  }
  for (const std::string& note : setup.notes) f.rows.emplace_back("note", note);
  return f;
}

Table step_table(const VideoComparison& c) {
  Table t{"One option after the other (gain: time saved; share: of the row above)",
          {{"option", true}, {"step"}, {"gain"}, {"share"}, {"generation"}, {"gain"}, {"of peak"}},
          {}};
  for (const VideoCompareStep& s : c.steps) {
    std::vector<std::string> row = {option_cell(s.option, s.options)};
    if (s.step) {
      const Seconds before = *s.step + s.step_gain;
      row.insert(row.end(),
                 {format_seconds(*s.step), gain_cell(s.step_gain, before), gain_share_cell(s.step_gain, before),
                  format_seconds(*s.generation), gain_cell(s.generation_gain, *s.generation + s.generation_gain),
                  format_share(s.step_utilisation)});
    } else {
      row.insert(row.end(), {fmt::format("does not fit ({})", format_bytes_binary(s.memory)), "-", "-", "-", "-", "-"});
    }
    t.rows.push_back(std::move(row));
  }
  return t;
}

// "frame mask 410 ms, modulate -12 ms": the classes whose times differ most.
std::string largest_changes(const VideoCompareStep& step) {
  constexpr std::size_t kMost = 3;
  constexpr double kSmall = 0.05;  // of the largest: not worth a word
  std::vector<const ClassDifference*> rows;
  const Seconds before = *step.step + step.step_gain;
  for (const ClassDifference& c : step.classes) {
    if (differs(c.gain(), before)) rows.push_back(&c);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const ClassDifference* a, const ClassDifference* b) {
    return std::abs(a->gain().value) > std::abs(b->gain().value);
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, rows.size()); ++i) {
    if (std::abs(rows[i]->gain().value) < kSmall * std::abs(rows[0]->gain().value)) break;
    text += fmt::format("{}{} {}", i > 0 ? ", " : "", name(rows[i]->purpose), format_seconds(rows[i]->gain()));
  }
  return text.empty() ? "-" : text;
}

Table where_table(const VideoComparison& c) {
  Table t{"Where each gain is in a step (negative: it costs more)", {{"option", true}, {"classes", true}}, {}};
  for (const VideoCompareStep& s : c.steps) {
    if (!s.classes.empty()) t.rows.push_back({option_cell(s.option, s.options), largest_changes(s)});
  }
  return t;
}

Table class_table(const VideoComparison& c) {
  Table t{"A denoising step by what its kernels are for",
          {{"class", true}, {"before"}, {"after"}, {"gain"}, {"bytes"}, {"after"}, {"kernels"}, {"after"}},
          {}};
  OpSide before;
  OpSide after;
  for (const ClassDifference& d : c.classes) {
    add_difference_row(std::string(name(d.purpose)), d.before, d.after, t);
    before += d.before;
    after += d.after;
  }
  add_difference_row("all", before, after, t);
  return t;
}

Document document(const VideoSetup& setup, const VideoComparison& c) {
  Document doc{Heading{fmt::format("Runtime options: {} on {}", setup.execution.model->name, setup.device->title),
                       compare_label(setup)},
               Paragraph{fmt::format("{} to {}", request_text(setup), c.steps.back().options)}, headline(setup, c),
               step_table(c)};
  if (Table where = where_table(c); !where.rows.empty()) doc.emplace_back(std::move(where));
  if (!c.classes.empty() && c.steps.size() > 1) doc.emplace_back(class_table(c));
  return doc;
}

Json side_json(const OpSide& s) {
  return {{"time_s", number(s.time)},
          {"bytes", number(s.bytes)},
          {"network_bytes", number(s.network)},
          {"launches", s.launches}};
}

Json classes_json(const std::vector<ClassDifference>& classes) {
  Json json = Json::array();
  for (const ClassDifference& c : classes) {
    json.push_back({{"name", std::string(name(c.purpose))},
                    {"before", side_json(c.before)},
                    {"after", side_json(c.after)},
                    {"gain_s", number(c.gain())}});
  }
  return json;
}

std::string compare_json(const VideoSetup& setup, const VideoComparison& c) {
  const graph::VideoExecution& e = setup.execution;
  Json json = json_header("llmperf.compare");
  json["label"] = compare_label(setup);
  json["inputs"] = {{"model", {{"name", e.model->name}, {"source", e.model->source}}},
                    {"hardware", hardware_json(setup, figures_used(setup))},
                    {"runtime", setup.profile ? Json(setup.profile->name) : Json(nullptr)},
                    {"height", e.shape.size.height},
                    {"width", e.shape.size.width},
                    {"frames", e.shape.frames},
                    {"videos", e.videos},
                    {"steps", setup.scenario.steps},
                    {"guidance", e.guidance},
                    {"text_tokens", e.text_tokens},
                    {"weights", setup.weights_name},
                    {"activations", std::string(name(e.activations))},
                    {"options", c.steps.front().options},
                    {"with", c.steps.back().options},
                    {"devices", setup.devices()},
                    {"plan", plan_json(e.plan)},
                    {"devices_per_node", setup.cluster.devices_per_node}};
  json["steps"] = Json::array();
  for (const VideoCompareStep& s : c.steps) {
    json["steps"].push_back({{"option", s.option.empty() ? Json(nullptr) : Json(s.option)},
                             {"switches", s.switches},
                             {"options", s.options},
                             {"fits", s.fits},
                             {"memory_bytes", number(s.memory)},
                             {"step_s", number(s.step)},
                             {"generation_s", number(s.generation)},
                             {"step_gain_s", number(s.step_gain)},
                             {"generation_gain_s", number(s.generation_gain)},
                             {"step_utilisation", s.fits ? number(s.step_utilisation) : Json(nullptr)},
                             {"classes", classes_json(s.classes)}});
  }
  json["classes"] = classes_json(c.classes);
  json["phases"] = phases_json(c.phases);
  json["notes"] = setup.notes;
  return dump(json);
}

Table step_csv(const VideoComparison& c) {
  Table t{"",
          {{"option"},
           {"switches"},
           {"options"},
           {"fits"},
           {"memory_bytes"},
           {"step_s"},
           {"step_gain_s"},
           {"generation_s"},
           {"generation_gain_s"},
           {"step_utilisation"}},
          {}};
  const auto time = [](const std::optional<Seconds>& value) { return value ? plain(value->value) : std::string(); };
  for (const VideoCompareStep& s : c.steps) {
    t.rows.push_back({s.option, join(s.switches, "+"), s.options, s.fits ? "true" : "false", plain(s.memory.value),
                      time(s.step), plain(s.step_gain.value), time(s.generation), plain(s.generation_gain.value),
                      s.fits ? plain(s.step_utilisation) : ""});
  }
  return t;
}

}  // namespace

Report compare_report(const VideoSetup& setup, const VideoComparison& comparison) {
  return {document(setup, comparison), step_csv(comparison), compare_json(setup, comparison)};
}

}  // namespace llmperf::report
