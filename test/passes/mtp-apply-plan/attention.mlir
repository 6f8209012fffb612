// RUN: mtp-opt %s --mtp-apply-plan="mesh=tp=2" | FileCheck %s --check-prefix=EVEN
// RUN: mtp-opt %s --mtp-apply-plan="mesh=tp=3" | FileCheck %s --check-prefix=UNITS
// RUN: mtp-opt %s --mtp-apply-plan="mesh=tp=4" | FileCheck %s --check-prefix=REFINED

mtp.initializer @q : tensor<64x64xf32> {file = "m", offset = 0 : i64, bytes = 16384 : i64, parameter}
mtp.initializer @k : tensor<64x32xf32> {file = "m", offset = 0 : i64, bytes = 8192 : i64, parameter}
mtp.initializer @v : tensor<64x32xf32> {file = "m", offset = 0 : i64, bytes = 8192 : i64, parameter}
mtp.initializer @o : tensor<64x64xf32> {file = "m", offset = 0 : i64, bytes = 16384 : i64, parameter}

// One copy_to serves query, key and value; heads stay split through reshape and
// transpose; the second product is split by rows.
// EVEN: mtp.parameter @q : tensor<64x64xf32, #mtp.layout<@mesh, tp = S(1)>>
// EVEN: mtp.parameter @k : tensor<64x32xf32, #mtp.layout<@mesh, tp = S(1)>>
// EVEN: mtp.parameter @o : tensor<64x64xf32, #mtp.layout<@mesh, tp = S(0)>>
// EVEN: mtp.copy_to
// EVEN-NOT: mtp.copy_to
// EVEN: mtp.attention {{.*}} -> (tensor<2x4x12x16xf32, #mtp.layout<@mesh, tp = S(1)>>
// EVEN: mtp.reduce_from
// EVEN-NOT: mtp.reduce_from

// Heads on three ranks: blocks are heads, the last rank has padding.
// UNITS: mtp.parameter @q : tensor<64x64xf32, #mtp.layout<@mesh, tp = S(1, unit 16)>>
// UNITS: mtp.parameter @k : tensor<64x32xf32, #mtp.layout<@mesh, tp = S(1, unit 16)>>
// UNITS: mtp.attention {{.*}} -> (tensor<2x4x12x16xf32, #mtp.layout<@mesh, tp = S(1)>>

// Two key heads on four ranks: tp in two parts, key heads on the first.
// REFINED: mtp.mesh @mesh <tp = 2 x 2>
// REFINED: mtp.parameter @q : tensor<64x64xf32, #mtp.layout<@mesh, tp = S(1)>>
// REFINED: mtp.parameter @k : tensor<64x32xf32, #mtp.layout<@mesh, tp.0 = S(1)>>
// REFINED: mtp.attention {{.*}}tensor<2x2x12x16xf32, #mtp.layout<@mesh, tp.0 = S(1), tp.1 = R>>{{.*}} -> (tensor<2x4x12x16xf32, #mtp.layout<@mesh, tp = S(1)>>
// REFINED: mtp.reduce_from %{{.*}} ["tp"]
func.func @main(%x: tensor<2x12x64xf32> {mtp.dim_names = ["", "sequence", ""]}) -> tensor<2x12x64xf32> {
  %q = mtp.parameter @q : tensor<64x64xf32>
  %k = mtp.parameter @k : tensor<64x32xf32>
  %v = mtp.parameter @v : tensor<64x32xf32>
  %o = mtp.parameter @o : tensor<64x64xf32>
  %0 = mtp.matmul %x, %q : (tensor<2x12x64xf32>, tensor<64x64xf32>) -> tensor<2x12x64xf32>
  %1 = mtp.matmul %x, %k : (tensor<2x12x64xf32>, tensor<64x32xf32>) -> tensor<2x12x32xf32>
  %2 = mtp.matmul %x, %v : (tensor<2x12x64xf32>, tensor<64x32xf32>) -> tensor<2x12x32xf32>
  %3 = mtp.reshape %0 : (tensor<2x12x64xf32>) -> tensor<2x12x4x16xf32>
  %4 = mtp.reshape %1 : (tensor<2x12x32xf32>) -> tensor<2x12x2x16xf32>
  %5 = mtp.reshape %2 : (tensor<2x12x32xf32>) -> tensor<2x12x2x16xf32>
  %6 = mtp.transpose %3 [0, 2, 1, 3] : (tensor<2x12x4x16xf32>) -> tensor<2x4x12x16xf32>
  %7 = mtp.transpose %4 [0, 2, 1, 3] : (tensor<2x12x2x16xf32>) -> tensor<2x2x12x16xf32>
  %8 = mtp.transpose %5 [0, 2, 1, 3] : (tensor<2x12x2x16xf32>) -> tensor<2x2x12x16xf32>
  %9, %10 = mtp.attention %6, %7, %8 {scale = 0.25 : f64, causal} : (tensor<2x4x12x16xf32>, tensor<2x2x12x16xf32>, tensor<2x2x12x16xf32>) -> (tensor<2x4x12x16xf32>, tensor<2x4x12xf32>)
  %11 = mtp.transpose %9 [0, 2, 1, 3] : (tensor<2x4x12x16xf32>) -> tensor<2x12x4x16xf32>
  %12 = mtp.reshape %11 : (tensor<2x12x4x16xf32>) -> tensor<2x12x64xf32>
  %13 = mtp.matmul %12, %o : (tensor<2x12x64xf32>, tensor<64x64xf32>) -> tensor<2x12x64xf32>
  return %13 : tensor<2x12x64xf32>
}
