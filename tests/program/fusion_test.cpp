#include "catch.h"
#include "program/partition.h"
#include "program/run.h"

namespace llmperf::program::fusion_test {
namespace {

using Names = std::vector<std::string>;

const std::string kPrograms = LLMPERF_SOURCE_DIR "/tests/program/programs/";
constexpr const char* kFixtures[] = {"llama_block.mlir", "llama_decoder_while.mlir", "stdit_block.mlir",
                                     "mlp_spmd.mlir",    "mlp_gspmd.mlir",           "mlp_shardy.mlir",
                                     "generic_mhlo.mlir"};

}  // namespace

TEST_CASE("Element-wise ops that only hand on to the next are one kernel: a chain, a diamond") {
  const std::string chain = program(
      "%0 = stablehlo.tanh %x : tensor<4x8xf32>\n%1 = stablehlo.sine %0 : tensor<4x8xf32>\n%r = stablehlo.add %1, %y : "
      "tensor<4x8xf32>");
  CHECK(Run(chain).names() == Names{"tanh", "sine", "add"});
  const Run fused(chain, Fusion::elementwise);
  CHECK(fused.names() == Names{"fusion"});
  CHECK(fused.sum.vector.value == 96);
  CHECK(fused.sum.activations_read.value == 256);
  CHECK(fused.sum.activations_written.value == 128);
  const Run diamond(program("%0 = stablehlo.tanh %x : tensor<4x8xf32>\n%1 = stablehlo.sine %0 : tensor<4x8xf32>\n"
                            "%2 = stablehlo.cosine %0 : tensor<4x8xf32>\n%r = stablehlo.add %1, %2 : tensor<4x8xf32>"),
                    Fusion::elementwise);
  CHECK(diamond.names() == Names{"fusion"});
  CHECK(diamond.sum.vector.value == 128);
  CHECK(diamond.sum.activations_read.value == 128);
  CHECK(diamond.sum.activations_written.value == 128);
}

TEST_CASE("Nothing is computed twice: what two kernels read is stored") {
  const Run r(program("%0 = stablehlo.tanh %x : tensor<4x8xf32>\n"
                      "%1 = stablehlo.dot %0, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>\n"
                      "%2 = stablehlo.dot %0, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>\n"
                      "%3 = stablehlo.add %1, %2 : tensor<4x16xf32>\n%r = stablehlo.sine %3 : tensor<4x16xf32>",
                      "tensor<4x16xf32>"),
              Fusion::elementwise);
  CHECK(r.names() == Names{"tanh", "dot", "dot", "fusion"});
  CHECK(r.sum.vector.value == 32 + 64 + 64);
}

TEST_CASE("A kernel that keeps a part of a value makes and reads that part alone") {
  const auto kept = [](const char* slice, const char* type) {
    return Run(program(fmt::format("%0 = stablehlo.add %x, %y : tensor<4x8xf32>\n"
                                   "%r = stablehlo.slice %0 [{}] : (tensor<4x8xf32>) -> {}",
                                   slice, type),
                       type),
               Fusion::elementwise);
  };
  const Run one = kept("0:1, 0:1", "tensor<1x1xf32>");
  CHECK(one.names() == Names{"fusion"});
  CHECK(one.sum.vector.value == Approx(1));
  CHECK(one.sum.activations_read.value == Approx(4 + 4));
  CHECK(one.sum.activations_written.value == Approx(4));
  const Run row = kept("0:1, 0:8", "tensor<1x8xf32>");
  CHECK(row.sum.vector.value == Approx(8));
  CHECK(row.sum.activations_read.value == Approx(2 * 8 * 4));
  // Two parts of a value are their sum, and never more than all of it.
  const Run twice(program("%0 = stablehlo.add %x, %y : tensor<4x8xf32>\n"
                          "%1 = stablehlo.slice %0 [0:3, 0:8] : (tensor<4x8xf32>) -> tensor<3x8xf32>\n"
                          "%2 = stablehlo.slice %0 [1:4, 0:8] : (tensor<4x8xf32>) -> tensor<3x8xf32>\n"
                          "%r = stablehlo.add %1, %2 : tensor<3x8xf32>",
                          "tensor<3x8xf32>"),
                  Fusion::elementwise);
  CHECK(twice.names() == Names{"fusion"});
  CHECK(twice.sum.vector.value == Approx(32 + 24));
  CHECK(twice.sum.activations_read.value == Approx(2 * 128));
}

TEST_CASE("A broadcast is repeated by its readers and never stored") {
  const std::string text = program(
      "%0 = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>\n%1 = stablehlo.add %x, %0 "
      ": "
      "tensor<4x8xf32>\n%2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>\n"
      "%3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>\n%r = stablehlo.multiply %3, "
      "%0 : "
      "tensor<4x8xf32>");
  const Run r(text, Fusion::elementwise);
  CHECK(r.names() == Names{"fusion", "transpose", "multiply"});
  CHECK(cost::work_of(r.lowered.ops[0].op).bytes().value == 128 + 32 + 128);
  CHECK(r.work("multiply").bytes().value == 128 + 32 + 128);
}

TEST_CASE("A softmax is three kernels: the maximum, the exponentials with their sum, the quotients") {
  const std::string text = program(R"(
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
    %2 = stablehlo.subtract %x, %1 : tensor<4x8xf32>
    %3 = stablehlo.exponential %2 : tensor<4x8xf32>
    %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
    %r = stablehlo.divide %3, %5 : tensor<4x8xf32>)");
  const Run r(text, Fusion::elementwise);
  REQUIRE(r.names() == Names{"reduce", "fusion", "divide"});
  const auto bytes = [&](std::size_t n) { return cost::work_of(r.lowered.ops[n].op).bytes().value; };
  CHECK(bytes(0) == Approx(128 + 16));
  CHECK(bytes(1) == Approx(128 + 16 + 128 + 16));
  CHECK(bytes(2) == Approx(128 + 16 + 128));
  CHECK(r.sum.vector.value == Approx(28 + 32 + 32 + 28 + 32));
}

TEST_CASE("A fusion of the program is one kernel whatever --fuse says") {
  const Run r(program(R"(
    %r = "mhlo.fusion"(%x) ({
    ^bb0(%a: tensor<4x8xf32>):
      %1 = mhlo.sine %a : tensor<4x8xf32>
      %2 = mhlo.tanh %1 : tensor<4x8xf32>
      mhlo.return %2 : tensor<4x8xf32>
    }) {fusion_kind = #mhlo<fusion_kind kLoop>} : (tensor<4x8xf32>) -> tensor<4x8xf32>)"));
  CHECK(r.names() == Names{"fusion"});
  CHECK(r.sum.vector.value == 64);
  CHECK(r.sum.bytes().value == 256);
}

TEST_CASE("Work outside a loop does not join what is inside") {
  const Run r(R"(func.func @main(%x: tensor<64xf32>, %n: tensor<i32>) -> tensor<64xf32> {
    %a = stablehlo.tanh %x : tensor<64xf32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i32>, tensor<64xf32>
    cond {
      %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %3 = stablehlo.add %y, %a : tensor<64xf32>
      stablehlo.return %n, %3 : tensor<i32>, tensor<64xf32>
    }
    return %0#1 : tensor<64xf32>
  })",
              Fusion::elementwise);
  CHECK(r.names() == Names{"tanh", "compare", "add"});
}

TEST_CASE("Fusing changes no FLOPs and never adds bytes, kernels or memory") {
  for (const char* file : kFixtures) {
    INFO(file);
    const Module module = parse_file(kPrograms + file);
    Program flat = flatten(module, {});
    const std::int64_t devices = partition(flat, {}).devices;
    const Lowered apart = lower(flat, {.devices = devices});
    const Lowered fused = lower(flat, {.fusion = Fusion::elementwise, .devices = devices});
    const auto sum = [](const Lowered& lowered) {
      cost::Work w;
      for (const LoweredOp& op : lowered.ops) w += cost::work_of(op.op) * static_cast<double>(op.op.count);
      return w;
    };
    CHECK(fused.ops.size() < apart.ops.size());
    CHECK(sum(fused).matrix.value == sum(apart).matrix.value);
    CHECK(sum(fused).vector.value == Approx(sum(apart).vector.value).epsilon(1e-12));
    CHECK(sum(fused).network.value == sum(apart).network.value);
    CHECK(sum(fused).bytes().value < sum(apart).bytes().value);
    CHECK(fused.intermediate <= apart.intermediate);
    CHECK(fused.arguments == apart.arguments);
  }
}

TEST_CASE("Fusing never adds bytes, whatever reads a value that two ops make") {
  const char* bodies[] = {
      // Read by a slice, by an update in place, by a reduction and by what comes behind it.
      R"(%0 = stablehlo.tanh %x : tensor<4x8xf32>
         %1 = stablehlo.slice %0 [0:1, 0:8] : (tensor<4x8xf32>) -> tensor<1x8xf32>
         %2 = stablehlo.sine %1 : tensor<1x8xf32>
         %r = stablehlo.dynamic_update_slice %0, %2, %i, %i : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>)",
      R"(%z = stablehlo.constant dense<0.0> : tensor<f32>
         %0 = stablehlo.multiply %x, %y : tensor<4x8xf32>
         %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
         %2 = stablehlo.add %1, %v : tensor<8xf32>
         %3 = stablehlo.broadcast_in_dim %2, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
         %r = stablehlo.add %0, %3 : tensor<4x8xf32>)",
      R"(%0 = stablehlo.negate %x : tensor<4x8xf32>
         %1 = stablehlo.concatenate %0, %y, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
         %2 = stablehlo.tanh %1 : tensor<8x8xf32>
         %r = stablehlo.slice %2 [2:6, 0:8] : (tensor<8x8xf32>) -> tensor<4x8xf32>)",
      R"(%0 = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
         %1 = stablehlo.dot %0, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
         %2 = stablehlo.slice %1 [0:4, 0:8] : (tensor<4x16xf32>) -> tensor<4x8xf32>
         %3 = stablehlo.slice %1 [0:4, 8:16] : (tensor<4x16xf32>) -> tensor<4x8xf32>
         %r = stablehlo.multiply %2, %3 : tensor<4x8xf32>)",
      R"(%0 = stablehlo.tanh %x : tensor<4x8xf32>
         %1 = stablehlo.reshape %0 : (tensor<4x8xf32>) -> tensor<32xf32>
         %2 = stablehlo.sine %1 : tensor<32xf32>
         %r = stablehlo.reshape %2 : (tensor<32xf32>) -> tensor<4x8xf32>)",
  };
  for (const char* body : bodies) {
    INFO(body);
    const Run apart(program(body));
    const Run fused(program(body), Fusion::elementwise);
    CHECK(fused.lowered.ops.size() < apart.lowered.ops.size());
    CHECK(fused.sum.matrix.value == apart.sum.matrix.value);
    // Of the third, half of both is kept, and the rest not made.
    const double operations = body == bodies[2] ? (32 + 64) / 2 : apart.sum.vector.value;
    CHECK(fused.sum.vector.value == Approx(operations).epsilon(1e-12));
    CHECK(fused.sum.bytes().value <= apart.sum.bytes().value);
    CHECK(fused.lowered.intermediate <= apart.lowered.intermediate);
  }
}

TEST_CASE("Every node that works is in one kernel, or repeated") {
  for (const char* file : kFixtures) {
    INFO(file);
    const Module module = parse_file(kPrograms + file);
    const Program flat = flatten(module, {});
    for (const Fusion fusion : {Fusion::none, Fusion::elementwise}) {
      const Uses uses(flat);
      const Kernels kernels = kernels_of(flat, uses, fusion);
      for (std::size_t n = 0; n < flat.nodes.size(); ++n) {
        const OpClass c = flat.nodes[n].traits.op_class;
        const bool works = c != OpClass::free && c != OpClass::transfer && c != OpClass::unknown;
        CHECK((kernels.of_node[n] != kNone || kernels.repeated[n]) == works);
        CHECK(kernels.of_node[n] < kernels.count);
      }
    }
  }
}

}  // namespace llmperf::program::fusion_test
