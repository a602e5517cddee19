#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "estimate/gguf_study.h"
#include "graph/stdit_graph.h"
#include "request/resolve.h"

namespace llmperf::request {
namespace {

// ---- Text.

estimate::Estimator with(const Resolved& r, const estimate::Choices& choices) {
  return estimate::Estimator(estimate::make_setup(r.model(), r.device, choices));
}

std::string needs(const estimate::Estimator& estimator, const estimate::Scenario& scenario) {
  return format_bytes_binary(estimator.memory(scenario).total());
}

// The smallest tensor axis over which the same request fits; empty when none does.
std::string tensor_hint(const Resolved& r, const Generation& text) {
  for (const std::int64_t factor : {2, 4, 8}) {
    estimate::Choices choices = text.choices;
    choices.plan.tensor *= factor;
    if (!graph::legal(r.model(), choices.plan)) continue;
    const estimate::Estimator other = with(r, choices);
    if (!other.fits(text.scenario)) continue;
    return fmt::format("; on {} devices with `tp` {} (needs {} on each)", choices.plan.devices(), choices.plan.tensor,
                       needs(other, text.scenario));
  }
  return {};
}

// The fewest devices that hold the layers of the same GGUF model; empty when there is no such number up to 8.
std::string layer_split_hint(const Resolved& r, const Generation& text) {
  estimate::Choices choices = text.choices;
  if (choices.plan.devices() != choices.plan.pipeline || !choices.cards.empty()) return {};
  choices.gpu_layers.reset();  // on several devices nothing stays on the host
  choices.cpu_moe.reset();
  choices.override_tensor.clear();
  const bool uneven = !choices.tensor_split.empty();
  choices.tensor_split.clear();
  for (choices.plan.pipeline += uneven ? 0 : 1; choices.plan.pipeline <= 8; ++choices.plan.pipeline) {
    if (!graph::legal(r.model(), choices.plan)) return {};
    const estimate::Estimator other = with(r, choices);
    if (!other.fits(text.scenario)) continue;
    return fmt::format("{} devices with `pp` {}{} (needs {} on the fullest)", choices.plan.pipeline,
                       choices.plan.pipeline, uneven ? " without `tensor-split`" : "", needs(other, text.scenario));
  }
  return {};
}

// The splits between device and host that put as much on the device as it holds, the faster one first; empty when none
// fits.
std::string host_hint(const Resolved& r, const Generation& text) {
  std::vector<std::pair<double, std::string>> splits;
  const auto add = [&](const estimate::Choices& choices, const std::string& what) {
    const estimate::Estimate e = with(r, choices).run(text.scenario);
    const double rate = e.tpot ? e.decode_tokens_per_second : e.prefill_tokens_per_second;
    splits.emplace_back(-rate,
                        fmt::format("{} ({} tokens/s{})", what, format_significant(rate), e.tpot ? "" : " of prompts"));
  };
  if (const auto layers = estimate::most_layers(r.model(), r.device, text.choices, text.scenario)) {
    estimate::Choices choices = text.choices;
    choices.gpu_layers = layers;
    add(choices, fmt::format("`gpu-layers` {}, the rest on {}", *layers, r.host.name));
  }
  if (const auto layers = estimate::fewest_cpu_moe(r.model(), r.device, text.choices, text.scenario)) {
    estimate::Choices choices = text.choices;
    choices.gpu_layers.reset();
    choices.override_tensor.clear();
    choices.cpu_moe = layers;
    add(choices, fmt::format("`n-cpu-moe` {}, the experts of as many layers on {}", *layers, r.host.name));
  }
  std::sort(splits.begin(), splits.end());
  std::vector<std::string> texts;
  for (auto& [rate, split] : splits) texts.push_back(std::move(split));
  return join(texts, "; or with ");
}

// What would make the same request fit on the same device: the built-in schemes that do, else the bits per weight that
// would.
std::string fitting_hint(const Resolved& r, const Generation& text, const estimate::Estimate& e) {
  const estimate::Setup& setup = text.estimator->setup();
  if (text.estimator->stages().size() > 1 && setup.execution.weights.gguf) {
    const std::string devices = layer_split_hint(r, text);
    return devices.empty() ? "no split over up to 8 devices fits: use a narrower type or a shorter context"
                           : "it fits on " + devices;
  }
  if (setup.host) {
    const std::string devices = layer_split_hint(r, text);
    const std::string split = host_hint(r, text);
    return (!split.empty() ? "it fits with " + split
                           : "no split with the host fits: use a narrower type, a larger host or a shorter context") +
           (devices.empty() ? "" : "; or on " + devices);
  }
  std::vector<std::string> fitting;
  for (const char* scheme : {"fp8", "int8", "w4a16"}) {
    estimate::Choices choices = text.choices;
    choices.weights = scheme;
    const estimate::Estimator other = with(r, choices);
    if (other.fits(text.scenario)) {
      fitting.push_back(fmt::format("`weights` {} (needs {})", scheme, needs(other, text.scenario)));
    }
  }
  if (!fitting.empty()) return "it fits with " + join(fitting, " or ");
  const Bytes room = e.capacity - (e.memory.total() - e.memory.weights);
  estimate::Choices plain = text.choices;
  plain.weights = "bf16";
  const double parameters = with(r, plain).memory(text.scenario).weights.value / 2;  // of the fullest device
  const double bits = std::floor(room.value * 8 / parameters * 10) / 10;
  if (bits < 1) return "no weight scheme fits: use a larger device, a smaller batch or a shorter context";
  return fmt::format("fp8, int8 and w4a16 do not fit either; it fits with `weights` {:.1f} (bits per weight)", bits);
}

// ---- Video.

// A narrower text encoder, else a shorter video; fewer tokens on more devices.
std::string fitting_hint(const Resolved& r, const estimate::VideoChoices& asked) {
  const auto needed = [&](const estimate::VideoChoices& choices) -> std::optional<Bytes> {
    const estimate::VideoEstimator other(estimate::make_video_setup(r.video, r.device, choices));
    return other.fits() ? std::optional(other.memory().total()) : std::nullopt;
  };
  std::vector<std::string> fitting;
  const auto add = [&](const std::string& what, const estimate::VideoChoices& choices) {
    if (const auto bytes = needed(choices)) {
      fitting.push_back(fmt::format("{} (needs {})", what, format_bytes_binary(*bytes)));
    }
  };
  estimate::VideoChoices narrow = asked;
  narrow.text_weights = "bf16";
  if (!asked.text_weights) add("`text-weights` bf16", narrow);
  estimate::VideoChoices shorter = asked;
  for (std::int64_t frames = asked.scenario.shape.frames / 2; fitting.empty() && frames >= 1; frames /= 2) {
    shorter.scenario.shape = model::video_shape(r.video, asked.scenario.shape.size, frames);
    add(fmt::format("`frames` {}", frames), shorter);
  }
  if (asked.stages.empty()) {
    for (const std::int64_t ranks : {2, 4, 8}) {
      estimate::VideoChoices divided = asked;
      divided.plan.ulysses *= ranks;
      if (!graph::problems(r.video, divided.plan).empty()) continue;
      if (const auto bytes = needed(divided)) {
        fitting.push_back(fmt::format("on {} devices with `sp` ulysses:{} (needs {} on each)", divided.plan.devices(),
                                      divided.plan.ulysses, format_bytes_binary(*bytes)));
        break;
      }
    }
  }
  if (!fitting.empty()) return "it fits with " + join(fitting, ", or ");
  return "neither a narrower text encoder, a shorter video nor eight devices make it fit: use a larger device or a "
         "lower `resolution`";
}

// ---- Training.

// Of each kind of change the least that is enough, what frees most first; else the least recomputation with all of
// ZeRO, else with more replicas.
std::string fitting_hint(estimate::TrainingEstimator& estimator, const estimate::TrainingEstimate& e) {
  using estimate::TrainingScenario;
  using graph::Plan;
  using graph::Recompute;
  using graph::TrainingOptions;
  // Without those that need to be told of what.
  constexpr std::array kWays = {Recompute::none, Recompute::selective, Recompute::full, Recompute::offload};
  const model::Decoder& model = *estimator.setup().execution.model;
  std::vector<std::pair<Bytes, std::string>> fitting;  // what each frees
  // Notes the change if it makes the step fit.
  const auto works = [&](const std::string& change, const TrainingScenario& s, const Plan& plan,
                         const TrainingOptions& o) {
    if (!graph::legal(model, plan) || !estimate::legal(model, s, plan, o)) return false;
    const Bytes needed = estimator.memory(s, plan, o).total();
    if (needed > e.capacity) return false;
    fitting.emplace_back(e.memory.total() - needed, change);
    return true;
  };
  Plan divided = e.plan;
  divided.sequence_parallel = divided.tensor > 1 && divided.tensor_rows == 0;
  if (divided != e.plan) works("`megatron-sp`", e.scenario, divided, e.options);
  TrainingOptions o = e.options;
  for (const Recompute r : kWays) {
    o.recompute = r;
    if (r > e.options.recompute && works(fmt::format("`recompute` {}", graph::name(r)), e.scenario, e.plan, o)) break;
  }
  o = e.options;
  o.loss = graph::Loss::chunked;
  if (o != e.options) works(fmt::format("`loss` chunked:{}", o.loss_chunks), e.scenario, e.plan, o);
  const int most_zero = e.plan.replicas() > 1 ? 3 : e.options.zero;
  o = e.options;
  while (++o.zero <= most_zero && !works(fmt::format("`zero` {}", o.zero), e.scenario, e.plan, o)) continue;
  TrainingScenario s = e.scenario;
  while (--s.micro_batch >= 1 && !works(fmt::format("`micro-batch` {}", s.micro_batch), s, e.plan, e.options)) continue;
  if (!fitting.empty()) {
    std::ranges::stable_sort(fitting, [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::string> texts;
    for (const auto& [freed, change] : fitting) {
      texts.push_back(fmt::format("{} (frees {})", change, format_bytes_binary(freed)));
    }
    return "it fits with " + join(texts, " or ");
  }
  s.micro_batch = 1;
  for (const Recompute r : kWays) {
    o.recompute = r;
    for (o.zero = e.options.zero; r >= e.options.recompute && o.zero <= most_zero; ++o.zero) {
      const std::string change = fmt::format("`micro-batch` 1 `recompute` {} `zero` {}", graph::name(r), o.zero);
      if (works(change, s, e.plan, o)) return "it fits with " + change;
    }
  }
  constexpr std::int64_t kMostReplicas = 4096;
  o.recompute = Recompute::full;
  o.zero = 3;
  for (Plan wider = e.plan; wider.data < kMostReplicas;) {
    wider.data *= 2;
    s.global_batch = wider.data * wider.pipeline;
    if (works("", s, wider, o)) {
      return fmt::format(
          "neither recomputation, ZeRO nor a micro-batch of 1 makes it fit; with all of them it does on {} devices "
          "(`dp` {} `zero` 3 `recompute` full `micro-batch` 1 `global-batch` {})",
          wider.devices(), wider.data, s.global_batch);
    }
  }
  return "neither recomputation, ZeRO, a micro-batch of 1 nor more replicas make it fit: divide the model (`tp`, `pp`)";
}

}  // namespace

Error infeasible(const Resolved& r, const estimate::Estimate& e) {
  const auto& text = std::get<Generation>(r.work);
  const auto message = [&](const std::string& place, const cost::Memory& needed, Bytes capacity) {
    return fmt::format(
        "{} at batch {} does not fit on {}: needs {} ({} of it weights), has {}; largest batch that fits is {}",
        r.model().name, e.scenario.batch, place, format_bytes_binary(needed.total()),
        format_bytes_binary(needed.weights), format_bytes_binary(capacity), e.largest_batch);
  };
  const auto& plan = text.choices.plan;
  if (plan.afd && e.expert_memory.total() > e.memory.total()) {
    return Error::infeasible(message(fmt::format("{}, on each of {} that have experts", r.device.name, plan.expert),
                                     e.expert_memory, e.capacity),
                             "more devices of experts (`ep`), narrower `weights` or a smaller batch");
  }
  std::string hint = fitting_hint(r, text, e);
  const estimate::Setup& setup = text.estimator->setup();
  if (!setup.execution.weights.gguf) hint += tensor_hint(r, text);
  if (e.largest_batch > e.scenario.batch) {  // of a batch that fills the pipeline
    hint = fmt::format("this batch goes through {} stages in {} parts; multiples of {} in smaller ones; {}",
                       plan.pipeline, text.estimator->micro_batches(e.scenario), plan.pipeline * plan.data, hint);
  }
  return Error::infeasible(e.memory.total() > e.capacity
                               ? message(r.device.name, e.memory, e.capacity)
                               : message("the host, " + r.host.name, e.host_memory, e.host_capacity),
                           std::move(hint));
}

Error infeasible(const Resolved& r, const estimate::VideoEstimate& e) {
  const estimate::VideoChoices& choices = std::get<Video>(r.work).choices;
  const model::VideoShape& s = choices.scenario.shape;
  const std::string what = s.is_image() ? "an image" : fmt::format("a video of {} frames", s.frames);
  return Error::infeasible(
      fmt::format("{} of {}x{} by {} does not fit on {}: needs {} ({} of it weights), has {}", what, s.size.height,
                  s.size.width, r.video.name, r.device.name, format_bytes_binary(e.memory.total()),
                  format_bytes_binary(e.memory.weights), format_bytes_binary(e.capacity)),
      fitting_hint(r, choices));
}

Error infeasible(const Resolved& r, const estimate::TrainingEstimate& e) {
  const cost::Memory& m = e.memory;
  return Error::infeasible(
      fmt::format("training {} does not fit on {}: a device needs {} ({} of it weights, gradients and optimiser, {} "
                  "activations, {} workspace and reserve), has {}",
                  r.model().name, r.device.name, format_bytes_binary(m.total()),
                  format_bytes_binary(m.weights + m.gradients + m.optimizer), format_bytes_binary(m.activation),
                  format_bytes_binary(m.workspace + m.reserve), format_bytes_binary(e.capacity)),
      fitting_hint(*std::get<Training>(r.work).estimator, e));
}

}  // namespace llmperf::request
