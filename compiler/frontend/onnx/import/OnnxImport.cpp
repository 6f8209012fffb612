// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OnnxImport.cpp - an ONNX file as an mtp module ----------------------===//

#include "compiler/frontend/onnx/import/OnnxImport.h"
#include "compiler/frontend/onnx/import/Importer.h"

using namespace mtp;
using namespace mtp::onnx;

const OpTable &mtp::onnx::opTable() {
  static const OpTable table = [] {
    OpTable result;
    addElementwiseOps(result);
    addShapeOps(result);
    addIndexOps(result);
    addReductionOps(result);
    addContractionOps(result);
    addNormOps(result);
    addAttentionOps(result);
    addSequenceOps(result);
    return result;
  }();
  return table;
}

std::vector<std::string> mtp::onnx::supportedOperators() {
  std::vector<std::string> names{"If"};
  for (auto &[name, entry] : opTable())
    names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

mlir::OwningOpRef<mlir::ModuleOp> mtp::onnx::importOnnx(const std::string &path, const ReadOptions &options,
                                                        mlir::MLIRContext &context,
                                                        std::vector<std::string> &warnings, OnnxError &error) {
  try {
    Model model = readModel(path);
    return Importer(model, options, context, warnings).run();
  } catch (const OnnxFailure &failure) {
    error = failure.error;
  } catch (const Unsupported &problem) {
    error = {"unsupported", problem.reason, {}};
  } catch (const std::bad_alloc &) {
    error = {"input", "'" + path + "' needs more memory than there is", {}};
  }
  return nullptr;
}
