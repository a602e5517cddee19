#include "catch.h"
#include "program/loop_text.h"
#include "program/refusal.h"
#include "program/run.h"

namespace llmperf::program::lower_test {
namespace {

// A statement of one op that has the arguments `arguments`.
std::string single(const std::string& arguments, const std::string& statement) {
  return "func.func @main(" + arguments + ") {\n%r = " + statement + "\nreturn\n}\n";
}

}  // namespace

TEST_CASE("A product with weights: 2 m n k, the weights apart, f32 in tf32 unless more is asked for") {
  const Run dot(single("%x: tensor<4x8xf32>, %w: tensor<8x16xf32>",
                       "stablehlo.dot %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>"));
  CHECK(dot.sum.matrix.value == 2 * 4 * 8 * 16);
  CHECK(dot.sum.vector.value == 0);
  CHECK(dot.sum.weights.value == 8 * 16 * 4);
  CHECK(dot.sum.activations_read.value == 4 * 8 * 4);
  CHECK(dot.sum.activations_written.value == 4 * 16 * 4);
  CHECK(dot.work("dot").matrix_dtype == Dtype::tf32);
  const Run precise(
      single("%x: tensor<4x8xf32>, %w: tensor<8x16xf32>",
             "stablehlo.dot %x, %w, precision = [HIGHEST, HIGHEST] : (tensor<4x8xf32>, tensor<8x16xf32>) -> "
             "tensor<4x16xf32>"));
  CHECK(precise.work("dot").matrix_dtype == Dtype::fp32);
  const Run half(single("%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>",
                        "stablehlo.dot %x, %w : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> tensor<4x16xf32>"));
  CHECK(half.work("dot").matrix_dtype == Dtype::bf16);
  CHECK(half.sum.weights.value == 8 * 16 * 2);
  CHECK(half.sum.activations_written.value == 4 * 16 * 4);  // the result is wider
}

TEST_CASE("Products of two activations read both; of a batch all matrices are multiplied") {
  const Run r(R"(func.func @main(%a: tensor<2x3x4x8xbf16>, %b: tensor<2x3x16x8xbf16>) {
    %0 = stablehlo.tanh %a : tensor<2x3x4x8xbf16>
    %1 = stablehlo.tanh %b : tensor<2x3x16x8xbf16>
    %2 = stablehlo.dot_general %0, %1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x4x8xbf16>, tensor<2x3x16x8xbf16>) -> tensor<2x3x4x16xbf16>
    return
  })");
  const cost::Work w = r.work("dot_general");
  CHECK(w.matrix.value == 2 * 6 * 4 * 16 * 8);
  CHECK(w.weights.value == 0);
  CHECK(w.activations_read.value == 6 * (4 * 8 + 16 * 8) * 2);
  CHECK(w.activations_written.value == 6 * 4 * 16 * 2);
}

TEST_CASE("The operand with the weights may come first, and narrow weights keep their width") {
  const Run first(R"(func.func @main(%w: tensor<8x16xi8>, %a: tensor<16x4xbf16>) {
    %0 = stablehlo.tanh %a : tensor<16x4xbf16>
    %1 = stablehlo.dot %w, %0 : (tensor<8x16xi8>, tensor<16x4xbf16>) -> tensor<8x4xbf16>
    return
  })");
  const cost::Work w = first.work("dot");
  CHECK(w.matrix.value == 2 * 8 * 16 * 4);
  CHECK(w.weights.value == 8 * 16);
  CHECK(w.activations_read.value == 16 * 4 * 2);
  CHECK(w.activations_written.value == 8 * 4 * 2);
  CHECK(w.matrix_dtype == Dtype::bf16);
}

TEST_CASE("einsum, ragged products, vectors and products of libraries have the FLOPs of their shapes") {
  struct Case {
    const char* arguments;
    const char* statement;
    double flops;
    double weights;
  };
  const Case cases[] = {
      {"%a: tensor<2x3x5xf16>, %b: tensor<2x7x5xf16>",
       R"(stablehlo.einsum %a, %b, config = "bij,bkj->bik" : (tensor<2x3x5xf16>, tensor<2x7x5xf16>) -> tensor<2x3x7xf16>)",
       2 * 2 * 3 * 7 * 5, 2 * 7 * 5 * 2},
      {"%a: tensor<2x3x5xf16>, %b: tensor<7x5xf16>",
       R"("mhlo.einsum"(%a, %b) {einsum_config = "bij,kj->bik"} : (tensor<2x3x5xf16>, tensor<7x5xf16>) -> tensor<2x3x7xf16>)",
       2 * 2 * 3 * 7 * 5, 7 * 5 * 2},
      {"%a: tensor<2x3x5xf16>, %b: tensor<7x5xf16>",
       R"("mhlo.einsum"(%a, %b) {einsum_config = "...ij,kj->...ik"} : (tensor<2x3x5xf16>, tensor<7x5xf16>) -> tensor<2x3x7xf16>)",
       2 * 2 * 3 * 7 * 5, 7 * 5 * 2},
      {"%a: tensor<2x3x5xf16>, %b: tensor<2x7x5xf16>",
       R"("mhlo.einsum"(%a, %b) {einsum_config = "...ij,...kj->...ik"} : (tensor<2x3x5xf16>, tensor<2x7x5xf16>) -> tensor<2x3x7xf16>)",
       2 * 2 * 3 * 7 * 5, 2 * 7 * 5 * 2},
      // 8 rows are dealt among three matrices: each row is multiplied once, all matrices are read.
      {"%a: tensor<8x4xbf16>, %b: tensor<3x4x5xbf16>, %g: tensor<3xi32>",
       R"("chlo.ragged_dot"(%a, %b, %g) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [],
          rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1],
          lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<8x4xbf16>, tensor<3x4x5xbf16>,
          tensor<3xi32>) -> tensor<8x5xbf16>)",
       2 * 8 * 4 * 5, 3 * 4 * 5 * 2},
      {"%a: tensor<8xbf16>, %b: tensor<8xbf16>",
       "stablehlo.dot %a, %b : (tensor<8xbf16>, tensor<8xbf16>) -> tensor<bf16>", 2 * 8, 8 * 2},
      {"%a: tensor<9x8xf16>, %b: tensor<8x5xf16>",
       "stablehlo.custom_call @__cublas$gemm(%a, %b) : (tensor<9x8xf16>, tensor<8x5xf16>) -> tensor<9x5xf16>",
       2 * 9 * 8 * 5, 8 * 5 * 2},
      {"%a: tensor<2x9x8xf16>, %b: tensor<2x5x8xf16>",
       R"("mhlo.custom_call"(%a, %b) {call_target_name = "__cublas$lt$matmul"} : (tensor<2x9x8xf16>, tensor<2x5x8xf16>) -> tensor<2x9x5xf16>)",
       2 * 2 * 9 * 8 * 5, 2 * 5 * 8 * 2},
      {"%a: tensor<9x8xf16>, %b: tensor<8x5xf16>",
       R"("mhlo.custom_call"(%a, %b) {call_target_name = "__cublas$gemm"} : (tensor<9x8xf16>, tensor<8x5xf16>) -> tuple<tensor<9x5xf16>, tensor<4096xi8>>)",
       2 * 9 * 8 * 5, 8 * 5 * 2},
  };
  for (const Case& c : cases) {
    INFO(c.statement);
    const Run r(single(c.arguments, c.statement));
    CHECK(r.sum.matrix.value == c.flops);
    CHECK(r.sum.weights.value == c.weights);
  }
}

TEST_CASE("Operands that do not go together are refused at the product") {
  const auto refusal = [](const std::string& statement) {
    return refusal_of([&] { Run(single("%a: tensor<4x8xf32>, %b: tensor<6x5xf32>", statement)); });
  };
  CHECK(refusal("stablehlo.dot %a, %b : (tensor<4x8xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>") ==
        "2:6: the contracted dimensions of f32[4,8] and f32[6,5] are 8 and 6 long");
  CHECK(refusal("stablehlo.dot_general %a, %b, contracting_dims = [2] x [0] : (tensor<4x8xf32>, tensor<6x5xf32>) -> "
                "tensor<4x5xf32>") == "2:6: f32[4,8] has no dimension 2 to be contracted");
  CHECK(refusal("stablehlo.dot_general %a, %b, contracting_dims = [0, 1] x [0] : (tensor<4x8xf32>, tensor<6x5xf32>) -> "
                "tensor<4x5xf32>") == "2:6: 2 and 1 contracted dimensions of the two operands");
}

TEST_CASE("A constant of one value is written where it is updated in place, else it is free") {
  const Run stacked(program(R"(%z = stablehlo.constant dense<0.0> : tensor<256x8xf32>
%r = stablehlo.dynamic_update_slice %z, %x, %i, %i : (tensor<256x8xf32>, tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<256x8xf32>)",
                            "tensor<256x8xf32>"));
  CHECK(stacked.work("copy").activations_written.value == 256 * 8 * 4);
  CHECK(stacked.lowered.intermediate.value == 256 * 8 * 4);
  const Run added(program(R"(%z = stablehlo.constant dense<0.0> : tensor<4x8xf32>
%r = stablehlo.add %x, %z : tensor<4x8xf32>)"));
  CHECK(added.names() == std::vector<std::string>{"add"});
  CHECK(added.sum.activations_read.value == 4 * 8 * 4);
}

TEST_CASE("Factorizations by what they are called: Cholesky, triangular solves, LU, tridiagonal systems") {
  struct Case {
    const char* statement;
    double operations;
  };
  const double n = 64;
  const Case cases[] = {
      {"stablehlo.cholesky %a, lower = true : tensor<64x64xf32>", n * n * n / 3},
      {"stablehlo.custom_call @lapack_spotrf_ffi(%a) : (tensor<64x64xf32>) -> tensor<64x64xf32>", n * n * n / 3},
      {"stablehlo.custom_call @blas_strsm(%s, %s, %a, %b) : (tensor<i32>, tensor<i32>, tensor<64x64xf32>, "
       "tensor<64x128xf32>) -> tensor<64x128xf32>",
       n * n * 128},
      {"stablehlo.custom_call @TriangularSolve(%a, %b) : (tensor<64x64xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>",
       n * n * 128},
      {"stablehlo.custom_call @lapack_sgetrf(%a) : (tensor<64x64xf32>) -> tuple<tensor<64x64xf32>, tensor<64xi32>>",
       n * n * n * 2 / 3},
      {"stablehlo.custom_call @lapack_sgtsv_ffi(%v, %v, %v, %b) : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, "
       "tensor<64x128xf32>) -> tensor<64x128xf32>",
       8 * n * 128},
  };
  for (const Case& c : cases) {
    INFO(c.statement);
    const Run r(
        single("%a: tensor<64x64xf32>, %b: tensor<64x128xf32>, %v: tensor<64xf32>, %s: tensor<i32>", c.statement));
    CHECK(r.sum.vector.value == Approx(c.operations));
  }
}

TEST_CASE("A convolution: 2 x results x inputs of a group x taps, the maps and the kernel read once") {
  struct Case {
    const char* kernel;
    const char* attributes;
    const char* result;
    double flops;
    double kernel_elements;
    double result_elements;
  };
  const Case cases[] = {
      // Of 8 x 3 taps along each side, one at either end falls on padding; with a stride of 2 one at the beginning, of
      // 4 x 3; 2 apart two at either end.
      {"3x3x4x6", "window = {pad = [[1, 1], [1, 1]]}", "1x8x8x6", 2 * 22 * 22 * 6 * 4, 216, 384},
      {"3x3x4x6", "window = {stride = [2, 2], pad = [[1, 1], [1, 1]]}", "1x4x4x6", 2 * 11 * 11 * 6 * 4, 216, 96},
      {"3x3x4x6", "window = {pad = [[2, 2], [2, 2]], rhs_dilate = [2, 2]}", "1x8x8x6", 2 * 20 * 20 * 6 * 4, 216, 384},
      // Zeros that lhs_dilate puts between the pixels are not multiplied: one of four taps meets a pixel.
      {"2x2x4x6", "window = {pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2]}", "1x16x16x6", 2 * 256 * 6 * 4 * 1, 96, 1536},
      // Two groups of two channels; every channel by itself.
      {"3x3x2x6", "window = {pad = [[1, 1], [1, 1]]}", "1x8x8x6", 2 * 22 * 22 * 6 * 2, 108, 384},
      {"3x3x1x4", "window = {pad = [[1, 1], [1, 1]]}", "1x8x8x4", 2 * 22 * 22 * 4 * 1, 36, 256},
  };
  for (const Case& c : cases) {
    INFO(c.kernel << " " << c.attributes);
    const int groups = 4 / (c.kernel[4] - '0');
    const Run r(
        single(fmt::format("%x: tensor<1x8x8x4xf16>, %k: tensor<{}xf16>", c.kernel),
               fmt::format("stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], {} "
                           "{{batch_group_count = 1 : i64, feature_group_count = {} : i64}} : (tensor<1x8x8x4xf16>, "
                           "tensor<{}xf16>) -> tensor<{}xf16>",
                           c.attributes, groups, c.kernel, c.result)));
    CHECK(r.sum.matrix.value == c.flops);
    CHECK(r.sum.weights.value == c.kernel_elements * 2);
    CHECK(r.sum.activations_read.value == 256 * 2);
    CHECK(r.sum.activations_written.value == c.result_elements * 2);
  }
  const Run generic(single(
      "%x: tensor<1x4x8x8xf16>, %k: tensor<6x4x3x3xf16>",
      R"("mhlo.convolution"(%x, %k) {batch_group_count = 1 : i64, dimension_numbers = #mhlo.conv<raw input_batch_dimension = 0,
         input_feature_dimension = 1, input_spatial_dimensions = [2, 3], kernel_output_feature_dimension = 0,
         kernel_input_feature_dimension = 1, kernel_spatial_dimensions = [2, 3], output_batch_dimension = 0,
         output_feature_dimension = 1, output_spatial_dimensions = [2, 3]>, feature_group_count = 1 : i64}
         : (tensor<1x4x8x8xf16>, tensor<6x4x3x3xf16>) -> tensor<1x6x6x6xf16>)"));
  CHECK(generic.sum.matrix.value == 2 * 36 * 6 * 4 * 9);
  CHECK(refusal_of([] {
          Run(single("%x: tensor<1x8xf16>, %k: tensor<3x8xf16>",
                     "\"stablehlo.convolution\"(%x, %k) : (tensor<1x8xf16>, tensor<3x8xf16>) -> tensor<1x8xf16>"));
        }).find("the dimensions of the convolution of f16[1,8] and f16[3,8] are not given") != std::string::npos);
}

TEST_CASE("Operations and bytes of what is no product, by hand") {
  struct Case {
    std::string statement;
    double operations;
    double read;
    double written;
  };
  const std::string add =
      "({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%s = stablehlo.add %a, %b : tensor<f32>\n"
      "stablehlo.return %s : tensor<f32>\n})";
  const std::string less =
      "({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%s = stablehlo.compare LT, %a, %b : (tensor<f32>, "
      "tensor<f32>) -> tensor<i1>\nstablehlo.return %s : tensor<i1>\n})";
  const Case cases[] = {
      {"stablehlo.add %x, %y : tensor<4x8xf32>", 32, 2 * 128, 128},
      {"stablehlo.multiply %x, %x : tensor<4x8xf32>", 32, 128, 128},  // read once
      {"stablehlo.add %x, %splat : tensor<4x8xf32>", 32, 128, 128},   // a constant of one value is free
      {"stablehlo.add %x, %dense : tensor<4x8xf32>", 32, 256, 128},
      {"stablehlo.exponential %x : tensor<4x8xf32>", 32, 128, 128},
      {"stablehlo.compare LT, %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>", 32, 256, 32},
      {"stablehlo.convert %x : (tensor<4x8xf32>) -> tensor<4x8xbf16>", 32, 128, 64},
      {"stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>", 0, 128, 128},
      {"stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>", 0, 32, 128},
      {"stablehlo.iota dim = 0 : tensor<4x8xi32>", 0, 0, 128},
      {"stablehlo.concatenate %x, %y, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>", 0, 256, 256},
      {"stablehlo.pad %x, %zero, low = [1, 0], high = [0, 0], interior = [0, 0] : (tensor<4x8xf32>, tensor<f32>) -> "
       "tensor<5x8xf32>",
       0, 128, 160},
      {"stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, "
       "tensor<f32>) -> "
       "tensor<4xf32>",
       28, 128, 16},
      {"stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, "
       "tensor<f32>) "
       "-> tensor<f32>",
       31, 128, 4},
      {"\"stablehlo.reduce_window\"(%x, %zero) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, "
       "2>}> " +
           add + " : (tensor<4x8xf32>, tensor<f32>) -> tensor<2x4xf32>",
       8 * 3, 128, 32},
      {"\"stablehlo.sort\"(%x) <{dimension = 1 : i64}> " + less + " : (tensor<4x8xf32>) -> tensor<4x8xf32>", 32 * 3,
       128, 128},
      // What is taken is read, what is changed is written; an index is four bytes.
      {"stablehlo.slice %x [1:2, 0:8] : (tensor<4x8xf32>) -> tensor<1x8xf32>", 0, 32, 32},
      {"stablehlo.dynamic_slice %x, %i, %i, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> "
       "tensor<1x8xf32>",
       0, 32 + 4, 32},
      {"stablehlo.dynamic_update_slice %x, %row, %i, %i : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) "
       "-> "
       "tensor<4x8xf32>",
       0, 32 + 4, 32},
      {"\"stablehlo.gather\"(%x, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims "
       "= [0], "
       "start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, "
       "tensor<2x1xi32>) "
       "-> tensor<2x8xf32>",
       0, 64 + 8, 64},
      {"\"stablehlo.scatter\"(%x, %ids, %two) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = "
       "[1], "
       "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> " +
           add + " : (tensor<4x8xf32>, tensor<2x1xi32>, tensor<2x8xf32>) -> tensor<4x8xf32>",
       16, 64 + 8 + 64, 64},
      {"stablehlo.reshape %x : (tensor<4x8xf32>) -> tensor<32xf32>", 0, 0, 0},
  };
  for (const Case& c : cases) {
    INFO(c.statement);
    const Run r(
        "func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %v: tensor<8xf32>, %i: tensor<i32>, %row: "
        "tensor<1x8xf32>, %ids: tensor<2x1xi32>, %two: tensor<2x8xf32>) {\n"
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%splat = stablehlo.constant dense<1.0> : tensor<4x8xf32>\n"
        "%dense = stablehlo.constant dense_resource<w> : tensor<4x8xf32>\n%r = " +
        c.statement + "\nreturn\n}\n");
    CHECK(r.sum.matrix.value == 0);
    CHECK(r.sum.vector.value == Approx(c.operations).epsilon(1e-12));
    CHECK((r.sum.activations_read + r.sum.weights).value == Approx(c.read).epsilon(1e-12));
    CHECK(r.sum.activations_written.value == Approx(c.written).epsilon(1e-12));
    CHECK(r.lowered.constants.value == 128);
  }
}

TEST_CASE("Memory: arguments stay, a value lives from its op to its last reader") {
  const std::string head =
      "func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {\n%a = stablehlo.tanh %x : tensor<1024xf32>\n";
  const Run chain(head +
                  "%b = stablehlo.sine %a : tensor<1024xf32>\n%c = stablehlo.cosine %b : tensor<1024xf32>\n"
                  "return %c : tensor<1024xf32>\n}");
  CHECK(chain.lowered.arguments.value == 4096);
  CHECK(chain.lowered.intermediate.value == 2 * 4096);
  const Run diamond(head +
                    "%b = stablehlo.sine %a : tensor<1024xf32>\n%c = stablehlo.add %a, %b : tensor<1024xf32>\n"
                    "return %c : tensor<1024xf32>\n}");
  CHECK(diamond.lowered.intermediate.value == 3 * 4096);
  const Run fused(head +
                      "%b = stablehlo.sine %a : tensor<1024xf32>\n%c = stablehlo.add %a, %b : tensor<1024xf32>\n"
                      "return %c : tensor<1024xf32>\n}",
                  Fusion::elementwise);
  CHECK(fused.lowered.intermediate.value == 4096);  // the result alone
  const Run constants(
      "%c = stablehlo.constant dense_resource<w> : tensor<256xbf16>\n%s = stablehlo.constant dense<1> : "
      "tensor<9xi8>\n");
  CHECK(constants.lowered.constants.value == 512);
  CHECK(constants.lowered.intermediate.value == 0);
}

TEST_CASE("A transposed convolution multiplies at the inputs' positions, whatever the filter's size, in its own type") {
  struct Case {
    const char* kernel;
    const char* window;
    double taps;
    double met;  // along a side
  };
  const Case cases[] = {
      {"2x2x64x128", "pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2]", 4, 28 * 2},
      {"3x3x64x128", "pad = [[1, 2], [1, 2]], lhs_dilate = [2, 2]", 9, 28 * 3 - 1},  // the last tap once on padding
      {"1x1x64x128", "pad = [[0, 1], [0, 1]], lhs_dilate = [2, 2]", 1, 28},
  };
  for (const Case& c : cases) {
    INFO(c.kernel);
    const Run r(
        single(fmt::format("%a: tensor<32x28x28x128xbf16>, %k: tensor<{}xbf16>", c.kernel),
               fmt::format("stablehlo.convolution(%a, %k) dim_numbers = [b,0,1,f]x[0,1,o,i]->[b,0,1,f], window = "
                           "{{{}}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : "
                           "(tensor<32x28x28x128xbf16>, tensor<{}xbf16>) -> tensor<32x56x56x64xbf16>",
                           c.window, c.kernel)));
    const cost::Work w = r.work("convolution");
    CHECK(w.matrix.value == 2.0 * 32 * c.met * c.met * 64 * 128);
    CHECK(w.matrix_dtype == Dtype::bf16);
    CHECK(w.weights.value == 64 * 128 * c.taps * 2);
    CHECK(w.activations_written.value == 32.0 * 56 * 56 * 64 * 2);
  }
}

TEST_CASE("Convolutions of libraries in any layout; a gradient of the input counts the gradient's positions") {
  struct Case {
    const char* target;
    const char* input;
    const char* kernel;
    const char* result;
    double flops;
  };
  const Case cases[] = {
      {"__cudnn$convForward", "1x56x56x256", "1x1x256x64", "1x56x56x64", 2.0 * 56 * 56 * 256 * 64},
      {"__cudnn$convForward", "1x56x56x256", "64x1x1x256", "1x56x56x64", 2.0 * 56 * 56 * 256 * 64},
      {"__cudnn$convForward", "1x256x56x56", "64x256x3x3", "1x64x56x56", 2.0 * 56 * 56 * 256 * 64 * 9},
      {"__cudnn$convForward", "8x7x7x512", "7x7x512x1000", "8x7x7x1000", 2.0 * 8 * 49 * 512 * 1000 * 49},
      {"__cudnn$convForward", "1x64x56x56", "64x1x3x3", "1x64x56x56", 2.0 * 56 * 56 * 64 * 9},  // depthwise
      {"__cudnn$convBackwardInput", "32x28x28x128", "3x3x64x128", "32x56x56x64", 2.0 * 32 * 28 * 28 * 128 * 64 * 9},
  };
  for (const Case& c : cases) {
    INFO(c.kernel);
    const Run r(single(fmt::format("%a: tensor<{}xf16>, %k: tensor<{}xf16>", c.input, c.kernel),
                       fmt::format("stablehlo.custom_call @{}(%a, %k) : (tensor<{}xf16>, tensor<{}xf16>) -> "
                                   "tuple<tensor<{}xf16>, tensor<0xui8>>",
                                   c.target, c.input, c.kernel, c.result)));
    CHECK(r.sum.matrix.value == c.flops);
  }
}

TEST_CASE("A ragged product that sums within groups writes a matrix for each; with a batch all matrices are read") {
  const Run sums(single(
      "%l: tensor<4096x1024xbf16>, %r: tensor<4096x2048xbf16>, %g: tensor<64xi32>",
      R"("chlo.ragged_dot"(%l, %r, %g) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [0], rhs_group_dimensions = []>} : (tensor<4096x1024xbf16>, tensor<4096x2048xbf16>, tensor<64xi32>) -> tensor<64x1024x2048xbf16>)"));
  CHECK(sums.sum.matrix.value == 2.0 * 4096 * 1024 * 2048);
  CHECK(sums.sum.activations_written.value == 64.0 * 1024 * 2048 * 2);
  const Run batch(single(
      "%l: tensor<2x4096x1024xbf16>, %r: tensor<64x2x1024x2048xbf16>, %g: tensor<64xi32>",
      R"("chlo.ragged_dot"(%l, %r, %g) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]>} : (tensor<2x4096x1024xbf16>, tensor<64x2x1024x2048xbf16>, tensor<64xi32>) -> tensor<2x4096x2048xbf16>)"));
  CHECK(batch.sum.matrix.value == 2.0 * 2 * 4096 * 1024 * 2048);
  CHECK(batch.sum.weights.value == 64.0 * 2 * 1024 * 2048 * 2);
}

TEST_CASE("A running sum is a scan: log2 of its length for each element, not the length") {
  const auto window = [](const char* padding) {
    return Run(single(
        "%x: tensor<1024xf32>, %z: tensor<f32>", std::string(R"("stablehlo.reduce_window"(%x, %z) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) {padding = dense<)") + padding +
                                                     R"(> : tensor<1x2xi64>, window_dimensions = array<i64: 1024>,
          window_strides = array<i64: 1>} : (tensor<1024xf32>, tensor<f32>) -> tensor<1024xf32>)"));
  };
  CHECK(window("[[1023, 0]]").sum.vector.value == 1024 * 10);
  CHECK(window("[[0, 1023]]").sum.vector.value == 1024 * 10);
}

TEST_CASE("A tap of a convolution that falls on padding is no work: 7 of 9 along a side of 3") {
  const auto flops = [](const char* extents, const char* window) {
    return Run(single(
                   fmt::format("%x: tensor<1x{0}x{0}x1xf32>, %k: tensor<3x3x1x1xf32>", extents),
                   fmt::format("stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
                               "window = {{{1}}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : "
                               "(tensor<1x{0}x{0}x1xf32>, tensor<3x3x1x1xf32>) -> tensor<1x3x3x1xf32>",
                               extents, window)))
        .sum.matrix.value;
  };
  CHECK(flops("3", "pad = [[1, 1], [1, 1]]") == 2 * 7 * 7);
  CHECK(flops("5", "pad = [[0, 0], [0, 0]]") == 2 * 9 * 9);
  CHECK(flops("4", "pad = [[1, 0], [1, 0]]") == 2 * 8 * 8);
  CHECK(flops("7", "pad = [[-1, -1], [-1, -1]]") == 2 * 9 * 9);  // cropped
}

TEST_CASE(
    "Attention of a library: KV heads divide heads and keys are no fewer than queries, in either layout, packed") {
  struct Case {
    const char* what;
    const char* target;
    std::vector<std::string> operands;
    Attention expected;
  };
  const auto shape = [](std::int64_t sequences, std::int64_t heads, std::int64_t kv_heads, std::int64_t queries,
                        std::int64_t keys, std::int64_t width) {
    Attention a;
    a.sequences = sequences;
    a.heads = heads;
    a.kv_heads = kv_heads;
    a.q_tokens = queries;
    a.keys = keys;
    a.qk_dim = a.v_dim = width;
    return a;
  };
  const Case cases[] = {
      {"grouped heads",
       "te_fused_attn_forward_ffi",
       {"1x8192x128x128", "1x8192x8x128", "1x8192x8x128"},
       shape(1, 128, 8, 8192, 8192, 128)},
      {"grouped heads, heads first",
       "__cudnn$fmhaSoftmax",
       {"1x128x8192x128", "1x8x8192x128", "1x8x8192x128"},
       shape(1, 128, 8, 8192, 8192, 128)},
      {"a token, heads first",
       "__cudnn$fmhaSoftmax",
       {"8x32x1x128", "8x32x2049x128", "8x32x2049x128"},
       shape(8, 32, 32, 1, 2049, 128)},
      {"a token",
       "te_fused_attn_forward_ffi",
       {"8x1x32x128", "8x2049x8x128", "8x2049x8x128"},
       shape(8, 32, 8, 1, 2049, 128)},
      {"all heads apart",
       "te_fused_attn_forward_ffi",
       {"2x512x16x64", "2x512x16x64", "2x512x16x64"},
       shape(2, 16, 16, 512, 512, 64)},
      {"pixels to words",
       "flash_attention",
       {"1x4096x10x64", "1x77x10x64", "1x77x10x64"},
       shape(1, 10, 10, 4096, 77, 64)},
      {"packed", "te_fused_attn_forward_ffi", {"2x512x3x16x64", "0", "0"}, shape(2, 16, 16, 512, 512, 64)},
      {"keys and values packed",
       "te_fused_attn_forward_ffi",
       {"2x512x16x64", "2x512x2x4x64", "0"},
       shape(2, 16, 4, 512, 512, 64)},
      {"backward",
       "te_fused_attn_backward_ffi",
       {"1x8192x128x128", "1x8192x8x128", "1x8192x8x128"},
       shape(1, 128, 8, 8192, 8192, 128)},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    const auto type = [&](std::size_t n) { return "tensor<" + c.operands[n] + "xbf16>"; };
    const Run r(single(fmt::format("%q: {}, %k: {}, %v: {}", type(0), type(1), type(2)),
                       fmt::format("stablehlo.custom_call @{}(%q, %k, %v) : ({}, {}, {}) -> {}", c.target, type(0),
                                   type(1), type(2), type(0))));
    REQUIRE(r.lowered.ops.size() == 1);
    const auto& a = std::get<Attention>(r.lowered.ops[0].op.body);
    CHECK(a.sequences == c.expected.sequences);
    CHECK(a.heads == c.expected.heads);
    CHECK(a.kv_heads == c.expected.kv_heads);
    CHECK(a.q_tokens == c.expected.q_tokens);
    CHECK(a.keys == c.expected.keys);
    CHECK(a.qk_dim == c.expected.qk_dim);
    CHECK(a.v_dim == c.expected.v_dim);
    CHECK(a.backward == (c.what == std::string("backward")));
    // Two products forwards, five in all backwards.
    const double product = 2.0 * static_cast<double>(a.sequences * a.heads * a.q_tokens * a.keys * a.qk_dim);
    CHECK(r.sum.matrix.value == (a.backward ? 5 : 2) * product);
  }
}

TEST_CASE("An attention call whose operands are none is unknown, and the program beside it is read") {
  const Run r(single("%q: tensor<2x512x1024xbf16>",
                     "stablehlo.custom_call @te_fused_attn_forward_ffi(%q, %q, %q) : (tensor<2x512x1024xbf16>, "
                     "tensor<2x512x1024xbf16>, tensor<2x512x1024xbf16>) -> tensor<2x512x1024xbf16>\n"
                     "%s = stablehlo.tanh %q : tensor<2x512x1024xbf16>"));
  CHECK(r.names() == std::vector<std::string>{"tanh"});
  REQUIRE(r.flat.program.unknown.size() == 1);
  CHECK(r.flat.program.unknown[0].name.find("te_fused_attn_forward_ffi") != std::string::npos);
}

TEST_CASE("Counts of a loop are those of the op, the arguments of its body take no memory of their own") {
  const Run r("func.func @main(%x: tensor<1024xf32> {jax.buffer_donor = true}) -> tensor<1024xf32> {" +
              counted(9, {{"%y", "%x", "tensor<1024xf32>", "%z"}}, "%z = stablehlo.tanh %y : tensor<1024xf32>") +
              "return %l#1 : tensor<1024xf32>\n}");
  CHECK(r.sum.vector.value == 10 + 9 + 9 * 1024);
  CHECK(r.lowered.arguments.value == 4096);
  CHECK(r.lowered.intermediate.value <= 4096 + 4 + 1);
}

}  // namespace llmperf::program::lower_test
