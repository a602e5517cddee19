func.func @main(%x: tensor<8x16xbf16>) -> tensor<8x64xbf16> {
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<8x16xbf16>) -> tensor<8x64xbf16>
  %1 = "stablehlo.all_reduce"(%0) <{replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %2 = stablehlo.add %a, %b : tensor<bf16>
    stablehlo.return %2 : tensor<bf16>
  }) : (tensor<8x64xbf16>) -> tensor<8x64xbf16>
  %3 = "stablehlo.collective_permute"(%1) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (tensor<8x64xbf16>) -> tensor<8x64xbf16>
  return %3 : tensor<8x64xbf16>
}
