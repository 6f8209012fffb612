// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Importer.h - from ONNX nodes to mtp ops ----------------------------===//
//
// One walk in topological order. All dimensions have numbers before it starts,
// so every value has a static shape as soon as it is made. A value is known at
// import (a `Constant`: shapes and what is computed from them), a weight (bytes
// in the file, never read), or an mtp value.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_FRONTEND_ONNX_IMPORT_IMPORTER_H
#define MTP_COMPILER_FRONTEND_ONNX_IMPORT_IMPORTER_H

#include "compiler/frontend/onnx/Constant.h"
#include "compiler/frontend/onnx/Model.h"
#include "compiler/frontend/onnx/OnnxError.h"
#include "compiler/frontend/onnx/ReadOptions.h"
#include "compiler/frontend/onnx/import/Emit.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <set>

namespace mtp::onnx {

/// A value of the graph.
struct Entry {
  std::string name;
  DType type = DType::F32;
  Shape shape;
  /// Made by something unsupported: nothing else is known of it.
  bool unknown = false;
  std::shared_ptr<const Constant> constant;
  const Tensor *weight = nullptr;
  bool isParameter = false; ///< a float initializer, not a constant node
  mlir::Value value;        ///< null until it is needed
  bool isSequence = false;
  std::vector<std::shared_ptr<Entry>> sequence;
};
using EntryRef = std::shared_ptr<Entry>;

/// Thrown by handlers: a sound operator that mtp doesn't compile.
struct Unsupported {
  std::string reason;
};

class Importer;

/// A node while its handler runs.
class NodeContext {
public:
  NodeContext(Importer &importer, const Node &node, int64_t version,
              std::vector<EntryRef> inputs,
              const std::map<std::string, Attribute> &attributes, Emit emit)
      : node(node), version(version), emit(emit), importer(importer),
        inputs(std::move(inputs)), attributes(attributes),
        outputs(node.outputs.size()) {}

  const Node &node;
  int64_t version; ///< of the opset
  Emit emit;

  size_t numInputs() const { return inputs.size(); }
  size_t numOutputs() const { return outputs.size(); }
  bool has(size_t i) const { return i < inputs.size() && inputs[i]; }
  bool wants(size_t i) const {
    return i < node.outputs.size() && !node.outputs[i].empty();
  }
  const EntryRef &in(size_t i) const;
  DType type(size_t i) const { return in(i)->type; }
  const Shape &shape(size_t i) const { return in(i)->shape; }
  int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
  /// The mtp value of input `i`.
  mlir::Value value(size_t i);
  /// The elements of input `i` if they are known, else null.
  std::shared_ptr<const Constant> constant(size_t i) const;
  /// The same, unsupported if they are known only at run time. `what` says what
  /// they are: "the axes".
  std::shared_ptr<const Constant> known(size_t i,
                                        const std::string &what) const;
  std::vector<int64_t> ints(size_t i, const std::string &what) const;

  bool hasAttr(const std::string &name) const {
    return attributes.count(name) != 0;
  }
  int64_t intAttr(const std::string &name, int64_t otherwise) const;
  double floatAttr(const std::string &name, double otherwise) const;
  std::string stringAttr(const std::string &name,
                         const std::string &otherwise) const;
  std::optional<std::vector<int64_t>> intsAttr(const std::string &name) const;
  const Attribute *attr(const std::string &name) const;

  /// `axis` counted from the front; invalid() if `rank` has no such axis.
  int64_t axis(int64_t axis, int64_t rank) const;
  std::vector<int64_t> axes(std::vector<int64_t> axes, int64_t rank) const;

  void out(size_t i, mlir::Value value);
  void outConstant(size_t i, Constant value);
  void outAlias(size_t i, EntryRef entry) { outputs[i] = std::move(entry); }
  void outSequence(size_t i, std::vector<EntryRef> elements);
  std::vector<EntryRef> &results() { return outputs; }

  [[noreturn]] void unsupported(const std::string &reason) const {
    throw Unsupported{reason};
  }
  /// The model breaks a rule of the operator.
  [[noreturn]] void invalid(const std::string &reason) const;

  Importer &importer;

private:
  std::vector<EntryRef> inputs;
  const std::map<std::string, Attribute> &attributes;
  std::vector<EntryRef> outputs;
};

using Handler = void (*)(NodeContext &);
/// Element types that the first input of an operator may have.
enum class Accepts : uint8_t { Anything, Numbers, Floats, Integers, Booleans };
struct OpEntry {
  Handler handler = nullptr;
  int64_t since = 1;
  size_t leastInputs = 1;
  std::set<std::string> attributes = {}; ///< all that are understood
  Accepts accepts = Accepts::Anything;
};
using OpTable = std::map<std::string, OpEntry>;
/// All operators; each family adds its own.
const OpTable &opTable();
void addElementwiseOps(OpTable &table);
void addShapeOps(OpTable &table);
void addIndexOps(OpTable &table);
void addReductionOps(OpTable &table);
void addContractionOps(OpTable &table);
void addNormOps(OpTable &table);
void addAttentionOps(OpTable &table);
void addSequenceOps(OpTable &table);

/// Computes a node at import. Returns false if the operator is not one that
/// folds, or the result would be larger than what is kept.
bool foldNode(const NodeContext &context, std::vector<Constant> &results);

class Importer {
public:
  Importer(const Model &model, const ReadOptions &options,
           mlir::MLIRContext &context, std::vector<std::string> &warnings);

  /// Throws OnnxFailure.
  mlir::OwningOpRef<mlir::ModuleOp> run();

  mlir::Value materialize(const EntryRef &entry);
  EntryRef constantEntry(Constant value, std::string name);
  EntryRef valueEntry(mlir::Value value, std::string name);
  bool keepsDropout() const { return options.keepDropout; }
  /// Identity of the next random op: they count up in the order of the graph.
  int64_t nextStream() { return streams++; }
  /// float32 becomes float64 under double precision.
  DType effective(DType type) const;
  /// The elements of an initializer or constant attribute.
  EntryRef tensorEntry(const Tensor &tensor, const std::string &name,
                       bool isInitializer);
  std::shared_ptr<const Constant> constantOf(const EntryRef &entry);

private:
  struct Scope {
    const Scope *parent = nullptr;
    std::map<std::string, EntryRef> names;
    EntryRef find(const std::string &name) const;
  };
  struct Frame {
    Scope scope;
    std::string prefix;
    const OpsetMap *opsets = nullptr;
    const std::map<std::string, Attribute> *arguments =
        nullptr; ///< of a function
  };
  struct Report {
    std::string op, reason, node;
  };

  void addInputs();
  void addInitializers(const Graph &graph, Frame &frame,
                       const std::set<std::string> &overridden);
  void runNodes(const std::vector<Node> &nodes,
                const std::vector<std::string> &outputs, Frame &frame);
  void runNode(const Node &node, Frame &frame);
  void runHandler(const Node &node, int64_t version,
                  std::vector<EntryRef> inputs,
                  const std::map<std::string, Attribute> &attributes,
                  Frame &frame);
  void inlineFunction(const Node &node, const Function &function,
                      std::vector<EntryRef> inputs,
                      const std::map<std::string, Attribute> &attributes,
                      Frame &frame);
  void inlineBranch(const Node &node, std::vector<EntryRef> inputs,
                    const std::map<std::string, Attribute> &attributes,
                    Frame &frame);
  std::map<std::string, Attribute>
  bind(const std::map<std::string, Attribute> &attributes,
       const Frame &frame) const;
  void reject(const Node &node, const Frame &frame, const std::string &reason);
  void markUnknown(const Node &node, Frame &frame);
  void finish();
  void nameOtherInitializers();
  [[noreturn]] void reportUnsupported();
  mlir::Value emitConstant(const Constant &value, const std::string &name);
  mlir::Value emitProgression(const Constant &value, mlir::Location loc);
  mlir::Value emitWeight(const Tensor &tensor, const std::string &name,
                         DType type, bool isParameter);
  std::string uniqueSymbol(const std::string &name);
  mlir::Location locationOf(const std::string &node, const std::string &value);

  const Model &model;
  const ReadOptions &options;
  mlir::MLIRContext &context;
  std::vector<std::string> &warnings;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp main;
  mlir::OpBuilder body, top;
  Frame rootFrame;
  std::vector<Report> reports;
  std::vector<std::string> callStack;
  std::map<const Tensor *, mlir::FlatSymbolRefAttr> weightSymbols;
  std::map<std::pair<const Tensor *, DType>, mlir::Value> weightValues;
  std::set<std::string> symbols;
  std::map<std::string, std::shared_ptr<const Constant>> loaded;
  int64_t streams = 0;
};

} // namespace mtp::onnx

#endif // MTP_COMPILER_FRONTEND_ONNX_IMPORT_IMPORTER_H
