// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OnnxImport.cpp - an ONNX file as an mtp module ---------------------===//

#include "compiler/frontend/onnx/import/OnnxImport.h"
#include "compiler/frontend/onnx/import/Importer.h"

using namespace mtp;
using namespace mtp::onnx;

/// What the first input may be made of, where not anything will do.
static void limitTypes(OpTable &table) {
  auto set = [&](Accepts accepts, std::initializer_list<const char *> names) {
    for (const char *name : names)
      table.at(name).accepts = accepts;
  };
  set(Accepts::Booleans, {"And", "Or", "Xor", "Not", "Where"});
  set(Accepts::Integers,
      {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"});
  set(Accepts::Floats, {"Exp",
                        "Log",
                        "Sqrt",
                        "Reciprocal",
                        "Erf",
                        "Tanh",
                        "Sigmoid",
                        "Sin",
                        "Cos",
                        "Floor",
                        "Ceil",
                        "Round",
                        "IsNaN",
                        "IsInf",
                        "Gelu",
                        "Swish",
                        "LeakyRelu",
                        "Elu",
                        "Softplus",
                        "Mish",
                        "Softsign",
                        "HardSigmoid",
                        "HardSwish",
                        "Softmax",
                        "LogSoftmax",
                        "LayerNormalization",
                        "RMSNormalization",
                        "BatchNormalization",
                        "InstanceNormalization",
                        "LpNormalization",
                        "Attention",
                        "RotaryEmbedding",
                        "Conv",
                        "GlobalAveragePool"});
  set(Accepts::Numbers, {"Neg",          "Abs",
                         "Sign",         "Relu",
                         "Add",          "Sub",
                         "Mul",          "Div",
                         "Pow",          "Mod",
                         "Max",          "Min",
                         "Sum",          "Mean",
                         "Less",         "LessOrEqual",
                         "Greater",      "GreaterOrEqual",
                         "Clip",         "PRelu",
                         "CumSum",       "TopK",
                         "ArgMax",       "ArgMin",
                         "ReduceSum",    "ReduceMean",
                         "ReduceProd",   "ReduceL1",
                         "ReduceL2",     "ReduceSumSquare",
                         "ReduceLogSum", "ReduceLogSumExp",
                         "MatMul",       "Gemm",
                         "Einsum"});
}

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
    limitTypes(result);
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

mlir::OwningOpRef<mlir::ModuleOp>
mtp::onnx::importOnnx(const std::string &path, const ReadOptions &options,
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
