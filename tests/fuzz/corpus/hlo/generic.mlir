"builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{function_type = (tensor<4x8xbf16>, tensor<2x8xbf16>) -> tensor<4x2xbf16>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<4x8xbf16> loc("x"), %arg1: tensor<2x8xbf16>):
    %0 = "mhlo.constant"() {value = dense<"0x0000803F"> : tensor<f32>} : () -> tensor<f32>
    %1 = "mhlo.dot_general"(%arg0, %arg1) {dot_dimension_numbers = #mhlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#mhlo<precision DEFAULT>]} : (tensor<4x8xbf16>, tensor<2x8xbf16>) -> tensor<4x2xbf16>
    %2:2 = "mhlo.reduce"(%1, %1, %0, %0) ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>, %c: tensor<bf16>, %d: tensor<bf16>):
      %3 = "mhlo.add"(%a, %c) : (tensor<bf16>, tensor<bf16>) -> tensor<bf16>
      "mhlo.return"(%3, %d) : (tensor<bf16>, tensor<bf16>) -> ()
    }) {dimensions = dense<1> : tensor<1xi64>} : (tensor<4x2xbf16>, tensor<4x2xbf16>, tensor<f32>, tensor<f32>) -> (tensor<4xbf16>, tensor<4xbf16>)
    "func.return"(%1) : (tensor<4x2xbf16>) -> ()
  }) : () -> ()
}) : () -> ()
