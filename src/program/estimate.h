// From a program (StableHLO, MHLO) to an estimate: its kernels as ops, what they take on a device, and the memory they
// need. One execution is one phase.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "estimate/phase.h"
#include "estimate/setup.h"
#include "program/blocks.h"
#include "program/lower.h"
#include "program/program.h"

namespace llmperf::program {

struct ProgramSetup : estimate::Platform {
  std::string name;          // of the file
  std::int64_t devices = 1;  // that run the program together; numbers are of one of them
  Fusion fusion = Fusion::none;
};

// Its one phase is an execution, whether it fits or not; memory: the weights are the program's arguments and constants,
// the activation is the most alive at once.
struct ProgramEstimate : estimate::Outcome {
  // Its ops are those of the phase, in the same order; the overhead of a runtime, if any, comes behind them.
  Lowered lowered;
  std::vector<double> of_peak;            // by op: of the matrix peak of its type, what its products reach
  std::vector<estimate::OpGroup> kinds;   // "dot_general", "fusion" …, the longest first
  std::vector<estimate::OpGroup> scopes;  // where the ops' locations say it: "jit(f)/layers_0/attention"
  Dtype products = Dtype::bf16;           // the type that most products run in
  FlopsPerSecond peak;                    // of products in that type; 0 without products
  double utilisation = 0;                 // of that peak, by all products over the whole time
  const estimate::Phase& phase() const { return phases.front(); }
  Seconds time() const { return phase().time; }  // of one execution
};

// The type in which a device multiplies operands of a type: tf32 where it has it, else fp32; narrow types that it does
// not multiply in that of its activations.
std::function<Dtype(Dtype)> compute_types(const hardware::Device& device);

// Throws Error(bad_input) at an instruction that makes no sense, Error(infeasible) when an op has no mapping.
ProgramEstimate run_program(const Program& program, const ProgramSetup& setup);

}  // namespace llmperf::program
