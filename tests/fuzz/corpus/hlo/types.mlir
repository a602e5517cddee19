#alias = loc("f.py":3:1)
!q = !quant.uniform<i8:f32, 0.5:3>
func.func @main(%a: tensor<4x!quant.uniform<i4<-8:7>:f32:1, {0.1:0, 0.2:1}>>, %b: tensor<2xcomplex<f32>>, %c: tensor<?x4xi1, #stablehlo.bounds<8, ?>>, %d: tuple<tensor<2xf8E4M3FN>, !stablehlo.token>, %e: tensor<4x!q>, %f: tensor<3xi4>, %g: tensor<0xui8>) -> tensor<2xcomplex<f32>> {
  %0 = stablehlo.add %b, %b : tensor<2xcomplex<f32>> loc(callsite("g" at #alias))
  %1 = stablehlo.get_tuple_element %d[0] : (tuple<tensor<2xf8E4M3FN>, !stablehlo.token>) -> tensor<2xf8E4M3FN> loc(fused["a", "b"])
  return %0 : tensor<2xcomplex<f32>>
}
