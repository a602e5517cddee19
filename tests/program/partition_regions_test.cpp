// Loops, conditionals and regions divided over devices, by hand.
#include "catch.h"
#include "program/divided.h"
#include "program/loop_text.h"

namespace llmperf::program::partition_regions_test {
namespace {

// ---- loops ----

TEST_CASE("a loop exchanges in every pass, and carries values as its body leaves them") {
  const auto d = divided_program(
      "%w: tensor<512x512xbf16> " + on("{}, {\"model\"}") + ", %v: tensor<512x512xbf16> " + on("{\"model\"}, {}") +
          ", %x: tensor<16x512xbf16>) -> tensor<16x512xbf16>",
      R"(
  %z = stablehlo.constant dense<0.0> : tensor<bf16>
  %h0 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<bf16>) -> tensor<16x512xbf16>)" +
          counted(10, {{"%a", "%x", "tensor<16x512xbf16>", "%y"}, {"%h", "%h0", "tensor<16x512xbf16>", "%s"}},
                  R"(
    %p = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<16x512xbf16>, tensor<512x512xbf16>) -> tensor<16x512xbf16>
    %s = stablehlo.add %p, %h : tensor<16x512xbf16>
    %y = stablehlo.dot_general %s, %v, contracting_dims = [1] x [0] : (tensor<16x512xbf16>, tensor<512x512xbf16>) -> tensor<16x512xbf16>)") +
          "return %l#1 : tensor<16x512xbf16>\n");
  CHECK(d->exchanges() == Strings{"all-reduce 4/1 x2 bf16[16,512] -> bf16[16,512], 10 times"});
  CHECK(d->results("broadcast_in_dim") == Strings{"bf16[16,128]"});
  CHECK(4 * matrix_flops(d->program) == d->whole_flops);
}

TEST_CASE("a loop carries values as its annotation says: cut before it, gathered after it where less is wanted") {
  const auto d = divided_program(
      "%x: tensor<64x256xf32>) -> (tensor<64x256xf32> " + on("{\"data\"}, {}") + ")",
      counted(10, {{"%a", "%x", "tensor<64x256xf32>", "%y"}}, "%y = stablehlo.tanh %a : tensor<64x256xf32>",
              R"(sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"data"}, {"model"}]>]>)") +
          "%1 = stablehlo.sine %l#1 : tensor<64x256xf32>\nreturn %1 : tensor<64x256xf32>\n");
  CHECK(d->results("tanh") == Strings{"f32[32,64]"});
  CHECK(d->results("sine") == Strings{"f32[32,64]"});
  CHECK(d->exchanges() == Strings{"all-gather 4/1 x2 f32[32,64] -> f32[32,256]"});
}

TEST_CASE("what a body leaves otherwise than its loop says is exchanged in every pass") {
  const auto d = divided_program("%x: tensor<64x256xf32> " + on("{\"model\"}, {}") + ") -> tensor<64x256xf32>",
                                 counted(10, {{"%a", "%x", "tensor<64x256xf32>", "%y"}},
                                         "%y = sdy.reshard %a <@mesh, [{}, {\"data\"}]> : tensor<64x256xf32>",
                                         R"(mhlo.sharding = "{{replicated}, {devices=[1,8]<=[8]}}")") +
                                     "return %l#1 : tensor<64x256xf32>\n");
  // 4 parts of the rows become 8 of the columns: "data" is cut, "model" is the inner one of the columns.
  CHECK(d->exchanges() == Strings{"all-to-all 4/1 x2 f32[16,128] -> f32[64,32]",
                                  "all-gather 4/1 x2 f32[64,32] -> f32[64,128], 10 times"});
  CHECK(d->result_type() == "f32[64,32]");
}

TEST_CASE("a barrier lies as its annotation says, each value on its own") {
  const auto d = divided_program("%x: tensor<64x256xf32>, %y: tensor<64x256xf32> " + on("{\"data\"}, {\"model\"}") +
                                     ") -> (tensor<64x256xf32>, tensor<64x256xf32>)",
                                 R"(
  %0:2 = stablehlo.optimization_barrier %x, %y {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>, <@mesh, [{"data"}, {}]>]>} : tensor<64x256xf32>, tensor<64x256xf32>
  %1 = stablehlo.tanh %0#0 : tensor<64x256xf32>
  %2 = stablehlo.sine %0#1 : tensor<64x256xf32>
  return %1, %2 : tensor<64x256xf32>, tensor<64x256xf32>
)");
  CHECK(d->results("tanh") == Strings{"f32[32,64]"});
  CHECK(d->results("sine") == Strings{"f32[32,256]"});
  CHECK(d->exchanges() == Strings{"all-gather 4/1 x2 f32[32,64] -> f32[32,256]"});
}

TEST_CASE("what calls, conditionals and composites return lies as their annotation says") {
  const std::string divided = "{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"data\"}, {\"model\"}]>]>}";
  const auto d = divided_program("%p: tensor<i1>, %x: tensor<64x256xf32>) -> tensor<64x256xf32>",
                                 R"(
  %0 = func.call @f(%x) )" + divided +
                                     R"( : (tensor<64x256xf32>) -> tensor<64x256xf32>
  %1 = stablehlo.sine %0 : tensor<64x256xf32>
  %2 = "stablehlo.if"(%p) ({
    %3 = stablehlo.cosine %1 : tensor<64x256xf32>
    stablehlo.return %3 : tensor<64x256xf32>
  }, {
    stablehlo.return %1 : tensor<64x256xf32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>} : (tensor<i1>) -> tensor<64x256xf32>
  %4 = stablehlo.negate %2 : tensor<64x256xf32>
  return %4 : tensor<64x256xf32>
}
func.func private @f(%a: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %5 = stablehlo.tanh %a : tensor<64x256xf32>
  return %5 : tensor<64x256xf32>
)");
  CHECK(d->results("tanh") == Strings{"f32[32,64]"});
  CHECK(d->results("sine") == Strings{"f32[32,64]"});
  CHECK(d->results("cosine") == Strings{"f32[32,64]"});
  CHECK(d->exchanges() == Strings{"all-gather 4/1 x2 f32[32,64] -> f32[32,256]"});
  CHECK(d->results("negate") == Strings{"f32[32,256]"});
}

// ---- regions that are divided by hand ----

TEST_CASE("inside a manual computation shapes are local and its collectives are its own") {
  const auto d = divided_program(
      "%x: tensor<64x64xf32> " + on("{\"model\"}, {}") + ", %w: tensor<64x64xf32>) -> tensor<64x64xf32>", R"(
  %0 = sdy.manual_computation(%x, %w) in_shardings=[<@mesh, [{"data"}, {"model"}]>, <@mesh, [{"model"}, {}]>] out_shardings=[<@mesh, [{"data"}, {}]>] manual_axes={"data", "model"} (%a: tensor<32x16xf32>, %b: tensor<16x64xf32>) {
    %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
    %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %3 = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<32x64xf32>) -> tensor<32x64xf32>
    sdy.return %2 : tensor<32x64xf32>
  } : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = stablehlo.tanh %0 : tensor<64x64xf32>
  return %4 : tensor<64x64xf32>
)");
  CHECK(d->exchanges() == Strings{"all-to-all 4/1 x2 f32[16,64] -> f32[64,16]"});  // and cut along "data"
  CHECK(d->results("dot_general") == Strings{"f32[32,64]"});
  CHECK(d->results("all_reduce") == Strings{"f32[32,64]"});
  CHECK(d->results("tanh") == Strings{"f32[32,64]"});
}

TEST_CASE("what a manual computation leaves open stays divided over the free axes, on its way in and out") {
  const auto d = [](const std::string& out) {
    return divided_program("%x: tensor<64x64xf32> " + on("{\"data\"}, {\"model\"}") + ") -> tensor<64x64xf32>",
                           "  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{\"data\", ?}, {?}]>] "
                           "out_shardings=[<@mesh, [" +
                               out + R"(]>] manual_axes={"data"} (%a: tensor<32x64xf32>) {
    %1 = stablehlo.tanh %a : tensor<32x64xf32>
    sdy.return %1 : tensor<32x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = stablehlo.sine %0 : tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
)");
  };
  const auto open = d("{\"data\", ?}, {?}");
  CHECK(open->exchanges().empty());
  CHECK(open->results("tanh") == Strings{"f32[32,16]"});
  CHECK(open->results("sine") == Strings{"f32[32,16]"});
  const auto closed = d("{\"data\", ?}, {}");
  CHECK(closed->exchanges() == Strings{"all-gather 4/1 x2 f32[32,16] -> f32[32,64]"});
  CHECK(closed->results("sine") == Strings{"f32[32,64]"});
}

TEST_CASE("an open dimension of a manual computation has its manual axes outside and the free ones inside") {
  const auto d =
      divided_program("%x: tensor<64x64xf32> " + on("{\"data\", \"model\"}, {}") + ") -> tensor<64x64xf32>", R"(
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"data", ?}, {}]>] out_shardings=[<@mesh, [{"data", ?}, {}]>] manual_axes={"data"} (%a: tensor<32x64xf32>) {
    %1 = stablehlo.tanh %a : tensor<32x64xf32>
    sdy.return %1 : tensor<32x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = sdy.sharding_constraint %0 <@mesh, [{"data", "model"}, {}]> : tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
)");
  CHECK(d->exchanges().empty());
  CHECK(d->results("tanh") == Strings{"f32[8,64]"});
}

TEST_CASE("the same between GSPMD's custom calls") {
  const auto d = divided(parse_text("test.mlir", R"(
module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<64x64xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}) -> tensor<64x64xf32> {
    %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<64x64xf32>) -> tensor<32x64xf32>
    %2 = call @body(%1) : (tensor<32x64xf32>) -> tensor<32x64xf32>
    %3 = stablehlo.custom_call @Sharding(%2) {mhlo.sharding = "{manual}"} : (tensor<32x64xf32>) -> tensor<32x64xf32>
    %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} : (tensor<32x64xf32>) -> tensor<64x64xf32>
    %5 = stablehlo.tanh %4 : tensor<64x64xf32>
    return %5 : tensor<64x64xf32>
  }
  func.func private @body(%a: tensor<32x64xf32>) -> tensor<32x64xf32> {
    %0 = "stablehlo.collective_permute"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 4], [4, 0]]> : tensor<2x2xi64>}> : (tensor<32x64xf32>) -> tensor<32x64xf32>
    return %0 : tensor<32x64xf32>
  }
}
)"));
  CHECK_FALSE(d->result.local);
  CHECK(d->exchanges().empty());
  CHECK(d->results("collective_permute") == Strings{"f32[32,64]"});
  CHECK(d->results("tanh") == Strings{"f32[32,64]"});
}

TEST_CASE("annotations beside collectives of the program's own describe shapes that are local already") {
  const auto d = divided_program("%x: tensor<16x16xf32> " + on("{\"model\"}, {}") + ") -> tensor<64x16xf32>", R"(
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, use_global_device_ids}> : (tensor<16x16xf32>) -> tensor<64x16xf32>
  return %0 : tensor<64x16xf32>
)");
  CHECK(d->result.local);
  CHECK(d->results("all_gather") == Strings{"f32[64,16]"});
  REQUIRE(d->program.notes.size() == 1);
  CHECK_THAT(d->program.notes[0], Catch::Contains("stablehlo.all_gather is an exchange outside of manual regions"));
}

TEST_CASE("Shardy's own sums exchange what they name, whatever the operand says") {
  const auto d = divided_program("%x: tensor<16x16xf32> " + on("{\"data\"}, {}") + ") -> tensor<16x16xf32>", R"(
  %0 = sdy.reduce_scatter [{}, {"model"}] %x out_sharding=<@mesh, [{"data"}, {"model"}]> : tensor<16x16xf32>
  %1 = sdy.all_reduce {"data"} %0 out_sharding=<@mesh, [{"data"}, {"model"}]> : tensor<16x16xf32>
  return %1 : tensor<16x16xf32>
)");
  CHECK(d->exchanges() ==
        Strings{"reduce-scatter 4/1 x2 f32[8,16] -> f32[8,4]", "all-reduce 2/4 x4 f32[8,4] -> f32[8,4]"});
}

TEST_CASE("a product whose sum is an op of its own is summed once, by that op") {
  const auto d = [](const std::string& annotation, const std::string& sum) {
    return divided_program("%x: tensor<16x64xf32> " + on("{}, {\"model\"}") + ", %w: tensor<64x32xf32> " +
                               on("{\"model\"}, {}") + ") -> tensor<16x32xf32>",
                           "  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] " + annotation +
                               " : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>\n  " + sum +
                               " : tensor<16x32xf32>\n  return %1 : tensor<16x32xf32>\n");
  };
  const std::string whole = "{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}";
  const std::string all = R"(%1 = sdy.all_reduce {"model"} %0 out_sharding=<@mesh, [{}, {}]>)";
  const std::string scatter = R"(%1 = sdy.reduce_scatter [{}, {"model"}] %0 out_sharding=<@mesh, [{}, {"model"}]>)";
  const std::string by_data = R"(%1 = sdy.all_reduce {"data"} %0 out_sharding=<@mesh, [{}, {}]>)";
  CHECK(d(whole, all)->exchanges() == Strings{"all-reduce 4/1 x2 f32[16,32] -> f32[16,32]"});
  CHECK(d("", all)->exchanges() == Strings{"all-reduce 4/1 x2 f32[16,32] -> f32[16,32]"});
  CHECK(d(whole, scatter)->exchanges() == Strings{"reduce-scatter 4/1 x2 f32[16,32] -> f32[16,8]"});
  // Another sum than that of the product.
  CHECK(d(whole, by_data)->exchanges() ==
        Strings{"all-reduce 4/1 x2 f32[16,32] -> f32[16,32]", "all-reduce 2/4 x4 f32[16,32] -> f32[16,32]"});
}

TEST_CASE("a product that others read too is summed where it is made, and a sum of its own is another one") {
  const auto d = divided_program("%x: tensor<16x64xf32> " + on("{}, {\"model\"}") + ", %w: tensor<64x32xf32> " +
                                     on("{\"model\"}, {}") + ") -> (tensor<16x32xf32>, tensor<16x32xf32>)",
                                 R"(
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %1 = stablehlo.tanh %0 : tensor<16x32xf32>
  %2 = sdy.all_reduce {"model"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<16x32xf32>
  return %1, %2 : tensor<16x32xf32>, tensor<16x32xf32>
)");
  CHECK(d->exchanges().size() == 2);
}

TEST_CASE("Weights stored over the devices of the batch are gathered, the batch stays divided") {
  const auto d = divided_program("%x: tensor<16x64xbf16> " + on("{\"model\"}, {}") + ", %w: tensor<64x4096xbf16> " +
                                     on("{\"model\"}, {}") + ") -> tensor<16x4096xbf16>",
                                 R"(
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x64xbf16>, tensor<64x4096xbf16>) -> tensor<16x4096xbf16>
  return %0 : tensor<16x4096xbf16>
)");
  CHECK(d->exchanges() == Strings{"all-gather 4/1 x2 bf16[16,4096] -> bf16[64,4096]"});
  CHECK(d->results("dot_general") == Strings{"bf16[4,4096]"});
}

}  // namespace
}  // namespace llmperf::program::partition_regions_test
