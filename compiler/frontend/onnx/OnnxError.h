// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OnnxError.h - what the ONNX front end reports ----------------------===//
#ifndef MTP_COMPILER_FRONTEND_ONNX_ONNXERROR_H
#define MTP_COMPILER_FRONTEND_ONNX_ONNXERROR_H

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mtp::onnx {

/// Why a model was not read. `kind` is "input" (the file, its data or the given
/// shapes are wrong), "usage" (a name that the model doesn't have) or
/// "unsupported" (a sound model that mtp doesn't compile yet).
struct OnnxError {
  std::string kind;
  std::string message;
  std::vector<std::string> nodes; ///< ONNX nodes it is about
  explicit operator bool() const { return !message.empty(); }
};

/// How errors travel inside the front end; no public function lets one out.
class OnnxFailure : public std::runtime_error {
public:
  explicit OnnxFailure(OnnxError error)
      : std::runtime_error(error.message), error(std::move(error)) {}
  OnnxError error;
};

[[noreturn]] inline void failInput(std::string message,
                                   std::vector<std::string> nodes = {}) {
  throw OnnxFailure({"input", std::move(message), std::move(nodes)});
}
[[noreturn]] inline void failUsage(std::string message) {
  throw OnnxFailure({"usage", std::move(message), {}});
}

} // namespace mtp::onnx

#endif // MTP_COMPILER_FRONTEND_ONNX_ONNXERROR_H
