#include "report/runtime_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "estimate/step_size.h"
#include "hardware/runtime_execution.h"
#include "report/estimate_report.h"

namespace llmperf::report {

std::string kv_text(const estimate::Setup& setup) {
  return setup.execution.kv.name() + (setup.checkpoint_kv ? " (checkpoint)" : "");
}

std::string label(const estimate::Platform& platform) {
  if (platform.tile_model() == mapper::TileModel::mapped) return "best mapping found, uncalibrated";
  if (platform.tile_model() == mapper::TileModel::published)
    return "the published mapper's formulas, not held against roofs";
  if (platform.profile == nullptr) return kUncalibrated;
  const bool own = platform.profile->measured_on(*platform.device);
  return fmt::format("predicted: {}{}", platform.profile->title_for(*platform.device),
                     own ? "" : ", not measured on this device");
}

std::string no_band_text(const estimate::Platform& platform) {
  switch (platform.tile_model()) {
    case mapper::TileModel::mapped:
      return "none: event simulation of the best mapping found, on the datasheet's rates; no array of tiles was "
             "measured";
    case mapper::TileModel::published:
      return "none: for comparison only, docs/errata.md says what these formulas leave out";
    default: return "none: speed of light (efficiency 1, no launch cost); real software is slower";
  }
}

std::string options_text(const estimate::Setup& setup) {
  const hardware::RuntimeOptions& options = setup.execution.runtime;
  return setup.profile ? hardware::format_profile_options(*setup.profile, options)
                       : hardware::format_runtime_options(options);
}

std::optional<Band> band(const estimate::Platform& platform, std::string_view phase, bool extrapolated) {
  if (platform.profile == nullptr) return std::nullopt;
  const hardware::RuntimeProfile& profile = *platform.profile;
  const bool assumed = profile.hardware.empty();
  const hardware::FittedError* error = profile.error_of(phase);
  if (error == nullptr || (extrapolated && !assumed)) return std::nullopt;
  const hardware::FittedError wide = error->widened();
  return Band{wide.mean, wide.p90, assumed ? 0 : error->rows};
}

std::optional<Band> band(const estimate::Estimator& estimator, const estimate::Scenario& scenario,
                         std::string_view phase) {
  return band(estimator.setup(), phase, !extrapolations(estimator, scenario, phase).empty());
}

std::string with_band(Seconds time, const std::optional<Band>& band) {
  if (!band) return format_seconds(time);
  return fmt::format("{} +- {}", format_seconds(time), format_seconds(time * band->mean));
}

std::string rows_text(std::int64_t rows, std::int64_t fewest) {
  constexpr std::int64_t kFew = 20;  // below, the band is widened by more than a twentieth
  if (rows == 0) return "; an assumption: nothing was measured on this device";
  return fmt::format("; cross-validated on {} rows{}", rows,
                     fewest < kFew ? ", and widened because they are so few" : "");
}

std::string band_text(const estimate::Estimator& estimator, const estimate::Scenario& scenario) {
  const estimate::Setup& setup = estimator.setup();
  if (setup.profile == nullptr) return no_band_text(setup);
  if (setup.profile->error_of("prefill") == nullptr && setup.profile->error_of("decode") == nullptr) {
    const hardware::FittedError* products = setup.profile->error_of("gemm");
    if (products == nullptr) return "none: nothing was left out of the fit";
    return fmt::format(
        "none: no whole steps were measured; matrix products alone +- {} (9 of 10 within {}), cross-validated on {} "
        "rows",
        format_share(products->mean), format_share(products->p90), products->rows);
  }
  std::string text;
  std::int64_t rows = 0;
  std::optional<std::int64_t> fewest;
  for (const char* phase : {"prefill", "decode"}) {
    if (setup.profile->error_of(phase) == nullptr) continue;
    if (!text.empty()) text += ", ";
    const std::optional<Band> b = band(estimator, scenario, phase);
    if (b) rows += b->rows;
    if (b) fewest = std::min(fewest.value_or(b->rows), b->rows);
    text += b ? fmt::format("{} +- {} (9 of 10 within {})", phase, format_share(b->mean), format_share(b->p90))
              : fmt::format("{} none (extrapolated)", phase);
  }
  return fewest ? text + rows_text(rows, *fewest)
                : "none: extrapolated beyond what was fitted, whose errors promise nothing here";
}

namespace {

std::vector<std::string> beyond_range(const estimate::Estimator& estimator, const estimate::Scenario& s,
                                      std::string_view phase, hardware::StepSize step) {
  const bool prefill = phase == "prefill";
  step.batch = estimator.replica_batch(s);
  step.tokens = prefill ? step.batch * s.prompt : step.batch;
  // Of decode the mean, as in measured rows: errors are of the mean step.
  step.context = prefill ? s.prompt : s.prompt + s.generate / 2;
  return estimator.setup().profile->beyond_range(step);
}

}  // namespace

std::vector<std::string> extrapolations(const estimate::Estimator& estimator, const estimate::Scenario& s,
                                        std::string_view phase) {
  if (estimator.setup().profile == nullptr) return {};
  return beyond_range(estimator, s, phase, estimate::step_size(estimator.setup()));
}

std::vector<std::string> extrapolations(const estimate::Estimator& estimator, const estimate::Scenario& s) {
  if (estimator.setup().profile == nullptr) return {};
  const hardware::StepSize step = estimate::step_size(estimator.setup());
  std::vector<std::string> all = beyond_range(estimator, s, "prefill", step);
  if (s.generate == 1) return all;
  for (std::string& way : beyond_range(estimator, s, "decode", step)) {
    // A longer context takes the place of the prompt's.
    const std::string_view what = std::string_view(way).substr(0, way.find(' '));
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const std::string& one) { return one.starts_with(what); });
    if (same == all.end()) {
      all.push_back(std::move(way));
    } else if (what == "context") {
      *same = std::move(way);
    }
  }
  return all;
}

Json runtime_json(const estimate::Platform& platform, const Json& dispatches) {
  if (platform.profile == nullptr) return nullptr;
  const hardware::RuntimeProfile& p = *platform.profile;
  Json json = {{"name", p.name},
               {"title", p.title},
               {"source", p.source},
               {"measured_on", p.hardware.empty() ? Json(nullptr) : Json(p.hardware)},
               {"class_default", !p.measured_on(*platform.device)}};
  json.update(dispatches);
  json["rows"] = p.range.rows;
  return json;
}

Json runtime_json(const estimate::Setup& setup) {
  return runtime_json(setup, {{"prefill_dispatch", std::string(hardware::name(setup.prefill_dispatch))},
                              {"decode_dispatch", std::string(hardware::name(setup.decode_dispatch))}});
}

Json band_json(const std::optional<Band>& b, Seconds time) {
  if (!b) return nullptr;
  return {{"mean_error", number(b->mean)},
          {"p90_error", number(b->p90)},
          {"rows", b->rows},
          {"low_s", number(time * (1 - std::min(b->mean, 1.0)))},
          {"high_s", number(time * (1 + b->mean))}};
}

}  // namespace llmperf::report
