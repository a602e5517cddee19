#include "calibrate/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "calibrate/data_checks.h"
#include "calibrate/fit.h"
#include "calibrate/predictor.h"
#include "calibrate/validation.h"
#include "estimate/estimate.h"

namespace llmperf::calibrate {
namespace {

using hardware::RuntimeProfile;

// Whether a step row's runtime means this profile: its name, or one that starts with it and a dash and has no profile
// of its own.
bool runs_under(const std::string& runtime, const std::string& profile, const std::vector<std::string>& profiles) {
  const auto prefix = [&](const std::string& name) { return runtime == name || runtime.starts_with(name + "-"); };
  return prefix(profile) && std::none_of(profiles.begin(), profiles.end(), [&](const std::string& name) {
           return name.size() > profile.size() && prefix(name);
         });
}

std::vector<std::size_t> usable_rows(const Measurements& measurements, const hardware::Device& device,
                                     const RuntimeProfile& profile, std::vector<std::string>& warnings) {
  std::vector<std::size_t> rows;
  const std::vector<std::string> profiles = hardware::runtimes_of(device);
  std::size_t foreign = 0;
  std::size_t doubtful = 0;
  for (std::size_t i = 0; i < measurements.rows.size(); ++i) {
    const Row& row = measurements.rows[i];
    const auto* step = std::get_if<StepRow>(&row.of);
    if (row.hardware != device.name || (step && !runs_under(step->runtime, profile.name, profiles))) {
      ++foreign;
    } else if (!untrusted(measurements, row).empty()) {
      ++doubtful;
    } else {
      rows.push_back(i);
    }
  }
  if (foreign > 0) {
    warnings.push_back(fmt::format("{} rows are of another device or runtime than {} under {}: left out", foreign,
                                   device.name, profile.name));
  }
  if (doubtful > 0) warnings.push_back(fmt::format("{} rows are marked untrusted: left out", doubtful));
  if (const auto unused = measurements.unused_columns(); !unused.empty()) {
    warnings.push_back("columns that change no prediction: " + join(unused, ", "));
  }
  return rows;
}

// What is left out together: the model of a step, or where all steps are of one model, its batch and options; the
// (n, k) site, head layout, shape of experts or (collective, ranks) of an op.
std::vector<std::string> labels_of(const Measurements& measurements, std::span<const std::size_t> rows) {
  const auto kind_of = [](const Row& row) {
    const auto& op = std::get<OpRow>(row.of);
    const auto* experts = std::get_if<ExpertsShape>(&op.shape);
    return experts ? op.op + ' ' + experts->weights : op.op;
  };
  std::set<std::string> models;
  std::map<std::string, std::set<std::string>> layouts;  // of each kind of attention, of each scheme of experts
  for (const std::size_t i : rows) {
    const Row& row = measurements.rows[i];
    if (const auto* step = std::get_if<StepRow>(&row.of)) {
      models.insert(step->model);
    } else {
      layouts[kind_of(row)].insert(group_name(row, "layout") + group_name(row, "experts"));
    }
  }
  std::vector<std::string> labels;
  for (const std::size_t i : rows) {
    const Row& row = measurements.rows[i];
    if (const auto* step = std::get_if<StepRow>(&row.of)) {
      labels.push_back(models.size() > 1 ? step->model
                                         : fmt::format("{}|{}|{}", step->execution, step->options, step->batch));
      continue;
    }
    std::string label = std::get<OpRow>(row.of).op;
    for (const char* by : {"site", "layout", "experts", "collective"}) label += '|' + group_name(row, by);
    const auto& op = std::get<OpRow>(row.of);
    if (layouts[kind_of(row)].size() == 1) {  // of one layout, its sizes are left out in turn
      if (const auto* shape = std::get_if<AttentionShape>(&op.shape)) {
        label += fmt::format("|{}|{}", shape->batch, shape->q_len);
      } else if (const auto* experts = std::get_if<ExpertsShape>(&op.shape)) {
        label += fmt::format("|{}", experts->m);
      }
    }
    labels.push_back(std::move(label));
  }
  return labels;
}

Measurements subset(const Measurements& all, std::span<const std::size_t> rows) {
  Measurements some;
  some.files = all.files;
  some.extra_columns = all.extra_columns;
  for (const std::size_t i : rows) some.rows.push_back(all.rows[i]);
  return some;
}

// Parameters that are never fitted: a limit, not a time.
bool held(std::size_t parameter) { return parameter == index(hardware::Parameter::memory_utilisation); }

void note_range(const Measurements& rows, const Predictor& predictor, hardware::FittedRange& range) {
  range = {};
  range.rows = static_cast<std::int64_t>(rows.rows.size());
  const auto note = [](std::vector<std::string>& names, const std::string& name) {
    const auto at = std::lower_bound(names.begin(), names.end(), name);
    if (at == names.end() || *at != name) names.insert(at, name);
  };
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const auto* step = std::get_if<StepRow>(&rows.rows[i].of);
    if (step == nullptr) continue;
    const graph::Execution& execution = predictor.setup_of(i)->execution;
    note(range.models, step->model);
    note(range.weights, step->weights);
    note(range.kv, execution.kv.name());
    note(range.plans, graph::to_text(execution.plan));
    note(range.kinds, estimate::model_kind(*execution.model));
    range.max_batch = std::max(range.max_batch, step->replica_batch());
    range.max_tokens = std::max(range.max_tokens, step->replica_batch() * step->new_tokens);
    range.max_context = std::max(range.max_context, step->context + step->new_tokens);
    const double parameters = predictor.model_parameters(i);
    range.min_parameters = range.min_parameters == 0 ? parameters : std::min(range.min_parameters, parameters);
    range.max_parameters = std::max(range.max_parameters, parameters);
  }
}

// Warns of a fit that is worth little: by what the rows determined, by what simpler answers reach, and by the rows and
// groups that the fit does not meet.
void judge(const Measurements& rows, const FitResult& fitted, std::span<const double> defaults,
           std::span<const double> roofline, const std::vector<GroupErrors>& residuals,
           std::vector<std::string>& warnings) {
  constexpr std::ptrdiff_t kFew = 5;
  constexpr double kWorthwhile = 0.9;  // of the error that it takes the place of
  constexpr double kSimpler = 1.3;
  constexpr double kFar = 0.3;  // off on the mean, or by a factor of 1.3
  const Summary& all = residuals.front().errors;
  const auto identified = std::count_if(fitted.parameters.begin(), fitted.parameters.end(),
                                        [](const FittedParameter& p) { return p.identified == Identified::yes; });
  if (identified < kFew) {
    warnings.push_back(
        fmt::format("the rows determine only {} of {} numbers: this profile is hardly more than its "
                    "defaults",
                    identified, fitted.parameters.size()));
  }
  const auto mape = [&](std::span<const double> predicted) {
    std::vector<double> errors;
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      errors.push_back(relative_error(predicted[i], rows.rows[i].latency.value));
    }
    return summarise(errors).mape;
  };
  const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
  if (const double before = mape(defaults); all.mape > kWorthwhile * before) {
    warnings.push_back(fmt::format("the fit ({} off on the mean) is hardly better than the defaults ({})",
                                   percent(all.mape), percent(before)));
  }
  if (const double simple = mape(roofline); all.mape > kSimpler * simple) {
    warnings.push_back(fmt::format("a roofline with three constants of these rows comes closer ({}) than the fit ({})",
                                   percent(simple), percent(all.mape)));
  }
  // Of those that are far off, the groups of a kind that has others.
  for (const GroupErrors& group : std::span(residuals).subspan(1)) {
    const bool named = group.by == "model" || group.by == "weights" || group.by == "execution" || group.by == "op";
    if (!named || group.errors.rows == all.rows || std::abs(group.errors.bias) < kFar) continue;
    warnings.push_back(fmt::format("{} {} speaks against the rest: its {} rows are predicted {} too {} on the mean",
                                   group.by, group.name, group.errors.rows, percent(std::abs(group.errors.bias)),
                                   group.errors.bias > 0 ? "slow" : "fast"));
  }
  constexpr std::size_t kNamed = 6;
  std::vector<std::string> lines;
  std::size_t far = 0;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    if (std::abs(std::log(fitted.predicted[i] / rows.rows[i].latency.value)) < std::log(1 + kFar)) continue;
    if (++far <= kNamed) lines.push_back(fmt::format("{}:{}", rows.where(rows.rows[i]).file, rows.rows[i].line));
  }
  if (far > 0) {
    warnings.push_back(fmt::format("{} of {} rows are off by more than a factor of {}: {}{}", far, rows.rows.size(),
                                   1 + kFar, join(lines, ", "), far > kNamed ? ", …" : ""));
  }
}

// Kinds of groups that a profile stores the error of.
constexpr std::string_view kStoredKinds[] = {"phase", "op", "scheme"};

}  // namespace

CalibrateResult calibrate(const Measurements& measurements, const hardware::Device& device, const RuntimeProfile& start,
                          Pull pull) {
  const auto pulled = [&](std::size_t p) {
    return pull == Pull::to_fitted && start.provenance[p] == hardware::Provenance::fitted;
  };
  CalibrateResult result{.calibration = {}, .profile = start};
  Calibration& c = result.calibration;
  RuntimeProfile& profile = result.profile;
  c.hardware = device.name;
  c.runtime = start.name;
  for (const Measurements::File& file : measurements.files) c.files.push_back(file.path);
  const std::vector<std::size_t> chosen = usable_rows(measurements, device, start, c.warnings);
  const Measurements used = subset(measurements, chosen);
  std::vector<std::size_t> rows(used.rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  if (rows.empty()) throw Error::bad_input("no rows to calibrate with", c.warnings.empty() ? "" : c.warnings.front());

  for (std::size_t i = 0; i < hardware::kAllParameters; ++i) {
    if (pulled(i)) continue;
    // What was fitted on this device goes back to where its fit began; what was on another one is where this one does.
    if (profile.provenance[i] == hardware::Provenance::fitted && start.measured_on(device)) {
      profile.values[i] = profile.prior[i] > 0 ? profile.prior[i] : hardware::parameter_info(i).initial;
    }
    if (profile.provenance[i] == hardware::Provenance::fitted) profile.provenance[i] = hardware::Provenance::assumed;
    profile.uncertainty[i] = 0;
  }
  Predictor predictor(used, rows, device, profile);
  FitProblem problem;
  for (const Row& row : used.rows) problem.measured.push_back(row.latency.value);
  problem.predict = [&](std::span<const double> values, std::optional<std::size_t> changed, std::span<double> out) {
    predictor.predict(values, changed, out);
  };
  problem.values.assign(profile.values.begin(), profile.values.end());
  for (const std::size_t p : predictor.parameters()) {
    if (held(p)) continue;
    const hardware::ParameterInfo& info = hardware::parameter_info(p);
    // No fit knows a number better than its formula is exact.
    constexpr double kLeastSpread = 0.05;
    const double known = std::clamp(start.uncertainty[p], kLeastSpread, info.spread);
    problem.free.push_back(
        {p, std::clamp(profile.values[p], info.min, info.max), pulled(p) ? known : info.spread, info.min, info.max});
  }
  DataCheck checked = check_rows(used, rows, problem.free.size());
  std::vector<RowLimits> limits;
  for (const std::size_t i : rows) {
    const RowRoof& roof = predictor.roofs()[i];
    limits.push_back(limits_on(device, i, roof.roof.value, roof.kernels, baseline_kind(used.rows[i])));
  }
  for (std::string& warning : check_roofs(used, limits)) checked.warnings.push_back(std::move(warning));
  c.warnings.insert(c.warnings.end(), checked.warnings.begin(), checked.warnings.end());
  problem.weights = std::move(checked.weights);
  std::vector<double> defaults(rows.size());
  predictor.predict(problem.values, std::nullopt, defaults);
  const FitResult fitted = fit(problem);
  const CrossValidation left = cross_validate(problem, fitted, labels_of(used, rows));

  for (std::size_t i = 0; i < fitted.parameters.size(); ++i) {
    const FittedParameter& p = fitted.parameters[i];
    const hardware::ParameterInfo& info = hardware::parameter_info(p.index);
    const double jackknife = left.spread.empty() ? 0 : left.spread[i];
    c.parameters.push_back(
        {info.name, std::string(info.unit), std::string(info.meaning), problem.free[i], p, jackknife});
    profile.values[p.index] = p.value;
    if (!pulled(p.index)) profile.prior[p.index] = problem.free[i].prior;
    if (p.identified != Identified::yes) continue;
    profile.provenance[p.index] = hardware::Provenance::fitted;
    profile.uncertainty[p.index] = std::max(p.relative_error, jackknife);
  }
  c.correlations = fitted.correlations;
  c.residuals = errors_by_group(used, rows, fitted.predicted);
  std::vector<RooflineTimes> times;
  for (const std::size_t i : rows) {
    const RowRoof& roof = predictor.roofs()[i];
    times.push_back({roof.compute.value, roof.memory.value + roof.network.value, baseline_kind(used.rows[i])});
  }
  judge(used, fitted, defaults, baselines(problem.measured, times).fitted, c.residuals, c.warnings);
  c.residual_scale = fitted.residual_scale;
  c.iterations = fitted.iterations;
  c.converged = fitted.converged;
  LeftOut& out = c.left_out.emplace_back();
  out.by = "model (or batch and options), (n, k) site, head layout or (collective, ranks)";
  out.folds = left.folds;
  if (left.folds > 0) out.errors = errors_by_group(used, rows, left.predicted);

  profile.hardware = device.name;
  profile.families.clear();
  note_range(used, predictor, profile.range);
  if (pull == Pull::to_fitted) profile.range.rows += start.range.rows;
  // Without anything left out, nothing is known of other rows.
  std::erase_if(profile.errors, [&](const hardware::FittedError& known) {
    return pull == Pull::to_defaults || !start.measured_on(device) ||
           std::any_of(out.errors.begin(), out.errors.end(),
                       [&](const GroupErrors& group) { return group.name == known.group; });
  });
  for (const GroupErrors& group : out.errors) {
    if (std::find(std::begin(kStoredKinds), std::end(kStoredKinds), group.by) == std::end(kStoredKinds)) continue;
    profile.errors.push_back(
        {group.name, group.errors.mape, group.errors.p90_ape, group.errors.bias, group.errors.rows});
  }
  if (left.folds > 0) {  // … with the bands that follow from them
    std::vector<double> seconds(rows.size());
    predictor.predict(profile.values, std::nullopt, seconds);
    out.errors = errors_by_group(used, rows, left.predicted, bands_of(used, predictor, profile));
  }
  return result;
}

}  // namespace llmperf::calibrate
