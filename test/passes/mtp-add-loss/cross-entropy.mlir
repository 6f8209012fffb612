// RUN: mtp-opt %s --mtp-add-loss="loss=cross_entropy:logits=logits,labels=labels" | FileCheck %s
// RUN: mtp-opt %s --mtp-add-loss="loss=cross_entropy:logits=logits,labels=labels,ignore_index=7,label_smoothing=0.25 label-type=i32" | FileCheck %s --check-prefix=SMOOTH
// RUN: mtp-opt %s --mtp-add-loss="loss=cross_entropy:logits=logits,labels=labels keep-outputs=true loss-scale=true input-gradients=x" | FileCheck %s --check-prefix=KEEP

// The label's logit and the sum of exponentials are reductions of a number a
// row; no class is looked up or moved.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32> {mtp.name = "x"}, %[[LABELS:.*]]: tensor<2x3xi64> {mtp.name = "labels"}, %[[COUNT:.*]]: tensor<f32> {mtp.name = "mtp.label_count"}) -> (tensor<f32> {mtp.loss, mtp.name = "mtp.loss"})
// CHECK: %[[Y:.*]] = mtp.matmul
// CHECK-NEXT: %[[FREE:.*]] = mtp.stop_gradient %[[Y]]
// CHECK-NEXT: %[[TOP:.*]] = mtp.reduce_max %[[FREE]] dims [2] {keep}
// CHECK-NEXT: %[[MAX:.*]] = mtp.stop_gradient %[[TOP]]
// CHECK-NEXT: %[[SHIFTED:.*]] = mtp.sub %[[Y]], %[[MAX]]
// CHECK-NEXT: %[[EXP:.*]] = mtp.exp %[[SHIFTED]]
// CHECK-NEXT: %[[SUM:.*]] = mtp.reduce_sum %[[EXP]] dims [2]
// CHECK-NEXT: %[[LOG:.*]] = mtp.log %[[SUM]]
// CHECK-NEXT: %[[CLASS:.*]] = mtp.iota dim 0 : tensor<8xi64>
// CHECK-NEXT: %[[COLUMN:.*]] = mtp.reshape %[[LABELS]] : (tensor<2x3xi64>) -> tensor<2x3x1xi64>
// CHECK-NEXT: %[[IS:.*]] = mtp.compare eq %[[COLUMN]], %[[CLASS]]
// CHECK-NEXT: %[[ZERO:.*]] = mtp.constant dense<0.0
// CHECK-NEXT: %[[ONLY:.*]] = mtp.select %[[IS]], %[[SHIFTED]], %[[ZERO]]
// CHECK-NEXT: %[[PICKED:.*]] = mtp.reduce_sum %[[ONLY]] dims [2]
// CHECK-NEXT: %[[ROW:.*]] = mtp.sub %[[LOG]], %[[PICKED]]
// CHECK-NEXT: %[[IGNORED:.*]] = mtp.constant dense<-100>
// CHECK-NEXT: %[[COUNTS:.*]] = mtp.compare ne %[[LABELS]], %[[IGNORED]]
// CHECK-NEXT: %[[ROWS:.*]] = mtp.select %[[COUNTS]], %[[ROW]], %[[ZERO]]
// CHECK-NEXT: %[[ALL:.*]] = mtp.reduce_sum %[[ROWS]] dims [0, 1]
// CHECK-NEXT: %[[N:.*]] = mtp.stop_gradient %[[COUNT]]
// CHECK-NEXT: %[[ONE:.*]] = mtp.reciprocal %[[N]]
// CHECK-NEXT: %[[LOSS:.*]] = mtp.mul %[[ALL]], %[[ONE]]
// CHECK-NEXT: return %[[LOSS]] : tensor<f32>

// SMOOTH: tensor<2x3xi32> {mtp.name = "labels"}
// SMOOTH: %[[SHIFTED:.*]] = mtp.sub
// SMOOTH: %[[LOG:.*]] = mtp.log
// SMOOTH: %[[ROW:.*]] = mtp.sub %[[LOG]]
// SMOOTH-NEXT: %[[TOTAL:.*]] = mtp.reduce_sum %[[SHIFTED]] dims [2]
// SMOOTH-NEXT: %[[EIGHTH:.*]] = mtp.constant dense<1.250000e-01>
// SMOOTH-NEXT: %[[MEAN:.*]] = mtp.mul %[[TOTAL]], %[[EIGHTH]]
// SMOOTH-NEXT: %[[UNIFORM:.*]] = mtp.sub %[[LOG]], %[[MEAN]]
// SMOOTH-NEXT: %[[A:.*]] = mtp.constant dense<7.500000e-01>
// SMOOTH-NEXT: %[[PART:.*]] = mtp.mul %[[ROW]], %[[A]]
// SMOOTH-NEXT: %[[B:.*]] = mtp.constant dense<2.500000e-01>
// SMOOTH-NEXT: %[[REST:.*]] = mtp.mul %[[UNIFORM]], %[[B]]
// SMOOTH-NEXT: mtp.add %[[PART]], %[[REST]]
// SMOOTH: mtp.constant dense<7> : tensor<i32>

// The scaled loss is differentiated, the loss itself is told.
// KEEP: "x", mtp.wants_gradient}
// KEEP-SAME: -> (tensor<f32> {mtp.loss, mtp.name = "mtp.scaled_loss"}, tensor<f32> {mtp.name = "mtp.loss"}, tensor<2x3x8xf32> {mtp.name = "logits"})
mtp.initializer @w : tensor<4x8xf32> {file = "w.bin", offset = 0 : i64, bytes = 128 : i64}
func.func @main(%x: tensor<2x3x4xf32> {mtp.name = "x"}) -> (tensor<2x3x8xf32> {mtp.name = "logits"}) {
  %w = mtp.parameter @w : tensor<4x8xf32>
  %y = mtp.matmul %x, %w : (tensor<2x3x4xf32>, tensor<4x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}
