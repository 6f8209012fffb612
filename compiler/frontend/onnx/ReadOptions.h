// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ReadOptions.h - what decides shapes and types ----------------------===//
#ifndef MTP_COMPILER_FRONTEND_ONNX_READOPTIONS_H
#define MTP_COMPILER_FRONTEND_ONNX_READOPTIONS_H

#include "compiler/frontend/onnx/Model.h"

#include <map>
#include <string>

namespace mtp::onnx {

struct ReadOptions {
  std::map<std::string, int64_t> dims; ///< symbol (or "input[axis]") to number
  struct Given {
    DType type = DType::F32;
    Shape shape;
  };
  std::map<std::string, Given> inputs; ///< bind dimensions where `dims` doesn't
  /// `inputs` are of so many micro-batches: where dimension 0 has `batch` rows,
  /// each has its part of them. An input that declares all of the rows is not
  /// cut.
  int64_t microBatches = 1, batch = 0;
  bool defaultDims = false;     ///< unbound: batch 1, others 16, with a warning
  bool doublePrecision = false; ///< every float becomes f64
  bool keepDropout = false;     ///< mtp.dropout instead of the identity
};

} // namespace mtp::onnx

#endif // MTP_COMPILER_FRONTEND_ONNX_READOPTIONS_H
