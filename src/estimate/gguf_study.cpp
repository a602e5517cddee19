#include "estimate/gguf_study.h"

#include <algorithm>
#include <utility>

#include "base/integer.h"

namespace llmperf::estimate {
namespace {

bool device_holds(const Estimator& e, const Scenario& scenario) { return e.memory(scenario).total() <= e.capacity(); }

// The same without a profile.
Choices at_the_speed_of_light(Choices choices) {
  choices.profile = choices.host_profile = nullptr;
  choices.run_as({});
  return choices;
}

// Of a split: prefill of a prompt and decode of the context's last token.
void time_split(const model::Decoder& model, const hardware::Device& device, const Choices& choices,
                std::int64_t context, GgufStudyRow& row) {
  const std::int64_t prompt = std::min(kStudyPrompt, context);
  const auto run = [&](Estimator& estimator, bool prefill) {
    Phase phase;
    if (prefill) {
      estimator.prefill({1, prompt, 1}, phase);
    } else {
      estimator.decode_step({1, context - 1, 2}, context - 1, phase);
    }
    return phase;
  };
  Estimator bound(make_setup(model, device, at_the_speed_of_light(choices)));
  std::optional<Estimator> predicted;
  if (choices.profile != nullptr) predicted.emplace(make_setup(model, device, choices));
  for (const bool prefill : {true, false}) {
    StudyRate& rate = prefill ? row.prefill : row.decode;
    const std::int64_t tokens = prefill ? prompt : 1;
    rate.bound = static_cast<double>(tokens) / run(bound, prefill).time.value;
    if (!predicted) continue;
    const Phase phase = run(*predicted, prefill);
    hardware::StepSize step = step_size(predicted->setup());
    step.tokens = tokens;
    step.context = prefill ? prompt : context - 1;
    rate.predicted = {static_cast<double>(tokens) / phase.time.value,
                      band_of(*choices.profile, step, shares_of(phase.ops), prefill ? "prefill" : "decode",
                              ways_beyond(*choices.profile, step))};
  }
}

GgufStudyRow study_one(const model::Decoder& model, const hardware::Device& device, const GgufCandidate& candidate,
                       std::int64_t context, Choices choices) {
  choices.stored = &candidate.layout;
  GgufStudyRow row;
  row.name = candidate.name;
  row.imatrix = candidate.imatrix;
  row.tensors = model::weight_bytes(model, candidate.layout);
  row.file = candidate.file;
  row.bits_per_weight = row.tensors.value * 8 / static_cast<double>(model::stored_weights(model, candidate.layout));

  const Scenario whole{1, context, 0};
  const Estimator all(make_setup(model, device, choices));
  row.memory = all.memory(whole);
  row.fits = all.fits(whole);
  if (row.fits) {
    row.offloaded = model.num_layers() + 1;
    time_split(model, device, choices, context, row);
    return row;
  }
  if (choices.plan.devices() > 1 || all.setup().host == nullptr) return row;
  if (const auto layers = most_layers(model, device, choices, whole)) {
    row.offloaded = layers;
    choices.gpu_layers = layers;
    time_split(model, device, choices, context, row);
  }
  choices.gpu_layers.reset();
  if (const auto layers = fewest_cpu_moe(model, device, choices, whole)) {
    GgufStudyRow other = row;
    other.offloaded = model.num_layers() + 1;
    other.cpu_moe = choices.cpu_moe = layers;
    time_split(model, device, choices, context, other);
    if (!row.offloaded || other.decode.best_known() > row.decode.best_known()) row = std::move(other);
  }
  return row;
}

}  // namespace

// Memory on the device grows with the layers it holds, memory on the host shrinks.
std::optional<std::int64_t> most_layers(const model::Decoder& model, const hardware::Device& device, Choices choices,
                                        const Scenario& scenario) {
  choices.gpu_layers.reset();
  if (make_setup(model, device, choices).host == nullptr) return std::nullopt;
  const auto with_layers = [&](std::int64_t layers) {
    choices.gpu_layers = layers;
    return Estimator(make_setup(model, device, choices));
  };
  const std::int64_t most = bisect(-1, model.num_layers() + 2, [&](std::int64_t layers) {
                              return device_holds(with_layers(layers), scenario);
                            }).first;
  return most >= 0 && with_layers(most).fits(scenario) ? std::optional(most) : std::nullopt;
}

std::optional<std::int64_t> fewest_cpu_moe(const model::Decoder& model, const hardware::Device& device, Choices choices,
                                           const Scenario& scenario) {
  if (!model.has_experts()) return std::nullopt;
  choices.gpu_layers.reset();
  choices.override_tensor.clear();
  const auto with_experts = [&](std::int64_t layers) {
    choices.cpu_moe = layers;
    return Estimator(make_setup(model, device, choices));
  };
  const Estimator all = with_experts(model.num_layers());
  if (all.setup().host == nullptr || !device_holds(all, scenario)) return std::nullopt;
  const std::int64_t fewest = bisect(0, model.num_layers(), [&](std::int64_t layers) {
                                return !device_holds(with_experts(layers), scenario);
                              }).second;
  return with_experts(fewest).fits(scenario) ? std::optional(fewest) : std::nullopt;
}

GgufCandidate gguf_candidate(const model::Decoder& model, const model::GgufFileType& type, model::GgufEra era) {
  const std::vector<model::GgufTensor> tensors = model::quantised_tensors(model, type, era);
  return {.name = std::string(type.name),
          .imatrix = type.imatrix,
          .layout = model::gguf_layout(model, tensors, std::string(type.name)),
          .file = model::file_bytes(tensors, model::estimated_metadata_bytes(model))};
}

std::vector<GgufStudyRow> study_gguf(const model::Decoder& model, const hardware::Device& device,
                                     const std::vector<GgufCandidate>& candidates, std::int64_t context,
                                     Choices choices) {
  choices.weights.reset();
  choices.gpu_layers.reset();
  choices.cpu_moe.reset();
  std::vector<GgufStudyRow> rows;
  for (const GgufCandidate& candidate : candidates) {
    rows.push_back(study_one(model, device, candidate, context, choices));
  }
  return rows;
}

}  // namespace llmperf::estimate
