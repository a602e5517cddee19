module @m attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<4x8xf32> {mhlo.sharding = "{replicated}"}, %arg1: tensor<8x2xf32>) -> (tensor<4x2xf32> {jax.result_info = ""}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32> loc(#loc1)
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x2xf32>
    %2 = stablehlo.compare GT, %0, %1, FLOAT : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xi1>
    %3 = stablehlo.select %2, %0, %1 : tensor<4x2xi1>, tensor<4x2xf32>
    %4 = stablehlo.slice %3 [0:4:2, 0:2] : (tensor<4x2xf32>) -> tensor<2x2xf32>
    %5 = stablehlo.reduce(%3 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<4x2xf32>, tensor<f32>) -> tensor<4xf32>
    return %3 : tensor<4x2xf32>
  }
}
#loc = loc(unknown)
#loc1 = loc("jit(f)/dot"(#loc))
