// Programs with layouts, run by ProgramTest.cpp on their mesh and on one rank.

// Three heads of four on two ranks: attention block with column and row cut.
mtp.mesh @mesh <tp = 2>
mtp.initializer @wq : tensor<12x12xf64> {file = "m", offset = 0 : i64, bytes = 1152 : i64, parameter}
mtp.initializer @wkey : tensor<12x12xf64> {file = "m", offset = 0 : i64, bytes = 1152 : i64, parameter}
mtp.initializer @wvalue : tensor<12x12xf64> {file = "m", offset = 0 : i64, bytes = 1152 : i64, parameter}
mtp.initializer @woutput : tensor<12x12xf64> {file = "m", offset = 0 : i64, bytes = 1152 : i64, parameter}
!x = tensor<2x5x12xf64, #mtp.layout<@mesh>>
!r = tensor<2x5x12xf64, #mtp.layout<@mesh, tp = R>>
!p = tensor<2x5x12xf64, #mtp.layout<@mesh, tp = P(sum)>>
!c = tensor<12x12xf64, #mtp.layout<@mesh, tp = S(1, unit 4)>>
!w = tensor<12x12xf64, #mtp.layout<@mesh, tp = S(0, unit 4)>>
!h = tensor<2x5x12xf64, #mtp.layout<@mesh, tp = S(2, unit 4)>>
!s = tensor<2x5x3x4xf64, #mtp.layout<@mesh, tp = S(2)>>
!t = tensor<2x3x5x4xf64, #mtp.layout<@mesh, tp = S(1)>>
!l = tensor<2x3x5xf64, #mtp.layout<@mesh, tp = S(1)>>
func.func @uneven_heads(%x: !x) -> !x {
  %f = mtp.copy_to %x ["tp"] : (!x) -> !r
  %wq = mtp.parameter @wq : !c
  %wk = mtp.parameter @wkey : !c
  %wv = mtp.parameter @wvalue : !c
  %wo = mtp.parameter @woutput : !w
  %q0 = mtp.matmul %f, %wq : (!r, !c) -> !h
  %q1 = mtp.reshape %q0 : (!h) -> !s
  %q = mtp.transpose %q1 [0, 2, 1, 3] : (!s) -> !t
  %k0 = mtp.matmul %f, %wk : (!r, !c) -> !h
  %k1 = mtp.reshape %k0 : (!h) -> !s
  %k = mtp.transpose %k1 [0, 2, 1, 3] : (!s) -> !t
  %v0 = mtp.matmul %f, %wv : (!r, !c) -> !h
  %v1 = mtp.reshape %v0 : (!h) -> !s
  %v = mtp.transpose %v1 [0, 2, 1, 3] : (!s) -> !t
  %a, %lse = mtp.attention %q, %k, %v {scale = 0.5 : f64, causal} : (!t, !t, !t) -> (!t, !l)
  %a1 = mtp.transpose %a [0, 2, 1, 3] : (!t) -> !s
  %a2 = mtp.reshape %a1 : (!s) -> !h
  %o = mtp.matmul %a2, %wo : (!h, !w) -> !p
  %y = mtp.reduce_from %o ["tp"] : (!p) -> !x
  return %y : !x
}

// -----

// Four features on three ranks: the last one has nothing but padding.
mtp.mesh @mesh <tp = 3>
mtp.initializer @w : tensor<6x4xf64> {file = "m", offset = 0 : i64, bytes = 192 : i64, parameter}
mtp.initializer @v : tensor<4x6xf64> {file = "m", offset = 0 : i64, bytes = 192 : i64, parameter}
!x = tensor<3x6xf64, #mtp.layout<@mesh>>
!r = tensor<3x6xf64, #mtp.layout<@mesh, tp = R>>
!p = tensor<3x6xf64, #mtp.layout<@mesh, tp = P(sum)>>
!h = tensor<3x4xf64, #mtp.layout<@mesh, tp = S(1)>>
!w = tensor<6x4xf64, #mtp.layout<@mesh, tp = S(1)>>
!v = tensor<4x6xf64, #mtp.layout<@mesh, tp = S(0)>>
func.func @a_rank_of_padding(%x: !x) -> !x {
  %f = mtp.copy_to %x ["tp"] : (!x) -> !r
  %w = mtp.parameter @w : !w
  %v = mtp.parameter @v : !v
  %0 = mtp.matmul %f, %w : (!r, !w) -> !h
  %1 = mtp.gelu %0 : (!h) -> !h
  %2 = mtp.matmul %1, %v : (!h, !v) -> !p
  %y = mtp.reduce_from %2 ["tp"] : (!p) -> !x
  return %y : !x
}

// -----

// Batch of two on dp = 3, features of five on tp = 2.
mtp.mesh @mesh <dp = 3, tp = 2>
mtp.initializer @w : tensor<6x5xf64> {file = "m", offset = 0 : i64, bytes = 240 : i64, parameter}
!x = tensor<2x6xf64, #mtp.layout<@mesh, dp = S(0)>>
!r = tensor<2x6xf64, #mtp.layout<@mesh, dp = S(0), tp = R>>
!w0 = tensor<6x5xf64, #mtp.layout<@mesh, tp = S(1)>>
!w = tensor<6x5xf64, #mtp.layout<@mesh, tp = S(1), dp = R>>
!h = tensor<2x5xf64, #mtp.layout<@mesh, dp = S(0), tp = S(1)>>
!p = tensor<f64, #mtp.layout<@mesh, dp = P(sum), tp = P(sum)>>
!q = tensor<2xf64, #mtp.layout<@mesh, dp = S(0), tp = P(sum)>>
!z = tensor<2xf64, #mtp.layout<@mesh, dp = S(0)>>
!y = tensor<f64, #mtp.layout<@mesh>>
func.func @batch_and_features(%x: !x) -> (!y, !z, !h) {
  %f = mtp.copy_to %x ["tp"] : (!x) -> !r
  %w0 = mtp.parameter @w : !w0
  %w = mtp.copy_to %w0 ["dp"] : (!w0) -> !w
  %0 = mtp.matmul %f, %w : (!r, !w) -> !h
  %1 = mtp.exp %0 : (!h) -> !h
  %2 = mtp.reduce_sum %1 dims [0, 1] : (!h) -> !p
  %y = mtp.reduce_from %2 ["dp", "tp"] : (!p) -> !y
  %3 = mtp.reduce_sum %1 dims [1] : (!h) -> !q
  %z = mtp.reduce_from %3 ["tp"] : (!q) -> !z
  return %y, %z, %1 : !y, !z, !h
}

// -----

// Two key heads and four query heads on four ranks: tp.0 cuts the key heads.
mtp.mesh @mesh <tp = 2 x 2>
!q = tensor<1x4x6x8xf64, #mtp.layout<@mesh, tp = S(1)>>
!k = tensor<1x2x6x8xf64, #mtp.layout<@mesh, tp.0 = S(1), tp.1 = R>>
!i = tensor<1x2x6x8xf64, #mtp.layout<@mesh, tp.0 = S(1)>>
!l = tensor<1x4x6xf64, #mtp.layout<@mesh, tp = S(1)>>
func.func @grouped_query_heads(%q: !q, %k: !i, %v: !i) -> (!q, !l) {
  %k0 = mtp.copy_to %k ["tp.1"] : (!i) -> !k
  %v0 = mtp.copy_to %v ["tp.1"] : (!i) -> !k
  %a, %l = mtp.attention %q, %k0, %v0 {scale = 0.5 : f64} : (!q, !k, !k) -> (!q, !l)
  return %a, %l : !q, !l
}

// -----

// Queries cut by position: a causal block starts where its rank's block starts.
mtp.mesh @mesh <tp = 3>
!q = tensor<1x2x7x8xf64, #mtp.layout<@mesh, tp = S(2)>>
!k = tensor<1x2x7x8xf64, #mtp.layout<@mesh, tp = R>>
!i = tensor<1x2x7x8xf64, #mtp.layout<@mesh>>
!l = tensor<1x2x7xf64, #mtp.layout<@mesh, tp = S(2)>>
func.func @causal_blocks_of_queries(%q: !q, %k: !i, %v: !i) -> !q {
  %k0 = mtp.copy_to %k ["tp"] : (!i) -> !k
  %v0 = mtp.copy_to %v ["tp"] : (!i) -> !k
  %a, %l = mtp.attention %q, %k0, %v0 {scale = 0.5 : f64, causal} : (!q, !k, !k) -> (!q, !l)
  return %a : !q
}

// -----

// Products of two activations, the contracted dimension on two nested axes.
mtp.mesh @mesh <dp = 2, tp = 3>
!a = tensor<4x11xf64, #mtp.layout<@mesh, dp = S(1), tp = S(1)>>
!b = tensor<11x4xf64, #mtp.layout<@mesh, dp = S(0), tp = S(0)>>
!p = tensor<4x4xf64, #mtp.layout<@mesh, dp = P(sum), tp = P(sum)>>
!s = tensor<4x4xf64, #mtp.layout<@mesh, tp = S(0), dp = P(sum)>>
!t = tensor<4x4xf64, #mtp.layout<@mesh, tp = S(0), dp = S(0)>>
!u = tensor<4x4xf64, #mtp.layout<@mesh, tp = S(0), dp = S(1)>>
!y = tensor<4x4xf64, #mtp.layout<@mesh, dp = S(1), tp = R>>
func.func @nested_contraction(%a: !a, %b: !b) -> (!t, !y) {
  %0 = mtp.matmul %a, %b : (!a, !b) -> !p
  %1 = mtp.reduce_scatter %0 ["tp"] : (!p) -> !s
  %2 = mtp.reduce_scatter %1 ["dp"] : (!s) -> !t
  %3 = mtp.all_to_all %2 ["dp"] : (!t) -> !u
  %4 = mtp.all_gather %3 ["tp"] : (!u) -> !y
  return %2, %4 : !t, !y
}

// -----

// Inputs and constants that are returned as they are, one value returned twice.
mtp.mesh @mesh <tp = 2>
!x = tensor<3xf64, #mtp.layout<@mesh, tp = S(0)>>
func.func @returned_as_they_are(%x: !x) -> (!x, !x, !x, !x) {
  %c = mtp.constant dense<2.5> : tensor<3xf64> in !x
  %y = mtp.mul %x, %c : (!x, !x) -> !x
  return %x, %c, %y, %y : !x, !x, !x, !x
}

// -----

// Positions count on, whatever rank holds them.
mtp.mesh @mesh <dp = 2, tp = 2>
!i = tensor<7xi64, #mtp.layout<@mesh, tp = S(0), dp = S(0)>>
!s = tensor<i64, #mtp.layout<@mesh, dp = P(sum), tp = P(sum)>>
func.func @positions() -> (!i, tensor<i64, #mtp.layout<@mesh>>) {
  %i = mtp.iota dim 0 : !i
  %s = mtp.reduce_sum %i dims [0] : (!i) -> !s
  %r = mtp.reduce_from %s ["dp", "tp"] : (!s) -> tensor<i64, #mtp.layout<@mesh>>
  return %i, %r : !i, tensor<i64, #mtp.layout<@mesh>>
}

// -----

// A library product with bias and activation against kernels for both.
mtp.mesh @mesh <tp = 2>
mtp.initializer @w : tensor<6x10xf32> {file = "m", offset = 0 : i64, bytes = 240 : i64, parameter}
mtp.initializer @bias : tensor<10xf32> {file = "m", offset = 0 : i64, bytes = 40 : i64, parameter}
mtp.initializer @down : tensor<6x10xf32> {file = "m", offset = 0 : i64, bytes = 240 : i64, parameter}
!x = tensor<3x6xf32, #mtp.layout<@mesh>>
!r = tensor<3x6xf32, #mtp.layout<@mesh, tp = R>>
!p = tensor<3x6xf32, #mtp.layout<@mesh, tp = P(sum)>>
!h = tensor<3x10xf32, #mtp.layout<@mesh, tp = S(1)>>
!w = tensor<6x10xf32, #mtp.layout<@mesh, tp = S(1)>>
!b = tensor<10xf32, #mtp.layout<@mesh, tp = S(0)>>
func.func @bias_and_activation(%x: !x) -> !x {
  %f = mtp.copy_to %x ["tp"] : (!x) -> !r
  %w = mtp.parameter @w : !w
  %b = mtp.parameter @bias : !b
  %v = mtp.parameter @down : !w
  %0 = mtp.matmul %f, %w : (!r, !w) -> !h
  %1 = mtp.add %0, %b : (!h, !b) -> !h
  %2 = mtp.gelu %1 : (!h) -> !h
  %3 = mtp.matmul %2, %v {transpose_rhs} : (!h, !w) -> !p
  %y = mtp.reduce_from %3 ["tp"] : (!p) -> !x
  return %y : !x
}

// -----

// A product of rows that divide, with a sum in parts that something reads.
mtp.mesh @mesh <tp = 2>
mtp.initializer @wide : tensor<64x32xf64> {file = "m", offset = 0 : i64, bytes = 16384 : i64, parameter}
!x = tensor<2x8x64xf64, #mtp.layout<@mesh>>
!h = tensor<2x8x64xf64, #mtp.layout<@mesh, tp = S(2)>>
!v = tensor<64x32xf64, #mtp.layout<@mesh, tp = S(0)>>
!p = tensor<2x8x32xf64, #mtp.layout<@mesh, tp = P(sum)>>
!y = tensor<2x8x32xf64, #mtp.layout<@mesh>>
func.func @row_parallel_in_parts(%x: !x) -> !y {
  %0 = mtp.scatter_to %x ["tp"] : (!x) -> !h
  %v = mtp.parameter @wide : !v
  %1 = mtp.matmul %0, %v : (!h, !v) -> !p
  %2 = mtp.reduce_from %1 ["tp"] : (!p) -> !y
  %3 = mtp.neg %2 : (!y) -> !y
  return %3 : !y
}
