// Gradients of attention by matrix instructions, as matrix.mlir: masks, hidden
// rows, heads that take one, two and three sweeps over the queries, scores whose
// logarithm of the sum has lost too many digits.

func.func @causal_gradient_bf16(%q: tensor<1x2x70x8xbf16>, %k: tensor<1x2x70x8xbf16>, %v: tensor<1x2x70x8xbf16>, %g: tensor<1x2x70x8xbf16>) -> (tensor<1x2x70x8xbf16>, tensor<1x2x70x8xbf16>, tensor<1x2x70x8xbf16>) {
  %y, %l = mtp.attention %q, %k, %v {scale = 0.5 : f64, causal} : (tensor<1x2x70x8xbf16>, tensor<1x2x70x8xbf16>, tensor<1x2x70x8xbf16>) -> (tensor<1x2x70x8xbf16>, tensor<1x2x70xf32>)
  %dq, %dk, %dv, %dm = mtp.attention_gradient %q, %k, %v, %y, %l, %g {scale = 0.5 : f64, causal} : (tensor<1x2x70x8xbf16>, tensor<1x2x70x8xbf16>, tensor<1x2x70x8xbf16>, tensor<1x2x70x8xbf16>, tensor<1x2x70xf32>, tensor<1x2x70x8xbf16>) -> (tensor<1x2x70x8xbf16>, tensor<1x2x70x8xbf16>, tensor<1x2x70x8xbf16>, tensor<bf16>)
  return %dq, %dk, %dv : tensor<1x2x70x8xbf16>, tensor<1x2x70x8xbf16>, tensor<1x2x70x8xbf16>
}

func.func @masked_gradient_tf32(%q: tensor<1x2x20x16xf32>, %k: tensor<1x2x33x16xf32>, %v: tensor<1x2x33x16xf32>, %m: tensor<20x33xf32>, %g: tensor<1x2x20x16xf32>) -> (tensor<1x2x20x16xf32>, tensor<1x2x33x16xf32>, tensor<1x2x33x16xf32>, tensor<20x33xf32>) attributes {test.precision = "tf32"} {
  %y, %l = mtp.attention %q, %k, %v mask %m {scale = 0.25 : f64, softcap = 2.0 : f64} : (tensor<1x2x20x16xf32>, tensor<1x2x33x16xf32>, tensor<1x2x33x16xf32>, tensor<20x33xf32>) -> (tensor<1x2x20x16xf32>, tensor<1x2x20xf32>)
  %dq, %dk, %dv, %dm = mtp.attention_gradient %q, %k, %v mask %m, %y, %l, %g {scale = 0.25 : f64, softcap = 2.0 : f64} : (tensor<1x2x20x16xf32>, tensor<1x2x33x16xf32>, tensor<1x2x33x16xf32>, tensor<20x33xf32>, tensor<1x2x20x16xf32>, tensor<1x2x20xf32>, tensor<1x2x20x16xf32>) -> (tensor<1x2x20x16xf32>, tensor<1x2x33x16xf32>, tensor<1x2x33x16xf32>, tensor<20x33xf32>)
  return %dq, %dk, %dv, %dm : tensor<1x2x20x16xf32>, tensor<1x2x33x16xf32>, tensor<1x2x33x16xf32>, tensor<20x33xf32>
}

func.func @gradient_of_hidden_rows_bf16(%q: tensor<1x2x20x16xf32>, %k: tensor<1x1x33x16xf32>, %v: tensor<1x1x33x16xf32>, %m: tensor<1x2x20x33xi1>, %g: tensor<1x2x20x16xf32>) -> (tensor<1x2x20x16xf32>, tensor<1x1x33x16xf32>, tensor<1x1x33x16xf32>) attributes {test.precision = "bf16"} {
  %y, %l = mtp.attention %q, %k, %v mask %m {scale = 0.25 : f64, masked_row_uniform} : (tensor<1x2x20x16xf32>, tensor<1x1x33x16xf32>, tensor<1x1x33x16xf32>, tensor<1x2x20x33xi1>) -> (tensor<1x2x20x16xf32>, tensor<1x2x20xf32>)
  %dq, %dk, %dv, %dm = mtp.attention_gradient %q, %k, %v mask %m, %y, %l, %g {scale = 0.25 : f64, masked_row_uniform} : (tensor<1x2x20x16xf32>, tensor<1x1x33x16xf32>, tensor<1x1x33x16xf32>, tensor<1x2x20x33xi1>, tensor<1x2x20x16xf32>, tensor<1x2x20xf32>, tensor<1x2x20x16xf32>) -> (tensor<1x2x20x16xf32>, tensor<1x1x33x16xf32>, tensor<1x1x33x16xf32>, tensor<f32>)
  return %dq, %dk, %dv : tensor<1x2x20x16xf32>, tensor<1x1x33x16xf32>, tensor<1x1x33x16xf32>
}

func.func @gradient_of_hidden_rows_f16(%q: tensor<1x2x20x16xf16>, %k: tensor<1x1x33x16xf16>, %v: tensor<1x1x33x8xf16>, %g: tensor<1x2x20x8xf16>) -> (tensor<1x2x20x16xf16>, tensor<1x1x33x16xf16>, tensor<1x1x33x8xf16>) {
  %y, %l = mtp.attention %q, %k, %v {scale = 0.25 : f64, causal, causal_offset = -3 : i64, masked_row_zero} : (tensor<1x2x20x16xf16>, tensor<1x1x33x16xf16>, tensor<1x1x33x8xf16>) -> (tensor<1x2x20x8xf16>, tensor<1x2x20xf32>)
  %dq, %dk, %dv, %dm = mtp.attention_gradient %q, %k, %v, %y, %l, %g {scale = 0.25 : f64, causal, causal_offset = -3 : i64, masked_row_zero} : (tensor<1x2x20x16xf16>, tensor<1x1x33x16xf16>, tensor<1x1x33x8xf16>, tensor<1x2x20x8xf16>, tensor<1x2x20xf32>, tensor<1x2x20x8xf16>) -> (tensor<1x2x20x16xf16>, tensor<1x1x33x16xf16>, tensor<1x1x33x8xf16>, tensor<f16>)
  return %dq, %dk, %dv : tensor<1x2x20x16xf16>, tensor<1x1x33x16xf16>, tensor<1x1x33x8xf16>
}

func.func @gradient_in_two_sweeps_f16(%q: tensor<1x1x18x96xf16>, %k: tensor<1x1x20x96xf16>, %v: tensor<1x1x20x120xf16>, %g: tensor<1x1x18x120xf16>) -> (tensor<1x1x18x96xf16>, tensor<1x1x20x96xf16>, tensor<1x1x20x120xf16>) {
  %y, %l = mtp.attention %q, %k, %v {scale = 0.1 : f64} : (tensor<1x1x18x96xf16>, tensor<1x1x20x96xf16>, tensor<1x1x20x120xf16>) -> (tensor<1x1x18x120xf16>, tensor<1x1x18xf32>)
  %dq, %dk, %dv, %dm = mtp.attention_gradient %q, %k, %v, %y, %l, %g {scale = 0.1 : f64} : (tensor<1x1x18x96xf16>, tensor<1x1x20x96xf16>, tensor<1x1x20x120xf16>, tensor<1x1x18x120xf16>, tensor<1x1x18xf32>, tensor<1x1x18x120xf16>) -> (tensor<1x1x18x96xf16>, tensor<1x1x20x96xf16>, tensor<1x1x20x120xf16>, tensor<f16>)
  return %dq, %dk, %dv : tensor<1x1x18x96xf16>, tensor<1x1x20x96xf16>, tensor<1x1x20x120xf16>
}

func.func @gradient_in_three_sweeps_tf32(%q: tensor<1x1x18x96xf32>, %k: tensor<1x1x20x96xf32>, %v: tensor<1x1x20x80xf32>, %g: tensor<1x1x18x80xf32>) -> (tensor<1x1x18x96xf32>, tensor<1x1x20x96xf32>, tensor<1x1x20x80xf32>) attributes {test.precision = "tf32"} {
  %y, %l = mtp.attention %q, %k, %v {scale = 0.1 : f64} : (tensor<1x1x18x96xf32>, tensor<1x1x20x96xf32>, tensor<1x1x20x80xf32>) -> (tensor<1x1x18x80xf32>, tensor<1x1x18xf32>)
  %dq, %dk, %dv, %dm = mtp.attention_gradient %q, %k, %v, %y, %l, %g {scale = 0.1 : f64} : (tensor<1x1x18x96xf32>, tensor<1x1x20x96xf32>, tensor<1x1x20x80xf32>, tensor<1x1x18x80xf32>, tensor<1x1x18xf32>, tensor<1x1x18x80xf32>) -> (tensor<1x1x18x96xf32>, tensor<1x1x20x96xf32>, tensor<1x1x20x80xf32>, tensor<f32>)
  return %dq, %dk, %dv : tensor<1x1x18x96xf32>, tensor<1x1x20x96xf32>, tensor<1x1x20x80xf32>
}

func.func @gradient_of_large_scores_f16(%q: tensor<1x1x18x16xf16>, %k: tensor<1x1x20x16xf16>, %v: tensor<1x1x20x16xf16>, %g: tensor<1x1x18x16xf16>) -> (tensor<1x1x18x16xf16>, tensor<1x1x20x16xf16>, tensor<1x1x20x16xf16>) {
  %y, %l = mtp.attention %q, %k, %v {scale = 400.0 : f64} : (tensor<1x1x18x16xf16>, tensor<1x1x20x16xf16>, tensor<1x1x20x16xf16>) -> (tensor<1x1x18x16xf16>, tensor<1x1x18xf32>)
  %dq, %dk, %dv, %dm = mtp.attention_gradient %q, %k, %v, %y, %l, %g {scale = 400.0 : f64} : (tensor<1x1x18x16xf16>, tensor<1x1x20x16xf16>, tensor<1x1x20x16xf16>, tensor<1x1x18x16xf16>, tensor<1x1x18xf32>, tensor<1x1x18x16xf16>) -> (tensor<1x1x18x16xf16>, tensor<1x1x20x16xf16>, tensor<1x1x20x16xf16>, tensor<f16>)
  return %dq, %dk, %dv : tensor<1x1x18x16xf16>, tensor<1x1x20x16xf16>, tensor<1x1x20x16xf16>
}
