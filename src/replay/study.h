// A replay and what a profile predicts of it: the result of `llmperf replay`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/calibration.h"
#include "calibrate/measurements.h"
#include "hardware/device.h"
#include "hardware/runtime_profile.h"
#include "replay/replay.h"

namespace llmperf::replay {

// One step of a model, or a list of ops.
struct PhaseStudy {
  std::string name;  // "prefill", "decode"; "ops" for a list
  Replay replay;
  std::vector<std::optional<Seconds>> predicted;  // of one execution of each op that was timed
  std::optional<Seconds> predicted_step;          // of all its ops and the runtime's overhead
};

struct Study {
  std::string what = {};  // "qwen1.5-0.5b, batch 1, prompt 128", or a file or sweep
  Description device = {};
  std::string hardware = {};  // name of the device that predictions are for
  std::string profile = {};   // that predicts; empty: none does
  std::vector<PhaseStudy> phases = {};
  std::optional<calibrate::Calibration> calibration = {};  // how the profile was fitted to this replay's ops
};

// The ops of all phases, each once, as measurements of `hardware`.
calibrate::Measurements measurements_of(const Study& study);

// Fills in `predicted` of every phase. `measured`: measurements_of(study).
void predict_ops(Study& study, const calibrate::Measurements& measured, const hardware::Device& device,
                 const hardware::RuntimeProfile& profile);

}  // namespace llmperf::replay
