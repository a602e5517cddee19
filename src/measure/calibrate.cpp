#include "measure/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/load_once.h"
#include "base/text.h"
#include "estimate/estimate.h"
#include "hardware/engine.h"
#include "measure/advice.h"
#include "measure/data_checks.h"
#include "measure/fit.h"
#include "measure/predictor.h"
#include "measure/serving_predictor.h"
#include "measure/training_run.h"
#include "measure/validation.h"

namespace llmperf::measure {
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
                                     const RuntimeProfile& profile, std::vector<std::string>& warnings,
                                     Refusals* refused = nullptr) {
  std::vector<std::size_t> rows;
  const std::vector<std::string> profiles = hardware::runtimes_of(device);
  std::size_t foreign = 0;
  std::size_t other_era = 0;
  std::map<std::string, std::string> eras;  // that a runtime and version are of, as far as they say one
  // The release of a stack that trains goes by the title of its profile.
  const bool trains = profile.workload == hardware::Workload::training;
  const std::string& own_era = trains ? profile.title : profile.engine;
  const auto era_of = [&](const Software& under) -> const std::string& {
    const std::string name = under.name + '@' + under.version;
    return load_once(eras, name, [&] {
      if (trains) {
        return hardware::load_runtime_profile(device, name, hardware::UnknownRuntime::measured, profile.workload).title;
      }
      return profile.engine.empty() ? "" : hardware::era_of(device, under.name, under.version);
    });
  };
  std::size_t doubtful = 0;
  std::size_t odd_kernels = 0;
  for (std::size_t i = 0; i < measurements.rows.size(); ++i) {
    const Row& row = measurements.rows[i];
    const Software under = software_of(row);
    const bool named = !under.name.empty();
    std::string era;
    try {
      if (named && row.hardware == device.name) era = era_of(under);
    } catch (const Error& error) {  // a version that never was
      if (refused == nullptr) throw;
      refused->add(measurements, i, error);
      continue;
    }
    const bool same_era = named && era == own_era && !era.empty();
    if (row.hardware != device.name || (named && !same_era && !runs_under(under.name, profile.name, profiles))) {
      ++foreign;
    } else if (named && !same_era && !era.empty()) {
      ++other_era;
    } else if (!untrusted(measurements, row).empty()) {
      ++doubtful;
    } else if (const auto* op = std::get_if<OpRow>(&row.of);
               op && device.kind != hardware::DeviceKind::cpu && stands_in(op->kernel)) {
      ++odd_kernels;
    } else {
      rows.push_back(i);
    }
  }
  if (foreign > 0) {
    warnings.push_back(fmt::format("{} rows are of another device or runtime than {} under {}: left out", foreign,
                                   device.name, profile.name));
  }
  if (other_era > 0) {
    warnings.push_back(fmt::format("{} rows are of other versions than {}: left out", other_era, own_era));
  }
  if (doubtful > 0) warnings.push_back(fmt::format("{} rows are marked untrusted: left out", doubtful));
  if (odd_kernels > 0) {
    warnings.push_back(
        fmt::format("{} rows are of what PyTorch had no kernel for, and no stack runs: left out", odd_kernels));
  }
  if (const auto unused = measurements.unused_columns(); !unused.empty()) {
    warnings.push_back("columns that change no prediction: " + join(unused, ", "));
  }
  return rows;
}

// What is left out together: the model of a step, or where all steps are of one model, its batch and options; the
// (n, k) site, head layout, shape of experts or (collective, ranks) of an op, or the number of rows of a vector op that
// a framework called.
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
  const std::vector<std::string_view> columns = row_columns();
  const auto m_column = static_cast<std::size_t>(std::ranges::find(columns, "m") - columns.begin());
  std::set<std::string> called;  // by a framework, at least in some rows; but for products
  for (const std::size_t i : rows) {
    const auto* op = std::get_if<OpRow>(&measurements.rows[i].of);
    if (op && op->mode == kEager && !std::holds_alternative<GemmShape>(op->shape)) called.insert(op->op);
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
    if (called.contains(op.op)) label += '|' + cell_text(row_cells(row)[m_column]);  // a kind has numbers of its own
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

bool is_run(const Row& row) { return std::holds_alternative<ServingRow>(row.of); }

Measurements subset(const Measurements& all, std::span<const std::size_t> rows) {
  Measurements some;
  some.files = all.files;
  some.extra_columns = all.extra_columns;
  some.timed_here = all.timed_here;
  for (const std::size_t i : rows) some.rows.push_back(all.rows[i]);
  return some;
}

std::vector<std::size_t> every_row(const Measurements& measurements) {
  std::vector<std::size_t> rows(measurements.rows.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  return rows;
}

// The rows to fit to, and where they are from. Throws Error(bad_input) where there are none.
Measurements begin(const Measurements& measurements, const hardware::Device& device, const RuntimeProfile& start,
                   Calibration& c) {
  c.hardware = device.name;
  c.runtime = start.name;
  c.files.clear();
  for (const Measurements::File& file : measurements.files) c.files.push_back(file.path);
  const std::size_t told = c.warnings.size();
  Measurements used = subset(measurements, usable_rows(measurements, device, start, c.warnings));
  if (!used.rows.empty()) return used;
  throw Error::bad_input("no rows to calibrate with", c.warnings.size() > told ? c.warnings[told] : "");
}

// Parameters that are never fitted: a limit, not a time; and bounds that no kernel has where a profile does not say so.
bool held(std::size_t parameter) {
  using enum hardware::Parameter;
  return parameter == index(memory_utilisation) ||
         (parameter >= index(vector_reduce_rate) && parameter <= index(vector_draw_bytes));
}

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

// What groups are named by, where they speak against the rest.
constexpr std::string_view kKinds[] = {"model",          "weights",   "cache", "plan",
                                       "engine version", "execution", "op",    "scheme"};
// Nothing: not of this kind.
std::optional<std::string> name_within(std::string_view kind, const Row& row) {
  const auto* s = std::get_if<StepRow>(&row.of);
  std::string text = s && kind == "cache"            ? s->kv
                     : s && kind == "engine version" ? runtime_version(*s)
                     : s && kind == "plan"
                         ? fmt::format("tp {} ep {} dp {} pp {} n_gpu {}", s->tp, s->ep, s->dp, s->pp, s->n_gpu)
                         : group_name(row, kind);
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

// Offsets: the steps of a model times a factor of its own, in the fit alone. What the form cannot express of one model,
// a kernel that it lacks, does not speak for the others then. They are parameters beyond the profile's, pulled to 1, of
// models that stand out: one for every model takes the place of what sizes say.
constexpr double kOffsetSpread = 0.1;
constexpr double kFarOffset = 2 * kOffsetSpread;

Predict with_offset(Predict predict, std::size_t parameter, std::vector<std::size_t> rows) {
  return [predict = std::move(predict), parameter, rows = std::move(rows), whole = 1.0](
             std::span<const double> values, std::optional<std::size_t> changed, std::span<double> seconds) mutable {
    if (changed != parameter) predict(values, changed, seconds);
    if (changed && *changed >= hardware::kAllParameters && changed != parameter) return;
    for (const std::size_t row : rows) seconds[row] *= values[parameter] / (changed == parameter ? whole : 1);
    if (!changed) whole = values[parameter];
  };
}

// The model whose times are farthest from what the other models' would make of them, beyond two spreads; of three at
// least that have no offset, for of two either may be the odd one.
std::optional<RowsOfText> odd_model(const Measurements& rows, const FitProblem& problem,
                                    std::span<const double> predicted, const std::vector<RowsOfText>& known) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    if (problem.weights[i] > 0) all.push_back(i);
  }
  std::vector<RowsOfText> models = rows_by_text(all, [&](std::size_t row) {
    const auto* step = std::get_if<StepRow>(&rows.rows[row].of);
    return step ? std::optional(step->model) : std::nullopt;
  });
  std::erase_if(models, [&](const RowsOfText& model) {
    return std::any_of(known.begin(), known.end(), [&](const RowsOfText& k) { return k.text == model.text; });
  });
  if (models.size() < 3) return std::nullopt;
  std::vector<double> middles;
  for (const RowsOfText& model : models) {
    std::vector<double> off;
    for (const std::size_t row : model.rows) off.push_back(std::log(problem.measured[row] / predicted[row]));
    middles.push_back(quantile(std::move(off), 0.5));
  }
  std::optional<RowsOfText> odd;
  double far = kFarOffset;
  for (std::size_t m = 0; m < models.size(); ++m) {
    std::vector<double> others = middles;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(m));
    const double off = std::abs(middles[m] - quantile(std::move(others), 0.5));
    if (off > far) {
      far = off;
      odd = models[m];
    }
  }
  return odd;
}

// The fit of the problem, which gains an offset for every model that stands out and stays far off with one; returns
// those in the order of their parameters.
std::vector<RowsOfText> fit_with_offsets(const Measurements& rows, FitProblem& problem, FitResult& fitted) {
  std::vector<RowsOfText> odd;
  std::vector<RowsOfText> tried;
  fitted = fit(problem);
  while (const std::optional<RowsOfText> next = odd_model(rows, problem, fitted.predicted, tried)) {
    tried.push_back(*next);
    FitProblem trial = problem;
    trial.values.push_back(1);
    trial.free.push_back({hardware::kAllParameters + odd.size(), 1, kOffsetSpread, 0.25, 4, 1});
    trial.predict = with_offset(problem.predict, trial.free.back().index, next->rows);
    FitResult again = fit(trial);
    if (std::abs(std::log(again.values.back())) < kFarOffset) continue;
    odd.push_back(*next);
    problem = std::move(trial);
    fitted = std::move(again);
  }
  return odd;
}

// Warns of a fit that is worth little: by what the rows determined, by what simpler answers reach, and by the rows and
// groups that the fit does not meet. `known`: rows that were named already.
void judge(const Measurements& rows, const Calibration& c, std::span<const double> predicted,
           std::span<const double> defaults, std::span<const double> roofline, std::set<std::size_t> known,
           std::vector<std::string>& warnings) {
  constexpr std::ptrdiff_t kFew = 5;
  constexpr double kWorthwhile = 0.9;  // of the error that it takes the place of
  constexpr double kSimpler = 1.3;
  constexpr double kFar = 0.3;  // off on the mean, or by a factor of 1.3
  const Summary& all = c.residuals.front().errors;
  const auto identified = std::count_if(c.parameters.begin(), c.parameters.end(), [](const CalibratedParameter& p) {
    return p.fitted.identified == Identified::yes;
  });
  if (identified < kFew) {
    warnings.push_back(
        fmt::format("the rows determine only {} of {} numbers: this profile is hardly more than its "
                    "defaults",
                    identified, c.parameters.size()));
  }
  const auto errors = [&](std::span<const double> times, std::span<const std::size_t> of) {
    std::vector<double> list;
    for (const std::size_t i : of) list.push_back(relative_error(rows.rows[i], times[i]));
    return summarise(list);
  };
  const std::vector<std::size_t> every = every_row(rows);
  const auto mape = [&](std::span<const double> times) { return errors(times, every).mape; };
  const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
  if (const double before = mape(defaults); all.mape > kWorthwhile * before) {
    warnings.push_back(fmt::format("the fit ({} off on the mean) is hardly better than the defaults ({})",
                                   percent(all.mape), percent(before)));
  }
  if (const double simple = roofline.empty() ? 0 : mape(roofline); simple > 0 && all.mape > kSimpler * simple) {
    warnings.push_back(fmt::format("a roofline with three constants of these rows comes closer ({}) than the fit ({})",
                                   percent(simple), percent(all.mape)));
  }
  // Of those that are far off, the groups of a kind that has others, unless most of their rows were named with a kind
  // before it.
  for (const std::string_view kind : kKinds) {
    for (const auto& [text, members] :
         rows_by_text(every, [&](std::size_t i) { return name_within(kind, rows.rows[i]); })) {
      const double bias = errors(predicted, members).bias;
      const auto named =
          std::count_if(members.begin(), members.end(), [&](std::size_t i) { return known.contains(i); });
      if (members.size() == every.size() || std::abs(bias) < kFar || 2 * named > std::ssize(members)) continue;
      known.insert(members.begin(), members.end());
      warnings.push_back(fmt::format("{} {} speaks against the rest: its {} rows are predicted {} too {} on the mean",
                                     kind, text, members.size(), percent(std::abs(bias)), bias > 0 ? "slow" : "fast"));
    }
  }
  constexpr std::size_t kNamed = 6;
  std::vector<std::string> lines;
  std::size_t far = 0;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    if (std::abs(std::log(predicted[i] / rows.rows[i].latency.value)) < std::log(1 + kFar)) continue;
    if (++far <= kNamed) lines.push_back(fmt::format("{}:{}", rows.where(rows.rows[i]).file, rows.rows[i].line));
  }
  if (far > 0) {
    warnings.push_back(fmt::format("{} of {} rows are off by more than a factor of {}: {}{}", far, rows.rows.size(),
                                   1 + kFar, join(lines, ", "), far > kNamed ? ", …" : ""));
  }
}

// Kinds of groups that a profile stores the error of.
constexpr std::string_view kStoredKinds[] = {"phase", "op", "scheme"};

// Of what is known about numbers of another device, the shares within which they may move here.
constexpr double kReaches[] = {1, 0.5, 0.25, 0.12, 0.06, 0.03};

struct Reached {
  FitProblem problem;
  FitResult fitted;
  std::vector<RowsOfText> odd;
  CrossValidation left;
  double error = 0;  // squares of the logarithms of predicted over measured, of rows left out, added up
};

// Of fits that reach less and less far the last that predicts rows left out about as well as any. A few rows of many
// kinds would else lead numbers that none of them says much about into corners, where other rows are far off.
Reached best_reach(const Measurements& rows, const FitProblem& bare, const std::vector<std::string>& labels,
                   std::span<const double> reaches) {
  constexpr double kAsWell = 1.05;
  std::vector<Reached> trials;
  for (const double reach : reaches) {
    Reached& trial = trials.emplace_back(Reached{.problem = bare, .fitted = {}, .odd = {}, .left = {}});
    for (FreeParameter& free : trial.problem.free) free.spread *= reach;
    trial.odd = fit_with_offsets(rows, trial.problem, trial.fitted);
    trial.left = cross_validate(trial.problem, trial.fitted, labels);
    if (trial.left.folds == 0) return std::move(trials.front());  // nothing to choose by
    for (std::size_t i = 0; i < trial.left.predicted.size(); ++i) {
      const double off = std::log(trial.left.predicted[i] / bare.measured[i]);
      trial.error += bare.weights[i] * off * off;
    }
  }
  const double least = std::ranges::min_element(trials, {}, &Reached::error)->error;
  return std::move(
      *std::find_if(trials.rbegin(), trials.rend(), [&](const Reached& t) { return t.error <= kAsWell * least; }));
}

// Whether the fit keeps to the number that the start was fitted to.
bool pulled(std::size_t parameter, const RuntimeProfile& start, Pull pull) {
  return pull == Pull::to_fitted && start.provenance[parameter] == hardware::Provenance::fitted;
}

// What was fitted on this device goes back to where its fit began; what was on another one is where this one does.
void forget_fit(RuntimeProfile& profile, const hardware::Device& device, Pull pull) {
  const bool own = profile.measured_on(device);
  for (std::size_t i = 0; i < hardware::kAllParameters; ++i) {
    if (pulled(i, profile, pull)) continue;
    if (profile.provenance[i] == hardware::Provenance::fitted) {
      if (own) profile.values[i] = profile.prior[i] > 0 ? profile.prior[i] : hardware::parameter_info(i).initial;
      profile.provenance[i] = hardware::Provenance::assumed;
    }
    profile.uncertainty[i] = 0;
  }
}

FreeParameter free_parameter(std::size_t p, const RuntimeProfile& profile, const RuntimeProfile& start, Pull pull) {
  const hardware::ParameterInfo& info = hardware::parameter_info(p);
  // No fit knows a number better than its formula is exact.
  constexpr double kLeastSpread = 0.05;
  const double known = std::clamp(start.uncertainty[p], kLeastSpread, info.spread);
  return {p, std::clamp(profile.values[p], info.min, info.max), pulled(p, start, pull) ? known : info.spread, info.min,
          info.max};
}

// What all fits of times by a formula begin and end with.
struct Frame {
  const hardware::Device& device;
  const RuntimeProfile& start;
  Pull pull;
  CalibrateResult result{.calibration = {}, .profile = start};
  Calibration& c = result.calibration;
  RuntimeProfile& profile = result.profile;
  Measurements used = {};
  std::vector<std::size_t> rows = {};
  FitProblem problem = {};
  std::vector<double> defaults = {};  // predicted from where the fit begins

  Frame(const Measurements& measurements, const hardware::Device& of, const RuntimeProfile& from, Pull to)
      : device(of), start(from), pull(to), used(begin(measurements, of, from, c)) {
    forget_fit(profile, device, pull);
  }
  bool of_class() const { return pull == Pull::to_fitted && start.hardware.empty(); }
  std::vector<double> predicted(std::span<const double> values) {
    std::vector<double> seconds(rows.size());
    problem.predict(values, std::nullopt, seconds);
    return seconds;
  }

  // Once `used` has the rows to fit to, and the problem says how they are predicted.
  void begin_with(Predict predict) {
    rows = every_row(used);
    for (const Row& row : used.rows) problem.measured.push_back(row.latency.value);
    problem.values.assign(profile.values.begin(), profile.values.end());
    problem.predict = std::move(predict);
    defaults = predicted(problem.values);
  }

  // Once the problem's free parameters are known. Numbers of the device's class hold for it until its own rows say
  // otherwise, be it one.
  Reached reach(const std::vector<std::string>& labels, std::span<const RowLimits> limits = {}) {
    DataCheck checked = check_rows(used, rows, problem.free.size(), of_class() ? 1 : kFewestRows);
    for (std::string& warning : check_roofs(used, limits)) checked.warnings.push_back(std::move(warning));
    c.warnings.insert(c.warnings.end(), checked.warnings.begin(), checked.warnings.end());
    problem.weights = std::move(checked.weights);
    const bool borrowed = pull == Pull::to_fitted && !start.measured_on(device);
    Reached chosen = best_reach(used, problem, labels, borrowed ? std::span(kReaches) : std::span(kReaches, 1));
    // The first parameters of the fit, which are the profile's.
    for (std::size_t i = 0; i < problem.free.size(); ++i) {
      const FittedParameter& p = chosen.fitted.parameters[i];
      const hardware::ParameterInfo& info = hardware::parameter_info(p.index);
      const double jackknife = chosen.left.spread.empty() ? 0 : chosen.left.spread[i];
      c.parameters.push_back(
          {info.name, std::string(info.unit), std::string(info.meaning), chosen.problem.free[i], p, jackknife});
      profile.values[p.index] = p.value;
      if (!pulled(p.index, start, pull)) profile.prior[p.index] = chosen.problem.free[i].prior;
      if (p.identified != Identified::yes) continue;
      profile.provenance[p.index] = hardware::Provenance::fitted;
      profile.uncertainty[p.index] = std::max(p.relative_error, jackknife);
    }
    for (const Correlation& pair : chosen.fitted.correlations) {
      if (std::max(pair.first, pair.second) < hardware::kAllParameters) c.correlations.push_back(pair);
    }
    c.residual_scale = chosen.fitted.residual_scale;
    c.iterations = chosen.fitted.iterations;
    c.converged = chosen.fitted.converged;
    return chosen;
  }

  // How good the fit is, `roofline` what the simplest answer makes of the rows; the profile is the device's then.
  LeftOut& judge_fit(const Reached& chosen, std::span<const double> roofline, std::string by) {
    const std::vector<double> seconds = predicted(std::span(chosen.fitted.values).first(hardware::kAllParameters));
    c.residuals = errors_by_group(used, rows, seconds);
    std::set<std::size_t> named;
    for (std::size_t i = 0; i < chosen.odd.size(); ++i) {
      const double offset = chosen.fitted.values[hardware::kAllParameters + i];
      const RowsOfText& odd = chosen.odd[i];
      named.insert(odd.rows.begin(), odd.rows.end());
      c.warnings.push_back(
          fmt::format("model {} is {:.0f} % {} than its parts say: its {} rows have little say in the fit", odd.text,
                      100 * std::abs(offset - 1), offset > 1 ? "slower" : "faster", odd.rows.size()));
    }
    judge(used, c, seconds, defaults, roofline, std::move(named), c.warnings);
    profile.hardware = device.name;
    profile.families.clear();
    LeftOut& out = c.left_out.emplace_back();
    out.by = std::move(by);
    out.folds = chosen.left.folds;
    return out;
  }

  // In place of what the profile knew of the group.
  void store_error(const std::string& group, const Summary& s) {
    std::erase_if(profile.errors, [&](const hardware::FittedError& known) { return known.group == group; });
    profile.errors.push_back({group, s.mape, s.p90_ape, s.bias, s.rows});
  }
};

CalibrateResult fit_together(const Measurements& measurements, const hardware::Device& device,
                             const RuntimeProfile& start, Pull pull) {
  Frame frame(measurements, device, start, pull);
  const Measurements& used = frame.used;
  RuntimeProfile& profile = frame.profile;
  // Rows that were all called one by one know nothing of kernels without that.
  const auto called = [](const Row& row) {
    const auto* op = std::get_if<OpRow>(&row.of);
    return (op ? op->mode : std::get<StepRow>(row.of).execution) == kEager;
  };
  const auto is_op = [](const Row& row) { return std::holds_alternative<OpRow>(row.of); };
  if (std::any_of(used.rows.begin(), used.rows.end(), is_op)) {
    profile.choices.eager = std::all_of(used.rows.begin(), used.rows.end(), called);
  }
  const std::vector<std::size_t> rows = every_row(used);
  Predictor predictor(used, rows, device, profile);
  frame.begin_with([&](std::span<const double> values, std::optional<std::size_t> changed, std::span<double> out) {
    predictor.predict(values.first(hardware::kAllParameters), changed, out);
  });
  FitProblem& problem = frame.problem;
  for (const std::size_t p : predictor.parameters()) {
    if (!held(p)) problem.free.push_back(free_parameter(p, profile, start, pull));
  }
  std::vector<RowLimits> limits;
  std::vector<RooflineTimes> times;
  for (const std::size_t i : rows) {
    const RowRoof& roof = predictor.roofs()[i];
    limits.push_back(limits_on(device, i, roof.roof.value, roof.kernels, baseline_kind(used.rows[i])));
    times.push_back({roof.compute.value, roof.memory.value + roof.network.value, baseline_kind(used.rows[i])});
  }
  const Reached chosen = frame.reach(labels_of(used, rows), limits);
  const CrossValidation& left = chosen.left;
  LeftOut& out = frame.judge_fit(chosen, baselines(problem.measured, times).fitted,
                                 "model (or batch and options), (n, k) site, head layout or (collective, ranks)");
  frame.c.next =
      propose(used, predictor, device, problem, std::span(chosen.fitted.values).first(hardware::kAllParameters),
              std::max(problem.noise, chosen.fitted.residual_scale));
  if (left.folds > 0) out.errors = errors_by_group(used, rows, left.predicted);

  profile.kernels.clear();
  profile.foreign_steps.clear();
  // A class that says how far off it is on devices left out says it of this one, too.
  const bool covers = frame.of_class() && start.range.rows > 0;
  if (!covers) note_range(used, predictor, profile.range);
  if (pull == Pull::to_fitted) profile.range.rows = start.range.rows + static_cast<std::int64_t>(rows.size());
  // Without anything left out, nothing is known of other rows.
  if (pull == Pull::to_defaults || !(start.measured_on(device) || covers)) profile.errors.clear();
  for (const GroupErrors& group : out.errors) {
    if (std::ranges::count(kStoredKinds, group.by) > 0) frame.store_error(group.name, group.errors);
  }
  if (left.folds > 0) {  // … with the bands that follow from them
    frame.predicted(profile.values);
    out.errors = errors_by_group(used, rows, left.predicted, bands_of(used, predictor, profile));
  }
  return std::move(frame.result);
}

// Numbers that the time of a whole training step says something of; those behind them are of its memory.
std::vector<std::size_t> trained_parameters() {
  using enum hardware::Parameter;
  std::vector<std::size_t> list = {index(gemm_share), index(prefill_share), index(vector_memory_share),
                                   index(dequantise_share)};
  for (std::size_t p = index(training_narrow_share); p <= index(training_host_experts); ++p) list.push_back(p);
  return list;
}

// Rows whose time is known, and what is predicted of them.
std::vector<TrainingRun> runs_under(const RuntimeProfile& profile, Measurements& measurements,
                                    const hardware::Device& device) {
  std::erase_if(measurements.rows, [](const Row& row) { return !std::isfinite(row.latency.value); });
  request::Sources sources;
  sources.put(device.name, device);
  sources.put(device.name, profile.name, profile);
  std::vector<TrainingRun> runs;
  for (const Row& row : measurements.rows) {
    runs.push_back(resolve_run(std::get<TrainingRow>(row.of), device, profile.name, sources));
  }
  return runs;
}

// Whole training steps: every run is estimated anew under the numbers that are tried. What is left out together is a
// site that published runs, or of one site a model.
CalibrateResult fit_trained(const Measurements& measurements, const hardware::Device& device,
                            const RuntimeProfile& start, Pull pull) {
  Frame frame(measurements, device, start, pull);
  RuntimeProfile& profile = frame.profile;
  std::vector<TrainingRun> runs = runs_under(profile, frame.used, device);
  if (runs.empty()) throw Error::bad_input("no rows to calibrate with", "none says how long a step took");
  RuntimeProfile trial = profile;
  // Of any change all runs: which of two overlapping times counts may be another one at any values.
  frame.begin_with([&](std::span<const double> values, std::optional<std::size_t>, std::span<double> out) {
    std::copy_n(values.begin(), hardware::kAllParameters, trial.values.begin());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      estimate_under(runs[i], trial, device);
      out[i] = runs[i].time().value;
    }
  });
  for (const std::size_t p : trained_parameters()) {
    const FreeParameter free = free_parameter(p, profile, start, pull);
    bool counts = false;
    for (const double end : {free.min, free.max}) {
      std::vector<double> values = frame.problem.values;
      values[p] = end;
      counts = counts || frame.predicted(values) != frame.defaults;
    }
    if (counts) frame.problem.free.push_back(free);
  }
  std::set<std::string> sites;
  for (const Row& row : frame.used.rows) sites.insert(std::get<TrainingRow>(row.of).source);
  std::vector<std::string> labels;
  for (const Row& row : frame.used.rows) {
    const auto& of = std::get<TrainingRow>(row.of);
    labels.push_back(sites.size() > 1 ? of.source : of.model);
  }
  const Reached chosen = frame.reach(labels);
  LeftOut& out = frame.judge_fit(chosen, {}, sites.size() > 1 ? "site that published the runs" : "model of the runs");
  profile.range = {};
  profile.range.rows = static_cast<std::int64_t>(runs.size());
  if (pull == Pull::to_defaults) profile.errors.clear();
  if (out.folds == 0) return std::move(frame.result);
  const auto kinds = rows_by_text(frame.rows, [&](std::size_t i) {
    return std::optional(estimate::kind_of_run(runs[i].setup(), runs[i].estimate));
  });
  for (const RowsOfText& kind : kinds) {
    std::vector<double> errors;
    for (const std::size_t i : kind.rows) {
      errors.push_back(relative_error(frame.used.rows[i], chosen.left.predicted[i]));
    }
    frame.store_error(kind.text, summarise(errors));
  }
  Bands bands;
  for (TrainingRun& run : runs) {
    estimate_under(run, profile, device);
    bands.push_back(estimate::band_of_run(run.setup(), run.estimate));
  }
  out.errors = errors_by_group(frame.used, frame.rows, chosen.left.predicted, bands);
  return std::move(frame.result);
}

// Of rows of ops and steps under a profile as it is; empty where there are none.
std::vector<GroupErrors> errors_under(const RuntimeProfile& profile, const Measurements& measurements,
                                      const hardware::Device& device) {
  std::vector<std::string> ignored;
  std::vector<std::size_t> chosen = usable_rows(measurements, device, profile, ignored);
  std::erase_if(chosen, [&](std::size_t row) { return is_run(measurements.rows[row]); });
  if (chosen.empty()) return {};
  Measurements used = subset(measurements, chosen);
  std::vector<double> predicted;
  std::vector<std::size_t> rows = every_row(used);
  if (profile.workload == hardware::Workload::training) {
    for (const TrainingRun& run : runs_under(profile, used, device)) predicted.push_back(run.time().value);
    rows.resize(predicted.size());
  } else {
    predicted.resize(rows.size());
    Predictor(used, rows, device, profile).predict(profile.values, std::nullopt, predicted);
  }
  return errors_by_group(used, rows, predicted);
}

// The ops first, then the steps from there.
CalibrateResult fit_in_turn(const Measurements& measurements, const hardware::Device& device,
                            const RuntimeProfile& start, Pull pull) {
  const auto only = [&](bool steps) {
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < measurements.rows.size(); ++i) {
      if (std::holds_alternative<StepRow>(measurements.rows[i].of) == steps) rows.push_back(i);
    }
    return subset(measurements, rows);
  };
  CalibrateResult result = fit_together(only(false), device, start, pull);
  const Calibration ops = std::move(result.calibration);
  result = fit_together(only(true), device, result.profile, Pull::to_fitted);
  Calibration& c = result.calibration;

  std::map<std::size_t, CalibratedParameter> parameters;
  for (const CalibratedParameter& p : ops.parameters) parameters[p.free.index] = p;
  for (const CalibratedParameter& p : c.parameters) {
    CalibratedParameter& of_ops = parameters[p.free.index];
    if (of_ops.name.empty() || p.fitted.identified == Identified::yes) of_ops = p;
  }
  c.parameters.clear();
  for (auto& [index, parameter] : parameters) c.parameters.push_back(std::move(parameter));
  c.correlations.insert(c.correlations.begin(), ops.correlations.begin(), ops.correlations.end());
  c.left_out.insert(c.left_out.begin(), ops.left_out.begin(), ops.left_out.end());
  c.left_out.front().by = "(n, k) site, head layout or (collective, ranks) of the ops, fitted first";
  c.left_out.back().by = "model (or batch and options) of the steps, fitted after them";
  c.converged = c.converged && ops.converged;
  c.next.insert(c.next.begin(), ops.next.begin(), ops.next.end());
  std::stable_sort(c.next.begin(), c.next.end(), [](const Proposal& a, const Proposal& b) { return a.gain > b.gain; });
  if (c.next.size() > kProposals) c.next.resize(kProposals);
  std::vector<std::string> warnings;
  for (const std::string& warning : ops.warnings) warnings.push_back(fmt::format("ops: {}", warning));
  for (const std::string& warning : c.warnings) warnings.push_back(fmt::format("steps: {}", warning));
  c.warnings = std::move(warnings);

  c.residuals = errors_under(result.profile, measurements, device);
  return result;
}

// What figures of servers can say: the host's part of a step, an exchange, the front end. All else of a step is for
// rows of kernels and steps.
std::vector<std::size_t> served_parameters(const Measurements& rows, const RuntimeProfile& profile) {
  using enum hardware::Parameter;
  std::vector<std::size_t> list = {index(step_decode), index(step_sequence), index(host_request)};
  const bool exchanges = std::any_of(rows.rows.begin(), rows.rows.end(),
                                     [](const Row& row) { return std::get<ServingRow>(row.of).tp > 1; });
  if (exchanges) list.push_back(index(profile.choices.custom_all_reduce > 0 ? custom_launch : collective_launch));
  return list;
}

// Of a run's figures the mean TTFT and TPOT, where it has one: the others follow from the same steps.
bool counts(const Row& row) {
  const std::string& metric = std::get<ServingRow>(row.of).metric;
  return metric == "ttft.mean" || metric == "tpot.mean";
}

constexpr double kAcceptance = 0.7;  // where nothing is known

// Few numbers by simulations of the runs, from where the profile is.
CalibrateResult fit_served(const Measurements& measurements, const hardware::Device& device,
                           const RuntimeProfile& start, CalibrateResult result) {
  Calibration& c = result.calibration;
  RuntimeProfile& profile = result.profile;
  const Measurements used = begin(measurements, device, start, c);
  const std::vector<std::size_t> rows = every_row(used);
  ServingPredictor predictor(used, rows, device);
  FitProblem problem;
  const bool means = std::any_of(used.rows.begin(), used.rows.end(), counts);
  for (const Row& row : used.rows) {
    problem.measured.push_back(row.latency.value);
    problem.weights.push_back(!means || counts(row) ? 1 : 0);
  }
  std::vector<double> predicted(rows.size());
  std::vector<std::string> drafts;  // whose acceptance is found as well, behind the parameters of profiles
  for (const auto& [draft, unknown] : predictor.acceptances()) drafts.push_back(draft);
  const auto accept = [&](std::span<const double> shares) {
    for (std::size_t i = 0; i < drafts.size(); ++i) predictor.accept(drafts[i], shares[i]);
  };
  accept(std::vector<double>(drafts.size(), kAcceptance));
  predictor.predict(&profile, predicted);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!std::isfinite(predicted[i])) problem.weights[i] = 0;
  }
  RuntimeProfile trial = profile;
  problem.predict = [&](std::span<const double> values, std::optional<std::size_t>, std::span<double> seconds) {
    const auto own = values.first(hardware::kAllParameters);
    std::copy(own.begin(), own.end(), trial.values.begin());
    accept(values.subspan(hardware::kAllParameters));
    predictor.predict(&trial, seconds);
  };
  problem.values.assign(profile.values.begin(), profile.values.end());
  for (const std::size_t p : served_parameters(used, profile)) {
    const hardware::ParameterInfo& info = hardware::parameter_info(p);
    problem.free.push_back({p, std::clamp(profile.values[p], info.min, info.max), info.spread, info.min, info.max});
  }
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    problem.values.push_back(kAcceptance);
    problem.free.push_back({hardware::kAllParameters + i, kAcceptance, 0.3, 0.05, 0.99});
  }
  const FitResult fitted = pattern_search(problem);
  accept(std::span(fitted.values).subspan(hardware::kAllParameters));
  for (std::size_t i = 0; i < problem.free.size(); ++i) {
    const FittedParameter& p = fitted.parameters[i];
    if (p.index >= hardware::kAllParameters) {
      c.parameters.push_back({"accept " + drafts[p.index - hardware::kAllParameters], "",
                              "of each drafted token, given that those before it were kept", problem.free[i], p, 0});
      continue;
    }
    const hardware::ParameterInfo& info = hardware::parameter_info(p.index);
    std::erase_if(c.parameters, [&](const CalibratedParameter& known) { return known.free.index == p.index; });
    c.parameters.push_back({info.name, std::string(info.unit), std::string(info.meaning), problem.free[i], p, 0});
    if (p.identified != Identified::yes) continue;
    profile.values[p.index] = p.value;
    profile.prior[p.index] = problem.free[i].prior;
    profile.provenance[p.index] = hardware::Provenance::fitted;
    profile.uncertainty[p.index] = p.relative_error;
  }
  predictor.predict(&profile, predicted);
  std::vector<std::size_t> known;
  std::vector<double> seconds;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!std::isfinite(predicted[i])) continue;
    known.push_back(i);
    seconds.push_back(predicted[i]);
  }
  if (known.size() < rows.size()) {
    std::size_t first = 0;
    while (std::isfinite(predicted[first])) ++first;
    c.warnings.push_back(fmt::format("{} of {} figures are of runs that nothing predicts (the first is {})",
                                     rows.size() - known.size(), rows.size(), predictor.remark(first)));
  }
  std::vector<GroupErrors> residuals = errors_by_group(used, known, seconds);
  if (c.residuals.empty()) {
    c.residuals = std::move(residuals);
  } else {  // behind those of steps and ops, whose summary is the first
    c.residuals.insert(c.residuals.end(), residuals.begin() + 1, residuals.end());
  }
  c.residual_scale = fitted.residual_scale;
  c.iterations = fitted.iterations;
  c.converged = fitted.converged;
  profile.hardware = device.name;
  return result;
}

// Rows that would be fitted to, and that nothing predicts.
void refuse_rows(Measurements& measurements, const hardware::Device& device, const RuntimeProfile& start) {
  Refusals refused;
  std::vector<std::string> ignored;
  std::vector<std::size_t> runs, others, usable = usable_rows(measurements, device, start, ignored, &refused);
  if (start.workload == hardware::Workload::training) {
    request::Sources sources;
    sources.put(device.name, device);
    sources.put(device.name, start.name, start);
    for (const std::size_t row : usable) {
      try {
        resolve_run(std::get<TrainingRow>(measurements.rows[row].of), device, start.name, sources);
      } catch (const Error& error) {
        refused.add(measurements, row, error);
      }
    }
    refused.apply(measurements);
    return;
  }
  for (const std::size_t row : usable) (is_run(measurements.rows[row]) ? runs : others).push_back(row);
  const Predictor predictor(measurements, others, device, start, &refused);
  const ServingPredictor served(measurements, runs, device, &refused);
  if (predictor.rows().empty() && served.rows().empty()) refused.throw_if_any();
  refused.apply(measurements);
}

CalibrateResult calibrate_rows(const Measurements& measurements, const hardware::Device& device,
                               const RuntimeProfile& start, Pull pull) {
  if (start.workload == hardware::Workload::training) return fit_trained(measurements, device, start, pull);
  if (std::any_of(measurements.rows.begin(), measurements.rows.end(), is_run)) {
    Measurements runs = measurements;
    Measurements others = measurements;
    std::erase_if(runs.rows, [](const Row& row) { return !is_run(row); });
    std::erase_if(others.rows, is_run);
    CalibrateResult result{.calibration = {}, .profile = start};
    if (!others.rows.empty()) result = calibrate_rows(others, device, start, pull);
    return fit_served(runs, device, start, std::move(result));
  }
  std::vector<std::string> ignored;
  std::set<std::string> steps;
  std::set<std::string> ops;
  for (const std::size_t i : usable_rows(measurements, device, start, ignored)) {
    const Row& row = measurements.rows[i];
    (std::holds_alternative<StepRow>(row.of) ? steps : ops).insert(configuration(row));
  }
  const bool in_turn = steps.size() >= kFewestRows && ops.size() > steps.size();
  return in_turn ? fit_in_turn(measurements, device, start, pull) : fit_together(measurements, device, start, pull);
}

}  // namespace

hardware::Workload workload_of(const Measurements& measurements) {
  const auto steps = std::ranges::count_if(measurements.rows,
                                           [](const Row& row) { return std::holds_alternative<TrainingRow>(row.of); });
  if (steps == 0) return hardware::Workload::language;
  if (steps == std::ssize(measurements.rows)) return hardware::Workload::training;
  throw Error::bad_input("rows of training steps and others have profiles of their own", "calibrate them one by one");
}

CalibrateResult calibrate(Measurements measurements, const hardware::Device& device, const RuntimeProfile& start,
                          Pull pull) {
  constexpr auto kTraining = hardware::Workload::training;
  if ((workload_of(measurements) == kTraining) != (start.workload == kTraining)) {
    throw Error::bad_input(
        fmt::format("the rows are {}training steps, and {} is a profile of {}",
                    start.workload == kTraining ? "no " : "", start.name,
                    start.workload == kTraining ? "these" : "inference"),
        "`runtime`: pytorch-fsdp, megatron, transformers-peft, maxtext or mindspeed for training steps");
  }
  refuse_rows(measurements, device, start);
  CalibrateResult result = calibrate_rows(measurements, device, start, pull);
  result.calibration.before = errors_under(start, measurements, device);
  result.calibration.refused = std::move(measurements.refused);
  return result;
}

}  // namespace llmperf::measure
