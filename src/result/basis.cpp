#include "result/basis.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "estimate/estimate.h"
#include "hardware/runtime_execution.h"
#include "model/video_parameters.h"

namespace llmperf::result {

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
  const hardware::FittedError* error = profile.error_of(phase);
  if (error == nullptr) return std::nullopt;
  bool assumed = profile.hardware.empty() || error->rows == 0;
  if (extrapolated && !assumed) {
    error = profile.error_of(fmt::format("{} beyond", phase));
    if (error == nullptr) return std::nullopt;
    assumed = true;
  }
  const hardware::FittedError wide = error->widened();
  return Band{wide.mean, wide.p90, assumed ? 0 : error->rows};
}

std::optional<Band> band(const estimate::Setup& setup, const estimate::Scenario& scenario, std::string_view phase) {
  return band(setup, phase, !extrapolations(setup, scenario, phase).empty());
}

std::string with_band(Seconds time, const std::optional<Band>& band) {
  if (!band) return format_seconds(time);
  return fmt::format("{} +- {}", format_seconds(time), format_seconds(time * band->mean));
}

std::string rows_text(const hardware::RuntimeProfile& profile, std::int64_t rows, std::int64_t fewest) {
  constexpr std::int64_t kFew = 20;  // below, the band is widened by more than a twentieth
  if (rows == 0) {
    return fmt::format("; an assumption: {} measured on this device",
                       profile.hardware.empty() ? "nothing was" : "such steps were not");
  }
  return fmt::format("; cross-validated on {} rows{}", rows,
                     fewest < kFew ? ", and widened because they are so few" : "");
}

std::string band_text(const estimate::Setup& setup, const estimate::Scenario& scenario) {
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
    const std::optional<Band> b = band(setup, scenario, phase);
    if (b) rows += b->rows;
    // An assumption beside a measured error rests on no rows, few or many.
    if (b && (!fewest || *fewest == 0 || (b->rows > 0 && b->rows < *fewest))) fewest = b->rows;
    text += b ? fmt::format("{} +- {} (9 of 10 within {})", phase, format_share(b->mean), format_share(b->p90))
              : fmt::format("{} none (extrapolated)", phase);
  }
  return fewest ? text + rows_text(*setup.profile, rows, *fewest)
                : "none: extrapolated beyond what was fitted, whose errors promise nothing here";
}

namespace {

std::vector<std::string> beyond_range(const estimate::Setup& setup, const estimate::Scenario& s, std::string_view phase,
                                      hardware::StepSize step) {
  const bool prefill = phase == "prefill";
  const std::int64_t replicas = setup.execution.plan.data;
  step.batch = (s.batch + replicas - 1) / replicas;
  step.tokens = prefill ? step.batch * s.prompt : step.batch;
  // Of decode the mean, as in measured rows: errors are of the mean step.
  step.context = prefill ? s.prompt : s.prompt + s.generate / 2;
  return setup.profile->beyond_range(step);
}

}  // namespace

std::vector<std::string> extrapolations(const estimate::Setup& setup, const estimate::Scenario& s,
                                        std::string_view phase) {
  if (setup.profile == nullptr) return {};
  return beyond_range(setup, s, phase, estimate::step_size(setup));
}

std::vector<std::string> extrapolations(const estimate::Setup& setup, const estimate::Scenario& s) {
  if (setup.profile == nullptr) return {};
  const hardware::StepSize step = estimate::step_size(setup);
  std::vector<std::string> all = beyond_range(setup, s, "prefill", step);
  if (s.generate == 1) return all;
  for (std::string& way : beyond_range(setup, s, "decode", step)) {
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

std::string options_text(const estimate::VideoSetup& setup) {
  const hardware::RuntimeOptions& options = setup.execution.runtime;
  return setup.profile ? hardware::format_profile_options(*setup.profile, options)
                       : hardware::format_runtime_options(options, hardware::Workload::video);
}

std::vector<std::string> extrapolations(const estimate::VideoSetup& setup) {
  if (setup.profile == nullptr) return {};
  const graph::VideoExecution& e = setup.execution;
  return setup.profile->beyond_range({.batch = e.batch(),
                                      .tokens = e.batch() * e.shape.tokens(),
                                      .context = 0,
                                      .parameters = static_cast<double>(model::count_parameters(*e.model).total),
                                      .weights = setup.weights_name,
                                      .plan = graph::to_text(e.plan),
                                      .device = setup.device->name});
}

std::optional<Band> band(const estimate::VideoSetup& setup) {
  return band(setup, "video", !extrapolations(setup).empty());
}

std::optional<Band> training_band(const estimate::Setup& setup, const estimate::TrainingEstimate& e) {
  return band(setup, "training", !training_extrapolations(setup, e).empty());
}

std::string training_label(const estimate::Setup& setup) {
  return setup.profile ? setup.profile->title_for(*setup.device) : label(setup);
}

std::vector<std::string> training_extrapolations(const estimate::Setup& setup, const estimate::TrainingEstimate& e) {
  if (setup.profile == nullptr || setup.profile->error_of("training") == nullptr) return {};
  const hardware::FittedRange& measured = setup.profile->range;
  const model::Decoder& m = *setup.execution.model;
  std::vector<std::string> beyond;
  const auto check = [&](bool outside, std::string what) {
    if (outside) beyond.push_back(std::move(what));
  };
  constexpr double kMargin = 2;  // sizes between the measured ones and a little beyond are what the formulas are for
  const auto tokens = static_cast<double>(e.scenario.sequence);
  const auto measured_tokens = static_cast<double>(measured.max_context);
  check(!setup.profile->measured_on(*setup.device), fmt::format("not measured on {}", setup.device->name));
  check(tokens > kMargin * measured_tokens || tokens < measured_tokens / kMargin,
        fmt::format("sequences of {} tokens (measured with {})", e.scenario.sequence, measured.max_context));
  check(e.scenario.micro_batch * e.scenario.sequence > measured.max_tokens,
        fmt::format("micro-batches of {} tokens (measured up to {})", e.scenario.micro_batch * e.scenario.sequence,
                    measured.max_tokens));
  check(e.scenario.global_batch > measured.max_batch,
        fmt::format("global batch {} (measured up to {})", e.scenario.global_batch, measured.max_batch));
  const auto parameters = static_cast<double>(model::count_parameters(m).total);
  check(parameters > kMargin * measured.max_parameters || parameters < measured.min_parameters / kMargin,
        fmt::format("{} parameters (measured {} to {})", format_significant(parameters),
                    format_significant(measured.min_parameters), format_significant(measured.max_parameters)));
  const bool gpt = std::all_of(m.kinds.begin(), m.kinds.end(), [](const model::Layer& layer) {
    return !layer.feed_forward.gated && !layer.feed_forward.experts &&
           layer.attention.kv_heads == layer.attention.heads;
  });
  check(!gpt, "another block than a GPT's (measured: as many KV heads as heads, an MLP without gate)");
  const std::string options = hardware::format_runtime_options(setup.execution.runtime);
  check(options != "none", fmt::format("options {} (measured with none)", options));
  using graph::Recompute;
  check(e.options.recompute == Recompute::none || (e.options.recompute == Recompute::full) == e.plan.sequence_parallel,
        fmt::format("recompute {} with{} --megatron-sp (measured: full without, selective with)",
                    graph::name(e.options.recompute), e.plan.sequence_parallel ? "" : "out"));
  check(e.options.zero > 0, fmt::format("ZeRO {} (measured without)", e.options.zero));
  check(e.plan.sequence() > 1 || e.plan.tensor_rows > 0,
        "a sequence or matrices divided another way (measured: --tp N, --pp and --dp)");
  return beyond;
}

}  // namespace llmperf::result
