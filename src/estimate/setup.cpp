#include <fmt/format.h>

#include <array>

#include "estimate/estimate.h"

namespace llmperf::estimate {
namespace {

bool multiplies(const hardware::Device& device, Dtype dtype) {
  return device.find_peak(hardware::Engine::matrix, dtype) != nullptr;
}

Dtype device_dtype(const hardware::Device& device) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) {
    if (multiplies(device, dtype)) return dtype;
  }
  return Dtype::fp32;
}

// The element type of a scheme that stores everything in one floating-point type.
std::optional<Dtype> plain_dtype(std::string_view scheme) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
    if (scheme == name(dtype)) return dtype;
  }
  return std::nullopt;
}

// Products in a type the device has no matrix rate for run in the activation type, after a conversion.
void substitute(model::StoredFormat& format, const hardware::Device& device, Dtype activations, std::string& note) {
  const bool wide = format.compute == Dtype::fp32 || format.compute == Dtype::fp16 || format.compute == Dtype::bf16;
  if (wide || multiplies(device, format.compute)) return;
  note = fmt::format("{} has no {} matrix rate: those products run in {} after a conversion", device.name,
                     name(format.compute), name(activations));
  format.compute = activations;
  format.dequant_flops += 1;
}

}  // namespace

Setup make_setup(const model::Decoder& model, const hardware::Device& device, const Choices& choices) {
  Setup setup;
  setup.device = &device;
  graph::Execution& e = setup.execution;
  e.model = &model;
  e.runtime = choices.runtime;
  const std::string own = choices.weights.value_or(model.default_weights);
  if (choices.activations) {
    e.activations = model::parse_activation_dtype(*choices.activations);
  } else {
    e.activations = plain_dtype(own).value_or(device_dtype(device));
  }
  e.weights = model::parse_weight_scheme(own.empty() ? name(e.activations) : std::string_view(own), e.activations);
  e.kv = choices.kv ? model::parse_kv_scheme(*choices.kv) : e.activations;
  std::string note;
  for (model::StoredFormat* format : {&e.weights.linear, &e.weights.expert, &e.weights.embedding, &e.weights.other}) {
    substitute(*format, device, e.activations, note);
  }
  if (!note.empty()) setup.notes.push_back(note);
  if (!multiplies(device, e.activations)) {
    setup.notes.push_back(fmt::format("{} has no {} matrix rate: matrix products are held against its vector rate",
                                      device.name, name(e.activations)));
  }
  if (choices.reserve) setup.reserve = *choices.reserve;
  return setup;
}

}  // namespace llmperf::estimate
