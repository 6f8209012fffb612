// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- FlatGraph.h - an ONNX model, resolved -------------------------------===//
//
// What is left of a model after names are resolved, functions inlined, branches
// chosen, shapes computed and shape arithmetic folded: a list of operators in
// topological order over values of static shape. Every operand that says *how*
// an operator works (axes, sizes, starts) has become an attribute in one normal
// form, the same for all opsets (Ops.cpp), so that the importer reads no
// versions.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_FRONTEND_ONNX_FLATGRAPH_H
#define MTP_COMPILER_FRONTEND_ONNX_FLATGRAPH_H

#include "compiler/frontend/onnx/Constant.h"
#include "compiler/frontend/onnx/Model.h"
#include "compiler/frontend/onnx/OnnxError.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace mtp::onnx {

inline constexpr int kNoValue = -1;

/// A tensor (or, during resolution, a sequence of tensors).
struct FlatValue {
  std::string name;
  DType type = DType::F32;
  Shape shape;
  /// Produced by something unsupported: type and shape mean nothing.
  bool unknown = false;
  bool isSequence = false;
  std::vector<int> sequence; ///< values of its elements
  /// Set if the value is known and small, or a splat.
  std::shared_ptr<const Constant> constant;
  int initializer = -1; ///< index into FlatGraph::initializers
  int input = -1;       ///< index into FlatGraph::inputs
  int producer = -1;    ///< index into FlatGraph::nodes
  /// Depends on no input and on no float initializer of rank >= 1.
  bool isFixed = false;
};

struct FlatNode {
  std::string name; ///< of the ONNX node; inlined ones as "caller/node"
  std::string op;
  int64_t version = 0; ///< of the operator set it is written in
  std::map<std::string, Attribute> attributes;
  std::vector<int> inputs;  ///< kNoValue: left out, or turned into an attribute
  std::vector<int> outputs; ///< kNoValue: not used

  int64_t intAttr(const std::string &name, int64_t otherwise = 0) const;
  double floatAttr(const std::string &name, double otherwise = 0) const;
  std::string stringAttr(const std::string &name, const std::string &otherwise = "") const;
  const std::vector<int64_t> &intsAttr(const std::string &name) const;
};

struct FlatInput {
  std::string name;
  int value = kNoValue;
  std::vector<std::string> dimNames; ///< as declared; "" if a number
};

struct FlatOutput {
  std::string name;
  int value = kNoValue;
};

struct FlatGraph {
  std::string path, name;
  int64_t irVersion = 0, opset = 0;
  std::vector<FlatValue> values;
  std::vector<FlatNode> nodes; ///< in topological order, all needed by an output
  std::vector<FlatInput> inputs;
  std::vector<FlatOutput> outputs;
  std::vector<Tensor> initializers;
  std::vector<std::string> warnings;

  std::map<std::string, int64_t> countOps() const;
};

/// What decides shapes and types.
struct ReadOptions {
  std::map<std::string, int64_t> dims; ///< symbol (or "input[axis]") to number
  struct Given {
    DType type = DType::F32;
    Shape shape;
  };
  std::map<std::string, Given> inputs; ///< bind dimensions where `dims` doesn't
  bool defaultDims = false; ///< unbound: batch 1, others 16, with a warning
  bool doublePrecision = false; ///< every float becomes f64
};

/// Reads a model. On failure returns false and fills `error`; never throws.
bool readOnnx(const std::string &path, const ReadOptions &options,
              FlatGraph &graph, OnnxError &error);

/// Names of the operators that can be read, sorted.
std::vector<std::string> supportedOperators();

} // namespace mtp::onnx

#endif // MTP_COMPILER_FRONTEND_ONNX_FLATGRAPH_H
