// Predicts every measured row with the profile it belongs to.
#pragma once

#include <string>

#include "calibrate/validation.h"
#include "hardware/device.h"

namespace llmperf::calibrate {

// Every row by the profile of its runtime for its device (ops: the device's preferred one), or all by `runtime`: a name
// or the path of a profile; "none" is the speed of light. Throws Error(bad_input) with the lines of rows that name what
// does not exist.
// `device`: what rows of that name were measured on, where it is no built-in one.
Validation validate(Measurements measurements, const std::string& runtime = {},
                    const hardware::Device* device = nullptr);

// Rows by the kind whose constants they share in a fitted roofline: the op, or runtime and phase.
std::string baseline_kind(const Row& row);
// The row's text in kUntrustedColumn; empty: it is scored.
std::string untrusted(const Measurements& measurements, const Row& row);

}  // namespace llmperf::calibrate
