// Pins by attribute and by name.
// RUN: mtp-opt %s --mtp-apply-plan="mesh=tp=2" --split-input-file --verify-diagnostics | FileCheck %s
// RUN: not mtp-opt %s --mtp-apply-plan="mesh=tp=2 pin=h.*.wieght=tp=S(0)" --split-input-file 2>&1 | FileCheck %s --check-prefix=NEAR
// RUN: not mtp-opt %s --mtp-apply-plan="mesh=tp=2 pin=[=tp=R" --split-input-file 2>&1 | FileCheck %s --check-prefix=GLOB

// NEAR: error: pin: no value is named 'h.*.wieght'; near to it are 'h.0.weight', 'h.1.weight',
// GLOB: error: pin: '[' is not a pattern

// The result of an op, and the storage of a parameter: what the objective would not do.
// CHECK-LABEL: func.func @main
// CHECK: mtp.parameter @h.0.weight : tensor<8x8xf32, #mtp.layout<@mesh, tp = S(0)>>
// CHECK: mtp.matmul {{.*}} -> tensor<4x8xf32, #mtp.layout<@mesh, tp = P(sum)>>
// CHECK-NOT: mtp.pin
mtp.initializer @h.0.weight : tensor<8x8xf32> {file = "m", offset = 0 : i64, bytes = 256 : i64, parameter}
mtp.initializer @h.1.weight : tensor<8x8xf32> {file = "m", offset = 0 : i64, bytes = 256 : i64, parameter}
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %v = mtp.parameter @h.0.weight {mtp.pin = "tp = S(0)"} : tensor<8x8xf32>
  %w = mtp.parameter @h.1.weight : tensor<8x8xf32>
  %0 = mtp.matmul %x, %v {mtp.pin = "tp = P(sum)"} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = mtp.matmul %0, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{mtp.pin: the mesh has no axis 'dp'}}
  %0 = mtp.gelu %x {mtp.pin = "dp = S(0)"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{mtp.pin of 'gelu' is to be the text of a layout, one for each of its 1 results}}
  %0 = mtp.gelu %x {mtp.pin = ["tp = R", ""]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// What an op cannot have is refused with what it can have.
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{mtp.pin: 'gelu' cannot have the layout <tp = P(max)>; it can have <>, <tp = R>}}
  %0 = mtp.gelu %x {mtp.pin = "tp = P(max)"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{mtp.plan: the layouts of 'gelu' are not a case of the sharding rule of mtp.gelu}}
  %0 = mtp.gelu %x {mtp.plan = {operands = ["tp = R"], results = ["tp = S(0)"]}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{mtp.plan of 'gelu' needs 1 operands}}
  %0 = mtp.gelu %x {mtp.plan = {results = [""]}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// expected-error @+1 {{mtp.plan: 'x' is stored invariant or sharded only, not <tp = R>}}
func.func @main(%x: tensor<4x8xf32> {mtp.name = "x", mtp.plan = {results = ["tp = R"]}}) -> tensor<4x8xf32> {
  %0 = mtp.gelu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
