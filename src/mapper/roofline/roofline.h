// The roofline mapper (Williams, Waterman, Patterson, CACM 52(4), 2009): an op takes as long as the slowest of the
// matrix engine, the vector engine and device memory needs for its work, all three overlapping perfectly, with no
// launch cost. That is the speed of light of the op list as it stands: an upper bound on its performance and not a
// prediction. (A stack that keeps activations in its cache or fuses further runs a different op list.)
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "cost/collective.h"
#include "cost/work.h"
#include "hardware/device.h"

namespace llmperf::mapper {

enum class Bound : unsigned char {
  matrix,
  vector,
  memory,
  network,
  launch,
  operand_feed,  // the rate at which cores get operands from the cache
};
inline constexpr std::size_t kBounds = 6;
std::string_view name(Bound bound);

struct OpTime {
  Seconds total;
  Seconds matrix;  // what each resource alone would need
  Seconds vector;
  Seconds memory;
  Seconds network;
  Bound bound = Bound::memory;
  Seconds roof;  // the bound this time is held against; equal to total for the speed of light
};

class Roofline {
 public:
  explicit Roofline(const hardware::Device& device);

  OpTime time(const cost::Work& work) const;
  // Peak rate of matrix products on operands of `dtype`, added up in 32 bits unless `sums` allows for less. A type the
  // device has no matrix peak for runs on the vector engine. Peaks are at the clock the device was seen to run at.
  FlopsPerSecond matrix_rate(Dtype dtype, cost::Sums sums = cost::Sums::wide) const;
  FlopsPerSecond matrix_rate(const cost::Work& work) const { return matrix_rate(work.matrix_dtype, work.sums); }
  FlopsPerSecond vector_rate() const { return vector_; }
  BytesPerSecond bandwidth() const { return bandwidth_; }
  const cost::Cache& cache() const { return cache_; }

 private:
  std::array<FlopsPerSecond, 13> matrix_;
  FlopsPerSecond narrow_;   // of fp16 operands, whatever they are added up in
  FlopsPerSecond integer_;  // of 8-bit operands, of the matrix or the vector engine
  FlopsPerSecond vector_;   // fp32: norms, softmax and activations accumulate in it
  BytesPerSecond bandwidth_;
  cost::Cache cache_;
};

// Bytes sent one way over a link, at its peak rate and without its latency.
OpTime time_over_link(const cost::Work& work, BytesPerSecond rate);
// A collective; its roof is the transfer at the link's rate without the latency of its steps.
OpTime time_of(const cost::CollectiveCost& cost);

}  // namespace llmperf::mapper
