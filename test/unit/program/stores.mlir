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
