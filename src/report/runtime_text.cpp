#include "report/runtime_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "hardware/runtime_execution.h"
#include "model/parameters.h"
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

std::optional<Band> band(const estimate::Platform& platform, std::string_view phase) {
  if (platform.profile == nullptr) return std::nullopt;
  const hardware::FittedError* error = platform.profile->error_of(phase);
  if (error == nullptr)
    error = platform.profile->error_of("gemm");  // fitted on kernels alone: the largest part of a step
  if (error == nullptr) return std::nullopt;
  return Band{error->mean, error->p90, platform.profile->measured_on(*platform.device) ? error->rows : 0};
}

std::string with_band(Seconds time, const std::optional<Band>& band) {
  if (!band) return format_seconds(time);
  return fmt::format("{} +- {}", format_seconds(time), format_seconds(time * band->mean));
}

std::string band_text(const estimate::Setup& setup) {
  if (setup.profile == nullptr) return no_band_text(setup);
  if (setup.profile->error_of("prefill") == nullptr && setup.profile->error_of("decode") == nullptr) {
    const std::optional<Band> b = band(setup, "prefill");
    if (!b) return "none: nothing was left out of the fit";
    return fmt::format(
        "+- {} of its matrix products (9 of 10 within {}), cross-validated on {}; no whole steps were "
        "measured",
        format_share(b->mean), format_share(b->p90), b->rows);
  }
  std::string text;
  std::int64_t rows = 0;
  for (const char* phase : {"prefill", "decode"}) {
    const std::optional<Band> b = band(setup, phase);
    if (!b) continue;
    rows += b->rows;
    text += fmt::format("{}{} +- {} (9 of 10 within {})", text.empty() ? "" : ", ", phase, format_share(b->mean),
                        format_share(b->p90));
  }
  if (text.empty()) return "none: the profile was fitted on single kernels, no steps";
  return text + (rows > 0 ? fmt::format("; cross-validated on {} rows", rows)
                          : "; an assumption: nothing was measured on this device");
}

std::vector<std::string> extrapolations(const estimate::Estimator& estimator, const estimate::Scenario& s) {
  const estimate::Setup& setup = estimator.setup();
  if (setup.profile == nullptr || !setup.profile->measured_on(*setup.device)) return {};
  const std::int64_t batch = estimator.replica_batch(s);
  const graph::Execution& e = setup.execution;
  // Schemes by the kernel they run: w4a16-g128 is GPTQ's.
  std::string weights = e.weights.name;
  for (const std::string& fitted : setup.profile->range.weights) {
    const auto kernel = e.weights.groups.front()[model::Role::o].kernel;
    if (kernel && fitted.starts_with(llmperf::name(*kernel))) weights = fitted;
    if (!kernel && (fitted == "bf16" || fitted == "fp16") && (weights == "bf16" || weights == "fp16")) weights = fitted;
  }
  return setup.profile->beyond_range({.batch = batch,
                                      .tokens = batch * s.prompt,
                                      .context = s.prompt + s.generate - 1,
                                      .parameters = static_cast<double>(model::count_parameters(*e.model).total),
                                      .weights = weights});
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

Json band_json(const estimate::Platform& platform, std::string_view phase, Seconds time) {
  const std::optional<Band> b = band(platform, phase);
  if (!b) return nullptr;
  return {{"mean_error", number(b->mean)},
          {"p90_error", number(b->p90)},
          {"rows", b->rows},
          {"low_s", number(time * (1 - std::min(b->mean, 1.0)))},
          {"high_s", number(time * (1 + b->mean))}};
}

}  // namespace llmperf::report
