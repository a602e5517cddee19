func.func @f(%x: tensor<4x2x3x8xf16>, %i: tensor<5x1xi32>, %t: tensor<9x8xf16>) -> tensor<5x8xf16> {
  %0 = stablehlo.custom_call @__cublas$gemm(%t, %t) {api_version = 4 : i32} : (tensor<9x8xf16>, tensor<9x8xf16>) -> tensor<9x9xf16>
  %1 = stablehlo.custom_call @mystery(%0) : (tensor<9x9xf16>) -> tensor<9x9xf16>
  %2 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<9x8xf16>, tensor<5x1xi32>) -> tensor<5x8xf16>
  %3:2 = "mhlo.fusion"(%2, %2) ({
  ^bb0(%a: tensor<5x8xf16>, %b: tensor<5x8xf16>):
    %4 = mhlo.add %a, %b : tensor<5x8xf16>
    mhlo.return %4, %4 : tensor<5x8xf16>, tensor<5x8xf16>
  }) {fusion_kind = #mhlo<fusion_kind kLoop>} : (tensor<5x8xf16>, tensor<5x8xf16>) -> (tensor<5x8xf16>, tensor<5x8xf16>)
  %5 = stablehlo.einsum %t, %t, config = "ij,kj->ik" : (tensor<9x8xf16>, tensor<9x8xf16>) -> tensor<9x9xf16>
  return %3#1 : tensor<5x8xf16>
}
{-#
  dialect_resources: { builtin: { w: "0x04000000AB" } }
#-}
