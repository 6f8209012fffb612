// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Trainable.h"
#include "compiler/training/Pieces.h"
#include "compiler/training/Training.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/GlobPattern.h"

#include <map>

using namespace mlir;
using namespace mtp;
using namespace mtp::training;

bool training::parseTie(StringRef text, Tie &tie, std::string &error) {
  StringRef rest = text;
  tie.transposed = rest.consume_back(":transposed");
  auto [a, b] = rest.split(',');
  tie.a = a.str();
  tie.b = b.str();
  if (!a.empty() && !b.empty() && !b.contains(','))
    return true;
  error = "'" + text.str() + "' is not of the form A,B or A,B:transposed";
  return false;
}

//===----------------------------------------------------------------------===//
// Ties
//===----------------------------------------------------------------------===//

namespace {
/// Makes the uses of tied initializers read one of them.
class Tier {
public:
  explicit Tier(ModuleOp module) : module(module) {}

  LogicalResult tie(const Tie &tie) {
    InitializerOp a = find(tie.a), b = find(tie.b);
    if (!a || !b)
      return module.emitError()
             << "tie: there is no initializer '" << (a ? tie.b : tie.a) << "'";
    bool transposed = tie.transposed;
    a = rootOf(a, transposed);
    b = rootOf(b, transposed);
    auto mine = cast<RankedTensorType>(a.getType()),
         other = cast<RankedTensorType>(b.getType());
    SmallVector<int64_t> shape(mine.getShape());
    if (transposed)
      std::reverse(shape.begin(), shape.end());
    if (a == b)
      return module.emitError() << "tie: '" << tie.a << "' and '" << tie.b
                                << "' are one initializer already";
    if (other.getShape() != ArrayRef<int64_t>(shape) ||
        mine.getElementType() != other.getElementType() ||
        (transposed && shape.size() != 2))
      return module.emitError()
             << "tie: '" << tie.a << "' is " << mine << " and '" << tie.b
             << "' is " << other
             << (transposed
                     ? "; one must be a matrix and the other its transpose"
                     : "; they must have one type");
    roots[b] = {a, transposed};
    b->setAttr(names::tiedTo, a.getSymNameAttr());
    return success();
  }

  void apply(func::FuncOp function) {
    for (auto parameter :
         llvm::make_early_inc_range(function.getOps<ParameterOp>())) {
      InitializerOp source = find(parameter.getSource());
      bool transposed = false;
      InitializerOp root = rootOf(source, transposed);
      if (root == source)
        continue;
      SmallVector<Attribute> recipe;
      if (transposed)
        recipe.push_back(
            RecipeStepAttr::get(module.getContext(), "transpose", {1, 0}));
      llvm::append_range(recipe, parameter.getRecipe());
      parameter.setSourceAttr(FlatSymbolRefAttr::get(root.getSymNameAttr()));
      parameter.setRecipeAttr(ArrayAttr::get(module.getContext(), recipe));
    }
  }

private:
  InitializerOp find(StringRef name) {
    return module.lookupSymbol<InitializerOp>(name);
  }
  /// The first of a chain of ties; `transposed` is turned for each transposed
  /// one on the way.
  InitializerOp rootOf(InitializerOp op, bool &transposed) {
    for (auto found = roots.find(op); found != roots.end();
         found = roots.find(op)) {
      op = found->second.first;
      transposed ^= found->second.second;
    }
    return op;
  }

  ModuleOp module;
  std::map<Operation *, std::pair<InitializerOp, bool>> roots;
};

//===----------------------------------------------------------------------===//
// What is trained
//===----------------------------------------------------------------------===//

/// Names that one of several globs matches; each glob must match something.
class Globs {
public:
  LogicalResult add(ModuleOp module, StringRef option,
                    ArrayRef<std::string> texts) {
    for (const std::string &text : texts) {
      auto pattern = llvm::GlobPattern::create(text);
      if (!pattern)
        return module.emitError()
               << option << " '" << text
               << "': " << llvm::toString(pattern.takeError());
      entries.push_back({text, std::move(*pattern), false});
    }
    this->option = option;
    return success();
  }
  bool matches(StringRef name) {
    bool any = false;
    for (Entry &entry : entries)
      if (entry.text == name || entry.pattern.match(name))
        any = entry.used = true;
    return any;
  }
  LogicalResult checkUsed(ModuleOp module) const {
    for (const Entry &entry : entries)
      if (!entry.used)
        return module.emitError() << option << " '" << entry.text
                                  << "' matches no trainable initializer";
    return success();
  }
  bool empty() const { return entries.empty(); }

private:
  struct Entry {
    std::string text;
    llvm::GlobPattern pattern;
    bool used;
  };
  std::vector<Entry> entries;
  StringRef option;
};

/// Finds what is trained, and gives each element one place in the program.
class Marker {
public:
  Marker(ModuleOp module, func::FuncOp function)
      : module(module), function(function), builder(module.getContext()) {}

  LogicalResult choose(const TrainableOptions &options) {
    Globs freeze, only;
    if (failed(freeze.add(module, "freeze", options.freeze)) ||
        failed(only.add(module, "train-only", options.trainOnly)))
      return failure();
    llvm::StringMap<plan::Trainability> all = plan::findTrainable(function);
    llvm::MapVector<StringRef, SmallVector<StringRef>> namesOf;
    for (auto initializer : module.getOps<InitializerOp>())
      namesOf[parameterOf(initializer)].push_back(initializer.getSymName());
    for (auto &[parameter, its] : namesOf)
      if (auto found = all.find(parameter);
          found != all.end() && found->second.trainable)
        restrict(its, found->second, freeze, only);
    for (auto initializer : module.getOps<InitializerOp>()) {
      StringRef parameter = parameterOf(initializer);
      plan::Trainability state = all.lookup(parameter);
      if (parameter != initializer.getSymName())
        state.reason = "is '" + parameter.str() + "' under another name";
      else if (!all.count(parameter))
        state.reason = "nothing reads it";
      if (state.trainable)
        initializer.setTrainable(true);
      initializer->setAttr(names::reason, builder.getStringAttr(state.reason));
    }
    if (failed(freeze.checkUsed(module)) || failed(only.checkUsed(module)))
      return failure();
    return success();
  }

  LogicalResult number() {
    llvm::MapVector<StringRef, SmallVector<ParameterOp>> pieces;
    for (auto parameter : function.getOps<ParameterOp>())
      if (module.lookupSymbol<InitializerOp>(parameter.getSource())
              .getTrainable())
        pieces[parameter.getSource()].push_back(parameter);
    if (pieces.empty())
      return nothingToTrain();
    int64_t next = 0;
    for (auto &[name, ops] : pieces)
      for (ParameterOp piece : separate(ops))
        piece->setAttr(names::trainable, builder.getI64IntegerAttr(next++));
    return success();
  }

private:
  LogicalResult nothingToTrain() {
    std::string why;
    int named = 0;
    for (auto initializer : module.getOps<InitializerOp>())
      if (auto reason = initializer->getAttrOfType<StringAttr>(names::reason);
          reason && named++ < 5)
        why += (why.empty() ? ": '" : "; '") + initializer.getSymName().str() +
               "' " + reason.str();
    return module.emitError()
           << "there is nothing to train: no initializer that is not frozen "
              "reaches the loss through differentiable operations"
           << why;
  }

  /// The initializer that stands for `initializer` and those tied to it.
  StringRef parameterOf(InitializerOp initializer) {
    while (auto tied = initializer->getAttrOfType<StringAttr>(names::tiedTo))
      initializer = module.lookupSymbol<InitializerOp>(tied.getValue());
    return initializer.getSymName();
  }

  /// A parameter of several names is meant by each of them.
  static void restrict(ArrayRef<StringRef> its, plan::Trainability &state,
                       Globs &freeze, Globs &only) {
    bool chosen = only.empty(), frozen = false;
    for (StringRef name : its) {
      chosen |= only.matches(name);
      frozen |= freeze.matches(name);
    }
    if (frozen)
      state = {false, "is frozen (--freeze)"};
    else if (!chosen)
      state = {false, "is not among those that --train-only names"};
  }

  /// Equal pieces become one; overlapping ones parts of one.
  SmallVector<ParameterOp> separate(ArrayRef<ParameterOp> ops) {
    SmallVector<ParameterOp> distinct;
    for (ParameterOp op : ops) {
      auto same = llvm::find_if(distinct, [&](ParameterOp other) {
        return other.getRecipe() == op.getRecipe() &&
               other.getType() == op.getType();
      });
      if (same == distinct.end()) {
        distinct.push_back(op);
        continue;
      }
      op.replaceAllUsesWith(same->getResult());
      op.erase();
    }
    auto initializer =
        module.lookupSymbol<InitializerOp>(distinct[0].getSource());
    auto stored = cast<RankedTensorType>(initializer.getType());
    Type element = typeOf(distinct[0]).getElementType();
    bool oneType = llvm::all_of(distinct, [&](ParameterOp op) {
      return typeOf(op).getElementType() == element;
    });
    auto recipes = llvm::map_to_vector(
        distinct, [](ParameterOp op) { return op.getRecipe(); });
    if (oneType && arePartition(stored.getShape(), recipes))
      return distinct;
    return {join(distinct, RankedTensorType::get(
                               stored.getShape(),
                               oneType ? element : stored.getElementType()))};
  }

  ParameterOp join(ArrayRef<ParameterOp> ops, RankedTensorType type) {
    builder.setInsertionPointToStart(&function.getBody().front());
    ParameterOp first = ops.front();
    auto whole =
        ParameterOp::create(builder, first.getLoc(), type,
                            first.getSourceAttr(), builder.getArrayAttr({}));
    for (ParameterOp op : ops) {
      builder.setInsertionPoint(op);
      Value part = replay(builder, op.getLoc(), whole, op.getRecipe());
      OpMaker make(builder, op.getLoc());
      op.replaceAllUsesWith(make.convert(part, typeOf(op).getElementType()));
      op.erase();
    }
    return whole;
  }

  ModuleOp module;
  func::FuncOp function;
  OpBuilder builder;
};
} // namespace

LogicalResult training::chooseTrainable(ModuleOp module,
                                        const TrainableOptions &options) {
  func::FuncOp function = mainOf(module);
  return function ? Marker(module, function).choose(options) : failure();
}

LogicalResult training::markTrainable(ModuleOp module,
                                      const TrainableOptions &options) {
  func::FuncOp function = mainOf(module);
  if (!function)
    return failure();
  Tier tier(module);
  for (const Tie &tie : options.ties)
    if (failed(tier.tie(tie)))
      return failure();
  tier.apply(function);
  if (failed(chooseTrainable(module, options)))
    return failure();
  return Marker(module, function).number();
}
