// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Diagnostics.h - what passes say, for the user ----------------------===//
#ifndef MTP_COMPILER_DRIVER_DIAGNOSTICS_H
#define MTP_COMPILER_DRIVER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <string>
#include <vector>

namespace mtp {

/// The place as a person reads it: "node 'h.0.attn'", "layer.mlir:3:8", "" if
/// nothing is known.
std::string placeText(mlir::Location location);

/// Takes every diagnostic of a context as long as it lives.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext *context);
  ~DiagnosticCollector();

  /// All errors so far, one a line, at most 20 and how many more; then forgets
  /// them.
  std::string takeErrors();
  bool hasErrors() const { return !errors.empty(); }
  /// Nodes of the errors, each once, in order.
  std::vector<std::string> nodes;
  std::vector<std::string> warnings;

private:
  void take(mlir::Diagnostic &diagnostic);
  mlir::MLIRContext *context;
  mlir::DiagnosticEngine::HandlerID handler;
  std::vector<std::string> errors;
};

} // namespace mtp

#endif // MTP_COMPILER_DRIVER_DIAGNOSTICS_H
