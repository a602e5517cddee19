#include "replay/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/text.h"
#include "calibrate/predictor.h"

namespace llmperf::replay {
namespace {

using calibrate::OpRow;

// A row that is written already, and what the graphs call it.
struct Known {
  std::size_t row;
  std::vector<std::string> names;
};

void add_rows(const Replay& replay, const std::string& hardware, calibrate::Measurements& m,
              std::map<std::string, Known>& known) {
  for (const TimedOp& timed : replay.ops) {
    if (!timed.timing) continue;
    const auto& row = std::get<OpRow>(timed.op.what);
    const auto [found, added] = known.try_emplace(calibrate::describe(row), Known{m.rows.size(), {}});
    std::vector<std::string>& names = found->second.names;
    for (const std::string& name : timed.op.names) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    if (!added) {  // of another phase, too
      m.rows[found->second.row].extra.back() = join(names, "+");
      continue;
    }
    calibrate::Row& measured = m.rows.emplace_back();
    measured.hardware = hardware;
    measured.of = row;
    measured.latency = timed.time();
    measured.extra = {fmt::format("{:.3g}", timed.timing->spread.value * 1e6), fmt::format("{}", timed.timing->passes),
                      join(names, "+")};
  }
}

}  // namespace

calibrate::Measurements measurements_of(const Study& study) {
  calibrate::Measurements m;
  calibrate::Measurements::File& file = m.files.emplace_back();
  file.path = "replay";
  file.notes.push_back(fmt::format("Ops replayed by llmperf: {}; {} backend on {}.", study.what, study.device.backend,
                                   study.device.title));
  file.notes.emplace_back(
      "latency_us: median over samples of many executions, operands in turn; of collectives the minimum. spread_us: "
      "between the quartiles of the samples.");
  for (const auto& [name, value] : study.device.facts) file.notes.push_back(fmt::format("{}: {}", name, value));
  m.extra_columns = {"spread_us", "repetitions", "name"};
  std::map<std::string, Known> known;
  for (const PhaseStudy& phase : study.phases) add_rows(phase.replay, study.hardware, m, known);
  return m;
}

void predict_ops(Study& study, const calibrate::Measurements& measured, const hardware::Device& device,
                 const hardware::RuntimeProfile& profile) {
  std::vector<std::size_t> rows(measured.rows.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  calibrate::Predictor predictor(measured, rows, device, profile);
  std::vector<double> seconds(rows.size());
  predictor.predict(profile.values, std::nullopt, seconds);
  std::map<std::string, double> of;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    of[calibrate::describe(std::get<OpRow>(measured.rows[i].of))] = seconds[i];
  }
  study.profile = profile.title_for(device);
  for (PhaseStudy& phase : study.phases) {
    phase.predicted.assign(phase.replay.ops.size(), std::nullopt);
    for (std::size_t i = 0; i < phase.replay.ops.size(); ++i) {
      const TimedOp& timed = phase.replay.ops[i];
      if (timed.timing) phase.predicted[i] = Seconds{of.at(calibrate::describe(std::get<OpRow>(timed.op.what)))};
    }
  }
}

}  // namespace llmperf::replay
