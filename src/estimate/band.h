// How far from the truth a predicted time may be. The errors of the parts of a step add up by their shares in it:
//
//   w = 1.75 sqrt(u0^2 + sum (s_i u_i)^2) f
//
// with s_i the share of a part, u_i its error (rms, of the logarithm), u0 what whole steps have in common (more where
// none were measured on the device), and f the distance from what the profile was fitted on; what a power limit leaves
// in doubt of the clock is added, as squares. Nine of ten like times lie within t exp(-w) .. t exp(w); half of them and
// a little more within the mean absolute error, which of a normal distribution is 0.8 / 1.75 of that. Where whole steps
// were left out of the fit and predicted, their errors take the place of the formula inside of the fitted range.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "estimate/phase.h"
#include "hardware/beyond_range.h"

namespace llmperf::estimate {

enum class Part : unsigned char {
  products,         // of 16 and 32 bits
  format_products,  // with weights in a format
  experts,          // routed, and what is around them
  format_experts,
  prompt_attention,
  token_attention,  // of new tokens
  latent_attention,
  small,  // every other kernel
  collectives,
  uploads,  // of weights that a host keeps
  host,     // what the runtime takes beside the kernels
  count
};
inline constexpr std::size_t kParts = static_cast<std::size_t>(Part::count);
Part part_of(const graph::Op& op);

// What each part takes of a step; they add up to 1.
using Shares = std::array<double, kParts>;
Shares shares_of(std::span<const OpEstimate> ops);
void normalise(Shares& shares);

// Half-widths of the intervals t / (1 + x) .. t (1 + x).
struct Band {
  double mean = 0;        // as far as predictions are off on the mean
  double p90 = 0;         // nine of ten are within this
  std::int64_t rows = 0;  // like it that were left out of the fit and predicted; 0: from the errors of the parts
};

// rms error of a part of steps like `step` under the profile: where the profile measured it on the step's device, 1.25
// times the mean error of what was left out (the rms of a normal distribution); more where it was measured on another
// device; else what is usual for the part.
double error_of(Part part, const hardware::RuntimeProfile& profile, const hardware::StepSize& step);
// What distance multiplies the width by: 1 inside, and the more the farther.
double distance(std::span<const hardware::Beyond> beyond);

// Of a step: `measured` is the group of the profile's errors that says how far whole steps were off ("decode"). Of a
// single op likewise ("gemm fp8"), its part having a share of 1. `beyond`: ways_beyond() of the step.
Band band_of(const hardware::RuntimeProfile& profile, const hardware::StepSize& step, const Shares& shares,
             std::string_view measured, std::span<const hardware::Beyond> beyond);

// The profile's error of a group, as a band: widened where its rows are few.
Band band_of(const hardware::FittedError& error);

}  // namespace llmperf::estimate
