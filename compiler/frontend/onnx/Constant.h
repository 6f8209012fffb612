// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Constant.h - a tensor value known at import ------------------------===//
//
// Integers and booleans are held as int64, floats as double and rounded to
// their type after each step, so that folding gives the bits that the operators
// would give. A splat holds one element for all.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_FRONTEND_ONNX_CONSTANT_H
#define MTP_COMPILER_FRONTEND_ONNX_CONSTANT_H

#include "compiler/frontend/onnx/Model.h"
#include "runtime/support/Checked.h"

namespace mtp::onnx {

struct Constant {
  DType type = DType::I64;
  Shape shape;
  bool splat = false;
  std::vector<int64_t> ints;  ///< integer and boolean types
  std::vector<double> floats; ///< float types

  int64_t elements() const { return elementCount(shape); }
  bool holdsFloats() const { return isFloat(type); }
  int64_t intAt(int64_t i) const { return ints[splat ? 0 : i]; }
  double floatAt(int64_t i) const { return floats[splat ? 0 : i]; }
  /// Element `i` as a double, whatever the type.
  double numberAt(int64_t i) const {
    return holdsFloats() ? floatAt(i) : static_cast<double>(intAt(i));
  }
  /// Reserves the storage: one element if splat.
  void resize() {
    size_t n = static_cast<size_t>(splat ? 1 : elements());
    holdsFloats() ? floats.resize(n) : ints.resize(n);
  }
  /// Rounds floats and wraps integers to `type`.
  void normalize();
};

/// An int64 vector, or a scalar.
Constant vectorOf(std::vector<int64_t> values);
Constant scalarOf(DType type, double value);

/// The elements of a tensor in the file, as type `type` (differs from the
/// tensor's only between floats).
Constant load(const Tensor &tensor, DType type);

/// The value in another type, as ONNX Cast does: float to integer truncates,
/// anything but zero is true.
Constant convert(const Constant &value, DType type);

/// Rounds to the nearest value of a float type, ties to even.
double roundTo(double value, DType type);

/// Bytes of the elements, little-endian, splats written out.
std::string bytesOf(const Constant &value);

} // namespace mtp::onnx

#endif // MTP_COMPILER_FRONTEND_ONNX_CONSTANT_H
