// What kernel formulas know of a device, in SI units.
#pragma once

#include <algorithm>

namespace llmperf::mapper {

struct KernelDevice {
  double matrix = 0;     // FLOP/s, of the op's type
  double unpacked = 0;   // FLOP/s of products of weights that were unpacked to 16 bits
  double bandwidth = 0;  // B/s, of device memory
  double cache = 0;      // B, shared by all cores; 0: none known
  double cores = 1;
  double integer = 0;  // op/s of 8-bit products, on whatever units are the fastest
  double clock = 0;    // Hz
  double power = 0;    // W that the device may draw; 0: not known

  // Of `bytes` that a measurement reads over and over and nothing else in between: all while they fill three quarters
  // of it, none where they are a quarter more than it has room for. Lines are not placed evenly, and where they are
  // evicted in the order of their use, none of a sweep that is longer stays until it comes round again.
  double resident(double bytes) const { return cache > 0 ? std::clamp(2.5 - 2 * bytes / cache, 0.0, 1.0) : 0; }
  // The share of `bytes` of activations that the cache holds from the kernel before or for the one after: all of them
  // while they fill less than half of it, none where they are more than it has room for.
  double held(double bytes) const { return cache > 0 ? std::clamp(2 - 2 * bytes / cache, 0.0, 1.0) : 0; }
};

}  // namespace llmperf::mapper
