// One of everything in the generic form of the MHLO dialect, as XLA's own tools print it: products, a convolution, fusions,
// a reduction, a conditional of each kind, a loop whose trips depend on data, custom calls, a constant whose values are in
// the resource section (shortened here). 32 rows of 64, f32.
"builtin.module"() ({
  "func.func"() ({
  ^bb0(%arg0: tensor<32x64xf32>, %arg1: tensor<64x128xf32>, %arg2: tensor<4x16x16x8xf32>, %arg3: tensor<3x3x8x16xf32>, %arg4: tensor<i32>, %arg5: tensor<i1>):
    %0 = "mhlo.dot"(%arg0, %arg1) {precision_config = [#mhlo<precision DEFAULT>, #mhlo<precision HIGHEST>]} : (tensor<32x64xf32>, tensor<64x128xf32>) -> tensor<32x128xf32>
    %1 = "mhlo.reshape"(%0) : (tensor<32x128xf32>) -> tensor<4x8x128xf32>
    %2 = "mhlo.dot_general"(%1, %1) <{dot_dimension_numbers = #mhlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2]>, precision_config = [#mhlo<precision DEFAULT>, #mhlo<precision DEFAULT>]}> : (tensor<4x8x128xf32>, tensor<4x8x128xf32>) -> tensor<4x8x8xf32>
    %3 = "mhlo.convolution"(%arg2, %arg3) {batch_group_count = 1 : i64, dimension_numbers = #mhlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = dense<1> : tensor<2xi64>, padding = dense<1> : tensor<2x2xi64>, precision_config = [#mhlo<precision DEFAULT>, #mhlo<precision DEFAULT>], rhs_dilation = dense<1> : tensor<2xi64>, window_reversal = dense<false> : tensor<2xi1>, window_strides = dense<2> : tensor<2xi64>} : (tensor<4x16x16x8xf32>, tensor<3x3x8x16xf32>) -> tensor<4x8x8x16xf32>
    %4 = "mhlo.fusion"(%0) ({
    ^bb0(%arg6: tensor<32x128xf32>):
      %20 = "mhlo.constant"() {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
      %21 = "mhlo.broadcast_in_dim"(%20) {broadcast_dimensions = dense<> : tensor<0xi64>} : (tensor<f32>) -> tensor<32x128xf32>
      %22 = "mhlo.maximum"(%arg6, %21) : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
      %23 = "mhlo.multiply"(%22, %22) : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
      "mhlo.return"(%23) : (tensor<32x128xf32>) -> ()
    }) {fusion_kind = #mhlo<fusion_kind kLoop>} : (tensor<32x128xf32>) -> tensor<32x128xf32>
    %5 = "mhlo.constant"() {value = dense_resource<projection> : tensor<128x64xf32>} : () -> tensor<128x64xf32>
    %6 = "mhlo.fusion"(%4, %5) ({
    ^bb0(%arg6: tensor<32x128xf32>, %arg7: tensor<128x64xf32>):
      %20 = "mhlo.dot"(%arg6, %arg7) : (tensor<32x128xf32>, tensor<128x64xf32>) -> tensor<32x64xf32>
      %21 = "mhlo.tanh"(%20) : (tensor<32x64xf32>) -> tensor<32x64xf32>
      "mhlo.return"(%21) : (tensor<32x64xf32>) -> ()
    }) {fusion_kind = #mhlo<fusion_kind kOutput>, output_operand_aliases = []} : (tensor<32x128xf32>, tensor<128x64xf32>) -> tensor<32x64xf32>
    %7 = "mhlo.constant"() {value = dense<0x7F800000> : tensor<f32>} : () -> tensor<f32>
    %8 = "mhlo.reduce"(%6, %7) ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %20 = "mhlo.minimum"(%arg6, %arg7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "mhlo.return"(%20) : (tensor<f32>) -> ()
    }) {dimensions = dense<1> : tensor<1xi64>} : (tensor<32x64xf32>, tensor<f32>) -> tensor<32xf32>
    %9 = "mhlo.case"(%arg4) ({
      %20 = "mhlo.negate"(%6) : (tensor<32x64xf32>) -> tensor<32x64xf32>
      "mhlo.return"(%20) : (tensor<32x64xf32>) -> ()
    }, {
      %20 = "mhlo.dot"(%6, %arg1) : (tensor<32x64xf32>, tensor<64x128xf32>) -> tensor<32x128xf32>
      %21 = "mhlo.dot"(%20, %5) : (tensor<32x128xf32>, tensor<128x64xf32>) -> tensor<32x64xf32>
      "mhlo.return"(%21) : (tensor<32x64xf32>) -> ()
    }, {
      %20 = "mhlo.slice"(%arg1) {limit_indices = dense<64> : tensor<2xi64>, start_indices = dense<0> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} : (tensor<64x128xf32>) -> tensor<64x64xf32>
      %21 = "mhlo.dot"(%6, %20) : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
      "mhlo.return"(%21) : (tensor<32x64xf32>) -> ()
    }) : (tensor<i32>) -> tensor<32x64xf32>
    %10 = "mhlo.if"(%arg5) ({
      %20 = "mhlo.dot_general"(%9, %9) {dot_dimension_numbers = #mhlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = ["DEFAULT", "DEFAULT"]} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x32xf32>
      "mhlo.return"(%20) : (tensor<32x32xf32>) -> ()
    }, {
      %20 = "mhlo.constant"() {value = dense_resource<"identity.0"> : tensor<32x32xf32>} : () -> tensor<32x32xf32>
      "mhlo.return"(%20) : (tensor<32x32xf32>) -> ()
    }) : (tensor<i1>) -> tensor<32x32xf32>
    %11 = "mhlo.constant"() {value = dense<9.99999997E-7> : tensor<f32>} : () -> tensor<f32>
    %12:2 = "mhlo.while"(%9, %7) ({
    ^bb0(%arg6: tensor<32x64xf32>, %arg7: tensor<f32>):
      %20 = "mhlo.compare"(%arg7, %11) {compare_type = #mhlo<comparison_type FLOAT>, comparison_direction = #mhlo<comparison_direction GT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "mhlo.return"(%20) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg6: tensor<32x64xf32>, %arg7: tensor<f32>):
      %20 = "mhlo.dot"(%10, %arg6) : (tensor<32x32xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
      %21 = "mhlo.subtract"(%20, %arg6) : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
      %22 = "mhlo.abs"(%21) : (tensor<32x64xf32>) -> tensor<32x64xf32>
      %23 = "mhlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
      %24 = "mhlo.reduce"(%22, %23) ({
      ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
        %25 = "mhlo.maximum"(%arg8, %arg9) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "mhlo.return"(%25) : (tensor<f32>) -> ()
      }) {dimensions = dense<[0, 1]> : tensor<2xi64>} : (tensor<32x64xf32>, tensor<f32>) -> tensor<f32>
      "mhlo.return"(%20, %24) : (tensor<32x64xf32>, tensor<f32>) -> ()
    }) : (tensor<32x64xf32>, tensor<f32>) -> (tensor<32x64xf32>, tensor<f32>)
    %13:2 = "mhlo.custom_call"(%8) {api_version = 2 : i32, backend_config = "{\22k\22: 4, \22largest\22: true}", call_target_name = "TopK", called_computations = [], has_side_effect = false, operand_layouts = [dense<0> : tensor<1xindex>], output_operand_aliases = [], result_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>]} : (tensor<32xf32>) -> (tensor<4xf32>, tensor<4xi32>)
    %14 = "mhlo.custom_call"(%12#0) {call_target_name = "vendor.smooth<64>(row)"} : (tensor<32x64xf32>) -> tensor<32x64xf32>
    "func.return"(%3, %12#0, %13#0, %14) : (tensor<4x8x8x16xf32>, tensor<32x64xf32>, tensor<4xf32>, tensor<32x64xf32>) -> ()
  }) {function_type = (tensor<32x64xf32>, tensor<64x128xf32>, tensor<4x16x16x8xf32>, tensor<3x3x8x16xf32>, tensor<i32>, tensor<i1>) -> (tensor<4x8x8x16xf32>, tensor<32x64xf32>, tensor<4xf32>, tensor<32x64xf32>), sym_name = "main", sym_visibility = "public"} : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, sym_name = "everything"} : () -> ()

{-#
  dialect_resources: {
    builtin: {
      projection: "0x040000000000803F0000004000004040",
      "identity.0": "0x040000000000803F"
    }
  }
#-}
