// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Model.h - an ONNX file as it stands --------------------------------===//
//
// Plain data, without protobuf types: graphs whose values are names, functions,
// subgraphs. Tensor payloads are references into mapped files.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_FRONTEND_ONNX_MODEL_H
#define MTP_COMPILER_FRONTEND_ONNX_MODEL_H

#include "compiler/frontend/onnx/MappedFile.h"
#include "runtime/artifact/Artifact.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mtp::onnx {

using Shape = std::vector<int64_t>;

/// "[2, 16]".
std::string text(const Shape &shape);

/// A tensor in the file: its type, and where its little-endian elements are.
struct Tensor {
  std::string name;
  /// Empty for the types that mtp has; else the ONNX name ("string",
  /// "float8e4m3fn").
  std::string foreignType;
  DType type = DType::F32;
  Shape shape;
  std::shared_ptr<const MappedFile> file; ///< null: `owned` has the bytes
  uint64_t offset = 0, bytes = 0;         ///< into `file`
  std::shared_ptr<const std::string> owned;

  int64_t elements() const;
  const uint8_t *data() const;
};

struct Graph;

/// An attribute of a node. Which member counts is said by `kind`.
struct Attribute {
  enum class Kind : uint8_t {
    Int,
    Float,
    String,
    Ints,
    Floats,
    Strings,
    Tensor,
    Graph,
    Other
  };
  Kind kind = Kind::Int;
  int64_t i = 0;
  double f = 0;
  std::string s;
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<std::string> strings;
  std::shared_ptr<const Tensor> tensor;
  std::shared_ptr<const Graph> graph;
  std::string
      reference; ///< in a function: takes the caller's attribute of that name
};

struct Node {
  std::string name, op, domain, overload;
  std::vector<std::string> inputs,
      outputs; ///< "" where an optional one is left out
  std::map<std::string, Attribute> attributes;
};

/// A dimension as declared: a number, a name or expression, or nothing known.
struct Dim {
  std::optional<int64_t> value;
  std::string symbol;
};

/// A graph input as declared.
struct ValueInfo {
  std::string name;
  std::string foreignType; ///< as in Tensor; also "sequence", "map", "optional"
  DType type = DType::F32;
  bool hasShape = false;
  std::vector<Dim> dims;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> sparseInitializers; ///< names; not supported
};

using OpsetMap =
    std::map<std::string, int64_t>; ///< domain ("" standard) to version

struct Function {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs, attributes;
  std::map<std::string, Attribute> defaults;
  std::vector<Node> nodes;
  OpsetMap opsets;
};

struct Model {
  std::string path;
  int64_t irVersion = 0;
  OpsetMap opsets;
  Graph graph;
  /// By "domain::name:overload".
  std::map<std::string, Function> functions;
};

std::string functionKey(const std::string &domain, const std::string &name,
                        const std::string &overload);

/// Reads the file and what it refers to. Throws OnnxFailure.
Model readModel(const std::string &path);

} // namespace mtp::onnx

#endif // MTP_COMPILER_FRONTEND_ONNX_MODEL_H
