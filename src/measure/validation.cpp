#include "measure/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "base/load_once.h"
#include "base/match.h"
#include "base/text.h"
#include "estimate/estimate.h"
#include "hardware/beyond_range.h"
#include "hardware/engine.h"
#include "hardware/runtime_execution.h"
#include "hardware/runtime_profile.h"
#include "measure/data_checks.h"
#include "measure/fit.h"
#include "measure/predictor.h"
#include "measure/serving_predictor.h"
#include "measure/statistics.h"
#include "measure/training_run.h"
#include "request/sources.h"

namespace llmperf::measure {
namespace {

enum Constant : std::size_t { launch, compute_share, memory_share };

double fitted_time(const RooflineTimes& t, std::span<const double> v) {
  return v[launch] + std::max(t.compute / v[compute_share], t.memory / v[memory_share]);
}

// The maximum makes several local minima: the fit starts from a small and from a large launch time, and the better
// wins.
std::vector<double> fit_constants(std::span<const double> measured, std::span<const RooflineTimes> times,
                                  std::vector<std::size_t> rows) {
  std::erase_if(rows, [&](std::size_t row) { return !times[row].scored; });
  if (rows.empty()) return {0, 1, 1};
  FitProblem problem;
  for (const std::size_t row : rows) problem.measured.push_back(measured[row]);
  problem.predict = [&](std::span<const double> values, std::optional<std::size_t>, std::span<double> predicted) {
    for (std::size_t i = 0; i < rows.size(); ++i) predicted[i] = fitted_time(times[rows[i]], values);
  };
  const double shortest = *std::min_element(problem.measured.begin(), problem.measured.end());
  const double middle = quantile(problem.measured, 0.5);
  constexpr double kAnything = 5;  // a spread that leaves the constants to the rows
  constexpr double kShare = 0.7;
  problem.free = {{launch, shortest, kAnything, shortest * 1e-6, middle * 10},
                  {compute_share, kShare, kAnything, 1e-6, 1e3},
                  {memory_share, kShare, kAnything, 1e-6, 1e3}};
  std::optional<FitResult> best;
  for (const double start : {shortest * 0.1, shortest, middle}) {
    problem.values = {start, kShare, kShare};
    FitResult result = fit(problem, {.min_shrinkage = 0});
    if (!best || result.cost < best->cost) best = std::move(result);
  }
  return best->values;
}

}  // namespace

Baselines baselines(std::span<const double> measured, std::span<const RooflineTimes> times) {
  Baselines result;
  result.fitted.resize(times.size());
  for (const RooflineTimes& t : times) result.roofline.push_back(std::max(t.compute, t.memory));
  std::vector<std::size_t> all(times.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  for (const auto& [kind, rows] : rows_by_text(all, [&](std::size_t row) { return times[row].kind; })) {
    const std::vector<double> values = fit_constants(measured, times, rows);
    for (const std::size_t row : rows) result.fitted[row] = fitted_time(times[row], values);
    result.constants.push_back({kind, values[launch], values[compute_share], values[memory_share], rows.size()});
  }
  return result;
}

namespace {

double mean_size(std::span<const double> errors) {
  const double sum =
      std::accumulate(errors.begin(), errors.end(), 0.0, [](double s, double e) { return s + std::abs(e); });
  return sum / static_cast<double>(errors.size());
}

// `all`: of every row of the measurements.
GroupErrors errors_of(const Measurements& measurements, std::span<const ValidatedRow> all, const RowGroup& group) {
  std::vector<double> own, roofline, fitted, rules, factors;
  double inside_mean = 0;
  double inside_p90 = 0;
  for (const std::size_t i : group.rows) {
    const Row& row = measurements.rows[i];
    const ValidatedRow& of = all[i];
    own.push_back(relative_error(row, of.predicted));
    roofline.push_back(relative_error(row, of.roofline));
    fitted.push_back(relative_error(row, of.fitted_roofline));
    if (of.rule) rules.push_back(relative_error(row, *of.rule));
    if (!of.band) continue;
    const double ratio = of.predicted / row.latency.value;
    const double off = std::max(ratio, 1 / ratio) - 1;
    inside_mean += off <= of.band->mean ? 1 : 0;
    inside_p90 += off <= of.band->p90 ? 1 : 0;
    factors.push_back(1 + of.band->p90);
  }
  const auto count = static_cast<double>(factors.size());
  return {group.by,
          group.name,
          summarise(own),
          mean_size(roofline),
          mean_size(fitted),
          mean_size(rules),
          inside_mean / count,
          inside_p90 / count,
          quantile(std::move(factors), 0.5)};
}

}  // namespace

void summarise(Validation& validation) {
  const Measurements& measurements = validation.measurements;
  std::vector<ValidatedRow> all(measurements.rows.size());
  RowGroup scored;
  for (const ValidatedRow& r : validation.rows) {
    if (r.scored) scored.rows.push_back(r.row);
    all[r.row] = r;
  }
  validation.summary = errors_of(measurements, all, scored);
  validation.groups.clear();
  for (const RowGroup& group : group_rows(measurements, scored.rows)) {
    validation.groups.push_back(errors_of(measurements, all, group));
  }
}

std::vector<GroupErrors> errors_by_group(const Measurements& measurements, std::span<const std::size_t> rows,
                                         std::span<const double> predicted, const Bands& bands) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<ValidatedRow> all(measurements.rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ValidatedRow& of = all[rows[i]];
    of.predicted = predicted[i];
    of.roofline = of.fitted_roofline = kNone;
    if (!bands.empty()) of.band = bands[i];
  }
  const RowGroup every{{}, {}, {rows.begin(), rows.end()}};
  std::vector<GroupErrors> list = {errors_of(measurements, all, every)};
  for (const RowGroup& group : group_rows(measurements, every.rows))
    list.push_back(errors_of(measurements, all, group));
  return list;
}

namespace {

using hardware::RuntimeProfile;

// Rows of one device under one profile.
struct Batch {
  const hardware::Device* device = nullptr;
  RuntimeProfile profile;
  std::vector<std::size_t> rows;
};

// `devices`: those that are known, by name; the others are read. Rows of names that no file has are refused.
std::vector<Batch> batches(const Measurements& measurements, const std::string& runtime,
                           std::map<std::string, hardware::Device>& devices, Refusals& refused) {
  std::map<std::string, Batch> found;
  std::map<std::string, Error> broken;
  for (std::size_t i = 0; i < measurements.rows.size(); ++i) {
    const Row& row = measurements.rows[i];
    const std::string name = runtime.empty() ? runtime_text(row) : runtime;
    const std::string key = fmt::format("{}\n{}\n{}", row.hardware, row.of.index(), name);
    if (const auto known = broken.find(key); known != broken.end()) {
      refused.add(measurements, i, known->second);
      continue;
    }
    try {
      Batch& batch = load_once(found, key, [&] {
        Batch made;
        made.device = &load_once(devices, row.hardware, [&] { return hardware::load_device(row.hardware); });
        if (name.empty() && std::holds_alternative<OpRow>(row.of)) {
          made.profile = hardware::load_kernels(*made.device);
        } else if (name != "none" && !std::holds_alternative<TrainingRow>(row.of)) {
          made.profile = hardware::load_runtime_profile(
              *made.device, name,
              runtime.empty() ? hardware::UnknownRuntime::measured : hardware::UnknownRuntime::error);
          if (std::holds_alternative<OpRow>(row.of)) made.profile = hardware::measured_alone(std::move(made.profile));
        }
        return made;
      });
      batch.rows.push_back(i);
    } catch (const Error& error) {
      refused.add(measurements, i, broken.emplace(key, error).first->second);
    }
  }
  std::vector<Batch> result;
  for (auto& [key, batch] : found) result.push_back(std::move(batch));
  return result;
}

hardware::StepSize step_of(const StepRow& row, const estimate::Setup& setup, const RuntimeProfile& profile) {
  hardware::StepSize step = estimate::step_size(setup, &profile);
  step.batch = row.replica_batch();
  step.tokens = row.phase == Phase::decode ? step.batch : step.batch * row.new_tokens;
  step.context = row.context;
  return step;
}

estimate::Band band_of(const Row& row, const Predictor& predictor, std::size_t k, const RuntimeProfile& profile) {
  if (const auto* step = std::get_if<StepRow>(&row.of)) {
    const hardware::StepSize size = step_of(*step, *predictor.setup_of(k), profile);
    return estimate::band_of(profile, size, predictor.shares(k), name(step->phase), ways_beyond(profile, size));
  }
  const auto& op = std::get<OpRow>(row.of);
  const auto* gemm = std::get_if<GemmShape>(&op.shape);
  const auto* experts = std::get_if<ExpertsShape>(&op.shape);
  const hardware::StepSize size{.weights = gemm      ? gemm->weights
                                           : experts ? experts->weights
                                                     : "",
                                .device = row.hardware};
  const std::string scheme = group_name(row, "scheme");  // "gemm fp8"
  return estimate::band_of(profile, size, predictor.shares(k), profile.error_of(scheme) ? scheme : op.op, {});
}

}  // namespace

Bands bands_of(const Measurements& measurements, const Predictor& predictor, const RuntimeProfile& profile) {
  Bands bands;
  for (std::size_t k = 0; k < predictor.rows().size(); ++k) {
    bands.emplace_back(band_of(measurements.rows[predictor.rows()[k]], predictor, k, profile));
  }
  return bands;
}

double rule_of(const StepRow& row, const RowRoof& roof) {
  constexpr double kBandwidth = 0.75;
  constexpr double kPeak = 0.5;
  return row.phase == Phase::prefill ? roof.products.value / kPeak : roof.memory.value / kBandwidth;
}

std::string baseline_kind(const Row& row) {
  return match(
      row.of,
      [&](const OpRow& op) {
        return fmt::format("{} {}{}{}", row.hardware, op.runtime, op.runtime.empty() ? "" : " ", op.op);
      },
      [&](const StepRow& step) {
        return fmt::format("{} {} {} {}", row.hardware, runtime_name(step), step.weights, name(step.phase));
      },
      [&](const TrainingRow& run) { return fmt::format("{} {}", row.hardware, run.runtime); },
      [&](const ServingRow& run) {
        return fmt::format("{} {} {} {}", row.hardware, run.runtime, run.weights, run.metric);
      });
}

std::string untrusted(const Measurements& measurements, const Row& row) {
  const auto& columns = measurements.extra_columns;
  const auto it = std::find(columns.begin(), columns.end(), kUntrustedColumn);
  const auto column = static_cast<std::size_t>(it - columns.begin());
  return it != columns.end() && column < row.extra.size() ? row.extra[column] : "";
}

namespace {

// Figures of servers: the speed of light is the same simulation of steps that take no longer than they must, and what
// is fitted to the rows are a launch and a share of that.
void predict_runs(const Measurements& measurements, const Batch& batch, std::vector<ValidatedRow>& all,
                  std::vector<RooflineTimes>& times, std::map<std::string, int>& notes, Refusals& refused) {
  const bool light = batch.profile.name.empty();
  ServingPredictor predictor(measurements, batch.rows, *batch.device, &refused);
  const std::vector<std::size_t>& rows = predictor.rows();
  std::vector<double> roofs(rows.size());
  predictor.predict(nullptr, roofs);
  std::vector<double> seconds = roofs;
  if (!light) predictor.predict(&batch.profile, seconds);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const std::size_t i = rows[k];
    ValidatedRow& row = all[i];
    row.predicted = seconds[k];
    row.roofline = roofs[k];
    row.profile = light ? "none" : batch.profile.title_for(*batch.device);
    row.class_default = !light && !batch.profile.measured_on(*batch.device);
    row.extrapolated = !predictor.beyond(k).empty();
    if (!predictor.remark(k).empty()) {
      row.scored = false;
      if (row.remark.empty()) row.remark = predictor.remark(k);
    }
    if (row.remark.empty()) row.remark = predictor.beyond(k);
    if (!predictor.note(k).empty()) ++notes[predictor.note(k)];
    times[i] = {0, roofs[k], baseline_kind(measurements.rows[i]), row.scored};
  }
}

// Training steps, each of a request of its own.
void predict_training(const Measurements& measurements, const Batch& batch, const std::string& runtime,
                      std::vector<ValidatedRow>& all, std::vector<RooflineTimes>& times, Refusals& refused) {
  request::Sources sources;
  sources.put(batch.device->name, *batch.device);
  for (const std::size_t i : batch.rows) {
    const auto& of = std::get<TrainingRow>(measurements.rows[i].of);
    ValidatedRow& row = all[i];
    try {
      TrainingRun run = resolve_run(of, *batch.device, runtime, sources);
      const auto& profile = run.resolved->profile;
      const bool allocated = of.mem_kind == "allocated";
      row.predicted = run.time().value;
      row.profile = profile ? profile->title_for(*batch.device) : "none";
      row.class_default = profile && !profile->measured_on(*batch.device);
      row.memory = {.fits = run.estimate.fits,
                    .bytes = (allocated ? run.estimate.memory.allocated() : run.estimate.memory.total()).value,
                    .measured = of.mem_gib.value_or(0) * 1073741824.0};
      row.band = estimate::band_of_run(run.setup(), run.estimate);
      resolve_again(run, "none", sources);
      row.roofline = run.time().value;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::infeasible && error.kind() != ErrorKind::bad_input) throw;
      refused.add(measurements, i, error);
      continue;
    }
    if (!std::isfinite(measurements.rows[i].latency.value)) {
      row.scored = false;
      if (row.remark.empty()) row.remark = "memory alone was measured";
    }
    times[i] = {0, row.roofline, baseline_kind(measurements.rows[i]), row.scored};
  }
}

}  // namespace

Validation validate(Measurements measurements, const std::string& runtime, const hardware::Device* device) {
  Validation result;
  std::map<std::string, hardware::Device> devices;
  if (device != nullptr) devices.emplace(device->name, *device);
  Refusals refused;
  const std::size_t count = measurements.rows.size();
  std::vector<ValidatedRow> all(count);
  std::vector<RooflineTimes> times(count);
  std::vector<RowLimits> limits;
  std::map<std::string, int> notes;  // and how many rows they are of
  for (std::size_t i = 0; i < count; ++i) {
    const Row& row = measurements.rows[i];
    all[i].remark = untrusted(measurements, row);
    all[i].scored = all[i].remark.empty();
  }
  for (Batch& batch : batches(measurements, runtime, devices, refused)) {
    if (std::holds_alternative<ServingRow>(measurements.rows[batch.rows.front()].of)) {
      predict_runs(measurements, batch, all, times, notes, refused);
      continue;
    }
    if (std::holds_alternative<TrainingRow>(measurements.rows[batch.rows.front()].of)) {
      predict_training(measurements, batch, runtime, all, times, refused);
      continue;
    }
    const bool light = batch.profile.name.empty();
    if (light) std::fill(batch.profile.values.begin(), batch.profile.values.end(), 1.0);
    Predictor predictor(measurements, batch.rows, *batch.device, batch.profile, &refused);
    const std::vector<std::size_t>& rows = predictor.rows();
    std::vector<double> seconds(rows.size());
    predictor.predict(batch.profile.values, std::nullopt, seconds);
    const Bands bands = light ? Bands(rows.size()) : bands_of(measurements, predictor, batch.profile);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const std::size_t i = rows[k];
      const RowRoof& roof = predictor.roofs()[k];
      ValidatedRow& row = all[i];
      row.predicted = light ? roof.roof.value : seconds[k];
      if (!std::isfinite(row.predicted) || row.predicted <= 0) {
        refused.add(measurements, i, Error::bad_input("no time is predicted of what the row says"));
        continue;
      }
      row.roofline = roof.roof.value;
      if (const auto* step = std::get_if<StepRow>(&measurements.rows[i].of)) row.rule = rule_of(*step, roof);
      row.band = bands[k];
      row.profile = light ? "none" : batch.profile.title_for(*batch.device);
      row.class_default = !light && !batch.profile.measured_on(*batch.device);
      if (const auto* step = std::get_if<StepRow>(&measurements.rows[i].of); step && !light) {
        const std::string beyond =
            join(batch.profile.beyond_range(step_of(*step, *predictor.setup_of(k), batch.profile)), "; ");
        row.extrapolated = !beyond.empty();
        if (row.remark.empty()) row.remark = beyond;
      }
      if (const std::string& note = predictor.note(k); !note.empty()) {
        ++notes[note];
        row.remark += row.remark.empty() ? note : "; " + note;
      }
      limits.push_back(limits_on(*batch.device, i, roof.roof.value, roof.kernels, baseline_kind(measurements.rows[i])));
      times[i] = {roof.compute.value, roof.memory.value + roof.network.value, baseline_kind(measurements.rows[i]),
                  row.scored};
    }
  }
  try {
    result.warnings = check_roofs(measurements, limits);
  } catch (const Error& error) {  // latencies in another unit: the rows are shown all the same
    for (const Diagnostic& d : error.diagnostics()) result.warnings.push_back(d.message);
  }
  for (const auto& [note, rows] : notes) result.warnings.push_back(fmt::format("{} ({} rows)", note, rows));
  // What is left, each under its new index.
  const std::vector<std::size_t> stay = refused.apply(measurements);
  std::vector<RooflineTimes> left;
  std::vector<double> measured;
  for (const std::size_t i : stay) {
    measured.push_back(measurements.rows[left.size()].latency.value);
    all[i].row = left.size();
    result.rows.push_back(std::move(all[i]));
    left.push_back(std::move(times[i]));
  }
  const Baselines base = baselines(measured, left);
  for (std::size_t k = 0; k < left.size(); ++k) result.rows[k].fitted_roofline = base.fitted[k];
  result.measurements = std::move(measurements);
  summarise(result);
  return result;
}

}  // namespace llmperf::measure
