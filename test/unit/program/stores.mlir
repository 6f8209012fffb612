// Programs that store, run by ProgramTest.cpp on their mesh and on one rank.

// A step of descent with momentum, columns of five on two ranks, rows on dp.
mtp.mesh @mesh <dp = 2, tp = 2>
mtp.initializer @w : tensor<6x5xf64> {file = "m", offset = 0 : i64, bytes = 240 : i64, parameter}
!x = tensor<4x6xf64, #mtp.layout<@mesh, dp = S(0)>>
!f = tensor<4x6xf64, #mtp.layout<@mesh, dp = S(0), tp = R>>
!w = tensor<6x5xf64, #mtp.layout<@mesh, tp = S(1)>>
!wr = tensor<6x5xf64, #mtp.layout<@mesh, tp = S(1), dp = R>>
!h = tensor<4x5xf64, #mtp.layout<@mesh, dp = S(0), tp = S(1)>>
!g = tensor<6x5xf64, #mtp.layout<@mesh, tp = S(1), dp = P(sum)>>
!s = tensor<f64, #mtp.layout<@mesh>>
func.func @momentum(%x: !x) {
  %f = mtp.copy_to %x ["tp"] : (!x) -> !f
  %w = mtp.parameter @w : !w
  %wr = mtp.copy_to %w ["dp"] : (!w) -> !wr
  %m = mtp.state "momentum" of @w : !w
  %0 = mtp.matmul %f, %wr : (!f, !wr) -> !h
  %1 = mtp.weight_gradient %f, %0 : (!f, !h) -> !g
  %2 = mtp.reduce_from %1 ["dp"] : (!g) -> !w
  %c = mtp.constant dense<0.9> : tensor<f64> in !s
  %r = mtp.constant dense<0.05> : tensor<f64> in !s
  %cr = mtp.copy_to %c ["tp"] : (!s) -> tensor<f64, #mtp.layout<@mesh, tp = R>>
  %rr = mtp.copy_to %r ["tp"] : (!s) -> tensor<f64, #mtp.layout<@mesh, tp = R>>
  %3 = mtp.mul %m, %cr : (!w, tensor<f64, #mtp.layout<@mesh, tp = R>>) -> !w
  %4 = mtp.add %3, %2 : (!w, !w) -> !w
  mtp.store %4 to %m : !w, !w
  %5 = mtp.mul %4, %rr : (!w, tensor<f64, #mtp.layout<@mesh, tp = R>>) -> !w
  %6 = mtp.sub %w, %5 : (!w, !w) -> !w
  mtp.store %6 to %w : !w, !w
  return
}

// -----

// Parameters that change places, one that is returned, one that moves rows.
mtp.mesh @mesh <tp = 2>
mtp.initializer @a : tensor<4x5xf64> {file = "m", offset = 0 : i64, bytes = 160 : i64, parameter}
mtp.initializer @bb : tensor<4x5xf64> {file = "m", offset = 0 : i64, bytes = 160 : i64, parameter}
mtp.initializer @ccc : tensor<5x5xf64> {file = "m", offset = 0 : i64, bytes = 200 : i64, parameter}
!w = tensor<4x5xf64, #mtp.layout<@mesh, tp = S(1)>>
!c = tensor<5x5xf64, #mtp.layout<@mesh>>
func.func @change_places() -> (!w, !c) {
  %a = mtp.parameter @a : !w
  %b = mtp.parameter @bb : !w
  %c = mtp.parameter @ccc : !c
  %t = mtp.transpose %c [1, 0] : (!c) -> !c
  %d = mtp.add %t, %c : (!c, !c) -> !c
  mtp.store %a to %b : !w, !w
  mtp.store %b to %a : !w, !w
  mtp.store %d to %c : !c, !c
  return %a, %d : !w, !c
}

// -----

// Two functions: one adds to a partial accumulator, one uses and clears it.
mtp.mesh @mesh <dp = 3>
mtp.initializer @w : tensor<6x5xf64> {file = "m", offset = 0 : i64, bytes = 240 : i64, parameter}
!x = tensor<4x6xf64, #mtp.layout<@mesh, dp = S(0)>>
!w = tensor<6x5xf64, #mtp.layout<@mesh>>
!wr = tensor<6x5xf64, #mtp.layout<@mesh, dp = R>>
!h = tensor<4x5xf64, #mtp.layout<@mesh, dp = S(0)>>
!g = tensor<6x5xf64, #mtp.layout<@mesh, dp = P(sum)>>
!l = tensor<f64, #mtp.layout<@mesh>>
func.func @main(%x: !x) -> !l {
  %w = mtp.parameter @w recipe [#mtp.step<"slice", [0, 0, 6]>] : !w
  %wr = mtp.copy_to %w ["dp"] : (!w) -> !wr
  %0 = mtp.matmul %x, %wr : (!x, !wr) -> !h
  %1 = mtp.weight_gradient %x, %0 : (!x, !h) -> !g
  %a = mtp.state "gradient" of @w : !g
  %2 = mtp.add %a, %1 : (!g, !g) -> !g
  mtp.store %2 to %a : !g, !g
  %3 = mtp.reduce_sum %0 dims [0, 1] : (!h) -> tensor<f64, #mtp.layout<@mesh, dp = P(sum)>>
  %4 = mtp.reduce_from %3 ["dp"] : (tensor<f64, #mtp.layout<@mesh, dp = P(sum)>>) -> !l
  return %4 : !l
}
func.func @update() {
  %w = mtp.parameter @w recipe [#mtp.step<"slice", [0, 0, 6]>] : !w
  %a = mtp.state "gradient" of @w : !g
  %0 = mtp.reduce_from %a ["dp"] : (!g) -> !w
  %1 = mtp.sub %w, %0 : (!w, !w) -> !w
  mtp.store %1 to %w : !w, !w
  %z = mtp.constant dense<0.0> : tensor<6x5xf64> in !g
  mtp.store %z to %a : !g, !g
  return
}

// -----

// Gradients of one layer are summed over dp together: those of w, of its bias,
// and of a scale that is returned, too; the partial one of u first over tp.
mtp.mesh @mesh <dp = 3, tp = 2>
mtp.initializer @w : tensor<6x5xf64> {file = "m", offset = 0 : i64, bytes = 240 : i64, parameter}
mtp.initializer @bias : tensor<5xf64> {file = "m", offset = 0 : i64, bytes = 40 : i64, parameter}
mtp.initializer @scale : tensor<6xf64> {file = "m", offset = 0 : i64, bytes = 48 : i64, parameter}
mtp.initializer @upper : tensor<6x6xf64> {file = "m", offset = 0 : i64, bytes = 288 : i64, parameter}
!x = tensor<7x6xf64, #mtp.layout<@mesh, dp = S(0)>>
!y = tensor<7x5xf64, #mtp.layout<@mesh, dp = S(0)>>
!w = tensor<6x5xf64, #mtp.layout<@mesh>>
!b = tensor<5xf64, #mtp.layout<@mesh>>
!s = tensor<6xf64, #mtp.layout<@mesh>>
!u = tensor<6x6xf64, #mtp.layout<@mesh>>
!gw = tensor<6x5xf64, #mtp.layout<@mesh, dp = P(sum)>>
!gb = tensor<5xf64, #mtp.layout<@mesh, dp = P(sum)>>
!gs = tensor<6xf64, #mtp.layout<@mesh, dp = P(sum)>>
!gu = tensor<6x6xf64, #mtp.layout<@mesh, dp = P(sum)>>
!xt = tensor<7x6xf64, #mtp.layout<@mesh, dp = S(0), tp = S(1)>>
!gt = tensor<6x6xf64, #mtp.layout<@mesh, dp = P(sum), tp = P(sum)>>
func.func @sums_taken_together(%x: !x, %y: !y) -> (!s, !x) {
  %w = mtp.parameter @w : !w
  %b = mtp.parameter @bias : !b
  %s = mtp.parameter @scale : !s
  %u = mtp.parameter @upper : !u
  %0 = mtp.weight_gradient %x, %y : (!x, !y) -> !gw
  %1 = mtp.reduce_from %0 ["dp"] {phase = "backward"} : (!gw) -> !w
  %2 = mtp.reduce_sum %y dims [0] : (!y) -> !gb
  %3 = mtp.reduce_from %2 ["dp"] {phase = "backward"} : (!gb) -> !b
  %4 = mtp.mul %x, %x : (!x, !x) -> !x
  %5 = mtp.reduce_sum %4 dims [0] : (!x) -> !gs
  %6 = mtp.reduce_from %5 ["dp"] {phase = "backward"} : (!gs) -> !s
  %7 = mtp.reduce_sum %4 dims [0] {keep} : (!x) -> tensor<1x6xf64, #mtp.layout<@mesh, dp = P(sum)>>
  %8 = mtp.broadcast %7 : (tensor<1x6xf64, #mtp.layout<@mesh, dp = P(sum)>>) -> !gu
  %9 = mtp.root_to %8 ["tp"] : (!gu) -> !gt
  %10 = mtp.reduce_from %9 ["tp"] {phase = "backward"} : (!gt) -> !gu
  %11 = mtp.reduce_from %10 ["dp"] {phase = "backward"} : (!gu) -> !u
  %12 = mtp.sub %w, %1 : (!w, !w) -> !w
  mtp.store %12 to %w : !w, !w
  %13 = mtp.sub %b, %3 : (!b, !b) -> !b
  mtp.store %13 to %b : !b, !b
  %14 = mtp.sub %s, %6 : (!s, !s) -> !s
  mtp.store %14 to %s : !s, !s
  %15 = mtp.sub %u, %11 : (!u, !u) -> !u
  mtp.store %15 to %u : !u, !u
  return %6, %4 : !s, !x
}
