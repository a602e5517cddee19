// What a node costs beside another one on any device of today: to compare the branches of a conditional.
#pragma once

#include "graph/hlo/program.h"

namespace llmperf::graph::hlo {

// Of one execution, in operations of a matrix engine; the slowest of its products, vector operations and bytes.
double rough_cost(const Program& program, const Node& node);

}  // namespace llmperf::graph::hlo
