// Fits a runtime profile's numbers to measurements.
#pragma once

#include <string>
#include <vector>

#include "calibrate/calibration.h"
#include "calibrate/measurements.h"
#include "hardware/device.h"
#include "hardware/runtime_profile.h"

namespace llmperf::calibrate {

struct CalibrateResult {
  Calibration calibration;
  hardware::RuntimeProfile profile;
};

// `start`: choices, options and numbers that are not fitted. Numbers that it calls fitted begin where they
// began (their prior, else the general default), which is also what the fit is regularised towards: a profile
// calibrated twice is the same profile. Others that the rows depend on are fitted with the start's value as prior. Rows
// of other devices or runtimes than the profile's (by name or a prefix of it), and untrusted ones, are left out with a
// warning. Throws Error(bad_input) for data that cannot give a profile.
CalibrateResult calibrate(const Measurements& measurements, const hardware::Device& device,
                          const hardware::RuntimeProfile& start);

}  // namespace llmperf::calibrate
