#include "report/compare_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/number.h"
#include "report/estimate_report.h"
#include "report/runtime_text.h"

namespace llmperf::report {

using estimate::OpDifference;
using estimate::PhaseDifference;

std::string compare_label(const estimate::Platform& platform) {
  return platform.profile ? platform.profile->title_for(*platform.device) : label(platform);
}

bool differs(Seconds gain, Seconds of) { return std::abs(gain.value) > 1e-9 * of.value; }

std::string gain_cell(Seconds gain, Seconds before) { return differs(gain, before) ? format_seconds(gain) : "-"; }
std::string gain_share_cell(Seconds gain, Seconds before) {
  return differs(gain, before) ? format_share(gain / before) : "-";
}

std::string option_cell(const std::string& option, const std::string& options) {
  if (option.empty()) return options;
  return option.starts_with("no_") ? "- " + option.substr(3) : "+ " + option;
}

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

Json phases_json(const std::vector<PhaseDifference>& phases) {
  Json json = Json::array();
  for (const PhaseDifference& phase : phases) {
    Json ops = Json::array();
    for (const OpDifference& op : phase.ops) {
      const char* runs = op.before.present && op.after.present ? "both" : op.before.present ? "before" : "after";
      ops.push_back({{"name", std::string(op.name)},
                     {"place", std::string(graph::name(op.place))},
                     {"runs", runs},
                     {"time_before_s", number(op.before.time)},
                     {"time_after_s", number(op.after.time)},
                     {"gain_s", number(op.gain())},
                     {"bytes_before", number(op.before.bytes)},
                     {"bytes_after", number(op.after.bytes)},
                     {"network_bytes_before", number(op.before.network)},
                     {"network_bytes_after", number(op.after.network)},
                     {"launches_before", op.before.launches},
                     {"launches_after", op.after.launches}});
    }
    json.push_back({{"name", std::string(phase.name)},
                    {"time_before_s", number(phase.before.time)},
                    {"time_after_s", number(phase.after.time)},
                    {"launches_before", phase.before.launches},
                    {"launches_after", phase.after.launches},
                    {"ops", std::move(ops)}});
  }
  return json;
}

}  // namespace llmperf::report
