// Whole programs on a device.
#include "program/estimate.h"

#include <fmt/format.h>

#include "catch.h"
#include "estimate/builtin.h"
#include "program/flatten.h"
#include "program/partition.h"

namespace llmperf::program::estimate_test {
namespace {

// A module stays where it is: the program points to it.
struct Study {
  explicit Study(Module parsed, const char* hardware = "h100-sxm", Fusion fusion = Fusion::none,
                 const FlattenOptions& options = {})
      : module(std::move(parsed)), program(flatten(module, options)) {
    setup.device = &test::device(hardware);
    setup.fusion = fusion;
    setup.devices = partition(program, {}).devices;
    setup.cluster = cost::make_cluster(*setup.device);
    estimate = run_program(program, setup);
  }
  Study(const Study&) = delete;
  Seconds time(std::string_view op) const {
    Seconds sum;
    for (std::size_t n = 0; n < estimate.lowered.ops.size(); ++n) {
      if (estimate.lowered.ops[n].op.name == op) sum += estimate.phase().ops[n].step_time();
    }
    return sum;
  }
  Module module;
  Program program;
  ProgramSetup setup;
  ProgramEstimate estimate;
};

Module fixture(const std::string& file) { return parse_file(LLMPERF_SOURCE_DIR "/tests/program/programs/" + file); }
Module text(const std::string& program) { return parse_text("t.mlir", program); }

// Squares of bf16.
std::string product(std::int64_t size, const std::string& type = "bf16") {
  const std::string t = fmt::format("tensor<{0}x{0}x{1}>", size, type);
  return fmt::format(
      "func.func @main(%x: {0}, %w: {0}) -> {0} {{\n  %0 = stablehlo.dot %x, %w : ({0}, {0}) -> {0}\n  return %0 : "
      "{0}\n}}",
      t);
}

const std::string kLoop = R"(func.func @main(%x: tensor<1048576xf32>, %n: tensor<i32>) -> tensor<1048576xf32> {
  %0:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i32>, tensor<1048576xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %3 = stablehlo.tanh %y : tensor<1048576xf32>
    stablehlo.return %n, %3 : tensor<i32>, tensor<1048576xf32>
  }
  %2 = stablehlo.negate %0#1 : tensor<1048576xf32>
  return %2 : tensor<1048576xf32>
})";

constexpr const char* kFixtures[] = {"llama_block.mlir", "llama_decoder_while.mlir", "stdit_block.mlir",
                                     "mlp_spmd.mlir",    "mlp_gspmd.mlir",           "mlp_shardy.mlir",
                                     "generic_mhlo.mlir"};

}  // namespace

TEST_CASE("a program takes the sum of its kernels, none faster than the roof") {
  for (const char* file : kFixtures) {
    for (const char* hardware : {"h100-sxm", "rtx4090"}) {
      INFO(file << " on " << hardware);
      const Study s(fixture(file), hardware);
      const estimate::Phase& phase = s.estimate.phase();
      REQUIRE(phase.ops.size() == s.estimate.lowered.ops.size());
      Seconds sum;
      Seconds roof;
      cost::Work work;
      for (const estimate::OpEstimate& op : phase.ops) {
        CHECK(op.time.total >= op.time.roof * (1 - 1e-12));
        sum += op.step_time();
        roof += op.time.roof * static_cast<double>(op.op.count);
        work += op.work * static_cast<double>(op.op.count);
      }
      CHECK(phase.time.value == Approx(sum.value));
      CHECK(phase.roof.value == Approx(roof.value));
      CHECK(phase.work.matrix.value == Approx(work.matrix.value));
      CHECK(phase.work.bytes().value == Approx(work.bytes().value));
      CHECK(s.estimate.utilisation > 0);
      CHECK(s.estimate.utilisation <= 1);
      Seconds kinds;
      for (const estimate::OpGroup& group : s.estimate.kinds) kinds += group.time;
      CHECK(kinds.value == Approx(phase.time.value));
      if (!s.estimate.scopes.empty()) {
        Seconds scopes;
        for (const estimate::OpGroup& group : s.estimate.scopes) scopes += group.time;
        CHECK(scopes.value == Approx(phase.time.value));
      }
    }
  }
}

TEST_CASE("a large product reaches the matrix peak of its type, a vector the memory bandwidth") {
  const Study s(text(product(8192)));
  const hardware::Device& device = test::device("h100-sxm");
  const double peak = device.find_peak(hardware::Engine::matrix, Dtype::bf16)->rate.value;
  CHECK(s.estimate.time().value == Approx(2 * 8192.0 * 8192 * 8192 / peak));
  CHECK(s.estimate.utilisation == Approx(1));
  CHECK(s.estimate.peak.value == Approx(peak));
  CHECK(s.estimate.kinds.at(0).bound() == mapper::Bound::matrix);
  const double tf32 = device.find_peak(hardware::Engine::matrix, Dtype::tf32)->rate.value;
  CHECK(Study(text(product(8192, "f32"))).estimate.time().value == Approx(2 * 8192.0 * 8192 * 8192 / tf32));
  const Study v(
      text("func.func @main(%x: tensor<67108864xf32>) -> tensor<67108864xf32> {\n  %0 = stablehlo.negate %x : "
           "tensor<67108864xf32>\n  return %0 : tensor<67108864xf32>\n}"));
  CHECK(v.estimate.time().value == Approx(2 * 4 * 67108864.0 / device.dram().bandwidth->value));
  CHECK(v.estimate.utilisation == 0);
}

TEST_CASE("twice the passes of a loop take twice the time of what is in it and no more outside") {
  const Study ten(text(kLoop), "h100-sxm", Fusion::none, {.trips = {{"0", 10}}});
  const Study twenty(text(kLoop), "h100-sxm", Fusion::none, {.trips = {{"0", 20}}});
  CHECK(ten.time("tanh").value > 0);
  CHECK(twenty.time("tanh").value == Approx(2 * ten.time("tanh").value));
  CHECK(twenty.time("negate").value == Approx(ten.time("negate").value));
  CHECK(twenty.time("compare").value == Approx(21.0 / 11 * ten.time("compare").value));
  CHECK(twenty.estimate.memory.total().value == ten.estimate.memory.total().value);
}

TEST_CASE("fusing saves time and memory and no products") {
  for (const char* file : kFixtures) {
    INFO(file);
    const Study apart(fixture(file));
    const Study fused(fixture(file), "h100-sxm", Fusion::elementwise);
    CHECK(fused.estimate.time() < apart.estimate.time());
    CHECK(fused.estimate.phase().work.matrix.value == apart.estimate.phase().work.matrix.value);
    CHECK(fused.estimate.memory.activation <= apart.estimate.memory.activation);
    CHECK(fused.estimate.utilisation >= apart.estimate.utilisation);
  }
}

TEST_CASE("memory is arguments, constants, values alive and the reserve; it fits or not") {
  const Study small(text(product(1024)));
  CHECK(small.estimate.memory.weights.value == 2 * 1024 * 1024 * 2);
  CHECK(small.estimate.memory.activation.value == 1024 * 1024 * 2);
  CHECK(small.estimate.memory.reserve.value == small.setup.reserve.value);
  CHECK(small.estimate.capacity.value == test::device("h100-sxm").dram().capacity->value);
  CHECK(small.estimate.fits);
  CHECK_FALSE(Study(text(product(200000))).estimate.fits);  // three squares of 80 GB
}

TEST_CASE("a divided program has less to do per device and exchanges what it summed") {
  const Study s(fixture("mlp_gspmd.mlir"));
  CHECK(s.setup.devices == 4);
  CHECK(s.estimate.phase().work.network.value > 0);
  CHECK(s.estimate.phase().bound_time[static_cast<std::size_t>(mapper::Bound::network)].value > 0);
}

TEST_CASE("programs run on an array of tiles, by the mapping and by the roofline") {
  const Study mapped(text(product(2048)), "tx8");
  CHECK(mapped.estimate.time() >= mapped.estimate.phase().roof);
  CHECK(mapped.estimate.utilisation > 0.3);
  CHECK(mapped.estimate.utilisation <= 1);
  ProgramSetup roofline = mapped.setup;
  roofline.tiles = mapper::TileModel::roofline;
  CHECK(run_program(mapped.program, roofline).time() <= mapped.estimate.time());
  const Study block(fixture("stdit_block.mlir"), "tx8");
  CHECK(block.estimate.time() >= block.estimate.phase().roof);
}

TEST_CASE("f32 runs in tf32 where the device has it, what it does not multiply in what it does") {
  const auto h100 = compute_types(test::device("h100-sxm"));
  CHECK(h100(Dtype::tf32) == Dtype::tf32);
  CHECK(h100(Dtype::bf16) == Dtype::bf16);
  CHECK(h100(Dtype::fp8) == Dtype::fp8);
  CHECK(h100(Dtype::int4) == Dtype::bf16);
  CHECK(compute_types(test::device("atlas-800i-a2"))(Dtype::fp8) != Dtype::fp8);
}

}  // namespace llmperf::program::estimate_test
