#include "result/basis.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "estimate/estimate.h"
#include "hardware/beyond_range.h"
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

std::string label(const estimate::Setup& setup) {
  const std::string& assumed = setup.execution.model->assumed;
  const std::string basis = label(static_cast<const estimate::Platform&>(setup));
  return assumed.empty() ? basis : fmt::format("{}; model {}", basis, assumed.substr(0, assumed.find(',')));
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

std::string weights_text(const estimate::Setup& setup) {
  const std::string& name = setup.execution.weights.name;
  return setup.weights_kernel.empty() ? name : fmt::format("{} ({})", name, setup.weights_kernel);
}

std::optional<Band> band(const estimate::Platform& platform, std::string_view workload, bool extrapolated) {
  const hardware::FittedError* error = platform.profile ? platform.profile->error_of(workload) : nullptr;
  if (error == nullptr || (extrapolated && !platform.profile->hardware.empty() && error->rows > 0)) return std::nullopt;
  Band band = estimate::band_of(*error);
  if (platform.profile->hardware.empty()) band.rows = 0;
  return band;
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

namespace {

// Whether a phase has further pieces of the prompts that an earlier one begins.
bool continues_prompt(const estimate::Phase& phase) { return phase.name.starts_with("prefill_"); }

hardware::StepSize step_of(const estimate::Setup& setup, const estimate::Scenario& s, std::string_view phase,
                           hardware::StepSize step) {
  const bool prefill = phase != "decode";
  const std::int64_t replicas = setup.execution.plan.data;
  step.batch = (s.batch + replicas - 1) / replicas;
  const std::int64_t piece = std::min(s.prompt, setup.serving.prefill_chunk.value_or(s.prompt));
  step.tokens = step.batch * (prefill ? piece : setup.serving.verify);
  // Of decode the mean, as in measured rows: errors are of the mean step.
  step.context = s.depth + (prefill ? s.prompt : s.prompt + s.generate / 2);
  return step;
}

}  // namespace

std::optional<Band> band(const estimate::Setup& setup, const estimate::Estimate& e, std::string_view phase) {
  const auto found = std::ranges::find(e.phases, phase, &estimate::Phase::name);
  if (setup.profile == nullptr || found == e.phases.end()) return std::nullopt;
  const hardware::StepSize step = step_of(setup, e.scenario, phase, estimate::step_size(setup));
  // Steps that verify are not the decode steps that were measured.
  const std::string_view measured = phase == "decode" && setup.serving.verify > 1 ? "verify"
                                    : continues_prompt(*found)                    ? "prefill"
                                                                                  : phase;
  return estimate::band_of(*setup.profile, step, estimate::shares_of(found->ops), measured,
                           ways_beyond(*setup.profile, step));
}

std::optional<Band> ttft_band(const estimate::Setup& setup, const estimate::Estimate& e) {
  std::optional<Band> widest;
  for (const estimate::Phase& phase : e.phases) {
    if (phase.name == "decode") continue;
    const std::optional<Band> each = band(setup, e, phase.name);
    if (each && (!widest || widest->p90 < each->p90)) widest = each;
  }
  return widest;
}

std::string band_text(const estimate::Setup& setup, const estimate::Estimate& e) {
  if (setup.profile == nullptr) return no_band_text(setup);
  std::string text;
  std::int64_t rows = 0;
  std::optional<std::int64_t> fewest;
  std::vector<std::string> parts;
  for (const estimate::Phase& phase : e.phases) {
    if (continues_prompt(phase)) continue;
    const std::optional<Band> b = band(setup, e, phase.name);
    text += fmt::format("{}{} +- {} (9 of 10 within {})", text.empty() ? "" : ", ", phase.name, format_share(b->mean),
                        format_share(b->p90));
    rows += b->rows;
    if (b->rows == 0) parts.emplace_back(phase.name);
    if (b->rows > 0 && (!fewest || b->rows < *fewest)) fewest = b->rows;
  }
  if (!fewest) return text + "; from the errors of the parts of a step";
  text += rows_text(*setup.profile, rows, *fewest);
  return parts.empty() ? text : fmt::format("{}; {} from the errors of its parts", text, parts.front());
}

std::vector<std::string> extrapolations(const estimate::Setup& setup, const estimate::Scenario& s,
                                        std::string_view phase) {
  if (setup.profile == nullptr) return {};
  return setup.profile->beyond_range(step_of(setup, s, phase, estimate::step_size(setup)));
}

std::vector<std::string> extrapolations(const estimate::Setup& setup, const estimate::Scenario& s) {
  if (setup.profile == nullptr) return {};
  const hardware::StepSize step = estimate::step_size(setup);
  const auto beyond = [&](std::string_view phase) {
    return ways_beyond(*setup.profile, step_of(setup, s, phase, step));
  };
  std::vector<hardware::Beyond> all;
  if (setup.serving.prefills()) all = beyond("prefill");
  if (setup.serving.decodes() && s.generate > 1) {
    for (hardware::Beyond& way : beyond("decode")) {
      const auto same = std::ranges::find(all, way.way, &hardware::Beyond::way);
      if (same == all.end()) {
        all.push_back(std::move(way));
      } else if (way.way == hardware::Way::context) {  // a longer one takes the place of the prompt's
        *same = std::move(way);
      }
    }
  }
  std::vector<std::string> texts;
  for (hardware::Beyond& way : all) texts.push_back(std::move(way.text));
  return texts;
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
