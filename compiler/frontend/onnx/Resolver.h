// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Resolver.h - from names to values -----------------------------------===//
//
// One walk over the model in topological order resolves names, inlines
// functions and branches, runs the rule of each operator and folds what is
// known. Values derived from constants fold at once when they are vectors (at
// most one dimension larger than 1) or splats. Larger ones, such as masks, stay
// operators, whatever their size, so that later passes see one form of them;
// their elements are computed only where an operator must know them.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_FRONTEND_ONNX_RESOLVER_H
#define MTP_COMPILER_FRONTEND_ONNX_RESOLVER_H

#include "compiler/frontend/onnx/OpContext.h"

namespace mtp::onnx {

class Resolver {
public:
  Resolver(const Model &model, const ReadOptions &options, FlatGraph &graph)
      : model(model), options(options), graph(graph) {}

  /// Throws OnnxFailure.
  void run();

private:
  friend class OpContext;

  /// Names of one graph or function body; a subgraph sees those around it.
  struct Scope {
    const Scope *parent = nullptr;
    std::map<std::string, int> names;
    int find(const std::string &name) const;
  };
  /// What a list of nodes is resolved in.
  struct Frame {
    Scope scope;
    std::string prefix;                ///< of node and value names
    const OpsetMap *opsets = nullptr;
    const std::map<std::string, Attribute> *arguments = nullptr; ///< of a function's attributes
  };
  struct Report {
    std::string op, reason, node;
    int output; ///< a value that it would have given; reported if that is needed
  };

  void addInitializers(const Graph &source, Frame &frame, bool isMain);
  int addTensor(const Tensor &tensor, bool isLiteral);
  void addInputs(Frame &frame);
  void addOutputs(const Frame &frame);
  void resolveNodes(const std::vector<Node> &nodes, Frame &frame);
  void resolveNode(const Node &node, Frame &frame);
  void inlineFunction(const Node &node, const Function &function,
                      const std::map<std::string, Attribute> &attributes, Frame &frame);
  void inlineBranch(const Node &node, const std::map<std::string, Attribute> &attributes,
                    Frame &frame);
  void runRule(const OpRule &rule, FlatNode node);
  /// Folds the node or adds it to the graph. Its outputs have types.
  void finish(const OpRule &rule, FlatNode node);
  bool fold(const OpRule &rule, const FlatNode &node);
  std::map<std::string, Attribute> bindAttributes(const Node &node, const Frame &frame) const;
  std::vector<int> inputsOf(const Node &node, const Frame &frame) const;
  std::vector<int> defineOutputs(const Node &node, Frame &frame);
  /// Keeps an operator that can't be compiled as a node of unknown results, so
  /// that it is reported only if an output needs it.
  void reject(FlatNode node, const std::string &reason);

  std::shared_ptr<const Constant> valueOf(int value, int depth);
  std::shared_ptr<const Constant> evaluate(int value, int depth);

  int addValue(std::string name);
  int resolved(int value) const;
  void removeDead();
  void reportUnsupported();
  DType effective(DType type) const {
    return options.doublePrecision && isFloat(type) ? DType::F64 : type;
  }

  const Model &model;
  const ReadOptions &options;
  FlatGraph &graph;
  std::vector<int> forwarded; ///< value to the one it is an alias of
  std::vector<Report> reports;
  std::vector<std::string> callStack;
  std::map<int, std::shared_ptr<const Constant>> demanded;
  std::set<int> dropped; ///< nodes that will be removed
};

/// Largest tensor that is loaded or computed where an operator must know it.
inline constexpr int64_t kMostDemanded = int64_t(1) << 24;
/// Largest vector that is folded by itself.
inline constexpr int64_t kMostFolded = int64_t(1) << 16;

} // namespace mtp::onnx

#endif // MTP_COMPILER_FRONTEND_ONNX_RESOLVER_H
