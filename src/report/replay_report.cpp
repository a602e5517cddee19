#include "report/replay_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "calibrate/row_ops.h"
#include "calibrate/statistics.h"
#include "cost/work.h"
#include "report/calibrate_report.h"
#include "report/error_table.h"
#include "report/json.h"

namespace llmperf::report {
namespace {

using calibrate::OpRow;
using replay::PhaseStudy;
using replay::Study;
using replay::TimedOp;

cost::Work work_of(const OpRow& row) {
  cost::Work work;
  for (const graph::Op& op : calibrate::ops_of(row, {})) work += cost::work_of(op, {});
  return work;
}

// What was reached of the resource that the op is about.
std::string rate_text(const OpRow& row, Seconds time) {
  const cost::Work work = work_of(row);
  if (work.network.value > 0 && work.matrix.value == 0) return format_bandwidth(work.network / time);
  const double intensity = work.matrix.value / std::max(1.0, work.bytes().value);
  return intensity > 4 ? format_flops_rate(work.matrix / time) : format_bandwidth(work.bytes() / time);
}

std::string share_text(Seconds part, Seconds whole) { return whole.value > 0 ? format_share(part / whole) : "-"; }

Seconds ops_time(const PhaseStudy& phase) {
  Seconds sum;
  for (const TimedOp& op : phase.replay.ops) sum += op.time() * static_cast<double>(op.op.count);
  return sum;
}

Table ops_table(const PhaseStudy& phase) {
  Table t{fmt::format("Ops of {}", phase.name == "ops" ? "the list" : phase.name),
          {{"op", true}, {"shape", true}, {"count"}, {"time"}, {"spread"}, {"of step"}, {"rate"}},
          {}};
  const Seconds sum = ops_time(phase);
  for (const TimedOp& op : phase.replay.ops) {
    const auto* row = std::get_if<OpRow>(&op.op.what);
    if (!op.timing || row == nullptr) continue;
    const auto count = static_cast<double>(op.op.count);
    t.rows.push_back({join(op.op.names, ", "), calibrate::shape_text(*row),
                      op.op.count > 0 ? fmt::format("{}", op.op.count) : "-", format_seconds(op.time()),
                      format_share(op.timing->spread / op.timing->median),
                      op.op.count > 0 ? share_text(op.time() * count, sum) : "-", rate_text(*row, op.time())});
  }
  return t;
}

Table unavailable_table(const PhaseStudy& phase) {
  Table t{"Not available on this backend", {{"op", true}, {"reason", true}}, {}};
  for (const TimedOp& op : phase.replay.ops) {
    if (!op.timing) t.rows.push_back({join(op.op.names, ", "), op.unavailable});
  }
  return t;
}

Fields step_fields(const PhaseStudy& phase) {
  Fields f{fmt::format("One {} step", phase.name), {}};
  const auto missing = std::count_if(phase.replay.ops.begin(), phase.replay.ops.end(),
                                     [](const TimedOp& op) { return !op.timing.has_value(); });
  f.rows.emplace_back(
      "ops, one by one",
      format_seconds(ops_time(phase)) + (missing > 0 ? fmt::format(", without the {} not available", missing) : ""));
  if (const auto& whole = phase.replay.whole) {
    const Seconds time = whole->timing.median;
    f.rows.emplace_back("as a whole", fmt::format("{} (spread {}, {} passes)", format_seconds(time),
                                                  format_share(whole->timing.spread / time), whole->timing.passes));
    f.rows.emplace_back("between its ops",
                        fmt::format("{} of the whole", signed_error_text((time - whole->ops) / time)));
    if (!whole->left_out.empty()) f.rows.emplace_back("left out", join(whole->left_out, ", "));
  }
  if (phase.predicted_step) {
    std::string text = format_seconds(*phase.predicted_step);
    if (phase.replay.whole && phase.replay.whole->left_out.empty()) {
      text += fmt::format(", {} of what the whole took",
                          signed_error_text(*phase.predicted_step / phase.replay.whole->timing.median - 1));
    }
    f.rows.emplace_back("predicted", text + (missing > 0 ? ", with all ops" : ""));
  }
  return f;
}

Table prediction_table(const PhaseStudy& phase) {
  Table t{fmt::format("Predicted against measured, {}", phase.name),
          {{"op", true}, {"shape", true}, {"measured"}, {"predicted"}, {"error"}},
          {}};
  for (std::size_t i = 0; i < phase.predicted.size(); ++i) {
    const TimedOp& op = phase.replay.ops[i];
    if (!phase.predicted[i]) continue;
    t.rows.push_back({join(op.op.names, ", "), calibrate::shape_text(std::get<OpRow>(op.op.what)),
                      format_seconds(op.time()), format_seconds(*phase.predicted[i]),
                      signed_error_text(*phase.predicted[i] / op.time() - 1)});
  }
  return t;
}

Json json_of(const TimedOp& op, const std::optional<Seconds>& predicted) {
  Json j;
  j["names"] = op.op.names;
  if (const auto* row = std::get_if<OpRow>(&op.op.what)) {
    const cost::Work work = work_of(*row);
    j["op"] = row->op;
    j["dtype"] = name(row->dtype);
    j["shape"] = calibrate::shape_text(*row);
    j["flops"] = number(work.matrix + work.vector);
    j["bytes"] = number(work.bytes());
  }
  j["count"] = op.op.count;
  j["available"] = op.timing.has_value();
  if (!op.timing) {
    j["reason"] = op.unavailable;
    return j;
  }
  j["time_s"] = number(op.time());
  j["median_s"] = number(op.timing->median);
  j["minimum_s"] = number(op.timing->minimum);
  j["spread_s"] = number(op.timing->spread);
  j["samples"] = op.timing->samples;
  j["repetitions"] = op.timing->passes;
  j["predicted_s"] = number(predicted);
  return j;
}

Json json_of(const PhaseStudy& phase) {
  Json j;
  j["name"] = phase.name;
  j["complete"] = phase.replay.complete;
  j["ops_time_s"] = number(ops_time(phase));
  j["predicted_step_s"] = number(phase.predicted_step);
  j["whole_step"] = nullptr;
  if (const auto& whole = phase.replay.whole) {
    j["whole_step"] = {{"time_s", number(whole->timing.median)},   {"minimum_s", number(whole->timing.minimum)},
                       {"spread_s", number(whole->timing.spread)}, {"repetitions", whole->timing.passes},
                       {"ops_time_s", number(whole->ops)},         {"left_out", whole->left_out}};
  }
  j["ops"] = Json::array();
  for (std::size_t i = 0; i < phase.replay.ops.size(); ++i) {
    j["ops"].push_back(json_of(phase.replay.ops[i], i < phase.predicted.size() ? phase.predicted[i] : std::nullopt));
  }
  return j;
}

Json device_json(const replay::Description& description) {
  Json device = {{"backend", description.backend}, {"name", description.device}, {"title", description.title}};
  device["facts"] = Json::array();
  for (const auto& [key, value] : description.facts) device["facts"].push_back({{"name", key}, {"value", value}});
  return device;
}

std::string json_text(const Study& study) {
  Json j = json_header("llmperf.replay");
  j["what"] = study.what;
  j["hardware"] = study.hardware;
  j["profile"] = study.profile.empty() ? Json(nullptr) : Json(study.profile);
  j["device"] = device_json(study.device);
  j["phases"] = Json::array();
  for (const PhaseStudy& phase : study.phases) j["phases"].push_back(json_of(phase));
  return dump(j);
}

Table csv_table(const Study& study) {
  Table t{{},
          {{"phase"},
           {"names"},
           {"op"},
           {"dtype"},
           {"shape"},
           {"count"},
           {"available"},
           {"reason"},
           {"time_s"},
           {"spread_s"},
           {"repetitions"},
           {"predicted_s"}},
          {}};
  for (const PhaseStudy& phase : study.phases) {
    for (std::size_t i = 0; i < phase.replay.ops.size(); ++i) {
      const TimedOp& op = phase.replay.ops[i];
      const auto* row = std::get_if<OpRow>(&op.op.what);
      const bool timed = op.timing.has_value();
      const bool predicted = i < phase.predicted.size() && phase.predicted[i];
      t.rows.push_back(
          {phase.name, join(op.op.names, "+"), row ? row->op : "", row ? std::string(name(row->dtype)) : "",
           row ? calibrate::shape_text(*row) : "", fmt::format("{}", op.op.count), timed ? "true" : "false",
           op.unavailable, timed ? plain(op.time().value) : "", timed ? plain(op.timing->spread.value) : "",
           timed ? fmt::format("{}", op.timing->passes) : "", predicted ? plain(phase.predicted[i]->value) : ""});
    }
  }
  return t;
}

}  // namespace

Report replay_report(const Study& study) {
  Report report;
  Document& d = report.document;
  d.emplace_back(Heading{study.what, fmt::format("measured on {}", study.hardware)});
  Fields device{"Device", {{"title", study.device.title}, {"backend", study.device.backend}}};
  for (const auto& fact : study.device.facts) device.rows.push_back(fact);
  d.emplace_back(std::move(device));
  for (const PhaseStudy& phase : study.phases) {
    if (phase.name != "ops") d.emplace_back(step_fields(phase));
    if (Table t = ops_table(phase); !t.rows.empty()) d.emplace_back(std::move(t));
    if (Table t = unavailable_table(phase); !t.rows.empty()) d.emplace_back(std::move(t));
  }
  if (study.calibration) {
    const Report fitted = calibrate_report(*study.calibration);
    d.insert(d.end(), fitted.document.begin(), fitted.document.end());
  }
  for (const PhaseStudy& phase : study.phases) {
    if (Table t = prediction_table(phase); !t.rows.empty()) d.emplace_back(std::move(t));
  }
  report.csv = csv_table(study);
  report.json = json_text(study);
  return report;
}

Report self_test_report(const replay::Description& device, const std::vector<replay::SelfTestResult>& results) {
  using Outcome = replay::SelfTestResult::Outcome;
  Report report;
  Table table{"Results against the cpu backend's",
              {{"op", true}, {"outcome", true}, {"error"}, {"allowed"}, {"reason", true}},
              {}};
  report.csv = {{}, {{"op"}, {"outcome"}, {"error"}, {"tolerance"}, {"reason"}}, {}};
  Json ops = Json::array();
  std::size_t counts[3] = {};
  for (const replay::SelfTestResult& r : results) {
    ++counts[static_cast<std::size_t>(r.outcome)];
    const std::string outcome(name(r.outcome));
    const auto text = [](const std::optional<double>& x) { return x ? format_significant(*x, 2) : std::string("-"); };
    table.rows.push_back({r.op, outcome, text(r.error), text(r.tolerance), r.reason});
    report.csv.rows.push_back(
        {r.op, outcome, r.error ? plain(*r.error) : "", r.tolerance ? plain(*r.tolerance) : "", r.reason});
    ops.push_back({{"op", r.op},
                   {"outcome", outcome},
                   {"error", number(r.error)},
                   {"tolerance", number(r.tolerance)},
                   {"reason", r.reason}});
  }
  const auto count = [&](Outcome outcome) { return counts[static_cast<std::size_t>(outcome)]; };
  report.document.emplace_back(Heading{fmt::format("self-test of the {} backend", device.backend), device.title});
  report.document.emplace_back(Fields{{},
                                      {{"passed", fmt::format("{}", count(Outcome::passed))},
                                       {"failed", fmt::format("{}", count(Outcome::failed))},
                                       {"not available", fmt::format("{}", count(Outcome::unavailable))}}});
  report.document.emplace_back(std::move(table));
  Json j = json_header("llmperf.self_test");
  j["device"] = device_json(device);
  j["passed"] = count(Outcome::failed) == 0;
  j["ops"] = std::move(ops);
  report.json = dump(j);
  return report;
}

}  // namespace llmperf::report
