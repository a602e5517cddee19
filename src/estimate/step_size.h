// A step as the range of a runtime profile sees it.
#pragma once

#include <string>

#include "estimate/estimate.h"
#include "hardware/runtime_profile.h"

namespace llmperf::estimate {

// "dense", or what sets the model apart for the kernels it needs: "experts", "latent attention", "experts, latent
// attention".
std::string model_kind(const model::Decoder& model);

// All but batch, tokens and context, which are the step's own. Weights go by the name that the setup's profile was
// fitted under where the same kernel runs: w4a16-g128 is GPTQ's.
hardware::StepSize step_size(const Setup& setup);

}  // namespace llmperf::estimate
