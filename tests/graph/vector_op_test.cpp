#include "graph/vector_op.h"

#include <utility>

#include "catch.h"
#include "graph/op.h"

namespace llmperf::graph::vector_op_test {
namespace {

double operations(VectorKind kind) { return vector_op(kind).operations; }

TEST_CASE("operations per element are those of the kernel's formula") {
  CHECK(operations(VectorKind::softmax) == 5);     // maximum, subtract, exponential, sum, divide
  CHECK(operations(VectorKind::rms_norm) == 4);    // square, sum, times the root, weight
  CHECK(operations(VectorKind::layer_norm) == 7);  // mean, subtract; bias
  CHECK(operations(VectorKind::group_norm) == 7);  // as layer_norm, over groups
  CHECK(operations(VectorKind::rope) == 3);        // x cos + y sin
  CHECK(operations(VectorKind::activation) == 4);  // x / (1 + exp(-x)): the sign is free
  CHECK(operations(VectorKind::mask) == 2);        // scale, add
  CHECK(operations(VectorKind::combine) == 2);     // weight, add
  CHECK(operations(VectorKind::dropout) == 2);     // compare, scale
  CHECK(operations(VectorKind::modulate) == 2);    // scale, shift
  CHECK(operations(VectorKind::adam) == 12);       // two moments 3 + 4, root, quotient, decay and step 5
  CHECK(operations(VectorKind::gate_add) == 2);    // gate, add
}

TEST_CASE("fusing an add with the norm behind it keeps the operations") {
  CHECK(operations(VectorKind::add_rms_norm) == operations(VectorKind::add) + operations(VectorKind::rms_norm));
  CHECK(operations(VectorKind::add_layer_norm) == operations(VectorKind::add) + operations(VectorKind::layer_norm));
  CHECK(operations(VectorKind::gated_activation) ==
        operations(VectorKind::activation) + operations(VectorKind::multiply));
}

TEST_CASE("differentiating an operation reads the gradient and what was kept, in 16 bits") {
  const auto moved = [](VectorKind kind) {
    const VectorGradient& g = vector_op(kind).backward;
    return std::pair(g.moved.read_tensors(Dtype::bf16), g.moved.written_tensors(Dtype::bf16));
  };
  CHECK(moved(VectorKind::add_rms_norm) == std::pair(2.0, 1.0));      // the gradient and the input
  CHECK(moved(VectorKind::gated_activation) == std::pair(3.0, 2.0));  // the gradient and both factors, two gradients
  CHECK(moved(VectorKind::dropout) == std::pair(1.5, 1.0));           // and a mask of one byte
  CHECK(moved(VectorKind::cross_entropy) == std::pair(2.0, 1.0));     // probabilities in fp32
  CHECK(vector_op(VectorKind::add_rms_norm).backward.kind == VectorKind::rms_norm);
  CHECK(vector_op(VectorKind::add).backward.flow == VectorGradient::Flow::unchanged);
  CHECK(vector_op(VectorKind::sampling).backward.flow == VectorGradient::Flow::untrained);
}

TEST_CASE("a framework's kernels of a norm and a loss move what is published of them, in bytes") {
  const auto bytes = [](VectorKind kind) {
    double sum = 0;
    for (const Traffic& t : vector_op(kind).backward.framework) {
      sum += 2 * (t.read_tensors(Dtype::bf16) + t.written_tensors(Dtype::bf16));
    }
    return sum;
  };
  CHECK(bytes(VectorKind::layer_norm) == 10);
  CHECK(bytes(VectorKind::softmax) == 4);
  CHECK(bytes(VectorKind::cross_entropy) == 14);
}

TEST_CASE("an op of a pass is called by its tag and the pass") {
  CHECK(name(Tag::none).empty());
  CHECK(name(Tag::embed) == "embed");
  CHECK(name(Tag::o_proj, Pass::dgrad) == "o_proj dgrad");
  CHECK(name(Tag::experts_activation, Pass::wgrad_sum) == "experts_activation wgrad sum");
  CHECK(name(Tag::rearrange, Pass::again) == "rearrange again");
}

}  // namespace
}  // namespace llmperf::graph::vector_op_test
