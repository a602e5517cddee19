// One block of an STDiT-XL/2 (hidden 1152, 16 heads of 72, MLP 4608): spatial, temporal and cross attention, MLP with a tanh
// GELU, modulated by a table and the step. 2 sequences (guidance) of 4 latent frames of 12 x 20 patches (192 x 320 pixels),
// 120 text tokens each, bf16. Pretty form as torch-xla prints it: weights transposed first, rows of a product flattened.
module @IrToHlo.412 attributes {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.use_auto_spmd_partitioning = false} {
  func.func @main(%arg0: tensor<1152xbf16>, %arg1: tensor<1152x4608xbf16>, %arg2: tensor<4608xbf16>, %arg3: tensor<4608x1152xbf16>, %arg4: tensor<1152xbf16>, %arg5: tensor<1152x1152xbf16>, %arg6: tensor<2304xbf16>, %arg7: tensor<2304x1152xbf16>, %arg8: tensor<1152xbf16>, %arg9: tensor<1152x1152xbf16>, %arg10: tensor<1152xbf16>, %arg11: tensor<1152x1152xbf16>, %arg12: tensor<3456xbf16>, %arg13: tensor<3456x1152xbf16>, %arg14: tensor<1152xbf16>, %arg15: tensor<1152x1152xbf16>, %arg16: tensor<3456xbf16>, %arg17: tensor<3456x1152xbf16>, %arg18: tensor<6x1152xbf16>, %arg19: tensor<2x6912xbf16>, %arg20: tensor<1x240x1152xbf16>, %arg21: tensor<2x960x1152xbf16>) -> tensor<2x960x1152xbf16> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<1920xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<1920xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %cst_2 = stablehlo.constant dense<0.117851131> : tensor<bf16>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %arg18, dims = [1, 2] : (tensor<6x1152xbf16>) -> tensor<2x6x1152xbf16>
    %1 = stablehlo.reshape %arg19 : (tensor<2x6912xbf16>) -> tensor<2x6x1152xbf16>
    %2 = stablehlo.add %0, %1 : tensor<2x6x1152xbf16>
    %3 = stablehlo.slice %2 [0:2, 0:1, 0:1152] : (tensor<2x6x1152xbf16>) -> tensor<2x1x1152xbf16>
    %4 = stablehlo.slice %2 [0:2, 1:2, 0:1152] : (tensor<2x6x1152xbf16>) -> tensor<2x1x1152xbf16>
    %5 = stablehlo.slice %2 [0:2, 2:3, 0:1152] : (tensor<2x6x1152xbf16>) -> tensor<2x1x1152xbf16>
    %6 = stablehlo.slice %2 [0:2, 3:4, 0:1152] : (tensor<2x6x1152xbf16>) -> tensor<2x1x1152xbf16>
    %7 = stablehlo.slice %2 [0:2, 4:5, 0:1152] : (tensor<2x6x1152xbf16>) -> tensor<2x1x1152xbf16>
    %8 = stablehlo.slice %2 [0:2, 5:6, 0:1152] : (tensor<2x6x1152xbf16>) -> tensor<2x1x1152xbf16>
    %9 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<bf16>) -> tensor<2x1x1152xbf16>
    %10 = stablehlo.add %4, %9 : tensor<2x1x1152xbf16>
    %11 = stablehlo.reshape %10 : (tensor<2x1x1152xbf16>) -> tensor<2x1152xbf16>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 2] : (tensor<2x1152xbf16>) -> tensor<2x960x1152xbf16>
    %13 = stablehlo.reshape %3 : (tensor<2x1x1152xbf16>) -> tensor<2x1152xbf16>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 2] : (tensor<2x1152xbf16>) -> tensor<2x960x1152xbf16>
    %15 = stablehlo.convert %arg21 : (tensor<2x960x1152xbf16>) -> tensor<2x960x1152xf32>
    %16 = stablehlo.reshape %15 : (tensor<2x960x1152xf32>) -> tensor<1x1920x1152xf32>
    %output, %batch_mean, %batch_var = "stablehlo.batch_norm_training"(%16, %cst, %cst_0) <{epsilon = 9.99999997E-7 : f32, feature_index = 1 : i64}> : (tensor<1x1920x1152xf32>, tensor<1920xf32>, tensor<1920xf32>) -> (tensor<1x1920x1152xf32>, tensor<1920xf32>, tensor<1920xf32>)
    %17 = stablehlo.reshape %output : (tensor<1x1920x1152xf32>) -> tensor<2x960x1152xf32>
    %18 = stablehlo.convert %17 : (tensor<2x960x1152xf32>) -> tensor<2x960x1152xbf16>
    %19 = stablehlo.multiply %18, %12 : tensor<2x960x1152xbf16>
    %20 = stablehlo.add %19, %14 : tensor<2x960x1152xbf16>
    %21 = stablehlo.reshape %20 : (tensor<2x960x1152xbf16>) -> tensor<8x240x1152xbf16>
    %22 = stablehlo.reshape %21 : (tensor<8x240x1152xbf16>) -> tensor<1920x1152xbf16>
    %23 = stablehlo.transpose %arg17, dims = [1, 0] : (tensor<3456x1152xbf16>) -> tensor<1152x3456xbf16>
    %24 = stablehlo.dot_general %22, %23, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1920x1152xbf16>, tensor<1152x3456xbf16>) -> tensor<1920x3456xbf16>
    %25 = stablehlo.broadcast_in_dim %arg16, dims = [1] : (tensor<3456xbf16>) -> tensor<1920x3456xbf16>
    %26 = stablehlo.add %24, %25 : tensor<1920x3456xbf16>
    %27 = stablehlo.reshape %26 : (tensor<1920x3456xbf16>) -> tensor<8x240x3456xbf16>
    %28 = stablehlo.reshape %27 : (tensor<8x240x3456xbf16>) -> tensor<8x240x3x16x72xbf16>
    %29 = stablehlo.transpose %28, dims = [2, 0, 3, 1, 4] : (tensor<8x240x3x16x72xbf16>) -> tensor<3x8x16x240x72xbf16>
    %30 = stablehlo.slice %29 [0:1, 0:8, 0:16, 0:240, 0:72] : (tensor<3x8x16x240x72xbf16>) -> tensor<1x8x16x240x72xbf16>
    %31 = stablehlo.reshape %30 : (tensor<1x8x16x240x72xbf16>) -> tensor<8x16x240x72xbf16>
    %32 = stablehlo.slice %29 [1:2, 0:8, 0:16, 0:240, 0:72] : (tensor<3x8x16x240x72xbf16>) -> tensor<1x8x16x240x72xbf16>
    %33 = stablehlo.reshape %32 : (tensor<1x8x16x240x72xbf16>) -> tensor<8x16x240x72xbf16>
    %34 = stablehlo.slice %29 [2:3, 0:8, 0:16, 0:240, 0:72] : (tensor<3x8x16x240x72xbf16>) -> tensor<1x8x16x240x72xbf16>
    %35 = stablehlo.reshape %34 : (tensor<1x8x16x240x72xbf16>) -> tensor<8x16x240x72xbf16>
    %36 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<bf16>) -> tensor<8x16x240x72xbf16>
    %37 = stablehlo.multiply %31, %36 : tensor<8x16x240x72xbf16>
    %38 = stablehlo.transpose %33, dims = [0, 1, 3, 2] : (tensor<8x16x240x72xbf16>) -> tensor<8x16x72x240xbf16>
    %39 = stablehlo.reshape %37 : (tensor<8x16x240x72xbf16>) -> tensor<128x240x72xbf16>
    %40 = stablehlo.reshape %38 : (tensor<8x16x72x240xbf16>) -> tensor<128x72x240xbf16>
    %41 = stablehlo.reshape %35 : (tensor<8x16x240x72xbf16>) -> tensor<128x240x72xbf16>
    %42 = stablehlo.dot_general %39, %40, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<128x240x72xbf16>, tensor<128x72x240xbf16>) -> tensor<128x240x240xbf16>
    %43 = stablehlo.reshape %42 : (tensor<128x240x240xbf16>) -> tensor<8x16x240x240xbf16>
    %44 = stablehlo.convert %43 : (tensor<8x16x240x240xbf16>) -> tensor<8x16x240x240xf32>
    %45 = stablehlo.reduce(%44 init: %cst_3) applies stablehlo.maximum across dimensions = [3] : (tensor<8x16x240x240xf32>, tensor<f32>) -> tensor<8x16x240xf32>
    %46 = stablehlo.broadcast_in_dim %45, dims = [0, 1, 2] : (tensor<8x16x240xf32>) -> tensor<8x16x240x240xf32>
    %47 = stablehlo.subtract %44, %46 : tensor<8x16x240x240xf32>
    %48 = stablehlo.exponential %47 : tensor<8x16x240x240xf32>
    %49 = stablehlo.reduce(%48 init: %cst_4) applies stablehlo.add across dimensions = [3] : (tensor<8x16x240x240xf32>, tensor<f32>) -> tensor<8x16x240xf32>
    %50 = stablehlo.broadcast_in_dim %49, dims = [0, 1, 2] : (tensor<8x16x240xf32>) -> tensor<8x16x240x240xf32>
    %51 = stablehlo.divide %48, %50 : tensor<8x16x240x240xf32>
    %52 = stablehlo.convert %51 : (tensor<8x16x240x240xf32>) -> tensor<8x16x240x240xbf16>
    %53 = stablehlo.reshape %52 : (tensor<8x16x240x240xbf16>) -> tensor<128x240x240xbf16>
    %54 = stablehlo.dot_general %53, %41, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<128x240x240xbf16>, tensor<128x240x72xbf16>) -> tensor<128x240x72xbf16>
    %55 = stablehlo.reshape %54 : (tensor<128x240x72xbf16>) -> tensor<8x16x240x72xbf16>
    %56 = stablehlo.transpose %55, dims = [0, 2, 1, 3] : (tensor<8x16x240x72xbf16>) -> tensor<8x240x16x72xbf16>
    %57 = stablehlo.reshape %56 : (tensor<8x240x16x72xbf16>) -> tensor<8x240x1152xbf16>
    %58 = stablehlo.reshape %57 : (tensor<8x240x1152xbf16>) -> tensor<1920x1152xbf16>
    %59 = stablehlo.transpose %arg15, dims = [1, 0] : (tensor<1152x1152xbf16>) -> tensor<1152x1152xbf16>
    %60 = stablehlo.dot_general %58, %59, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1920x1152xbf16>, tensor<1152x1152xbf16>) -> tensor<1920x1152xbf16>
    %61 = stablehlo.broadcast_in_dim %arg14, dims = [1] : (tensor<1152xbf16>) -> tensor<1920x1152xbf16>
    %62 = stablehlo.add %60, %61 : tensor<1920x1152xbf16>
    %63 = stablehlo.reshape %62 : (tensor<1920x1152xbf16>) -> tensor<8x240x1152xbf16>
    %64 = stablehlo.reshape %63 : (tensor<8x240x1152xbf16>) -> tensor<2x960x1152xbf16>
    %65 = stablehlo.reshape %5 : (tensor<2x1x1152xbf16>) -> tensor<2x1152xbf16>
    %66 = stablehlo.broadcast_in_dim %65, dims = [0, 2] : (tensor<2x1152xbf16>) -> tensor<2x960x1152xbf16>
    %67 = stablehlo.multiply %64, %66 : tensor<2x960x1152xbf16>
    %68 = stablehlo.add %arg21, %67 : tensor<2x960x1152xbf16>
    %69 = stablehlo.reshape %68 : (tensor<2x960x1152xbf16>) -> tensor<2x4x240x1152xbf16>
    %70 = stablehlo.transpose %69, dims = [0, 2, 1, 3] : (tensor<2x4x240x1152xbf16>) -> tensor<2x240x4x1152xbf16>
    %71 = stablehlo.reshape %70 : (tensor<2x240x4x1152xbf16>) -> tensor<480x4x1152xbf16>
    %72 = stablehlo.reshape %71 : (tensor<480x4x1152xbf16>) -> tensor<1920x1152xbf16>
    %73 = stablehlo.transpose %arg13, dims = [1, 0] : (tensor<3456x1152xbf16>) -> tensor<1152x3456xbf16>
    %74 = stablehlo.dot_general %72, %73, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1920x1152xbf16>, tensor<1152x3456xbf16>) -> tensor<1920x3456xbf16>
    %75 = stablehlo.broadcast_in_dim %arg12, dims = [1] : (tensor<3456xbf16>) -> tensor<1920x3456xbf16>
    %76 = stablehlo.add %74, %75 : tensor<1920x3456xbf16>
    %77 = stablehlo.reshape %76 : (tensor<1920x3456xbf16>) -> tensor<480x4x3456xbf16>
    %78 = stablehlo.reshape %77 : (tensor<480x4x3456xbf16>) -> tensor<480x4x3x16x72xbf16>
    %79 = stablehlo.transpose %78, dims = [2, 0, 3, 1, 4] : (tensor<480x4x3x16x72xbf16>) -> tensor<3x480x16x4x72xbf16>
    %80 = stablehlo.slice %79 [0:1, 0:480, 0:16, 0:4, 0:72] : (tensor<3x480x16x4x72xbf16>) -> tensor<1x480x16x4x72xbf16>
    %81 = stablehlo.reshape %80 : (tensor<1x480x16x4x72xbf16>) -> tensor<480x16x4x72xbf16>
    %82 = stablehlo.slice %79 [1:2, 0:480, 0:16, 0:4, 0:72] : (tensor<3x480x16x4x72xbf16>) -> tensor<1x480x16x4x72xbf16>
    %83 = stablehlo.reshape %82 : (tensor<1x480x16x4x72xbf16>) -> tensor<480x16x4x72xbf16>
    %84 = stablehlo.slice %79 [2:3, 0:480, 0:16, 0:4, 0:72] : (tensor<3x480x16x4x72xbf16>) -> tensor<1x480x16x4x72xbf16>
    %85 = stablehlo.reshape %84 : (tensor<1x480x16x4x72xbf16>) -> tensor<480x16x4x72xbf16>
    %86 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<bf16>) -> tensor<480x16x4x72xbf16>
    %87 = stablehlo.multiply %81, %86 : tensor<480x16x4x72xbf16>
    %88 = stablehlo.transpose %83, dims = [0, 1, 3, 2] : (tensor<480x16x4x72xbf16>) -> tensor<480x16x72x4xbf16>
    %89 = stablehlo.reshape %87 : (tensor<480x16x4x72xbf16>) -> tensor<7680x4x72xbf16>
    %90 = stablehlo.reshape %88 : (tensor<480x16x72x4xbf16>) -> tensor<7680x72x4xbf16>
    %91 = stablehlo.reshape %85 : (tensor<480x16x4x72xbf16>) -> tensor<7680x4x72xbf16>
    %92 = stablehlo.dot_general %89, %90, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<7680x4x72xbf16>, tensor<7680x72x4xbf16>) -> tensor<7680x4x4xbf16>
    %93 = stablehlo.reshape %92 : (tensor<7680x4x4xbf16>) -> tensor<480x16x4x4xbf16>
    %94 = stablehlo.convert %93 : (tensor<480x16x4x4xbf16>) -> tensor<480x16x4x4xf32>
    %95 = stablehlo.reduce(%94 init: %cst_3) applies stablehlo.maximum across dimensions = [3] : (tensor<480x16x4x4xf32>, tensor<f32>) -> tensor<480x16x4xf32>
    %96 = stablehlo.broadcast_in_dim %95, dims = [0, 1, 2] : (tensor<480x16x4xf32>) -> tensor<480x16x4x4xf32>
    %97 = stablehlo.subtract %94, %96 : tensor<480x16x4x4xf32>
    %98 = stablehlo.exponential %97 : tensor<480x16x4x4xf32>
    %99 = stablehlo.reduce(%98 init: %cst_4) applies stablehlo.add across dimensions = [3] : (tensor<480x16x4x4xf32>, tensor<f32>) -> tensor<480x16x4xf32>
    %100 = stablehlo.broadcast_in_dim %99, dims = [0, 1, 2] : (tensor<480x16x4xf32>) -> tensor<480x16x4x4xf32>
    %101 = stablehlo.divide %98, %100 : tensor<480x16x4x4xf32>
    %102 = stablehlo.convert %101 : (tensor<480x16x4x4xf32>) -> tensor<480x16x4x4xbf16>
    %103 = stablehlo.reshape %102 : (tensor<480x16x4x4xbf16>) -> tensor<7680x4x4xbf16>
    %104 = stablehlo.dot_general %103, %91, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<7680x4x4xbf16>, tensor<7680x4x72xbf16>) -> tensor<7680x4x72xbf16>
    %105 = stablehlo.reshape %104 : (tensor<7680x4x72xbf16>) -> tensor<480x16x4x72xbf16>
    %106 = stablehlo.transpose %105, dims = [0, 2, 1, 3] : (tensor<480x16x4x72xbf16>) -> tensor<480x4x16x72xbf16>
    %107 = stablehlo.reshape %106 : (tensor<480x4x16x72xbf16>) -> tensor<480x4x1152xbf16>
    %108 = stablehlo.reshape %107 : (tensor<480x4x1152xbf16>) -> tensor<1920x1152xbf16>
    %109 = stablehlo.transpose %arg11, dims = [1, 0] : (tensor<1152x1152xbf16>) -> tensor<1152x1152xbf16>
    %110 = stablehlo.dot_general %108, %109, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1920x1152xbf16>, tensor<1152x1152xbf16>) -> tensor<1920x1152xbf16>
    %111 = stablehlo.broadcast_in_dim %arg10, dims = [1] : (tensor<1152xbf16>) -> tensor<1920x1152xbf16>
    %112 = stablehlo.add %110, %111 : tensor<1920x1152xbf16>
    %113 = stablehlo.reshape %112 : (tensor<1920x1152xbf16>) -> tensor<480x4x1152xbf16>
    %114 = stablehlo.reshape %113 : (tensor<480x4x1152xbf16>) -> tensor<2x240x4x1152xbf16>
    %115 = stablehlo.transpose %114, dims = [0, 2, 1, 3] : (tensor<2x240x4x1152xbf16>) -> tensor<2x4x240x1152xbf16>
    %116 = stablehlo.reshape %115 : (tensor<2x4x240x1152xbf16>) -> tensor<2x960x1152xbf16>
    %117 = stablehlo.reshape %5 : (tensor<2x1x1152xbf16>) -> tensor<2x1152xbf16>
    %118 = stablehlo.broadcast_in_dim %117, dims = [0, 2] : (tensor<2x1152xbf16>) -> tensor<2x960x1152xbf16>
    %119 = stablehlo.multiply %116, %118 : tensor<2x960x1152xbf16>
    %120 = stablehlo.add %68, %119 : tensor<2x960x1152xbf16>
    %121 = stablehlo.reshape %120 : (tensor<2x960x1152xbf16>) -> tensor<1920x1152xbf16>
    %122 = stablehlo.transpose %arg9, dims = [1, 0] : (tensor<1152x1152xbf16>) -> tensor<1152x1152xbf16>
    %123 = stablehlo.dot_general %121, %122, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1920x1152xbf16>, tensor<1152x1152xbf16>) -> tensor<1920x1152xbf16>
    %124 = stablehlo.broadcast_in_dim %arg8, dims = [1] : (tensor<1152xbf16>) -> tensor<1920x1152xbf16>
    %125 = stablehlo.add %123, %124 : tensor<1920x1152xbf16>
    %126 = stablehlo.reshape %125 : (tensor<1920x1152xbf16>) -> tensor<2x960x1152xbf16>
    %127 = stablehlo.reshape %126 : (tensor<2x960x1152xbf16>) -> tensor<2x960x16x72xbf16>
    %128 = stablehlo.transpose %127, dims = [0, 2, 1, 3] : (tensor<2x960x16x72xbf16>) -> tensor<2x16x960x72xbf16>
    %129 = stablehlo.reshape %arg20 : (tensor<1x240x1152xbf16>) -> tensor<240x1152xbf16>
    %130 = stablehlo.transpose %arg7, dims = [1, 0] : (tensor<2304x1152xbf16>) -> tensor<1152x2304xbf16>
    %131 = stablehlo.dot_general %129, %130, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<240x1152xbf16>, tensor<1152x2304xbf16>) -> tensor<240x2304xbf16>
    %132 = stablehlo.broadcast_in_dim %arg6, dims = [1] : (tensor<2304xbf16>) -> tensor<240x2304xbf16>
    %133 = stablehlo.add %131, %132 : tensor<240x2304xbf16>
    %134 = stablehlo.reshape %133 : (tensor<240x2304xbf16>) -> tensor<1x240x2304xbf16>
    %135 = stablehlo.reshape %134 : (tensor<1x240x2304xbf16>) -> tensor<2x120x2x16x72xbf16>
    %136 = stablehlo.slice %135 [0:2, 0:120, 0:1, 0:16, 0:72] : (tensor<2x120x2x16x72xbf16>) -> tensor<2x120x1x16x72xbf16>
    %137 = stablehlo.reshape %136 : (tensor<2x120x1x16x72xbf16>) -> tensor<2x120x16x72xbf16>
    %138 = stablehlo.transpose %137, dims = [0, 2, 1, 3] : (tensor<2x120x16x72xbf16>) -> tensor<2x16x120x72xbf16>
    %139 = stablehlo.slice %135 [0:2, 0:120, 1:2, 0:16, 0:72] : (tensor<2x120x2x16x72xbf16>) -> tensor<2x120x1x16x72xbf16>
    %140 = stablehlo.reshape %139 : (tensor<2x120x1x16x72xbf16>) -> tensor<2x120x16x72xbf16>
    %141 = stablehlo.transpose %140, dims = [0, 2, 1, 3] : (tensor<2x120x16x72xbf16>) -> tensor<2x16x120x72xbf16>
    %142 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<bf16>) -> tensor<2x16x960x72xbf16>
    %143 = stablehlo.multiply %128, %142 : tensor<2x16x960x72xbf16>
    %144 = stablehlo.transpose %138, dims = [0, 1, 3, 2] : (tensor<2x16x120x72xbf16>) -> tensor<2x16x72x120xbf16>
    %145 = stablehlo.reshape %143 : (tensor<2x16x960x72xbf16>) -> tensor<32x960x72xbf16>
    %146 = stablehlo.reshape %144 : (tensor<2x16x72x120xbf16>) -> tensor<32x72x120xbf16>
    %147 = stablehlo.reshape %141 : (tensor<2x16x120x72xbf16>) -> tensor<32x120x72xbf16>
    %148 = stablehlo.dot_general %145, %146, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<32x960x72xbf16>, tensor<32x72x120xbf16>) -> tensor<32x960x120xbf16>
    %149 = stablehlo.reshape %148 : (tensor<32x960x120xbf16>) -> tensor<2x16x960x120xbf16>
    %150 = stablehlo.convert %149 : (tensor<2x16x960x120xbf16>) -> tensor<2x16x960x120xf32>
    %151 = stablehlo.reduce(%150 init: %cst_3) applies stablehlo.maximum across dimensions = [3] : (tensor<2x16x960x120xf32>, tensor<f32>) -> tensor<2x16x960xf32>
    %152 = stablehlo.broadcast_in_dim %151, dims = [0, 1, 2] : (tensor<2x16x960xf32>) -> tensor<2x16x960x120xf32>
    %153 = stablehlo.subtract %150, %152 : tensor<2x16x960x120xf32>
    %154 = stablehlo.exponential %153 : tensor<2x16x960x120xf32>
    %155 = stablehlo.reduce(%154 init: %cst_4) applies stablehlo.add across dimensions = [3] : (tensor<2x16x960x120xf32>, tensor<f32>) -> tensor<2x16x960xf32>
    %156 = stablehlo.broadcast_in_dim %155, dims = [0, 1, 2] : (tensor<2x16x960xf32>) -> tensor<2x16x960x120xf32>
    %157 = stablehlo.divide %154, %156 : tensor<2x16x960x120xf32>
    %158 = stablehlo.convert %157 : (tensor<2x16x960x120xf32>) -> tensor<2x16x960x120xbf16>
    %159 = stablehlo.reshape %158 : (tensor<2x16x960x120xbf16>) -> tensor<32x960x120xbf16>
    %160 = stablehlo.dot_general %159, %147, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<32x960x120xbf16>, tensor<32x120x72xbf16>) -> tensor<32x960x72xbf16>
    %161 = stablehlo.reshape %160 : (tensor<32x960x72xbf16>) -> tensor<2x16x960x72xbf16>
    %162 = stablehlo.transpose %161, dims = [0, 2, 1, 3] : (tensor<2x16x960x72xbf16>) -> tensor<2x960x16x72xbf16>
    %163 = stablehlo.reshape %162 : (tensor<2x960x16x72xbf16>) -> tensor<2x960x1152xbf16>
    %164 = stablehlo.reshape %163 : (tensor<2x960x1152xbf16>) -> tensor<1920x1152xbf16>
    %165 = stablehlo.transpose %arg5, dims = [1, 0] : (tensor<1152x1152xbf16>) -> tensor<1152x1152xbf16>
    %166 = stablehlo.dot_general %164, %165, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1920x1152xbf16>, tensor<1152x1152xbf16>) -> tensor<1920x1152xbf16>
    %167 = stablehlo.broadcast_in_dim %arg4, dims = [1] : (tensor<1152xbf16>) -> tensor<1920x1152xbf16>
    %168 = stablehlo.add %166, %167 : tensor<1920x1152xbf16>
    %169 = stablehlo.reshape %168 : (tensor<1920x1152xbf16>) -> tensor<2x960x1152xbf16>
    %170 = stablehlo.add %120, %169 : tensor<2x960x1152xbf16>
    %171 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<bf16>) -> tensor<2x1x1152xbf16>
    %172 = stablehlo.add %7, %171 : tensor<2x1x1152xbf16>
    %173 = stablehlo.reshape %172 : (tensor<2x1x1152xbf16>) -> tensor<2x1152xbf16>
    %174 = stablehlo.broadcast_in_dim %173, dims = [0, 2] : (tensor<2x1152xbf16>) -> tensor<2x960x1152xbf16>
    %175 = stablehlo.reshape %6 : (tensor<2x1x1152xbf16>) -> tensor<2x1152xbf16>
    %176 = stablehlo.broadcast_in_dim %175, dims = [0, 2] : (tensor<2x1152xbf16>) -> tensor<2x960x1152xbf16>
    %177 = stablehlo.convert %170 : (tensor<2x960x1152xbf16>) -> tensor<2x960x1152xf32>
    %178 = stablehlo.reshape %177 : (tensor<2x960x1152xf32>) -> tensor<1x1920x1152xf32>
    %output_5, %batch_mean_6, %batch_var_7 = "stablehlo.batch_norm_training"(%178, %cst, %cst_0) <{epsilon = 9.99999997E-7 : f32, feature_index = 1 : i64}> : (tensor<1x1920x1152xf32>, tensor<1920xf32>, tensor<1920xf32>) -> (tensor<1x1920x1152xf32>, tensor<1920xf32>, tensor<1920xf32>)
    %179 = stablehlo.reshape %output_5 : (tensor<1x1920x1152xf32>) -> tensor<2x960x1152xf32>
    %180 = stablehlo.convert %179 : (tensor<2x960x1152xf32>) -> tensor<2x960x1152xbf16>
    %181 = stablehlo.multiply %180, %174 : tensor<2x960x1152xbf16>
    %182 = stablehlo.add %181, %176 : tensor<2x960x1152xbf16>
    %183 = stablehlo.reshape %182 : (tensor<2x960x1152xbf16>) -> tensor<1920x1152xbf16>
    %184 = stablehlo.transpose %arg3, dims = [1, 0] : (tensor<4608x1152xbf16>) -> tensor<1152x4608xbf16>
    %185 = stablehlo.dot_general %183, %184, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1920x1152xbf16>, tensor<1152x4608xbf16>) -> tensor<1920x4608xbf16>
    %186 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<4608xbf16>) -> tensor<1920x4608xbf16>
    %187 = stablehlo.add %185, %186 : tensor<1920x4608xbf16>
    %188 = stablehlo.reshape %187 : (tensor<1920x4608xbf16>) -> tensor<2x960x4608xbf16>
    %189 = stablehlo.multiply %188, %188 : tensor<2x960x4608xbf16>
    %190 = stablehlo.multiply %189, %188 : tensor<2x960x4608xbf16>
    %cst_8 = stablehlo.constant dense<4.467770e-02> : tensor<bf16>
    %191 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<bf16>) -> tensor<2x960x4608xbf16>
    %192 = stablehlo.multiply %190, %191 : tensor<2x960x4608xbf16>
    %193 = stablehlo.add %188, %192 : tensor<2x960x4608xbf16>
    %cst_9 = stablehlo.constant dense<7.968750e-01> : tensor<bf16>
    %194 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<bf16>) -> tensor<2x960x4608xbf16>
    %195 = stablehlo.multiply %193, %194 : tensor<2x960x4608xbf16>
    %196 = stablehlo.tanh %195 : tensor<2x960x4608xbf16>
    %197 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<bf16>) -> tensor<2x960x4608xbf16>
    %198 = stablehlo.add %196, %197 : tensor<2x960x4608xbf16>
    %cst_10 = stablehlo.constant dense<5.000000e-01> : tensor<bf16>
    %199 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<bf16>) -> tensor<2x960x4608xbf16>
    %200 = stablehlo.multiply %188, %199 : tensor<2x960x4608xbf16>
    %201 = stablehlo.multiply %200, %198 : tensor<2x960x4608xbf16>
    %202 = stablehlo.reshape %201 : (tensor<2x960x4608xbf16>) -> tensor<1920x4608xbf16>
    %203 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<1152x4608xbf16>) -> tensor<4608x1152xbf16>
    %204 = stablehlo.dot_general %202, %203, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1920x4608xbf16>, tensor<4608x1152xbf16>) -> tensor<1920x1152xbf16>
    %205 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<1152xbf16>) -> tensor<1920x1152xbf16>
    %206 = stablehlo.add %204, %205 : tensor<1920x1152xbf16>
    %207 = stablehlo.reshape %206 : (tensor<1920x1152xbf16>) -> tensor<2x960x1152xbf16>
    %208 = stablehlo.reshape %8 : (tensor<2x1x1152xbf16>) -> tensor<2x1152xbf16>
    %209 = stablehlo.broadcast_in_dim %208, dims = [0, 2] : (tensor<2x1152xbf16>) -> tensor<2x960x1152xbf16>
    %210 = stablehlo.multiply %207, %209 : tensor<2x960x1152xbf16>
    %211 = stablehlo.add %170, %210 : tensor<2x960x1152xbf16>
    return %211 : tensor<2x960x1152xbf16>
  }
}
