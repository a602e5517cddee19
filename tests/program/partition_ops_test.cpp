// Ops divided over devices one by one, by hand.
#include "catch.h"
#include "program/divided.h"

namespace llmperf::program::partition_ops_test {
namespace {

// ---- ops ----

TEST_CASE("a reduction over a divided dimension is summed between devices, over another one it is not") {
  const auto reduce = [](const std::string& dim) {
    return divided_program("%x: tensor<16x32xf32> " + on("{\"model\"}, {}") + ") -> tensor<f32>",
                           "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                           "  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [" +
                               dim + "] : (tensor<16x32xf32>, tensor<f32>) -> tensor<" + (dim == "0" ? "32" : "16") +
                               "xf32>\n  return %0 : tensor<" + (dim == "0" ? "32" : "16") + "xf32>\n");
  };
  CHECK(reduce("0")->exchanges() == Strings{"all-reduce 4/1 x2 f32[32] -> f32[32]"});
  CHECK(reduce("1")->exchanges().empty());
  CHECK(reduce("1")->result_type() == "f32[4]");
}

TEST_CASE("a convolution divides by images and by filters; divided channels leave summands") {
  const auto convolve = [](const std::string& x, const std::string& w) {
    return divided_program(
        "%x: tensor<8x32x32x16xf32> " + on(x) + ", %w: tensor<3x3x16x64xf32> " + on(w) + ") -> tensor<8x32x32x64xf32>",
        R"(
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x32x32x16xf32>, tensor<3x3x16x64xf32>) -> tensor<8x32x32x64xf32>
  return %0 : tensor<8x32x32x64xf32>
)");
  };
  const auto both = convolve("{\"data\"}, {}, {}, {}", "{}, {}, {}, {\"model\"}");
  CHECK(both->exchanges().empty());
  CHECK(both->result_type() == "f32[4,32,32,16]");
  const auto summed = convolve("{}, {}, {}, {\"model\"}", "{}, {}, {}, {}");
  CHECK(summed->exchanges() == Strings{"all-reduce 4/1 x2 f32[8,32,32,64] -> f32[8,32,32,64]"});
  const auto rows = convolve("{}, {\"model\"}, {}, {}", "{}, {}, {}, {}");
  CHECK(rows->exchanges() == Strings{"all-gather 4/1 x2 f32[8,8,32,16] -> f32[8,32,32,16]"});
}

TEST_CASE("a gather is divided as its indices, which lie along dimension 0 where the text does not say") {
  const auto d =
      divided_program("%t: tensor<64x32xf32>, %i: tensor<1x16xi32> " + on("{}, {\"model\"}") + ") -> tensor<16x32xf32>",
                      R"(
  %0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0]>, slice_sizes = array<i64: 1, 32>}> : (tensor<64x32xf32>, tensor<1x16xi32>) -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
)");
  CHECK(d->exchanges().empty());
  CHECK(d->result_type() == "f32[4,32]");
}

TEST_CASE("slices and concatenations keep what they do not touch divided, and gather what they do") {
  const auto d =
      divided_program("%x: tensor<16x32xf32> " + on("{\"data\"}, {\"model\"}") + ") -> tensor<16x48xf32>", R"(
  %0 = stablehlo.slice %x [0:16, 0:16] : (tensor<16x32xf32>) -> tensor<16x16xf32>
  %1 = stablehlo.concatenate %0, %x, dim = 1 : (tensor<16x16xf32>, tensor<16x32xf32>) -> tensor<16x48xf32>
  return %1 : tensor<16x48xf32>
)");
  CHECK(d->exchanges() == Strings{"all-gather 4/1 x2 f32[8,8] -> f32[8,32]"});
  CHECK(d->result_type() == "f32[8,48]");
}

TEST_CASE("constants and broadcasts are made in parts, so that nothing is cut or exchanged for them") {
  const auto d = divided_program(
      "%x: tensor<16x32xf32> " + on("{\"data\"}, {\"model\"}") + ", %b: tensor<32xf32>) -> tensor<16x32xf32>",
      R"(
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<32xf32>) -> tensor<16x32xf32>
  %2 = stablehlo.add %x, %0 : tensor<16x32xf32>
  %3 = stablehlo.add %2, %1 : tensor<16x32xf32>
  return %3 : tensor<16x32xf32>
)");
  CHECK(d->exchanges().empty());
  CHECK(d->results("broadcast_in_dim") == Strings{"f32[8,8]", "f32[8,8]"});
}

TEST_CASE("GSPMD's transposed devices are sent their parts") {
  const auto d = divided(parse_text("test.mlir", R"(
func.func @main(%x: tensor<16x16xf32> {mhlo.sharding = "{devices=[2,2]<=[2,2]T(1,0)}"}) -> (tensor<16x16xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}) {
  %0 = stablehlo.tanh %x : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}
)"));
  CHECK(d->exchanges() == Strings{"send 4/1 x1 f32[8,8] -> f32[8,8]"});
  CHECK(d->result_type() == "f32[8,8]");
}

TEST_CASE("a table divided by rows stays so when rows are written to it: devices pass over those of others") {
  const auto scatter = [](const std::string& updates) {
    return divided_program("%t: tensor<4096x64xf32> " + on("{\"model\"}, {}") +
                               ", %i: tensor<128x1xi32>, %u: tensor<128x64xf32> " + on(updates) +
                               ") -> tensor<4096x64xf32>",
                           R"(
  %0 = "stablehlo.scatter"(%t, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4096x64xf32>, tensor<128x1xi32>, tensor<128x64xf32>) -> tensor<4096x64xf32>
  return %0 : tensor<4096x64xf32>
)");
  };
  const auto whole = scatter("{}, {}");
  CHECK(whole->exchanges().empty());
  CHECK(whole->result_type() == "f32[1024,64]");
  // Columns go together, rows of updates are needed by all.
  const auto columns = scatter("{}, {\"data\"}");
  CHECK(columns->exchanges().empty());
  CHECK(columns->result_type() == "f32[1024,32]");
  CHECK(scatter("{\"data\"}, {}")->exchanges() == Strings{"all-gather 2/4 x4 f32[64,64] -> f32[128,64]"});
}

TEST_CASE("a window of one row is written to a divided table as rows are") {
  const auto d = divided_program("%t: tensor<8x1024x64xf32> " + on("{}, {\"model\"}, {}") +
                                     ", %i: tensor<1xi32>, %u: tensor<8x1x64xf32>) -> tensor<8x1024x64xf32>",
                                 R"(
  %0 = "stablehlo.scatter"(%t, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1, 2], scatter_dims_to_operand_dims = [1]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8x1024x64xf32>, tensor<1xi32>, tensor<8x1x64xf32>) -> tensor<8x1024x64xf32>
  return %0 : tensor<8x1024x64xf32>
)");
  CHECK(d->exchanges().empty());
  CHECK(d->result_type() == "f32[8,256,64]");
}

TEST_CASE("what has no result gathers nothing") {
  const auto d = divided_program("%x: tensor<16x32xf32> " + on("{\"data\"}, {}") + ") -> tensor<16x32xf32>", R"(
  sdy.sharding_group %x group_id=1 : tensor<16x32xf32>
  return %x : tensor<16x32xf32>
)");
  CHECK(d->exchanges().empty());
  CHECK(d->program.notes.empty());
}

TEST_CASE("an op of which nothing is known gets its operands whole, and a note says so") {
  const auto d = divided_program("%x: tensor<16x32xf32> " + on("{\"data\"}, {}") + ") -> tensor<16x32xf32>", R"(
  %0 = stablehlo.custom_call @mystery(%x) : (tensor<16x32xf32>) -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
)");
  CHECK(d->exchanges() == Strings{"all-gather 2/4 x4 f32[8,32] -> f32[16,32]"});
  REQUIRE(d->program.notes.size() == 1);
  CHECK_THAT(d->program.notes[0], Catch::Contains("custom_call is not divided over devices"));
}

TEST_CASE("extents that do not divide are rounded up, and a note says so") {
  const auto d = divided_program("%x: tensor<10x32xf32> " + on("{\"model\"}, {}") + ") -> tensor<10x32xf32>",
                                 "  %0 = stablehlo.tanh %x : tensor<10x32xf32>\n  return %0 : tensor<10x32xf32>\n");
  CHECK(d->results("tanh") == Strings{"f32[3,32]"});
  REQUIRE(d->program.notes.size() == 1);
  CHECK(d->program.notes[0] == "an extent of 10 over 4 devices is counted as 3 on each");
}

TEST_CASE("the shardings of an outfeed are those of its data and its token") {
  const auto d = divided_program("%x: tensor<16x32xf32> " + on("{\"data\"}, {}") + ") -> tensor<16x32xf32>", R"(
  %t = stablehlo.create_token : !stablehlo.token
  %0 = "stablehlo.outfeed"(%x, %t) {mhlo.sharding = "{{devices=[2,1,4]<=[8] last_tile_dim_replicate}, {maximal device=0}}"} : (tensor<16x32xf32>, !stablehlo.token) -> !stablehlo.token
  return %x : tensor<16x32xf32>
)");
  CHECK(d->exchanges().empty());
  CHECK(d->program.notes.empty());
  const auto whole = divided_program("%x: tensor<16x32xf32> " + on("{\"data\"}, {}") + ") -> tensor<16x32xf32>", R"(
  %t = stablehlo.create_token : !stablehlo.token
  %0 = "stablehlo.outfeed"(%x, %t) {mhlo.sharding = "{replicated}"} : (tensor<16x32xf32>, !stablehlo.token) -> !stablehlo.token
  return %x : tensor<16x32xf32>
)");
  CHECK(whole->exchanges() == Strings{"all-gather 2/4 x4 f32[8,32] -> f32[16,32]"});
}

}  // namespace
}  // namespace llmperf::program::partition_ops_test
