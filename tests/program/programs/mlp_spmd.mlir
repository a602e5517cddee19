// A feed-forward layer (8 x 512 tokens, 1024 -> 4096 -> 1024, bf16) as one of 4 devices runs it: Megatron tensor parallelism
// with the sequence divided outside it, then one exchange of every other kind. Pretty form, collectives in the generic
// form that StableHLO gives them, with replica groups, channels and (for sums) a region.
module @jit_mlp_spmd attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x128x1024xbf16>, %arg1: tensor<1024x1024xbf16>, %arg2: tensor<1024xbf16>, %arg3: tensor<1024x1024xbf16>, %arg4: tensor<1024xbf16>) -> (tensor<8x128x1024xbf16> {jax.result_info = "[0]"}, tensor<f32> {jax.result_info = "[1]"}, tensor<8x512x256xbf16> {jax.result_info = "[2]"}, tensor<1024xbf16> {jax.result_info = "[3]"}) {
    %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<8x128x1024xbf16>) -> tensor<8x512x1024xbf16>
    %1 = stablehlo.dot_general %0, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x512x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<8x512x1024xbf16>
    %2 = stablehlo.reshape %arg2 : (tensor<1024xbf16>) -> tensor<1x1x1024xbf16>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 2] : (tensor<1x1x1024xbf16>) -> tensor<8x512x1024xbf16>
    %4 = stablehlo.add %1, %3 : tensor<8x512x1024xbf16>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<8x512x1024xbf16>
    %6 = stablehlo.maximum %4, %5 : tensor<8x512x1024xbf16>
    %7 = stablehlo.dot_general %6, %arg3, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x512x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<8x512x1024xbf16>
    %8 = "stablehlo.reduce_scatter"(%7) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, scatter_dimension = 1 : i64, use_global_device_ids}> ({
    ^bb0(%arg5: tensor<bf16>, %arg6: tensor<bf16>):
      %21 = stablehlo.add %arg5, %arg6 : tensor<bf16>
      stablehlo.return %21 : tensor<bf16>
    }) : (tensor<8x512x1024xbf16>) -> tensor<8x128x1024xbf16>
    %9 = stablehlo.reshape %arg4 : (tensor<1024xbf16>) -> tensor<1x1x1024xbf16>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<1x1x1024xbf16>) -> tensor<8x128x1024xbf16>
    %11 = stablehlo.add %8, %10 : tensor<8x128x1024xbf16>
    %12 = stablehlo.convert %11 : (tensor<8x128x1024xbf16>) -> tensor<8x128x1024xf32>
    %13 = stablehlo.multiply %12, %12 : tensor<8x128x1024xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %14 = stablehlo.reduce(%13 init: %cst_0) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<8x128x1024xf32>, tensor<f32>) -> tensor<f32>
    %15 = "stablehlo.all_reduce"(%14) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %21 = stablehlo.add %arg5, %arg6 : tensor<f32>
      stablehlo.return %21 : tensor<f32>
    }) : (tensor<f32>) -> tensor<f32>
    %16 = "stablehlo.all_reduce"(%7) <{channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%arg5: tensor<bf16>, %arg6: tensor<bf16>):
      %21 = stablehlo.add %arg5, %arg6 : tensor<bf16>
      stablehlo.return %21 : tensor<bf16>
    }) : (tensor<8x512x1024xbf16>) -> tensor<8x512x1024xbf16>
    %17 = stablehlo.slice %16 [0:8, 0:128, 0:1024] : (tensor<8x512x1024xbf16>) -> tensor<8x128x1024xbf16>
    %18 = "stablehlo.all_to_all"(%17) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>, concat_dimension = 1 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, split_count = 4 : i64, split_dimension = 2 : i64}> : (tensor<8x128x1024xbf16>) -> tensor<8x512x256xbf16>
    %19 = "stablehlo.collective_permute"(%18) <{channel_handle = #stablehlo.channel_handle<handle = 6, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>}> : (tensor<8x512x256xbf16>) -> tensor<8x512x256xbf16>
    %20 = "stablehlo.collective_broadcast"(%arg4) <{channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<1024xbf16>) -> tensor<1024xbf16>
    return %11, %15, %19, %20 : tensor<8x128x1024xbf16>, tensor<f32>, tensor<8x512x256xbf16>, tensor<1024xbf16>
  }
}
