// RUN: stablehlo-opt %s
func.func @f(%x: tensor<2x4xf32>, %u: tensor<1x4xf32>, %i: tensor<i32>) -> tensor<2x4xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %i : (tensor<2x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %2 = "stablehlo.sort"(%0) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %2 : tensor<2x4xf32>
}
// -----
module {
  func.func @f() -> tensor<2xi64> {
    %0 = stablehlo.constant dense_resource<w> : tensor<2xi64>
    %1 = stablehlo.iota dim = 0 : tensor<2xi64>
    %2 = stablehlo.pad %1, %1, low = [0], high = [0], interior = [0] : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
    return %2 : tensor<2xi64>
  }
}
