// The program of one device, from the program of all of them and its annotations: what XLA's GSPMD (Xu et al. 2021,
// arXiv 2105.04663) and Shardy make of them, with the rules that matter for cost.
//
// Shardings go forward from the arguments and from constraints. An op takes the division of its largest operand and of
// those that do not contradict it (factors.h); the other operands are exchanged or cut to fit. What is divided and
// summed over leaves summands, which a reduce-scatter ends where a constraint divides the result over the same devices,
// and an all-reduce elsewhere, or a sum of the program's own; annotations (unreduced) may keep them longer. What
// nothing is known of takes its operands whole. Constants, broadcasts and element-wise work on what every device has
// are divided as those who use them need it, and a loop carries its values as it is annotated or as its body leaves
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "program/program.h"

namespace llmperf::program {

// Among the attributes of an argument, a result or an op: sdy.sharding, mhlo.sharding, or xla.sdy.sharding in
// mhlo.frontend_attributes.
std::optional<std::string_view> sharding_text(const std::vector<Attribute>& attributes);

struct PartitionOptions {
  std::optional<std::int64_t> devices = {};  // nothing: as many as the program says
};

struct PartitionResult {
  std::int64_t devices = 1;
  bool annotated = false;  // the program says how its values lie on devices
  // Its shapes were those of one device already: it is annotated nowhere, or it has collectives of its own beside its
  // annotations.
  bool local = true;
  std::int64_t collectives = 0;  // that were put in
};

// Extents of all tensors become those of one device (divided, rounded up), and nodes with Node::inserted are put where
// devices have to exchange something. Notes say what was assumed. Throws Error(bad_input) with its place for an
// annotation that is not understood, that does not fit its tensor or that names more devices than there are.
PartitionResult partition(Program& program, const PartitionOptions& options);

}  // namespace llmperf::program
