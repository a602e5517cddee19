#include "report/runtime_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "hardware/runtime_execution.h"
#include "model/parameters.h"
#include "report/estimate_report.h"

namespace llmperf::report {

std::string label(const estimate::Setup& setup) {
  if (setup.profile == nullptr) return kUncalibrated;
  const bool own = setup.profile->measured_on(*setup.device);
  return fmt::format("predicted: {}{}", setup.profile->title_for(*setup.device),
                     own ? "" : ", not measured on this device");
}

std::string options_text(const estimate::Setup& setup) {
  const hardware::RuntimeOptions& options = setup.execution.runtime;
  return setup.profile ? hardware::format_profile_options(*setup.profile, options)
                       : hardware::format_runtime_options(options);
}

std::optional<Band> band(const estimate::Setup& setup, std::string_view phase) {
  if (setup.profile == nullptr) return std::nullopt;
  const hardware::FittedError* error = setup.profile->error_of(phase);
  if (error == nullptr) error = setup.profile->error_of("gemm");  // fitted on kernels alone: the largest part of a step
  if (error == nullptr) return std::nullopt;
  return Band{error->mean, error->p90, setup.profile->measured_on(*setup.device) ? error->rows : 0};
}

std::string with_band(Seconds time, const std::optional<Band>& band) {
  if (!band) return format_seconds(time);
  return fmt::format("{} +- {}", format_seconds(time), format_seconds(time * band->mean));
}

std::string band_text(const estimate::Setup& setup) {
  if (setup.profile == nullptr) return "none: speed of light (efficiency 1, no launch cost); real software is slower";
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

Json runtime_json(const estimate::Setup& setup) {
  if (setup.profile == nullptr) return nullptr;
  const hardware::RuntimeProfile& p = *setup.profile;
  return {{"name", p.name},
          {"title", p.title},
          {"source", p.source},
          {"measured_on", p.hardware.empty() ? Json(nullptr) : Json(p.hardware)},
          {"class_default", !p.measured_on(*setup.device)},
          {"prefill_dispatch", std::string(hardware::name(setup.prefill_dispatch))},
          {"decode_dispatch", std::string(hardware::name(setup.decode_dispatch))},
          {"rows", p.range.rows}};
}

Json band_json(const estimate::Setup& setup, std::string_view phase, Seconds time) {
  const std::optional<Band> b = band(setup, phase);
  if (!b) return nullptr;
  return {{"mean_error", number(b->mean)},
          {"p90_error", number(b->p90)},
          {"rows", b->rows},
          {"low_s", number(time * (1 - std::min(b->mean, 1.0)))},
          {"high_s", number(time * (1 + b->mean))}};
}

}  // namespace llmperf::report
