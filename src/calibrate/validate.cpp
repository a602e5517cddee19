#include "calibrate/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "calibrate/data_checks.h"
#include "calibrate/predictor.h"
#include "calibrate/validation.h"
#include "estimate/estimate.h"
#include "hardware/runtime_profile.h"

namespace llmperf::calibrate {
namespace {

using hardware::RuntimeProfile;

// Rows of one device under one profile.
struct Batch {
  const hardware::Device* device = nullptr;
  RuntimeProfile profile;
  std::vector<std::size_t> rows;
};

// Devices by name, read once; a name that no file has is reported with every line that uses it first.
class Devices {
 public:
  explicit Devices(const hardware::Device* known) {
    if (known != nullptr) devices_[known->name] = std::make_unique<hardware::Device>(*known);
  }
  const hardware::Device& get(const std::string& name) {
    std::unique_ptr<hardware::Device>& device = devices_[name];
    if (!device) device = std::make_unique<hardware::Device>(hardware::load_device(name));
    return *device;
  }

 private:
  std::map<std::string, std::unique_ptr<hardware::Device>> devices_;
};

std::vector<Batch> batches(const Measurements& measurements, const std::string& runtime, Devices& devices) {
  std::map<std::string, Batch> found;
  std::vector<Diagnostic> problems;
  for (std::size_t i = 0; i < measurements.rows.size(); ++i) {
    const Row& row = measurements.rows[i];
    const auto* step = std::get_if<StepRow>(&row.of);
    const std::string name = !runtime.empty() ? runtime : step ? step->runtime : "";
    const std::string key = row.hardware + '\n' + name;
    auto it = found.find(key);
    if (it == found.end()) {
      Batch batch;
      try {
        batch.device = &devices.get(row.hardware);
        if (name != "none") {
          batch.profile = hardware::load_runtime_profile(
              *batch.device, name,
              runtime.empty() ? hardware::UnknownRuntime::use_default : hardware::UnknownRuntime::error);
        }
      } catch (const Error& error) {
        for (Diagnostic problem : error.diagnostics()) {
          if (problem.where.file.empty()) problem.where = measurements.where(row);
          problems.push_back(std::move(problem));
        }
      }
      it = found.emplace(key, std::move(batch)).first;
    }
    it->second.rows.push_back(i);
  }
  if (!problems.empty()) throw Error(ErrorKind::bad_input, std::move(problems));
  std::vector<Batch> result;
  for (auto& [key, batch] : found) result.push_back(std::move(batch));
  return result;
}

std::string remarks(const RuntimeProfile& profile, const StepRow& row, const estimate::Setup& setup) {
  hardware::StepSize step = estimate::step_size(setup);
  step.batch = row.replica_batch();
  step.tokens = row.phase == Phase::prefill ? step.batch * row.new_tokens : step.batch;
  step.context = row.context;
  return join(profile.beyond_range(step), "; ");
}

}  // namespace

std::string baseline_kind(const Row& row) {
  if (const auto* op = std::get_if<OpRow>(&row.of)) return row.hardware + ' ' + op->op;
  const auto& step = std::get<StepRow>(row.of);
  return fmt::format("{} {} {} {}", row.hardware, step.runtime, step.weights, name(step.phase));
}

std::string untrusted(const Measurements& measurements, const Row& row) {
  const auto& columns = measurements.extra_columns;
  const auto it = std::find(columns.begin(), columns.end(), kUntrustedColumn);
  const auto column = static_cast<std::size_t>(it - columns.begin());
  return it != columns.end() && column < row.extra.size() ? row.extra[column] : "";
}

Validation validate(Measurements measurements, const std::string& runtime, const hardware::Device* device) {
  Validation result;
  Devices devices(device);
  const std::size_t count = measurements.rows.size();
  result.rows.resize(count);
  std::vector<RooflineTimes> times(count);
  std::vector<double> measured(count);
  std::vector<RowLimits> limits;
  for (std::size_t i = 0; i < count; ++i) {
    const Row& row = measurements.rows[i];
    measured[i] = row.latency.value;
    result.rows[i].row = i;
    result.rows[i].remark = untrusted(measurements, row);
    result.rows[i].scored = result.rows[i].remark.empty();
  }
  for (Batch& batch : batches(measurements, runtime, devices)) {
    const bool light = batch.profile.name.empty();
    if (light) std::fill(batch.profile.values.begin(), batch.profile.values.end(), 1.0);
    Predictor predictor(measurements, batch.rows, *batch.device, batch.profile);
    std::vector<double> seconds(batch.rows.size());
    predictor.predict(batch.profile.values, std::nullopt, seconds);
    for (std::size_t k = 0; k < batch.rows.size(); ++k) {
      const std::size_t i = batch.rows[k];
      const RowRoof& roof = predictor.roofs()[k];
      ValidatedRow& row = result.rows[i];
      row.predicted = light ? roof.roof.value : seconds[k];
      row.roofline = roof.roof.value;
      row.profile = light ? "none" : batch.profile.title_for(*batch.device);
      row.class_default = !light && !batch.profile.measured_on(*batch.device);
      if (const auto* step = std::get_if<StepRow>(&measurements.rows[i].of); step && !light) {
        const std::string beyond = remarks(batch.profile, *step, *predictor.setup_of(k));
        row.extrapolated = !beyond.empty();
        if (row.remark.empty()) row.remark = beyond;
      }
      limits.push_back(limits_on(*batch.device, i, roof.roof.value, roof.kernels, baseline_kind(measurements.rows[i])));
      times[i] = {roof.compute.value, roof.memory.value + roof.network.value, baseline_kind(measurements.rows[i])};
    }
  }
  try {
    result.warnings = check_roofs(measurements, limits);
  } catch (const Error& error) {  // latencies in another unit: the rows are shown all the same
    for (const Diagnostic& d : error.diagnostics()) result.warnings.push_back(d.message);
  }
  const Baselines base = baselines(measured, times);
  for (std::size_t i = 0; i < count; ++i) result.rows[i].fitted_roofline = base.fitted[i];
  result.measurements = std::move(measurements);
  summarise(result);
  return result;
}

}  // namespace llmperf::calibrate
