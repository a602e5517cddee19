func.func @main(%p: tensor<i1>, %i: tensor<i32>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.if"(%p) ({
    %2 = stablehlo.exponential %x : tensor<8xf32>
    stablehlo.return %2 : tensor<8xf32>
  }, {
    stablehlo.return %x : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  %1 = "stablehlo.case"(%i) ({
    stablehlo.return %0 : tensor<8xf32>
  }, {
    %2 = stablehlo.add %0, %x : tensor<8xf32>
    stablehlo.return %2 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
