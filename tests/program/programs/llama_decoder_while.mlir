// A decoder of 4 layers (hidden 1024, 16 heads over 4 of keys and values, width 2816, 32,000 words, 128 tokens, bf16) with
// jax.lax.scan over stacked weights: a while loop of 4 trips that slices a layer's weights, calls it and stores its keys
// and values. Gather before the loop, norm and lm_head product after it. Pretty form of JAX without locations.
module @jit_decode attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<32000x1024xbf16>, %arg1: tensor<1024x32000xbf16>, %arg2: tensor<1024xbf16>, %arg3: tensor<4x2816x1024xbf16>, %arg4: tensor<4x1024x2816xbf16>, %arg5: tensor<4x1024x256xbf16>, %arg6: tensor<4x1024xbf16>, %arg7: tensor<4x1024xbf16>, %arg8: tensor<4x1024x1024xbf16>, %arg9: tensor<4x1024x1024xbf16>, %arg10: tensor<4x1024x2816xbf16>, %arg11: tensor<4x1024x256xbf16>, %arg12: tensor<1x128xi32> {mhlo.layout_mode = "default"}) -> (tensor<1x128x32000xf32> {jax.result_info = "[0]"}, tensor<4x1x128x4x64xbf16> {jax.result_info = "[1][0]"}, tensor<4x1x128x4x64xbf16> {jax.result_info = "[1][1]"}) {
    %0 = call @_take(%arg0, %arg12) : (tensor<32000x1024xbf16>, tensor<1x128xi32>) -> tensor<1x128x1024xbf16>
    %1 = stablehlo.iota dim = 0 : tensor<32xi32>
    %2 = stablehlo.convert %1 : (tensor<32xi32>) -> tensor<32xf32>
    %cst = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %4 = stablehlo.divide %2, %3 : tensor<32xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+04> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %6 = stablehlo.power %5, %4 : tensor<32xf32>
    %7 = stablehlo.iota dim = 0 : tensor<128xi32>
    %8 = stablehlo.convert %7 : (tensor<128xi32>) -> tensor<128xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<128xf32>) -> tensor<128x32xf32>
    %10 = stablehlo.broadcast_in_dim %6, dims = [1] : (tensor<32xf32>) -> tensor<128x32xf32>
    %11 = stablehlo.divide %9, %10 : tensor<128x32xf32>
    %12 = stablehlo.cosine %11 : tensor<128x32xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [1, 3] : (tensor<128x32xf32>) -> tensor<1x128x1x32xf32>
    %14 = stablehlo.sine %11 : tensor<128x32xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [1, 3] : (tensor<128x32xf32>) -> tensor<1x128x1x32xf32>
    %16 = stablehlo.iota dim = 0 : tensor<128x128xi32>
    %17 = stablehlo.iota dim = 1 : tensor<128x128xi32>
    %18 = stablehlo.compare  GE, %16, %17,  SIGNED : (tensor<128x128xi32>, tensor<128x128xi32>) -> tensor<128x128xi1>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %19 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<bf16>) -> tensor<4x1x128x4x64xbf16>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %20:16 = stablehlo.while(%iterArg = %arg3, %iterArg_2 = %arg4, %iterArg_3 = %arg5, %iterArg_4 = %arg6, %iterArg_5 = %arg7, %iterArg_6 = %arg8, %iterArg_7 = %arg9, %iterArg_8 = %arg10, %iterArg_9 = %arg11, %iterArg_10 = %13, %iterArg_11 = %15, %iterArg_12 = %18, %iterArg_13 = %c, %iterArg_14 = %0, %iterArg_15 = %19, %iterArg_16 = %19) : tensor<4x2816x1024xbf16>, tensor<4x1024x2816xbf16>, tensor<4x1024x256xbf16>, tensor<4x1024xbf16>, tensor<4x1024xbf16>, tensor<4x1024x1024xbf16>, tensor<4x1024x1024xbf16>, tensor<4x1024x2816xbf16>, tensor<4x1024x256xbf16>, tensor<1x128x1x32xf32>, tensor<1x128x1x32xf32>, tensor<128x128xi1>, tensor<i32>, tensor<1x128x1024xbf16>, tensor<4x1x128x4x64xbf16>, tensor<4x1x128x4x64xbf16>
     cond {
      %c_17 = stablehlo.constant dense<4> : tensor<i32>
      %21 = stablehlo.compare  LT, %iterArg_13, %c_17,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %21 : tensor<i1>
    } do {
      %c_17 = stablehlo.constant dense<0> : tensor<i32>
      %21 = stablehlo.compare  LT, %iterArg_13, %c_17,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_18 = stablehlo.constant dense<4> : tensor<i32>
      %22 = stablehlo.add %iterArg_13, %c_18 : tensor<i32>
      %23 = stablehlo.select %21, %22, %iterArg_13 : tensor<i1>, tensor<i32>
      %c_19 = stablehlo.constant dense<0> : tensor<i32>
      %24 = stablehlo.dynamic_slice %iterArg, %23, %c_19, %c_19, sizes = [1, 2816, 1024] : (tensor<4x2816x1024xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2816x1024xbf16>
      %25 = stablehlo.reshape %24 : (tensor<1x2816x1024xbf16>) -> tensor<2816x1024xbf16>
      %c_20 = stablehlo.constant dense<0> : tensor<i32>
      %26 = stablehlo.compare  LT, %iterArg_13, %c_20,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_21 = stablehlo.constant dense<4> : tensor<i32>
      %27 = stablehlo.add %iterArg_13, %c_21 : tensor<i32>
      %28 = stablehlo.select %26, %27, %iterArg_13 : tensor<i1>, tensor<i32>
      %c_22 = stablehlo.constant dense<0> : tensor<i32>
      %29 = stablehlo.dynamic_slice %iterArg_2, %28, %c_22, %c_22, sizes = [1, 1024, 2816] : (tensor<4x1024x2816xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1024x2816xbf16>
      %30 = stablehlo.reshape %29 : (tensor<1x1024x2816xbf16>) -> tensor<1024x2816xbf16>
      %c_23 = stablehlo.constant dense<0> : tensor<i32>
      %31 = stablehlo.compare  LT, %iterArg_13, %c_23,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_24 = stablehlo.constant dense<4> : tensor<i32>
      %32 = stablehlo.add %iterArg_13, %c_24 : tensor<i32>
      %33 = stablehlo.select %31, %32, %iterArg_13 : tensor<i1>, tensor<i32>
      %c_25 = stablehlo.constant dense<0> : tensor<i32>
      %34 = stablehlo.dynamic_slice %iterArg_3, %33, %c_25, %c_25, sizes = [1, 1024, 256] : (tensor<4x1024x256xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1024x256xbf16>
      %35 = stablehlo.reshape %34 : (tensor<1x1024x256xbf16>) -> tensor<1024x256xbf16>
      %c_26 = stablehlo.constant dense<0> : tensor<i32>
      %36 = stablehlo.compare  LT, %iterArg_13, %c_26,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_27 = stablehlo.constant dense<4> : tensor<i32>
      %37 = stablehlo.add %iterArg_13, %c_27 : tensor<i32>
      %38 = stablehlo.select %36, %37, %iterArg_13 : tensor<i1>, tensor<i32>
      %c_28 = stablehlo.constant dense<0> : tensor<i32>
      %39 = stablehlo.dynamic_slice %iterArg_4, %38, %c_28, sizes = [1, 1024] : (tensor<4x1024xbf16>, tensor<i32>, tensor<i32>) -> tensor<1x1024xbf16>
      %40 = stablehlo.reshape %39 : (tensor<1x1024xbf16>) -> tensor<1024xbf16>
      %c_29 = stablehlo.constant dense<0> : tensor<i32>
      %41 = stablehlo.compare  LT, %iterArg_13, %c_29,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_30 = stablehlo.constant dense<4> : tensor<i32>
      %42 = stablehlo.add %iterArg_13, %c_30 : tensor<i32>
      %43 = stablehlo.select %41, %42, %iterArg_13 : tensor<i1>, tensor<i32>
      %c_31 = stablehlo.constant dense<0> : tensor<i32>
      %44 = stablehlo.dynamic_slice %iterArg_5, %43, %c_31, sizes = [1, 1024] : (tensor<4x1024xbf16>, tensor<i32>, tensor<i32>) -> tensor<1x1024xbf16>
      %45 = stablehlo.reshape %44 : (tensor<1x1024xbf16>) -> tensor<1024xbf16>
      %c_32 = stablehlo.constant dense<0> : tensor<i32>
      %46 = stablehlo.compare  LT, %iterArg_13, %c_32,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_33 = stablehlo.constant dense<4> : tensor<i32>
      %47 = stablehlo.add %iterArg_13, %c_33 : tensor<i32>
      %48 = stablehlo.select %46, %47, %iterArg_13 : tensor<i1>, tensor<i32>
      %c_34 = stablehlo.constant dense<0> : tensor<i32>
      %49 = stablehlo.dynamic_slice %iterArg_6, %48, %c_34, %c_34, sizes = [1, 1024, 1024] : (tensor<4x1024x1024xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1024x1024xbf16>
      %50 = stablehlo.reshape %49 : (tensor<1x1024x1024xbf16>) -> tensor<1024x1024xbf16>
      %c_35 = stablehlo.constant dense<0> : tensor<i32>
      %51 = stablehlo.compare  LT, %iterArg_13, %c_35,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_36 = stablehlo.constant dense<4> : tensor<i32>
      %52 = stablehlo.add %iterArg_13, %c_36 : tensor<i32>
      %53 = stablehlo.select %51, %52, %iterArg_13 : tensor<i1>, tensor<i32>
      %c_37 = stablehlo.constant dense<0> : tensor<i32>
      %54 = stablehlo.dynamic_slice %iterArg_7, %53, %c_37, %c_37, sizes = [1, 1024, 1024] : (tensor<4x1024x1024xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1024x1024xbf16>
      %55 = stablehlo.reshape %54 : (tensor<1x1024x1024xbf16>) -> tensor<1024x1024xbf16>
      %c_38 = stablehlo.constant dense<0> : tensor<i32>
      %56 = stablehlo.compare  LT, %iterArg_13, %c_38,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_39 = stablehlo.constant dense<4> : tensor<i32>
      %57 = stablehlo.add %iterArg_13, %c_39 : tensor<i32>
      %58 = stablehlo.select %56, %57, %iterArg_13 : tensor<i1>, tensor<i32>
      %c_40 = stablehlo.constant dense<0> : tensor<i32>
      %59 = stablehlo.dynamic_slice %iterArg_8, %58, %c_40, %c_40, sizes = [1, 1024, 2816] : (tensor<4x1024x2816xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1024x2816xbf16>
      %60 = stablehlo.reshape %59 : (tensor<1x1024x2816xbf16>) -> tensor<1024x2816xbf16>
      %c_41 = stablehlo.constant dense<0> : tensor<i32>
      %61 = stablehlo.compare  LT, %iterArg_13, %c_41,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_42 = stablehlo.constant dense<4> : tensor<i32>
      %62 = stablehlo.add %iterArg_13, %c_42 : tensor<i32>
      %63 = stablehlo.select %61, %62, %iterArg_13 : tensor<i1>, tensor<i32>
      %c_43 = stablehlo.constant dense<0> : tensor<i32>
      %64 = stablehlo.dynamic_slice %iterArg_9, %63, %c_43, %c_43, sizes = [1, 1024, 256] : (tensor<4x1024x256xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1024x256xbf16>
      %65 = stablehlo.reshape %64 : (tensor<1x1024x256xbf16>) -> tensor<1024x256xbf16>
      %66:3 = func.call @closed_call(%25, %30, %35, %40, %45, %50, %55, %60, %65, %iterArg_10, %iterArg_11, %iterArg_12, %iterArg_14) : (tensor<2816x1024xbf16>, tensor<1024x2816xbf16>, tensor<1024x256xbf16>, tensor<1024xbf16>, tensor<1024xbf16>, tensor<1024x1024xbf16>, tensor<1024x1024xbf16>, tensor<1024x2816xbf16>, tensor<1024x256xbf16>, tensor<1x128x1x32xf32>, tensor<1x128x1x32xf32>, tensor<128x128xi1>, tensor<1x128x1024xbf16>) -> (tensor<1x128x1024xbf16>, tensor<1x128x4x64xbf16>, tensor<1x128x4x64xbf16>)
      %67 = stablehlo.broadcast_in_dim %66#1, dims = [1, 2, 3, 4] : (tensor<1x128x4x64xbf16>) -> tensor<1x1x128x4x64xbf16>
      %c_44 = stablehlo.constant dense<0> : tensor<i32>
      %68 = stablehlo.compare  LT, %iterArg_13, %c_44,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_45 = stablehlo.constant dense<4> : tensor<i32>
      %69 = stablehlo.add %iterArg_13, %c_45 : tensor<i32>
      %70 = stablehlo.select %68, %69, %iterArg_13 : tensor<i1>, tensor<i32>
      %c_46 = stablehlo.constant dense<0> : tensor<i32>
      %71 = stablehlo.dynamic_update_slice %iterArg_15, %67, %70, %c_46, %c_46, %c_46, %c_46 : (tensor<4x1x128x4x64xbf16>, tensor<1x1x128x4x64xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x1x128x4x64xbf16>
      %72 = stablehlo.broadcast_in_dim %66#2, dims = [1, 2, 3, 4] : (tensor<1x128x4x64xbf16>) -> tensor<1x1x128x4x64xbf16>
      %c_47 = stablehlo.constant dense<0> : tensor<i32>
      %73 = stablehlo.compare  LT, %iterArg_13, %c_47,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_48 = stablehlo.constant dense<4> : tensor<i32>
      %74 = stablehlo.add %iterArg_13, %c_48 : tensor<i32>
      %75 = stablehlo.select %73, %74, %iterArg_13 : tensor<i1>, tensor<i32>
      %c_49 = stablehlo.constant dense<0> : tensor<i32>
      %76 = stablehlo.dynamic_update_slice %iterArg_16, %72, %75, %c_49, %c_49, %c_49, %c_49 : (tensor<4x1x128x4x64xbf16>, tensor<1x1x128x4x64xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x1x128x4x64xbf16>
      %c_50 = stablehlo.constant dense<1> : tensor<i32>
      %77 = stablehlo.add %iterArg_13, %c_50 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_2, %iterArg_3, %iterArg_4, %iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11, %iterArg_12, %77, %66#0, %71, %76 : tensor<4x2816x1024xbf16>, tensor<4x1024x2816xbf16>, tensor<4x1024x256xbf16>, tensor<4x1024xbf16>, tensor<4x1024xbf16>, tensor<4x1024x1024xbf16>, tensor<4x1024x1024xbf16>, tensor<4x1024x2816xbf16>, tensor<4x1024x256xbf16>, tensor<1x128x1x32xf32>, tensor<1x128x1x32xf32>, tensor<128x128xi1>, tensor<i32>, tensor<1x128x1024xbf16>, tensor<4x1x128x4x64xbf16>, tensor<4x1x128x4x64xbf16>
    }
    %21 = stablehlo.convert %20#13 : (tensor<1x128x1024xbf16>) -> tensor<1x128x1024xf32>
    %22 = stablehlo.multiply %21, %21 : tensor<1x128x1024xf32>
    %cst_17 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %23 = stablehlo.reduce(%22 init: %cst_17) applies stablehlo.add across dimensions = [2] : (tensor<1x128x1024xf32>, tensor<f32>) -> tensor<1x128xf32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [0, 1] : (tensor<1x128xf32>) -> tensor<1x128x1xf32>
    %cst_18 = stablehlo.constant dense<1.024000e+03> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<1x128x1xf32>
    %26 = stablehlo.divide %24, %25 : tensor<1x128x1xf32>
    %cst_19 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<1x128x1xf32>
    %28 = stablehlo.add %26, %27 : tensor<1x128x1xf32>
    %29 = stablehlo.rsqrt %28 : tensor<1x128x1xf32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [0, 1, 2] : (tensor<1x128x1xf32>) -> tensor<1x128x1024xf32>
    %31 = stablehlo.multiply %21, %30 : tensor<1x128x1024xf32>
    %32 = stablehlo.convert %31 : (tensor<1x128x1024xf32>) -> tensor<1x128x1024xbf16>
    %33 = stablehlo.broadcast_in_dim %arg2, dims = [2] : (tensor<1024xbf16>) -> tensor<1x1x1024xbf16>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2] : (tensor<1x1x1024xbf16>) -> tensor<1x128x1024xbf16>
    %35 = stablehlo.multiply %32, %34 : tensor<1x128x1024xbf16>
    %36 = stablehlo.dot_general %35, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x128x1024xbf16>, tensor<1024x32000xbf16>) -> tensor<1x128x32000xbf16>
    %37 = stablehlo.convert %36 : (tensor<1x128x32000xbf16>) -> tensor<1x128x32000xf32>
    return %37, %20#14, %20#15 : tensor<1x128x32000xf32>, tensor<4x1x128x4x64xbf16>, tensor<4x1x128x4x64xbf16>
  }
  func.func private @_take(%arg0: tensor<32000x1024xbf16>, %arg1: tensor<1x128xi32>) -> tensor<1x128x1024xbf16> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1x128xi32>
    %1 = stablehlo.compare  LT, %arg1, %0,  SIGNED : (tensor<1x128xi32>, tensor<1x128xi32>) -> tensor<1x128xi1>
    %c_0 = stablehlo.constant dense<32000> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<1x128xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<1x128xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<1x128xi1>, tensor<1x128xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<1x128xi32>) -> tensor<1x128x1xi32>
    %6 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1024>}> : (tensor<32000x1024xbf16>, tensor<1x128x1xi32>) -> tensor<1x128x1024xbf16>
    return %6 : tensor<1x128x1024xbf16>
  }
  func.func private @closed_call(%arg0: tensor<2816x1024xbf16>, %arg1: tensor<1024x2816xbf16>, %arg2: tensor<1024x256xbf16>, %arg3: tensor<1024xbf16>, %arg4: tensor<1024xbf16>, %arg5: tensor<1024x1024xbf16>, %arg6: tensor<1024x1024xbf16>, %arg7: tensor<1024x2816xbf16>, %arg8: tensor<1024x256xbf16>, %arg9: tensor<1x128x1x32xf32>, %arg10: tensor<1x128x1x32xf32>, %arg11: tensor<128x128xi1>, %arg12: tensor<1x128x1024xbf16>) -> (tensor<1x128x1024xbf16>, tensor<1x128x4x64xbf16>, tensor<1x128x4x64xbf16>) {
    %0 = stablehlo.convert %arg12 : (tensor<1x128x1024xbf16>) -> tensor<1x128x1024xf32>
    %1 = stablehlo.multiply %0, %0 : tensor<1x128x1024xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.reduce(%1 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<1x128x1024xf32>, tensor<f32>) -> tensor<1x128xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<1x128xf32>) -> tensor<1x128x1xf32>
    %cst_0 = stablehlo.constant dense<1.024000e+03> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x128x1xf32>
    %5 = stablehlo.divide %3, %4 : tensor<1x128x1xf32>
    %cst_1 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x128x1xf32>
    %7 = stablehlo.add %5, %6 : tensor<1x128x1xf32>
    %8 = stablehlo.rsqrt %7 : tensor<1x128x1xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x128x1xf32>) -> tensor<1x128x1024xf32>
    %10 = stablehlo.multiply %0, %9 : tensor<1x128x1024xf32>
    %11 = stablehlo.convert %10 : (tensor<1x128x1024xf32>) -> tensor<1x128x1024xbf16>
    %12 = stablehlo.broadcast_in_dim %arg3, dims = [2] : (tensor<1024xbf16>) -> tensor<1x1x1024xbf16>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2] : (tensor<1x1x1024xbf16>) -> tensor<1x128x1024xbf16>
    %14 = stablehlo.multiply %11, %13 : tensor<1x128x1024xbf16>
    %15 = stablehlo.dot_general %14, %arg6, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x128x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1x128x1024xbf16>
    %16 = stablehlo.dot_general %14, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x128x1024xbf16>, tensor<1024x256xbf16>) -> tensor<1x128x256xbf16>
    %17 = stablehlo.dot_general %14, %arg8, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x128x1024xbf16>, tensor<1024x256xbf16>) -> tensor<1x128x256xbf16>
    %18 = stablehlo.reshape %15 : (tensor<1x128x1024xbf16>) -> tensor<1x128x16x64xbf16>
    %19 = stablehlo.convert %18 : (tensor<1x128x16x64xbf16>) -> tensor<1x128x16x64xf32>
    %20 = stablehlo.slice %19 [0:1, 0:128, 0:16, 0:32] : (tensor<1x128x16x64xf32>) -> tensor<1x128x16x32xf32>
    %21 = stablehlo.slice %19 [0:1, 0:128, 0:16, 32:64] : (tensor<1x128x16x64xf32>) -> tensor<1x128x16x32xf32>
    %22 = stablehlo.broadcast_in_dim %arg9, dims = [0, 1, 2, 3] : (tensor<1x128x1x32xf32>) -> tensor<1x128x16x32xf32>
    %23 = stablehlo.broadcast_in_dim %arg10, dims = [0, 1, 2, 3] : (tensor<1x128x1x32xf32>) -> tensor<1x128x16x32xf32>
    %24 = stablehlo.multiply %20, %22 : tensor<1x128x16x32xf32>
    %25 = stablehlo.multiply %21, %23 : tensor<1x128x16x32xf32>
    %26 = stablehlo.subtract %24, %25 : tensor<1x128x16x32xf32>
    %27 = stablehlo.multiply %21, %22 : tensor<1x128x16x32xf32>
    %28 = stablehlo.multiply %20, %23 : tensor<1x128x16x32xf32>
    %29 = stablehlo.add %27, %28 : tensor<1x128x16x32xf32>
    %30 = stablehlo.concatenate %26, %29, dim = 3 : (tensor<1x128x16x32xf32>, tensor<1x128x16x32xf32>) -> tensor<1x128x16x64xf32>
    %31 = stablehlo.convert %30 : (tensor<1x128x16x64xf32>) -> tensor<1x128x16x64xbf16>
    %32 = stablehlo.reshape %16 : (tensor<1x128x256xbf16>) -> tensor<1x128x4x64xbf16>
    %33 = stablehlo.convert %32 : (tensor<1x128x4x64xbf16>) -> tensor<1x128x4x64xf32>
    %34 = stablehlo.slice %33 [0:1, 0:128, 0:4, 0:32] : (tensor<1x128x4x64xf32>) -> tensor<1x128x4x32xf32>
    %35 = stablehlo.slice %33 [0:1, 0:128, 0:4, 32:64] : (tensor<1x128x4x64xf32>) -> tensor<1x128x4x32xf32>
    %36 = stablehlo.broadcast_in_dim %arg9, dims = [0, 1, 2, 3] : (tensor<1x128x1x32xf32>) -> tensor<1x128x4x32xf32>
    %37 = stablehlo.broadcast_in_dim %arg10, dims = [0, 1, 2, 3] : (tensor<1x128x1x32xf32>) -> tensor<1x128x4x32xf32>
    %38 = stablehlo.multiply %34, %36 : tensor<1x128x4x32xf32>
    %39 = stablehlo.multiply %35, %37 : tensor<1x128x4x32xf32>
    %40 = stablehlo.subtract %38, %39 : tensor<1x128x4x32xf32>
    %41 = stablehlo.multiply %35, %36 : tensor<1x128x4x32xf32>
    %42 = stablehlo.multiply %34, %37 : tensor<1x128x4x32xf32>
    %43 = stablehlo.add %41, %42 : tensor<1x128x4x32xf32>
    %44 = stablehlo.concatenate %40, %43, dim = 3 : (tensor<1x128x4x32xf32>, tensor<1x128x4x32xf32>) -> tensor<1x128x4x64xf32>
    %45 = stablehlo.convert %44 : (tensor<1x128x4x64xf32>) -> tensor<1x128x4x64xbf16>
    %46 = stablehlo.reshape %17 : (tensor<1x128x256xbf16>) -> tensor<1x128x4x64xbf16>
    %47 = stablehlo.reshape %31 : (tensor<1x128x16x64xbf16>) -> tensor<1x128x4x4x64xbf16>
    %48 = stablehlo.dot_general %47, %45, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x128x4x4x64xbf16>, tensor<1x128x4x64xbf16>) -> tensor<1x4x128x4x128xbf16>
    %49 = stablehlo.transpose %48, dims = [0, 1, 3, 2, 4] : (tensor<1x4x128x4x128xbf16>) -> tensor<1x4x4x128x128xbf16>
    %50 = stablehlo.convert %49 : (tensor<1x4x4x128x128xbf16>) -> tensor<1x4x4x128x128xf32>
    %cst_2 = stablehlo.constant dense<1.250000e-01> : tensor<f32>
    %51 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x4x4x128x128xf32>
    %52 = stablehlo.multiply %50, %51 : tensor<1x4x4x128x128xf32>
    %53 = stablehlo.broadcast_in_dim %arg11, dims = [3, 4] : (tensor<128x128xi1>) -> tensor<1x4x4x128x128xi1>
    %cst_3 = stablehlo.constant dense<-3.40282347E+38> : tensor<f32>
    %54 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1x4x4x128x128xf32>
    %55 = stablehlo.select %53, %52, %54 : tensor<1x4x4x128x128xi1>, tensor<1x4x4x128x128xf32>
    %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %56 = stablehlo.reduce(%55 init: %cst_4) applies stablehlo.maximum across dimensions = [4] : (tensor<1x4x4x128x128xf32>, tensor<f32>) -> tensor<1x4x4x128xf32>
    %57 = stablehlo.broadcast_in_dim %56, dims = [0, 1, 2, 3] : (tensor<1x4x4x128xf32>) -> tensor<1x4x4x128x1xf32>
    %58 = stablehlo.broadcast_in_dim %57, dims = [0, 1, 2, 3, 4] : (tensor<1x4x4x128x1xf32>) -> tensor<1x4x4x128x128xf32>
    %59 = stablehlo.subtract %55, %58 : tensor<1x4x4x128x128xf32>
    %60 = stablehlo.exponential %59 : tensor<1x4x4x128x128xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %61 = stablehlo.reduce(%60 init: %cst_5) applies stablehlo.add across dimensions = [4] : (tensor<1x4x4x128x128xf32>, tensor<f32>) -> tensor<1x4x4x128xf32>
    %62 = stablehlo.broadcast_in_dim %61, dims = [0, 1, 2, 3] : (tensor<1x4x4x128xf32>) -> tensor<1x4x4x128x1xf32>
    %63 = stablehlo.broadcast_in_dim %62, dims = [0, 1, 2, 3, 4] : (tensor<1x4x4x128x1xf32>) -> tensor<1x4x4x128x128xf32>
    %64 = stablehlo.divide %60, %63 : tensor<1x4x4x128x128xf32>
    %65 = stablehlo.convert %64 : (tensor<1x4x4x128x128xf32>) -> tensor<1x4x4x128x128xbf16>
    %66 = stablehlo.dot_general %65, %46, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x4x4x128x128xbf16>, tensor<1x128x4x64xbf16>) -> tensor<1x4x4x128x64xbf16>
    %67 = stablehlo.transpose %66, dims = [0, 3, 1, 2, 4] : (tensor<1x4x4x128x64xbf16>) -> tensor<1x128x4x4x64xbf16>
    %68 = stablehlo.reshape %67 : (tensor<1x128x4x4x64xbf16>) -> tensor<1x128x1024xbf16>
    %69 = stablehlo.dot_general %68, %arg5, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x128x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1x128x1024xbf16>
    %70 = stablehlo.add %arg12, %69 : tensor<1x128x1024xbf16>
    %71 = stablehlo.convert %70 : (tensor<1x128x1024xbf16>) -> tensor<1x128x1024xf32>
    %72 = stablehlo.multiply %71, %71 : tensor<1x128x1024xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %73 = stablehlo.reduce(%72 init: %cst_6) applies stablehlo.add across dimensions = [2] : (tensor<1x128x1024xf32>, tensor<f32>) -> tensor<1x128xf32>
    %74 = stablehlo.broadcast_in_dim %73, dims = [0, 1] : (tensor<1x128xf32>) -> tensor<1x128x1xf32>
    %cst_7 = stablehlo.constant dense<1.024000e+03> : tensor<f32>
    %75 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<1x128x1xf32>
    %76 = stablehlo.divide %74, %75 : tensor<1x128x1xf32>
    %cst_8 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %77 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<1x128x1xf32>
    %78 = stablehlo.add %76, %77 : tensor<1x128x1xf32>
    %79 = stablehlo.rsqrt %78 : tensor<1x128x1xf32>
    %80 = stablehlo.broadcast_in_dim %79, dims = [0, 1, 2] : (tensor<1x128x1xf32>) -> tensor<1x128x1024xf32>
    %81 = stablehlo.multiply %71, %80 : tensor<1x128x1024xf32>
    %82 = stablehlo.convert %81 : (tensor<1x128x1024xf32>) -> tensor<1x128x1024xbf16>
    %83 = stablehlo.broadcast_in_dim %arg4, dims = [2] : (tensor<1024xbf16>) -> tensor<1x1x1024xbf16>
    %84 = stablehlo.broadcast_in_dim %83, dims = [0, 1, 2] : (tensor<1x1x1024xbf16>) -> tensor<1x128x1024xbf16>
    %85 = stablehlo.multiply %82, %84 : tensor<1x128x1024xbf16>
    %86 = stablehlo.dot_general %85, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x128x1024xbf16>, tensor<1024x2816xbf16>) -> tensor<1x128x2816xbf16>
    %87 = call @silu(%86) : (tensor<1x128x2816xbf16>) -> tensor<1x128x2816xbf16>
    %88 = stablehlo.dot_general %85, %arg7, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x128x1024xbf16>, tensor<1024x2816xbf16>) -> tensor<1x128x2816xbf16>
    %89 = stablehlo.multiply %87, %88 : tensor<1x128x2816xbf16>
    %90 = stablehlo.dot_general %89, %arg0, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x128x2816xbf16>, tensor<2816x1024xbf16>) -> tensor<1x128x1024xbf16>
    %91 = stablehlo.add %70, %90 : tensor<1x128x1024xbf16>
    return %91, %45, %46 : tensor<1x128x1024xbf16>, tensor<1x128x4x64xbf16>, tensor<1x128x4x64xbf16>
  }
  func.func private @silu(%arg0: tensor<1x128x2816xbf16>) -> tensor<1x128x2816xbf16> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %0 = stablehlo.negate %arg0 : tensor<1x128x2816xbf16>
    %1 = stablehlo.exponential %0 : tensor<1x128x2816xbf16>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<1x128x2816xbf16>
    %3 = stablehlo.add %1, %2 : tensor<1x128x2816xbf16>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<bf16>) -> tensor<1x128x2816xbf16>
    %5 = stablehlo.divide %4, %3 : tensor<1x128x2816xbf16>
    %6 = stablehlo.multiply %arg0, %5 : tensor<1x128x2816xbf16>
    return %6 : tensor<1x128x2816xbf16>
  }
}
