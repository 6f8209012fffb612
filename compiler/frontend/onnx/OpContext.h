// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpContext.h - what the rule of an operator sees ---------------------===//
#ifndef MTP_COMPILER_FRONTEND_ONNX_OPCONTEXT_H
#define MTP_COMPILER_FRONTEND_ONNX_OPCONTEXT_H

#include "compiler/frontend/onnx/FlatGraph.h"

#include <functional>
#include <optional>

namespace mtp::onnx {

class Resolver;

/// Thrown by rules: a sound operator that mtp doesn't compile.
struct Unsupported {
  std::string reason;
};

/// A node while its rule runs. Inputs are known in type and static shape; the
/// rule computes those of the outputs and brings the attributes in normal form.
class OpContext {
public:
  OpContext(Resolver &resolver, FlatNode &node) : node(node), resolver(resolver) {}

  FlatNode &node;

  int64_t version() const { return node.version; }
  size_t numInputs() const { return node.inputs.size(); }
  size_t numOutputs() const { return node.outputs.size(); }
  bool has(size_t i) const { return i < node.inputs.size() && node.inputs[i] != kNoValue; }
  bool wants(size_t i) const { return i < node.outputs.size() && node.outputs[i] != kNoValue; }
  const FlatValue &in(size_t i) const;
  DType type(size_t i) const { return in(i).type; }
  const Shape &shape(size_t i) const { return in(i).shape; }
  int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }

  /// The value of input `i` if it is known at import, else null.
  std::shared_ptr<const Constant> value(size_t i) const;
  /// The value of input `i`, which is then dropped from the node; unsupported if
  /// it is known only at run time.
  std::shared_ptr<const Constant> take(size_t i, const std::string &what);
  std::vector<int64_t> takeInts(size_t i, const std::string &what);
  void drop(size_t i);

  bool hasAttr(const std::string &name) const { return node.attributes.count(name) != 0; }
  int64_t intAttr(const std::string &name, int64_t otherwise) const;
  double floatAttr(const std::string &name, double otherwise) const;
  std::string stringAttr(const std::string &name, const std::string &otherwise) const;
  /// nullopt if the attribute is absent.
  std::optional<std::vector<int64_t>> intsAttr(const std::string &name) const;
  void set(const std::string &name, int64_t value);
  void set(const std::string &name, double value);
  void set(const std::string &name, std::vector<int64_t> values);

  /// `axis` counted from the front; invalid() if it doesn't exist in `rank`.
  int64_t axis(int64_t axis, int64_t rank) const;
  std::vector<int64_t> axes(std::vector<int64_t> axes, int64_t rank) const;
  /// Numpy broadcast of the shapes of all inputs.
  Shape broadcastInputs() const;
  Shape broadcast(const Shape &a, const Shape &b) const;
  /// All inputs have one element type.
  void sameTypes() const;
  void checkRank(size_t i, int64_t rank, const char *what) const;

  /// Sets type and shape of an output; checks that its bytes fit into int64.
  void output(size_t i, DType type, Shape shape);
  /// The output is value `value`.
  void alias(size_t i, int value);
  void constant(size_t i, Constant value);
  void sequence(size_t i, std::vector<int> elements);
  const std::vector<int> &elements(size_t i) const;
  /// Adds a node in front of this one; returns its output.
  int emit(const std::string &op, std::vector<int> inputs,
           std::map<std::string, Attribute> attributes, DType type, Shape shape);
  /// Replaces the outputs of the node by `n` new values and returns them.
  std::vector<int> newOutputs(size_t n);

  /// float32 becomes float64 under double precision.
  DType effective(DType type) const;
  Constant loadTensor(const Tensor &tensor) const;
  int addLiteral(const Tensor &tensor);

  [[noreturn]] void unsupported(const std::string &reason) const { throw Unsupported{reason}; }
  /// The model breaks a rule of the operator.
  [[noreturn]] void invalid(const std::string &reason) const;

private:
  Resolver &resolver;
};

/// Operands and results of a folding. Types and shapes of the results are set.
struct EvalContext {
  const FlatNode &node;
  std::vector<std::shared_ptr<const Constant>> inputs; ///< null where left out
  std::vector<Constant> outputs;

  const Constant &in(size_t i) const { return *inputs[i]; }
  Constant &out(size_t i = 0) { return outputs[i]; }
};

/// What the front end knows of an operator.
struct OpRule {
  enum Flags : uint32_t {
    None = 0,
    Elementwise = 1, ///< splat inputs give splat outputs
    Moves = 2,       ///< output elements are elements of input 0
  };
  int64_t since = 1; ///< first opset that has it
  size_t leastInputs = 0, mostInputs = 0;
  size_t mostOutputs = 1;
  std::vector<std::string> attributes; ///< all that it may have
  void (*infer)(OpContext &) = nullptr;
  void (*evaluate)(EvalContext &) = nullptr; ///< null: never folded
  uint32_t flags = None;
};

/// Largest tensor that an operator makes as a value: Range, EyeLike.
inline constexpr int64_t kMostRange = int64_t(1) << 24;

using OpTable = std::map<std::string, OpRule>;
inline constexpr size_t kAnyNumber = static_cast<size_t>(-1);

/// All rules; each family adds its own.
const OpTable &opTable();
void addElementwiseRules(OpTable &table);
void addShapeRules(OpTable &table);
void addIndexRules(OpTable &table);
void addCreationRules(OpTable &table);
void addReductionRules(OpTable &table);
void addContractionRules(OpTable &table);
void addNormRules(OpTable &table);
void addAttentionRules(OpTable &table);
void addSequenceRules(OpTable &table);

} // namespace mtp::onnx

#endif // MTP_COMPILER_FRONTEND_ONNX_OPCONTEXT_H
