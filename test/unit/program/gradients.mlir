// Gradients by library kernels, run by ProgramTest.cpp on their mesh and on one
// rank.

// Three heads on two ranks: one head is padding.
mtp.mesh @mesh <tp = 2>
!t = tensor<2x3x5x4xf64, #mtp.layout<@mesh, tp = S(1)>>
!l = tensor<2x3x5xf64, #mtp.layout<@mesh, tp = S(1)>>
!z = tensor<f64, #mtp.layout<@mesh, tp = P(sum)>>
func.func @uneven_heads_back(%q: !t, %k: !t, %v: !t, %g: !t) -> (!t, !t, !t, !t) {
  %y, %l = mtp.attention %q, %k, %v {scale = 0.5 : f64, causal} : (!t, !t, !t) -> (!t, !l)
  %dq, %dk, %dv, %dm = mtp.attention_gradient %q, %k, %v, %y, %l, %g {scale = 0.5 : f64, causal} : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t, !z)
  return %y, %dq, %dk, %dv : !t, !t, !t, !t
}

// -----

// Queries cut by position, seven on three ranks: every rank has a term of dk.
mtp.mesh @mesh <tp = 3>
!q = tensor<1x2x7x8xf64, #mtp.layout<@mesh, tp = S(2)>>
!k = tensor<1x2x7x8xf64, #mtp.layout<@mesh, tp = R>>
!p = tensor<1x2x7x8xf64, #mtp.layout<@mesh, tp = P(sum)>>
!i = tensor<1x2x7x8xf64, #mtp.layout<@mesh>>
!l = tensor<1x2x7xf64, #mtp.layout<@mesh, tp = S(2)>>
!z = tensor<f64, #mtp.layout<@mesh, tp = P(sum)>>
func.func @blocks_of_queries_back(%q: !q, %k: !i, %v: !i, %g: !q) -> (!q, !i, !i) {
  %k0 = mtp.copy_to %k ["tp"] : (!i) -> !k
  %v0 = mtp.copy_to %v ["tp"] : (!i) -> !k
  %y, %l = mtp.attention %q, %k0, %v0 {scale = 0.5 : f64, causal} : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv, %dm = mtp.attention_gradient %q, %k0, %v0, %y, %l, %g {scale = 0.5 : f64, causal} : (!q, !k, !k, !q, !l, !q) -> (!q, !p, !p, !z)
  %0 = mtp.reduce_from %dk ["tp"] : (!p) -> !i
  %1 = mtp.reduce_from %dv ["tp"] : (!p) -> !i
  return %dq, %0, %1 : !q, !i, !i
}

// -----

// Three query heads of one key head on two ranks, a mask that is added.
mtp.mesh @mesh <tp = 2>
!q = tensor<2x3x5x4xf64, #mtp.layout<@mesh, tp = S(1)>>
!k = tensor<2x1x6x4xf64, #mtp.layout<@mesh, tp = R>>
!p = tensor<2x1x6x4xf64, #mtp.layout<@mesh, tp = P(sum)>>
!i = tensor<2x1x6x4xf64, #mtp.layout<@mesh>>
!l = tensor<2x3x5xf64, #mtp.layout<@mesh, tp = S(1)>>
!m = tensor<1x3x1x6xf64, #mtp.layout<@mesh, tp = S(1)>>
func.func @query_heads_of_one_key_head_back(%q: !q, %k: !i, %v: !i, %m: !m, %g: !q) -> (!q, !i, !i, !m) {
  %k0 = mtp.copy_to %k ["tp"] : (!i) -> !k
  %v0 = mtp.copy_to %v ["tp"] : (!i) -> !k
  %y, %l = mtp.attention %q, %k0, %v0 mask %m {scale = 0.5 : f64} : (!q, !k, !k, !m) -> (!q, !l)
  %dq, %dk, %dv, %dm = mtp.attention_gradient %q, %k0, %v0 mask %m, %y, %l, %g {scale = 0.5 : f64} : (!q, !k, !k, !m, !q, !l, !q) -> (!q, !p, !p, !m)
  %0 = mtp.reduce_from %dk ["tp"] : (!p) -> !i
  %1 = mtp.reduce_from %dv ["tp"] : (!p) -> !i
  return %dq, %0, %1, %dm : !q, !i, !i, !m
}

// -----

// A table of five rows on two ranks, looked up by seven indices on dp.
mtp.mesh @mesh <dp = 2, tp = 2>
!i = tensor<7xi64, #mtp.layout<@mesh, dp = S(0)>>
!r = tensor<7xi64, #mtp.layout<@mesh, dp = S(0), tp = R>>
!g = tensor<7x6xf64, #mtp.layout<@mesh, dp = S(0)>>
!gr = tensor<7x6xf64, #mtp.layout<@mesh, dp = S(0), tp = R>>
!p = tensor<5x6xf64, #mtp.layout<@mesh, tp = S(0), dp = P(sum)>>
!t = tensor<5x6xf64, #mtp.layout<@mesh, tp = S(0)>>
func.func @rows_of_a_table_back(%i: !i, %g: !g) -> !t {
  %i0 = mtp.copy_to %i ["tp"] : (!i) -> !r
  %g0 = mtp.copy_to %g ["tp"] : (!g) -> !gr
  %0 = mtp.gather_gradient %i0, %g0 dim 0 : (!r, !gr) -> !p
  %1 = mtp.reduce_from %0 ["dp"] : (!p) -> !t
  return %1 : !t
}

// -----

// Gradients of patches, the images cut on dp, the channels on tp.
mtp.mesh @mesh <dp = 2, tp = 2>
!x = tensor<3x2x6x6xf64, #mtp.layout<@mesh, dp = S(0), tp = R>>
!w = tensor<5x2x3x3xf64, #mtp.layout<@mesh, tp = S(0), dp = R>>
!g = tensor<3x5x2x2xf64, #mtp.layout<@mesh, dp = S(0), tp = S(1)>>
!dx = tensor<3x2x6x6xf64, #mtp.layout<@mesh, dp = S(0), tp = P(sum)>>
!dw = tensor<5x2x3x3xf64, #mtp.layout<@mesh, tp = S(0), dp = P(sum)>>
!xi = tensor<3x2x6x6xf64, #mtp.layout<@mesh, dp = S(0)>>
!wi = tensor<5x2x3x3xf64, #mtp.layout<@mesh, tp = S(0)>>
func.func @patches_back(%x: !xi, %w: !wi, %g: !g) -> (!xi, !wi) {
  %x0 = mtp.copy_to %x ["tp"] : (!xi) -> !x
  %w0 = mtp.copy_to %w ["dp"] : (!wi) -> !w
  %0 = mtp.convolution_input_gradient %w0, %g {strides = array<i64: 3, 3>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (!w, !g) -> !dx
  %1 = mtp.convolution_filter_gradient %x0, %g {strides = array<i64: 3, 3>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (!x, !g) -> !dw
  %2 = mtp.reduce_from %0 ["tp"] : (!dx) -> !xi
  %3 = mtp.reduce_from %1 ["dp"] : (!dw) -> !wi
  return %2, %3 : !xi, !wi
}
