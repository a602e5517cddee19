// Measurements a profile must not be fitted to, and those to warn of: too few, copies of each other, the same latency
// throughout, latencies in another unit than the column's name says.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hardware/device.h"
#include "measure/measurements.h"

namespace llmperf::measure {

struct DataCheck {
  std::vector<std::string> warnings;
  std::vector<double> weights;  // one per row asked about: n copies of a row count as one together
};
inline constexpr std::size_t kFewestRows = 3;  // of which a profile can be fitted
// What the chosen rows alone show. `parameters` are to be fitted. Throws Error(bad_input) when there are fewer than
// `fewest` different measurements, or all of one kind have the same latency although they measured different things.
DataCheck check_rows(const Measurements& measurements, std::span<const std::size_t> rows, std::size_t parameters,
                     std::size_t fewest = kFewestRows);

// What the hardware could do for a row.
struct RowLimits {
  std::size_t row = 0;     // in Measurements::rows
  double roof = 0;         // s: no execution is faster, caches aside
  double kernels = 1;      // launched
  std::string kind = {};   // rows that are judged together: "gemm", "decode"
  double shortest = 3e-7;  // s: what no kernel stays below
  double caches = 3;       // how many times faster than its roof, which is memory's, one is at most
};
// Of a row of the device: a CPU calls functions, and its caches are next to its cores.
RowLimits limits_on(const hardware::Device& device, std::size_t row, double roof, double kernels, std::string kind);

// Compares rows with their roofs; returns warnings. Throws Error(bad_input) when most rows of a kind are faster than
// that, or most are hundreds of times slower than roof and launches: then the latencies are in another unit or of other
// hardware. Of rows that were timed here, on a machine that may have had other work, that is a warning as well.
std::vector<std::string> check_roofs(const Measurements& measurements, std::span<const RowLimits> limits);

}  // namespace llmperf::measure
