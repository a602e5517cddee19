#include "catch.h"
#include "program/flat.h"

namespace llmperf::program::extents_test {

TEST_CASE("An open extent is refused at its argument unless `dim` gives it") {
  const std::string text = R"(func.func @main(%x: tensor<?x8xf32>, %w: tensor<8x?xf32>) -> tensor<?x?xf32> {
    %0 = stablehlo.dot %x, %w : (tensor<?x8xf32>, tensor<8x?xf32>) -> tensor<?x?xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<?x?xf32>) -> tensor<?x?xf32>
    return %1 : tensor<?x?xf32>
  })";
  CHECK(refusal(text) ==
        "1:17: dimension 0 of %x (f32[?,8]) is dynamic (`dim` x.0=N gives it, `dim` N all such extents)");
  const Flat bound(text, {.extents = {{"x", 0, 4}, {"w", 1, 16}}});
  CHECK(bound.result("dot").dims == std::vector<std::int64_t>{4, 16});
  CHECK(bound.result("transpose").dims == std::vector<std::int64_t>{16, 4});
  const Flat mixed(text, {.extents = {{"", 0, 5}, {"w", 1, 16}}});
  CHECK(mixed.result("dot").dims == std::vector<std::int64_t>{5, 16});
  CHECK(refusal(text, {.extents = {{"x", 0, 4}}}).starts_with("1:38: dimension 1 of %w"));
  CHECK(
      refusal("func.func @main(%x: tensor<?xf32, #stablehlo.bounds<9>>) { return }").find("the text bounds it by 9") !=
      std::string::npos);
  CHECK(refusal("func.func @main(%x: tensor<*xf32>) { return }") == "1:17: %x has a dynamic rank");
}

TEST_CASE("Extents follow from operands, shapes and limits") {
  struct Case {
    const char* statement;
    std::vector<std::int64_t> dims;
  };
  const Case cases[] = {
      {"stablehlo.tanh %a : tensor<?x3xf32>", {4, 3}},
      {"stablehlo.broadcast_in_dim %a, dims = [1, 2] : (tensor<?x3xf32>) -> tensor<2x?x3xf32>", {2, 4, 3}},
      {"stablehlo.reshape %a : (tensor<?x3xf32>) -> tensor<6x?xf32>", {6, 2}},
      {"stablehlo.concatenate %a, %a, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>", {8, 3}},
      {"stablehlo.concatenate %a, %a, dim = 1 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x6xf32>", {4, 6}},
      {"stablehlo.pad %a, %z, low = [1, 0], high = [2, 0], interior = [1, 0] : (tensor<?x3xf32>, tensor<f32>) -> "
       "tensor<?x3xf32>",
       {10, 3}},
      {"stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<?x3xf32>, tensor<f32>) "
       "-> "
       "tensor<?xf32>",
       {4}},
      {"stablehlo.dynamic_iota %s, dim = 0 : (tensor<2xi32>) -> tensor<?x?xi32>", {4, 7}},
      {"stablehlo.dynamic_broadcast_in_dim %z, %s, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x?xf32>",
       {4, 7}},
      {"\"stablehlo.gather\"(%a, %g) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = "
       "[0], "
       "start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<?x3xf32>, "
       "tensor<5x1xi32>) -> tensor<?x3xf32>",
       {5, 3}},
      {"stablehlo.bitcast_convert %a : (tensor<?x3xf32>) -> tensor<?x?xi32>", {4, 3}},
      {"stablehlo.bitcast_convert %a : (tensor<?x3xf32>) -> tensor<?x?x?xi8>", {4, 3, 4}},
      {"stablehlo.custom_call @stablehlo.dynamic_top_k(%a, %k) : (tensor<?x3xf32>, tensor<i32>) -> tensor<?x?xf32>",
       {4, 2}},
      // 12 + 1 + 2 padded, a kernel of 3 spread over 5, every second place: (15 - 5) / 2 + 1.
      {"\"stablehlo.dynamic_conv\"(%i, %f, %p) {dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, "
       "window_strides = array<i64: 2>, rhs_dilation = array<i64: 2>, feature_group_count = 1 : i64, batch_group_count "
       "= 1 : i64} : (tensor<2x12x8xf32>, tensor<3x8x16xf32>, tensor<1x2xi32>) -> tensor<?x?x?xf32>",
       {2, 6, 16}},
      // A transposed convolution: 12 spread over 23, padded to 25, a kernel of 3.
      {"stablehlo.convolution(%i, %f) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[1, "
       "1]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x12x8xf32>, "
       "tensor<3x8x16xf32>) -> tensor<2x?x16xf32>",
       {2, 23, 16}},
  };
  for (const Case& c : cases) {
    INFO(c.statement);
    const Flat f(fmt::format(R"(func.func @main(%a: tensor<?x3xf32>, %g: tensor<5x1xi32>, %z: tensor<f32>,
                       %i: tensor<2x12x8xf32>, %f: tensor<3x8x16xf32>) {{
      %k = stablehlo.constant dense<2> : tensor<i32>
      %p = stablehlo.constant dense<[[1, 2]]> : tensor<1x2xi32>
      %d = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
      %d1 = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>
      %three = stablehlo.constant dense<3> : tensor<1xi32>
      %seven = stablehlo.add %d1, %three : tensor<1xi32>
      %s = stablehlo.concatenate %d1, %seven, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %r = {}
      return
    }})",
                             c.statement),
                 {.extents = {{"a", 0, 4}}});
    CHECK(f.program.type(f.program.nodes.back().results.at(0)).dims == c.dims);
  }
  const std::string negative = R"(func.func @main(%a: tensor<4x3xf32>) {
    %k = stablehlo.constant dense<-5> : tensor<i32>
    %0 = stablehlo.custom_call @stablehlo.dynamic_top_k(%a, %k) : (tensor<4x3xf32>, tensor<i32>) -> tensor<4x?xf32>
    return
  })";
  CHECK(refusal(negative).starts_with("3:10: dimension 1 of %0"));
  const std::string open =
      "func.func @main(%s: tensor<1xi32>) {\n  %0 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) "
      "-> tensor<?xi32>\n  return\n}";
  CHECK(refusal(open).starts_with("2:8: dimension 0 of %0 (i32[?]) is dynamic"));
  CHECK(Flat(open, {.extents = {{"0", 0, 6}}}).result("dynamic_iota").dims == std::vector<std::int64_t>{6});
  CHECK(Flat(open, {.extents = {{"", 0, 8}}}).result("dynamic_iota").dims == std::vector<std::int64_t>{8});
}

}  // namespace llmperf::program::extents_test
