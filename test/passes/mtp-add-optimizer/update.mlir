// RUN: mtp-opt %s --mtp-add-optimizer="optimizer=sgd momentum=0.5 clip-norm=2" | FileCheck %s --check-prefix=SGD
// RUN: mtp-opt %s --mtp-add-optimizer="weight-decay=0.01" | FileCheck %s --check-prefix=ADAM
// RUN: mtp-opt %s --mtp-add-optimizer="optimizer=sgd zero=1" | FileCheck %s --check-prefix=ONE
// RUN: mtp-opt %s --mtp-add-optimizer="optimizer=sgd zero=2 keep-gradients=true" | FileCheck %s --check-prefix=TWO
// RUN: mtp-opt %s --mtp-add-optimizer="optimizer=sgd accumulate=4" | FileCheck %s --check-prefix=MICRO
// RUN: mtp-opt %s --mtp-add-optimizer="optimizer=sgd loss-scale=true" | FileCheck %s --check-prefix=SCALE
// RUN: not mtp-opt %s --mtp-add-optimizer="optimizer=lion" 2>&1 | FileCheck %s --check-prefix=NAME

// NAME: error: the optimizer is sgd or adamw, not 'lion'

// The norm: w is cut by tp, b is whole; both count once, in one reduction.
// SGD-LABEL: func.func @main
// SGD-SAME: %[[RATE:[a-z0-9]+]]: tensor<f32, #mtp.layout<@mesh>> {mtp.name = "mtp.learning_rate"}) -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss, mtp.name = "mtp.loss"}, tensor<f32, #mtp.layout<@mesh>> {mtp.name = "mtp.grad_norm"})
// SGD: %[[W:.*]] = mtp.parameter @w
// SGD: %[[B:.*]] = mtp.parameter @b
// SGD: %[[GW:.*]] = mtp.reduce_from %arg1 ["dp"] {phase = "backward"}
// SGD-NEXT: %[[WW:.*]] = mtp.mul %[[GW]], %[[GW]]
// SGD-NEXT: %[[SW:.*]] = mtp.reduce_sum %[[WW]] dims [0, 1] : {{.*}} -> tensor<f32, #mtp.layout<@mesh, tp = P(sum)>>
// SGD-NEXT: %[[BB:.*]] = mtp.mul %arg2, %arg2
// SGD-NEXT: %[[SB:.*]] = mtp.reduce_sum %[[BB]] dims [0] : {{.*}} -> tensor<f32, #mtp.layout<@mesh>>
// SGD-NEXT: %[[ROOT:.*]] = mtp.root_to %[[SB]] ["tp"] {phase = "update"}
// SGD-NEXT: %[[SUM:.*]] = mtp.add %[[ROOT]], %[[SW]]
// SGD-NEXT: %[[ALL:.*]] = mtp.reduce_from %[[SUM]] ["tp"] {phase = "update"}
// SGD-NEXT: %[[NORM:.*]] = mtp.sqrt %[[ALL]]
// SGD-NEXT: %[[FREE:.*]] = mtp.stop_gradient %[[NORM]]
// SGD-NEXT: %[[MOST:.*]] = mtp.constant dense<2.0
// SGD-NEXT: %[[TINY:.*]] = mtp.constant dense<9.99999997E-7>
// SGD-NEXT: %[[BELOW:.*]] = mtp.add %[[FREE]], %[[TINY]]
// SGD-NEXT: %[[RATIO:.*]] = mtp.div %[[MOST]], %[[BELOW]]
// SGD-NEXT: %[[ONES:.*]] = mtp.constant dense<1.0
// SGD-NEXT: %[[CLIP:.*]] = mtp.min %[[RATIO]], %[[ONES]]
// SGD-NEXT: %[[LR:.*]] = mtp.stop_gradient %[[RATE]]
// SGD-NEXT: %[[CLIPPED:.*]] = mtp.mul %[[GW]], %[[CLIP]]
// SGD-NEXT: %[[OLD:.*]] = mtp.state "momentum" of @w
// SGD-NEXT: %[[HALF:.*]] = mtp.constant dense<5.0
// SGD-NEXT: %[[KEPT:.*]] = mtp.mul %[[OLD]], %[[HALF]]
// SGD-NEXT: %[[NEW:.*]] = mtp.add %[[KEPT]], %[[CLIPPED]]
// SGD-NEXT: mtp.store %[[NEW]] to %[[OLD]]
// SGD-NEXT: %[[STEP:.*]] = mtp.mul %[[NEW]], %[[LR]]
// SGD-NEXT: %[[NEXT:.*]] = mtp.sub %[[W]], %[[STEP]]
// SGD-NEXT: mtp.store %[[NEXT]] to %[[W]]
// SGD: return %arg0, %[[NORM]]

// ADAM: %[[W:.*]] = mtp.parameter @w
// ADAM: %[[DECAY:.*]] = mtp.sub
// ADAM: %[[C1:.*]] = mtp.stop_gradient %{{.*}} : (tensor<f32, #mtp.layout<@mesh>>)
// ADAM: %[[RATE:.*]] = mtp.div %{{.*}}, %[[C1]]
// ADAM: %[[ROOT2:.*]] = mtp.sqrt
// ADAM: %[[M:.*]] = mtp.state "exp_avg" of @w
// ADAM: %[[V:.*]] = mtp.state "exp_avg_sq" of @w
// ADAM: mtp.store %[[M1:.*]] to %[[M]]
// ADAM-NEXT: mtp.store %[[V1:.*]] to %[[V]]
// ADAM-NEXT: %[[S:.*]] = mtp.sqrt %[[V1]]
// ADAM-NEXT: %[[R:.*]] = mtp.div %[[S]], %[[ROOT2]]
// ADAM-NEXT: %[[EPS:.*]] = mtp.constant dense<9.99999993E-9>
// ADAM-NEXT: %[[D:.*]] = mtp.add %[[R]], %[[EPS]]
// ADAM-NEXT: %[[Q:.*]] = mtp.div %[[M1]], %[[D]]
// ADAM-NEXT: %[[K:.*]] = mtp.mul %[[W]], %[[DECAY]]
// ADAM-NEXT: %[[U:.*]] = mtp.mul %[[Q]], %[[RATE]]
// ADAM-NEXT: %[[N:.*]] = mtp.sub %[[K]], %[[U]]
// ADAM-NEXT: mtp.store %[[N]] to %[[W]]

// Stage 1 reduces whole gradients and updates blocks, stage 2 scatters them.
// ONE: %[[W:.*]] = mtp.parameter @w
// ONE: %[[G:.*]] = mtp.reduce_from %arg1 ["dp"] {phase = "backward"}
// ONE: %[[WB:.*]] = mtp.scatter_to %[[W]] ["dp"] {phase = "update"}
// ONE-NEXT: %[[GB:.*]] = mtp.scatter_to %[[G]] ["dp"] {phase = "update"}
// ONE-NEXT: %[[STEP:.*]] = mtp.mul %[[GB]]
// ONE-NEXT: %[[NEW:.*]] = mtp.sub %[[WB]], %[[STEP]]
// ONE-NEXT: %[[ALL:.*]] = mtp.gather_from %[[NEW]] ["dp"] {phase = "update"}
// ONE-NEXT: mtp.store %[[ALL]] to %[[W]]

// TWO: %[[W:.*]] = mtp.parameter @w
// TWO: %[[G:.*]] = mtp.reduce_scatter %arg1 ["dp"] {phase = "backward"}
// TWO-NOT: mtp.reduce_from %arg1
// TWO: %[[WB:.*]] = mtp.scatter_to %[[W]] ["dp"]
// TWO-NEXT: %[[KEPT:.*]] = mtp.state "gradient" of @w
// TWO-NEXT: mtp.store %[[G]] to %[[KEPT]]

// Micro-batches add up partial gradients; they are reduced once, in @update.
// MICRO-LABEL: func.func @main
// MICRO-SAME: %[[NUMBER:[a-z0-9]+]]: tensor<i64, #mtp.layout<@mesh>> {mtp.name = "mtp.micro_batch"}
// MICRO-NOT: mtp.reduce_from
// MICRO: %[[FIRST:.*]] = mtp.compare eq %[[NUMBER]]
// MICRO: %[[OLD:.*]] = mtp.state "accumulator" of @w : tensor<8x4xf32, #mtp.layout<@mesh, tp = S(1), dp = P(sum)>>
// MICRO-NEXT: %[[SUM:.*]] = mtp.select %[[FIRST]], %{{.*}}, %[[OLD]]
// MICRO-NEXT: %[[ADDED:.*]] = mtp.add %[[SUM]], %arg1
// MICRO-NEXT: mtp.store %[[ADDED]] to %[[OLD]]
// MICRO-LABEL: func.func @update
// MICRO-SAME: -> (tensor<f32, #mtp.layout<@mesh>> {mtp.name = "mtp.grad_norm"})
// MICRO: %[[ACC:.*]] = mtp.state "accumulator" of @w
// MICRO-NEXT: mtp.reduce_from %[[ACC]] ["dp"]

// An overflow anywhere makes the norm infinite everywhere: nothing is stored.
// SCALE: %[[SCALE:.*]] = mtp.stop_gradient
// SCALE-NEXT: %[[BACK:.*]] = mtp.reciprocal %[[SCALE]]
// SCALE-NEXT: %[[NORM:.*]] = mtp.mul %{{.*}}, %[[BACK]]
// SCALE-NEXT: %[[NAN:.*]] = mtp.is_nan %[[NORM]]
// SCALE-NEXT: %[[INF:.*]] = mtp.is_inf %[[NORM]]
// SCALE-NEXT: %[[BAD:.*]] = mtp.or %[[NAN]], %[[INF]]
// SCALE-NEXT: %[[GOOD:.*]] = mtp.not %[[BAD]]
// SCALE: %[[SAFE:.*]] = mtp.select %[[GOOD]], %{{.*}}, %[[W:.*]] :
// SCALE-NEXT: mtp.store %[[SAFE]] to %[[W]]
mtp.mesh @mesh <dp = 2, tp = 2>
mtp.initializer @w : tensor<8x4xf32> {file = "w.bin", offset = 0 : i64, bytes = 128 : i64}
mtp.initializer @b : tensor<4xf32> {file = "w.bin", offset = 128 : i64, bytes = 16 : i64}
func.func @main(%loss: tensor<f32, #mtp.layout<@mesh>> {mtp.name = "l"}, %gw: tensor<8x4xf32, #mtp.layout<@mesh, tp = S(1), dp = P(sum)>> {mtp.name = "gw"}, %gb: tensor<4xf32, #mtp.layout<@mesh>> {mtp.name = "gb"})
    -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss, mtp.name = "mtp.loss"}, tensor<8x4xf32, #mtp.layout<@mesh, tp = S(1)>> {mtp.gradient_of = 0 : i64}, tensor<4xf32, #mtp.layout<@mesh>> {mtp.gradient_of = 1 : i64}) {
  %w = mtp.parameter @w {mtp.trainable = 0 : i64} : tensor<8x4xf32, #mtp.layout<@mesh, tp = S(1)>>
  %b = mtp.parameter @b {mtp.trainable = 1 : i64} : tensor<4xf32, #mtp.layout<@mesh>>
  %0 = mtp.reduce_from %gw ["dp"] {phase = "backward"} : (tensor<8x4xf32, #mtp.layout<@mesh, tp = S(1), dp = P(sum)>>) -> tensor<8x4xf32, #mtp.layout<@mesh, tp = S(1)>>
  return %loss, %0, %gb : tensor<f32, #mtp.layout<@mesh>>, tensor<8x4xf32, #mtp.layout<@mesh, tp = S(1)>>, tensor<4xf32, #mtp.layout<@mesh>>
}
