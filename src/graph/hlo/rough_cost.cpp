#include "graph/hlo/rough_cost.h"

#include <algorithm>

#include "graph/hlo/dot.h"
#include "graph/hlo/lower_work.h"

namespace llmperf::graph::hlo {

double rough_cost(const Program& program, const Node& node) {
  // What a device does of matrix products in the time of one vector operation, and of one byte (of an H100 15 and 300).
  constexpr double kPerOperation = 15;
  constexpr double kPerByte = 300;
  if (node.traits.op_class == OpClass::free) return 0;
  double bytes = 0;
  for (std::size_t n = 0; n < node.operands.size(); ++n) bytes += read_bytes(program, node, n).value;
  for (std::size_t n = 0; n < node.results.size(); ++n) bytes += written_bytes(program, node, n).value;
  double products = 0;
  if (node.operands.size() >= 2 && !node.results.empty()) {
    const Type& lhs = program.type(node.operands[0]);
    const Type& rhs = program.type(node.operands[1]);
    const Type& out = program.type(node.results[0]);
    if (node.traits.op_class == OpClass::product) {
      const DotShape s = node.instruction->op() == "custom_call"
                             ? library_product(lhs, rhs, out)
                             : dot_shape(*program.module, *node.instruction, lhs, rhs);
      products = 2 * s.batch * s.m * s.n * s.k;
    } else if (node.traits.op_class == OpClass::convolution) {
      const ConvolutionShape s = convolution_shape(*program.module, *node.instruction, lhs, rhs, out);
      products = 2 * s.positions * s.outputs * s.inputs * s.taps;
    } else if (node.traits.op_class == OpClass::attention) {
      if (const auto a = library_attention(program, node)) {
        products = 2 * static_cast<double>(a->sequences) * static_cast<double>(a->heads) *
                   static_cast<double>(a->q_tokens) * static_cast<double>(a->keys) *
                   static_cast<double>(a->qk_dim + a->v_dim);
      }
    }
  }
  return std::max({products, kPerOperation * vector_operations(program, node), kPerByte * bytes});
}

}  // namespace llmperf::graph::hlo
