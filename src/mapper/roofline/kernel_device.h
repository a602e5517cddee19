// What kernel formulas know of a device, in SI units.
#pragma once

namespace llmperf::mapper {

struct KernelDevice {
  double matrix = 0;     // FLOP/s, of the op's type
  double unpacked = 0;   // FLOP/s of products of weights that were unpacked to 16 bits
  double bandwidth = 0;  // B/s, of device memory
  double cache = 0;      // B, shared by all cores; 0: none known
  double cores = 1;
};

}  // namespace llmperf::mapper
