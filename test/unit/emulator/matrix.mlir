// Attention whose products are matrix instructions. `test.precision` is that of
// the compile: products of f32 round their operands.

func.func @attention_f16(%q: tensor<1x4x19x16xf16>, %k: tensor<1x2x37x16xf16>, %v: tensor<1x2x37x24xf16>) -> (tensor<1x4x19x24xf16>, tensor<1x4x19xf32>) {
  %y, %l = mtp.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<1x4x19x16xf16>, tensor<1x2x37x16xf16>, tensor<1x2x37x24xf16>) -> (tensor<1x4x19x24xf16>, tensor<1x4x19xf32>)
  return %y, %l : tensor<1x4x19x24xf16>, tensor<1x4x19xf32>
}

func.func @causal_attention_bf16(%q: tensor<1x2x34x8xbf16>, %k: tensor<1x2x34x8xbf16>, %v: tensor<1x2x34x8xbf16>) -> (tensor<1x2x34x8xbf16>, tensor<1x2x34xf32>) {
  %y, %l = mtp.attention %q, %k, %v {scale = 0.5 : f64, causal} : (tensor<1x2x34x8xbf16>, tensor<1x2x34x8xbf16>, tensor<1x2x34x8xbf16>) -> (tensor<1x2x34x8xbf16>, tensor<1x2x34xf32>)
  return %y, %l : tensor<1x2x34x8xbf16>, tensor<1x2x34xf32>
}

func.func @masked_attention_tf32(%q: tensor<1x2x20x16xf32>, %k: tensor<1x2x33x16xf32>, %v: tensor<1x2x33x16xf32>, %m: tensor<20x33xf32>) -> (tensor<1x2x20x16xf32>, tensor<1x2x20xf32>) attributes {test.precision = "tf32"} {
  %y, %l = mtp.attention %q, %k, %v mask %m {scale = 0.25 : f64} : (tensor<1x2x20x16xf32>, tensor<1x2x33x16xf32>, tensor<1x2x33x16xf32>, tensor<20x33xf32>) -> (tensor<1x2x20x16xf32>, tensor<1x2x20xf32>)
  return %y, %l : tensor<1x2x20x16xf32>, tensor<1x2x20xf32>
}

func.func @attention_of_f32_in_bf16(%q: tensor<1x2x20x16xf32>, %k: tensor<1x2x33x16xf32>, %v: tensor<1x2x33x16xf32>) -> (tensor<1x2x20x16xf32>, tensor<1x2x20xf32>) attributes {test.precision = "bf16"} {
  %y, %l = mtp.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<1x2x20x16xf32>, tensor<1x2x33x16xf32>, tensor<1x2x33x16xf32>) -> (tensor<1x2x20x16xf32>, tensor<1x2x20xf32>)
  return %y, %l : tensor<1x2x20x16xf32>, tensor<1x2x20xf32>
}

func.func @gradient_of_groups_f16(%q: tensor<1x4x19x16xf16>, %k: tensor<1x2x37x16xf16>, %v: tensor<1x2x37x24xf16>, %g: tensor<1x4x19x24xf16>) -> (tensor<1x4x19x16xf16>, tensor<1x2x37x16xf16>, tensor<1x2x37x24xf16>) {
  %y, %l = mtp.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<1x4x19x16xf16>, tensor<1x2x37x16xf16>, tensor<1x2x37x24xf16>) -> (tensor<1x4x19x24xf16>, tensor<1x4x19xf32>)
  %dq, %dk, %dv, %dm = mtp.attention_gradient %q, %k, %v, %y, %l, %g {scale = 0.25 : f64} : (tensor<1x4x19x16xf16>, tensor<1x2x37x16xf16>, tensor<1x2x37x24xf16>, tensor<1x4x19x24xf16>, tensor<1x4x19xf32>, tensor<1x4x19x24xf16>) -> (tensor<1x4x19x16xf16>, tensor<1x2x37x16xf16>, tensor<1x2x37x24xf16>, tensor<f16>)
  return %dq, %dk, %dv : tensor<1x4x19x16xf16>, tensor<1x2x37x16xf16>, tensor<1x2x37x24xf16>
}
