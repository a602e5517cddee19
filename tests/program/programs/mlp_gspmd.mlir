// The feed-forward layer of mlp_spmd.mlir (8 x 512 tokens, 1024 -> 4096 -> 1024, bf16, 4 devices) before GSPMD divides it:
// global shapes, mhlo.sharding on arguments and results, @Sharding custom calls in between. The form of 2022 and 2023:
// products generic, with all attributes in one dictionary.
module @jit_mlp attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x512x1024xbf16> {mhlo.sharding = "{devices=[1,4,1]<=[4]}"}, %arg1: tensor<1024x4096xbf16> {mhlo.sharding = "{devices=[1,4]<=[4]}"}, %arg2: tensor<4096xbf16> {mhlo.sharding = "{devices=[4]0,1,2,3}"}, %arg3: tensor<4096x1024xbf16> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %arg4: tensor<1024xbf16> {mhlo.sharding = "{replicated}"}) -> (tensor<8x512x1024xbf16> {jax.result_info = "", mhlo.sharding = "{devices=[1,4,1]<=[4]}"}) {
    %0 = stablehlo.custom_call @Sharding(%arg0) {backend_config = "", mhlo.sharding = "{replicated}"} : (tensor<8x512x1024xbf16>) -> tensor<8x512x1024xbf16>
    %1 = "stablehlo.dot_general"(%0, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<8x512x1024xbf16>, tensor<1024x4096xbf16>) -> tensor<8x512x4096xbf16>
    %2 = stablehlo.custom_call @Sharding(%1) {backend_config = "", mhlo.sharding = "{devices=[1,1,4]<=[4]}"} : (tensor<8x512x4096xbf16>) -> tensor<8x512x4096xbf16>
    %3 = "stablehlo.broadcast_in_dim"(%arg2) {broadcast_dimensions = dense<2> : tensor<1xi64>} : (tensor<4096xbf16>) -> tensor<1x1x4096xbf16>
    %4 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = dense<[0, 1, 2]> : tensor<3xi64>} : (tensor<1x1x4096xbf16>) -> tensor<8x512x4096xbf16>
    %5 = stablehlo.add %2, %4 : tensor<8x512x4096xbf16>
    %6 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %7 = "stablehlo.broadcast_in_dim"(%6) {broadcast_dimensions = dense<> : tensor<0xi64>} : (tensor<bf16>) -> tensor<8x512x4096xbf16>
    %8 = stablehlo.maximum %5, %7 : tensor<8x512x4096xbf16>
    %9 = "stablehlo.dot_general"(%8, %arg3) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<8x512x4096xbf16>, tensor<4096x1024xbf16>) -> tensor<8x512x1024xbf16>
    %10 = stablehlo.custom_call @Sharding(%9) {backend_config = "unspecified_dims=[0,2]", mhlo.sharding = "{devices=[1,4,1]<=[4]}"} : (tensor<8x512x1024xbf16>) -> tensor<8x512x1024xbf16>
    %11 = "stablehlo.broadcast_in_dim"(%arg4) {broadcast_dimensions = dense<2> : tensor<1xi64>} : (tensor<1024xbf16>) -> tensor<8x512x1024xbf16>
    %12 = stablehlo.add %10, %11 : tensor<8x512x1024xbf16>
    return %12 : tensor<8x512x1024xbf16>
  }
}
