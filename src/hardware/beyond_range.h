// In which ways a step lies outside of what a runtime profile was fitted on.
#pragma once

#include <string>
#include <vector>

#include "hardware/runtime_profile.h"

namespace llmperf::hardware {

enum class Way : unsigned char {
  device,   // nothing was measured on it, or the profile is another one's
  steps,    // the profile knows single kernels
  era,      // its engine's steps were measured on another device
  kernels,  // they are another engine's
  batch,
  tokens,
  context,
  parameters,
  weights,  // the scheme
  kv,       // the type of the cache
  plan,
  kind,         // of model
  host_layers,  // layers on the host
  power         // the board's is limited
};

struct Beyond {
  Way way;
  std::string text;   // "batch 256 (fitted up to 128)"
  double excess = 1;  // of a size: how many times what was fitted; of power: by how much the clock may be off
};

// Empty inside, and where a profile of the device does not say what it was fitted on. RuntimeProfile::beyond_range()
// are the texts.
std::vector<Beyond> ways_beyond(const RuntimeProfile& profile, const StepSize& step);

}  // namespace llmperf::hardware
