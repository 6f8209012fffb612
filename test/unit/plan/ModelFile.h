// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ModelFile.h - an export as the planner gets it ---------------------===//
#ifndef MTP_TEST_UNIT_PLAN_MODELFILE_H
#define MTP_TEST_UNIT_PLAN_MODELFILE_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace mtp::plan {

/// Loads what the passes of `readModel` make.
void loadDialects(mlir::MLIRContext &context);

/// Reads `folder`/model.onnx with the shapes of its meta.json, simplifies and
/// raises it as mtp-run does. `training`: with the loss that stands there.
/// Nothing, and a diagnostic or `error`, if that fails.
mlir::OwningOpRef<mlir::ModuleOp> readModel(const std::string &folder,
                                            mlir::MLIRContext &context,
                                            bool training, std::string &error);

/// Names of the folders of test/models that have a model, sorted.
std::vector<std::string> modelNames(const std::string &models);

} // namespace mtp::plan

#endif // MTP_TEST_UNIT_PLAN_MODELFILE_H
