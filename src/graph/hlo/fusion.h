// Which nodes run in one kernel. A fusing compiler keeps out of memory what one element-wise op hands to the next:
//  * a producer joins the kernel of its readers when all of them are in the same one; nothing is computed twice, and no
//    cycle can arise;
//  * what only repeats or enumerates (broadcast, iota) is computed by every reader and never stored;
//  * a reduction ends a kernel, and may end that of a value which is also stored (the exponentials of a softmax and
//    their sum), when all else that it reads was there before that value;
//  * products, convolutions, collectives, sorts and library calls are kernels of their own, whose operands and results
//    are in memory.
// These are the rules of XLA's loop and multi-output fusion (openxla/xla, instruction_fusion, multi_output_fusion)
// without the duplication of cheap producers.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "graph/hlo/program.h"
#include "graph/hlo/uses.h"

namespace llmperf::graph::hlo {

enum class Fusion : unsigned char { none, elementwise };
std::optional<Fusion> parse_fusion(std::string_view name);

struct Kernels {
  std::vector<int> of_node;    // kernel of every node; kNone: it does no work, or is repeated by its readers
  std::vector<bool> repeated;  // nodes that every reader computes for itself
  int count = 0;
};

// `none` joins only what the program itself calls a fusion.
Kernels kernels_of(const Program& program, const Uses& uses, Fusion fusion);

}  // namespace llmperf::graph::hlo
