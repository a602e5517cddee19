// What `llmperf graph` says of a program. Program, setup, estimate and blocks must outlive it.
#pragma once

#include <string>
#include <vector>

#include "program/blocks.h"
#include "program/estimate.h"
#include "result/parts.h"

namespace llmperf::result {

struct ProgramStudy {
  const program::Program* program = nullptr;
  const program::ProgramSetup* setup = nullptr;
  const program::ProgramEstimate* estimate = nullptr;
  const program::Blocks* blocks = nullptr;
};
// Of the program, the search for blocks and the setup.
std::vector<std::string> all_notes(const ProgramStudy& study);

// An op of the program as it was lowered, and its estimate.
struct Kernel {
  const ProgramStudy* study;
  std::size_t index;
  const program::LoweredOp& lowered() const { return study->estimate->lowered.ops[index]; }
  const estimate::OpEstimate& op() const { return study->estimate->phase().ops[index]; }
  // The last instruction's.
  const program::Node& last() const { return study->program->node(lowered().nodes.back()); }
  int line() const;             // where it stands in the text
  std::string name() const;     // "stablehlo.add", "fusion of 5 (add, multiply …)"
  std::string results() const;  // "bf16[8,512]"
  std::string role() const;     // "qkv" of a product in a transformer block; empty for all else
  const std::string& groups() const { return lowered().groups; }
};
std::vector<Kernel> kernels_of(const ProgramStudy& study);

Type fields_of(Fields<Kernel> f);
Type fields_of(Fields<ProgramStudy> f);

}  // namespace llmperf::result
