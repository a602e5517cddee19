// What the fields of a request about training mean.
#pragma once

#include <string_view>

#include "graph/plan.h"
#include "graph/training_graph.h"
#include "hardware/device.h"
#include "model/decoder.h"
#include "request/request.h"

namespace llmperf::request {

// `weight_bits` of the weights as they are trained or held, `kept_bits` of accumulated gradients where nothing is said.
// Throws Error(bad_input) with every unknown word and what is known.
graph::TrainingOptions training_options(const Request& request, const model::Decoder& model, const graph::Plan& plan,
                                        double weight_bits, double kept_bits);

// The stack that runs train with where no runtime is named: adapters are PEFT's, divided weights FSDP's, what several
// devices of one model compute together Megatron's; TPUs run MaxText, Ascend MindSpeed.
std::string_view training_stack(const Request& request, const hardware::Device& device);

}  // namespace llmperf::request
