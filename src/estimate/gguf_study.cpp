#include "estimate/gguf_study.h"

#include <algorithm>
#include <utility>

namespace llmperf::estimate {
namespace {

// The estimator with `layers` of the model on the device.
Estimator with_layers(const model::Decoder& model, const hardware::Device& device, Choices choices,
                      std::optional<std::int64_t> layers) {
  choices.gpu_layers = layers;
  return Estimator(make_setup(model, device, choices));
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
  const Estimator all = with_layers(model, device, choices, std::nullopt);
  row.memory = all.memory(whole);
  row.fits = all.fits(whole);
  if (row.fits) {
    row.offloaded = model.num_layers() + 1;
  } else {
    row.offloaded = most_layers(model, device, choices, whole);
  }
  if (!row.offloaded) return row;

  Estimator split = with_layers(model, device, choices, row.fits ? std::nullopt : row.offloaded);
  const std::int64_t prompt = std::min(kStudyPrompt, context);
  const graph::SequenceGroup prefill{1, prompt, 0};
  const graph::SequenceGroup decode{1, 1, context - 1};
  row.prefill_tokens_per_second = static_cast<double>(prompt) / split.step_time({&prefill, 1}).value;
  row.decode_tokens_per_second = 1 / split.step_time({&decode, 1}).value;
  return row;
}

}  // namespace

// Memory on the device grows with the layers it holds, memory on the host shrinks.
std::optional<std::int64_t> most_layers(const model::Decoder& model, const hardware::Device& device,
                                        const Choices& choices, const Scenario& scenario) {
  if (!with_layers(model, device, choices, std::nullopt).setup().host) return std::nullopt;
  const auto device_holds = [&](std::int64_t layers) {
    const Estimator e = with_layers(model, device, choices, layers);
    return e.memory(scenario).total() <= e.capacity();
  };
  std::int64_t low = -1;  // fits, or not even none does
  std::int64_t high = model.num_layers() + 2;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (device_holds(middle) ? low : high) = middle;
  }
  if (low < 0 || !with_layers(model, device, choices, low).fits(scenario)) return std::nullopt;
  return low;
}

std::optional<std::int64_t> fewest_cpu_moe(const model::Decoder& model, const hardware::Device& device, Choices choices,
                                           const Scenario& scenario) {
  if (model_kind(model).find("experts") == std::string::npos) return std::nullopt;
  choices.gpu_layers.reset();
  choices.override_tensor.clear();
  const auto with_experts = [&](std::int64_t layers) {
    choices.cpu_moe = layers;
    return Estimator(make_setup(model, device, choices));
  };
  std::int64_t low = 0;  // does not fit, or everything does
  std::int64_t high = model.num_layers();
  const Estimator all = with_experts(high);
  if (all.setup().host == nullptr || all.memory(scenario).total() > all.capacity()) return std::nullopt;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    const Estimator e = with_experts(middle);
    (e.memory(scenario).total() <= e.capacity() ? high : low) = middle;
  }
  return with_experts(high).fits(scenario) ? std::optional(high) : std::nullopt;
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
  std::vector<GgufStudyRow> rows;
  for (const GgufCandidate& candidate : candidates) {
    rows.push_back(study_one(model, device, candidate, context, choices));
  }
  return rows;
}

}  // namespace llmperf::estimate
