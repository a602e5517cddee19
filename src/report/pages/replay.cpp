// `llmperf replay`, with and without `--self-test`.

#include <algorithm>

#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "measure/row_ops.h"
#include "report/quantity.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/document.h"
#include "result/measured.h"

namespace llmperf::report {
namespace {

using replay::PhaseStudy;
using replay::TimedOp;

std::string names_text(const TimedOp& op) { return join(op.op.names, ", "); }

// What was reached of the resource that the op is about.
std::string reached_text(const ReplayedOp& op) {
  const cost::Work work = op.work();
  const Seconds time = op.op->time();
  if (work.network.value > 0 && work.matrix.value == 0) return format_bandwidth(work.network / time);
  const double intensity = work.matrix.value / std::max(1.0, work.bytes().value);
  return intensity > 4 ? format_flops_rate(work.matrix / time) : format_bandwidth(work.bytes() / time);
}

void add_table(Document& doc, Table table) {
  if (!table.rows.empty()) doc.push_back(std::move(table));
}

Table ops_table(const PhaseStudy& phase) {
  Table t = titled(fmt::format("Ops of {}", phase.name == "ops" ? "the list" : phase.name),
                   "<op, <shape, count, time, spread, of step, rate");
  const Seconds sum = ops_time(phase);
  for (const ReplayedOp& o : ops_of(phase)) {
    const TimedOp& op = *o.op;
    if (!op.timing || o.row() == nullptr) continue;
    const std::int64_t count = op.op.count;
    const Seconds all = op.time() * d(count);
    add_row(t, names_text(op), measure::shape_text(*o.row()), count > 0 ? std::to_string(count) : "-", op.time(),
            Share{op.timing->spread / op.timing->median}, count > 0 && sum.value > 0 ? format_share(all / sum) : "-",
            reached_text(o));
  }
  return t;
}

Table unavailable_table(const PhaseStudy& phase) {
  Table t = titled("Not available on this backend", "<op, <reason");
  for (const TimedOp& op : phase.replay.ops) {
    if (!op.timing) add_row(t, names_text(op), op.unavailable);
  }
  return t;
}

Fields step_fields(const PhaseStudy& phase) {
  Fields f{fmt::format("One {} step", phase.name), {}};
  const auto missing = std::count_if(phase.replay.ops.begin(), phase.replay.ops.end(),
                                     [](const TimedOp& op) { return !op.timing.has_value(); });
  f.add("ops, one by one",
        format_seconds(ops_time(phase)) + (missing > 0 ? fmt::format(", without the {} not available", missing) : ""));
  if (const auto& whole = phase.replay.whole) {
    const Seconds time = whole->timing.median;
    f.add("as a whole", "{} (spread {}, {} passes)", time, Share{whole->timing.spread / time}, whole->timing.passes);
    f.add("between its ops", signed_share((time - whole->ops) / time) + " of the whole");
    if (!whole->left_out.empty()) f.add("left out", join(whole->left_out, ", "));
  }
  if (phase.predicted_step) {
    std::string text = format_seconds(*phase.predicted_step);
    if (phase.replay.whole && phase.replay.whole->left_out.empty()) {
      text += fmt::format(", {} of what the whole took",
                          signed_share(*phase.predicted_step / phase.replay.whole->timing.median - 1));
    }
    f.add("predicted", text + (missing > 0 ? ", with all ops" : ""));
  }
  return f;
}

Table prediction_table(const PhaseStudy& phase) {
  Table t =
      titled(fmt::format("Predicted against measured, {}", phase.name), "<op, <shape, measured, predicted, error");
  for (const ReplayedOp& o : ops_of(phase)) {
    if (!o.predicted) continue;
    add_row(t, names_text(*o.op), measure::shape_text(*o.row()), o.op->time(), *o.predicted,
            signed_share(*o.predicted / o.op->time() - 1));
  }
  return t;
}

}  // namespace

Report replay_report(const replay::Study& study) {
  Fields device{"Device", {{"title", study.device.title}, {"backend", study.device.backend}}};
  for (const auto& fact : study.device.facts) device.rows.push_back(fact);
  Document doc{Heading{study.what, fmt::format("measured on {}", study.hardware)}, std::move(device)};
  for (const PhaseStudy& phase : study.phases) {
    if (phase.name != "ops") doc.emplace_back(step_fields(phase));
    add_table(doc, ops_table(phase));
    add_table(doc, unavailable_table(phase));
  }
  if (study.calibration) {
    for (Block& block : calibrate_report(*study.calibration).document) doc.push_back(std::move(block));
  }
  for (const PhaseStudy& phase : study.phases) add_table(doc, prediction_table(phase));
  return {std::move(doc), csv_of(ops_of(study)), result::document("llmperf.replay", study)};
}

Report self_test_report(const SelfTest& test) {
  using Outcome = replay::SelfTestResult::Outcome;
  Table table = titled("Results against the cpu backend's", "<op, <outcome, error, allowed, <reason");
  for (const replay::SelfTestResult& r : test.results) {
    const auto text = [](const std::optional<double>& x) { return x ? format_significant(*x, 2) : std::string("-"); };
    add_row(table, r.op, r.outcome, text(r.error), text(r.tolerance), r.reason);
  }
  const auto count = [&](Outcome outcome) { return std::to_string(test.count(outcome)); };
  Document doc{Heading{fmt::format("self-test of the {} backend", test.device.backend), test.device.title},
               Fields{{},
                      {{"passed", count(Outcome::passed)},
                       {"failed", count(Outcome::failed)},
                       {"not available", count(Outcome::unavailable)}}},
               std::move(table)};
  return {std::move(doc), csv_of(test.results), result::document("llmperf.self_test", test)};
}

}  // namespace llmperf::report
