// What the fields of a request about training mean.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "estimate/setup.h"
#include "graph/plan.h"
#include "graph/training_graph.h"
#include "hardware/device.h"
#include "model/decoder.h"
#include "request/request.h"

namespace llmperf::request {

// Throws Error(bad_input) with every unknown word and what is known, for weights that nothing trains, and for products
// that the device does not multiply.
graph::TrainingOptions training_options(const Request& request, const estimate::Setup& setup, const graph::Plan& plan);
// Those that `lora` asks for, of ranks and targets, where it does. Throws Error(bad_input).
graph::Adapters adapters_value(const Request& request, std::string_view default_targets);
// What weights are trained as where nothing is said: of a model that is published narrow the 16 bits that it was
// trained in, else the checkpoint's own.
std::optional<std::string> trained_weights(const model::Decoder& model);

// The stack that runs train with where no runtime is named: adapters are PEFT's, divided weights FSDP's, what several
// devices of one model compute together Megatron's; TPUs run MaxText, Ascend MindSpeed.
std::string_view training_stack(const Request& request, const hardware::Device& device);

}  // namespace llmperf::request
