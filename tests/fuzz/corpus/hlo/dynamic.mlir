func.func @main(%a: tensor<4x3xf32>) -> tensor<?x3xf32> {
  %c = stablehlo.constant dense<3> : tensor<1xi32>
  %0 = stablehlo.get_dimension_size %a, dim = 0 : (tensor<4x3xf32>) -> tensor<i32>
  %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %2 = stablehlo.concatenate %1, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %3 = stablehlo.dynamic_broadcast_in_dim %a, %2, dims = [0, 1] : (tensor<4x3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
  %4 = stablehlo.dynamic_iota %2, dim = 0 : (tensor<2xi32>) -> tensor<?x?xi32>
  return %3 : tensor<?x3xf32>
}
