// How long an op takes on a device under a runtime profile: the kernel formulas (kernels.h) with
// the profile's numbers, held against the roof of the op's work. Values are read at every call, so that a fit can
// change them in place.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "cost/collective.h"
#include "cost/work.h"
#include "graph/op.h"
#include "hardware/device.h"
#include "hardware/runtime_profile.h"
#include "mapper/roofline/kernels.h"
#include "mapper/roofline/roofline.h"

namespace llmperf::mapper {

class Efficiency {
 public:
  // Device and profile must outlive it.
  Efficiency(const hardware::Device& device, const hardware::RuntimeProfile& profile, const Roofline& roofline);

  // Of an op of the device. Never less than its roof.
  OpTime time(const graph::Op& op, const cost::Work& work) const;
  // Of a collective, by the algorithm that is the fastest as the profile's library runs it. Never less than the speed
  // of light.
  OpTime collective(const graph::Op& op, const cost::Cluster& cluster) const;
  const hardware::RuntimeProfile& profile() const { return profile_; }

 private:
  struct Run;
  void limit_clock(const hardware::Device& device);
  Run run(const graph::Op& op, const cost::Work& work) const;
  void add_call(const graph::Op& op, Run& run) const;
  cost::Sums sums(const cost::Work& work) const;
  ProductTime kernel(const graph::Gemm& gemm, const cost::Work& work) const;
  ProductTime training_time(const graph::Gemm& gemm, const cost::Work& work, const GemmCall& call) const;
  double kernel(const graph::Attention& attention) const;
  double launch(const graph::Attention& attention) const;
  ProductTime ggml_kernel(const graph::Gemm& gemm, const GemmCall& call) const;
  KernelDevice on_unpacked(Dtype activation) const;
  double with_onset(double seconds) const;
  double cached_bytes(const cost::Work& work, double launches) const;
  double stream(const graph::Op& op, const cost::Work& work) const;
  KernelDevice on(Dtype dtype, cost::Sums sums = cost::Sums::wide) const;

  const hardware::RuntimeProfile& profile_;
  Roofline roofline_;
  KernelDevice device_;
  double power_clock_ = 1;  // what the power of the board leaves of the clock of products
  bool is_host_;            // a processor, which calls what it runs
};

// ---- Which parameters of a runtime profile the time of an op depends on

// Those that its time can change with under a profile's kernel choices, in their order: of a product only the
// parameters of the kernel that runs.
std::vector<std::size_t> parameters_of(const graph::Op& op, const hardware::KernelChoices& choices);
// Of what the host adds where it launches the op, if it has one of its own.
std::optional<std::size_t> host_parameter_of(const graph::Op& op, const hardware::KernelChoices& choices);
// The numbers of an op's shape that its time depends on beside its work.
void each_extent(const graph::Op& op, const std::function<void(double)>& visit);

}  // namespace llmperf::mapper
