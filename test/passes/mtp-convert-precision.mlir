// RUN: mtp-opt %s --mtp-convert-precision=precision=bf16 | FileCheck %s --check-prefix=BF16
// RUN: mtp-opt %s --mtp-convert-precision=precision=f64 | FileCheck %s --check-prefix=F64
// RUN: mtp-opt %s --mtp-convert-precision | FileCheck %s --check-prefix=F32
// RUN: mtp-opt %s --mtp-convert-precision=master-weights | FileCheck %s --check-prefix=MASTER
// RUN: %exits 1 mtp-opt %s --mtp-convert-precision=precision=f8 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: error: precision 'f8' is none of f32, f64, bf16, f16

mtp.initializer @w : tensor<64x64xf32> {file = "model.onnx", offset = 0 : i64, bytes = 16384 : i64, parameter}

// BF16-LABEL: func.func @operands_of_products
// BF16-NEXT: %[[X:.*]] = mtp.convert %arg0 : (tensor<8x64xf32>) -> tensor<8x64xbf16>
// BF16-NEXT: %[[W:.*]] = mtp.parameter @w : tensor<64x64xbf16>
// BF16-NEXT: %[[Y:.*]] = mtp.matmul %[[X]], %[[W]] : (tensor<8x64xbf16>, tensor<64x64xbf16>) -> tensor<8x64xf32>
// BF16-NEXT: %[[R:.*]] = mtp.convert %[[Y]] : (tensor<8x64xf32>) -> tensor<8x64xbf16>
// BF16-NEXT: %[[Z:.*]] = mtp.matmul %[[R]], %[[W]]
// BF16-NEXT: constant
// BF16-NEXT: mtp.add %[[Z]], %{{.*}} : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
// BF16-NEXT: return

// F64-LABEL: func.func @operands_of_products(%arg0: tensor<8x64xf64>) -> tensor<8x64xf64>
// F64-NEXT: mtp.parameter @w : tensor<64x64xf64>
// F64-NEXT: mtp.matmul
// F64-NEXT: mtp.matmul
// F64-NEXT: mtp.constant dense<5.000000e-01> : tensor<f64>
// F64-NEXT: mtp.add {{.*}} -> tensor<8x64xf64>
// F64-NEXT: return

// F32-LABEL: func.func @operands_of_products
// F32-NOT: convert
func.func @operands_of_products(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %w = mtp.parameter @w : tensor<64x64xf32>
  %y = mtp.matmul %x, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %z = mtp.matmul %y, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %c = mtp.constant dense<0.5> : tensor<f32>
  %s = mtp.add %z, %c : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x64xf32>
  return %s : tensor<8x64xf32>
}

// Training a model of 16 bits.
// MASTER-LABEL: func.func @sixteen_bits(%arg0: tensor<4xf32>, %arg1: tensor<4xi64>) -> tensor<4xf32>
// MASTER-NEXT: %[[H:.*]] = mtp.parameter @h : tensor<4xf32>
// MASTER-NEXT: %[[C:.*]] = mtp.constant dense<5.000000e-01> : tensor<f32>
// MASTER-NEXT: %[[S:.*]] = mtp.add %arg0, %[[H]] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// MASTER-NEXT: mtp.add %[[S]], %[[C]]
mtp.initializer @h : tensor<4xf16> {file = "model.onnx", offset = 16384 : i64, bytes = 8 : i64, parameter}
func.func @sixteen_bits(%x: tensor<4xf16>, %i: tensor<4xi64>) -> tensor<4xf16> {
  %h = mtp.parameter @h : tensor<4xf16>
  %c = mtp.constant dense<0.5> : tensor<f16>
  %s = mtp.add %x, %h : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  %y = mtp.add %s, %c : (tensor<4xf16>, tensor<f16>) -> tensor<4xf16>
  return %y : tensor<4xf16>
}
