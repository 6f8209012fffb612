// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Pins.h"

#include <functional>

using namespace mlir;

namespace mtp::plan {

static constexpr StringLiteral kPin = "mtp.pin", kPlan = "mtp.plan",
                               kPlanMesh = "mtp.plan_mesh";

/// Axes (finest) that the layout text names; all if it is empty, the text of a
/// value that is invariant.
static SmallVector<int, 4> namedAxes(StringRef text, const MeshShape &mesh) {
  SmallVector<int, 4> named;
  if (text.trim().empty())
    return llvm::to_vector<4>(llvm::seq(mesh.size()));
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(')
      ++depth;
    if (i < text.size() && text[i] == ')')
      --depth;
    if (i < text.size() && (text[i] != ',' || depth))
      continue;
    for (int axis : mesh.find(text.slice(start, i).split('=').first.trim()))
      named.push_back(axis);
    start = i + 1;
  }
  return named;
}

/// Names of values that a pin could have meant, nearest first, three at most.
static std::string nearest(StringRef pattern, ArrayRef<Value> values) {
  std::vector<std::pair<unsigned, std::string>> names;
  for (Value value : values) {
    std::string name = valueName(value);
    // A part of a name is nearer than any misspelling.
    unsigned distance = StringRef(name).contains(pattern)
                            ? 0
                            : 1 + StringRef(name).edit_distance(pattern);
    names.push_back({distance, std::move(name)});
  }
  llvm::sort(names);
  names.erase(llvm::unique(names), names.end());
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 3); ++i)
    text += (i ? ", '" : "'") + names[i].second + "'";
  return text;
}

static bool isConstant(Operation *op) {
  return isFreeSource(op, *cast<ShardingOpInterface>(op).getShardingRule());
}

PinNames::PinNames(func::FuncOp function) {
  values.assign(function.getArguments().begin(), function.getArguments().end());
  for (Operation &op : function.getBody().front().without_terminator())
    if (!isConstant(&op))
      values.insert(values.end(), op.result_begin(), op.result_end());
  std::map<std::string, int> count, next;
  for (Value value : values)
    ++count[valueName(value)];
  for (Value value : values) {
    std::string name = valueName(value);
    int number = ++next[name];
    names[value] = count[name] > 1 ? name + "#" + std::to_string(number) : name;
  }
}

std::vector<Value> PinNames::find(StringRef name,
                                  const llvm::GlobPattern &pattern) const {
  std::vector<Value> plain, numbered;
  for (Value value : values) {
    std::string shared = valueName(value);
    const std::string &own = names.at(value);
    if (shared == name || pattern.match(shared))
      plain.push_back(value);
    else if (own == name || pattern.match(own))
      numbered.push_back(value);
  }
  return plain.empty() ? numbered : plain;
}

std::string strategyText(ArrayRef<Layout> operands, ArrayRef<Layout> results,
                         const MeshShape &mesh) {
  auto list = [&](ArrayRef<Layout> layouts) {
    std::string text;
    for (const Layout &layout : layouts)
      text += (text.empty() ? "<" : ", <") + layout.text(mesh) + ">";
    return text;
  };
  return operands.empty() ? list(results)
                          : list(operands) + " -> " + list(results);
}

/// "<dp = S(0)>": every axis has its state, invariant if it is not named.
static std::optional<Layout> parseWhole(StringRef text, Value value,
                                        const MeshShape &mesh,
                                        std::string &error) {
  StringRef layout = text.trim();
  if (layout.consume_front("<") && layout.consume_back(">"))
    return parseLayout(layout,
                       cast<RankedTensorType>(value.getType()).getShape(), mesh,
                       error);
  error = ("'" + text + "' is not of the form <LAYOUT>").str();
  return std::nullopt;
}

/// One strategy for an op, wherever it is asked for.
static LogicalResult fixStrategy(Pins &pins, Operation *op, Strategy strategy,
                                 StringRef source) {
  auto [known, isNew] = pins.ops.try_emplace(op, strategy);
  if (isNew || (known->second.operands == strategy.operands &&
                known->second.results == strategy.results))
    return success();
  return op->emitError() << source << ": '" << valueName(op->getResult(0))
                         << "' is pinned to another strategy already";
}

namespace {
/// --pin: values by name, with a layout or a strategy.
class NamedPins {
public:
  NamedPins(func::FuncOp function, const MeshShape &mesh, Pins &pins)
      : function(function), mesh(mesh), pins(pins), names(function) {}

  LogicalResult add(StringRef pattern, StringRef text) {
    auto glob = llvm::GlobPattern::create(pattern);
    if (!glob) {
      llvm::consumeError(glob.takeError());
      return function.emitError()
             << "pin: '" << pattern << "' is not a pattern";
    }
    Pin pin{
        ("pin " + pattern).str(), text.str(), names.find(pattern, *glob), {}};
    if (pin.values.empty() && isOfConstant(pattern, *glob))
      return function.emitError()
             << "pin: '" << pattern
             << "' is a constant; each use gets it in the layout that it reads";
    if (pin.values.empty())
      return function.emitError()
             << "pin: no value is named '" << pattern << "'; near to it are "
             << nearest(pattern, names.all());
    if (!text.contains("->")) {
      pins.layouts.push_back(std::move(pin));
      return success();
    }
    for (Value value : pin.values)
      if (failed(addStrategy(pin, value)))
        return failure();
    return success();
  }

private:
  bool isOfConstant(StringRef name, const llvm::GlobPattern &pattern) {
    return llvm::any_of(
        function.getBody().front().without_terminator(), [&](Operation &op) {
          return isConstant(&op) && llvm::any_of(op.getResults(), [&](Value v) {
                   return valueName(v) == name || pattern.match(valueName(v));
                 });
        });
  }

  /// Entries of "<dp = S(0), tp = R>, *".
  static SmallVector<StringRef> entriesOf(StringRef text) {
    SmallVector<StringRef> entries;
    int depth = 0;
    size_t start = 0;
    for (size_t i = 0; i <= text.size(); ++i) {
      if (i < text.size() && (text[i] != ',' || depth)) {
        depth += text[i] == '<' ? 1 : text[i] == '>' ? -1 : 0;
        continue;
      }
      entries.push_back(text.slice(start, i).trim());
      start = i + 1;
    }
    return entries;
  }

  LogicalResult addStrategy(const Pin &pin, Value value) {
    Operation *op = value.getDefiningOp();
    if (!op ||
        isParameter(op, *cast<ShardingOpInterface>(op).getShardingRule()))
      return emitError(value.getLoc())
             << pin.source << ": '" << names[value]
             << "' is stored, not computed: a layout pins it, not a strategy";
    auto [from, to] = StringRef(pin.text).split("->");
    SmallVector<StringRef> reads = entriesOf(from), gives = entriesOf(to);
    if (reads.size() != op->getNumOperands() ||
        gives.size() != op->getNumResults())
      return op->emitError()
             << pin.source << ": '" << names[value] << "' reads "
             << op->getNumOperands() << " operands and gives "
             << op->getNumResults()
             << " results: <LAYOUT> or * for each, as in "
             << "'<tp = R>, * -> <tp = S(1)>', not '" << pin.text << "'";
    if (!llvm::is_contained(reads, "*") && !llvm::is_contained(gives, "*"))
      return fix(pin, op, reads, gives);
    for (auto [operand, text] : llvm::zip_equal(op->getOpOperands(), reads))
      if (text != "*")
        pins.layouts.push_back({pin.source, text.str(), {}, {&operand}});
    for (auto [result, text] : llvm::zip_equal(op->getResults(), gives))
      if (text != "*")
        pins.layouts.push_back({pin.source, text.str(), {result}, {}});
    return success();
  }

  /// Nothing is left open: any case of the op's rule may be asked for.
  LogicalResult fix(const Pin &pin, Operation *op, ArrayRef<StringRef> reads,
                    ArrayRef<StringRef> gives) {
    auto read = [&](ArrayRef<StringRef> texts, ValueRange values,
                    SmallVectorImpl<Layout> &layouts) -> LogicalResult {
      for (auto [text, value] : llvm::zip_equal(texts, values)) {
        std::string error;
        auto layout = parseWhole(text, value, mesh, error);
        if (!layout)
          return op->emitError() << pin.source << ": " << error;
        layouts.push_back(std::move(*layout));
      }
      return success();
    };
    SmallVector<Layout> operands, results;
    if (failed(read(reads, op->getOperands(), operands)) ||
        failed(read(gives, op->getResults(), results)))
      return failure();
    auto strategy =
        strategyOf(op, *cast<ShardingOpInterface>(op).getShardingRule(),
                   operands, results, mesh);
    if (!strategy)
      return op->emitError()
             << pin.source << ": '" << pin.text
             << "' is not a case of the sharding rule of " << op->getName();
    return fixStrategy(pins, op, std::move(*strategy), pin.source);
  }

  func::FuncOp function;
  const MeshShape &mesh;
  Pins &pins;
  PinNames names;
};

/// Attributes of ops and arguments.
class AnnotationReader {
public:
  AnnotationReader(func::FuncOp function, const MeshShape &mesh, Pins &pins)
      : function(function), mesh(mesh), pins(pins) {}

  LogicalResult run() {
    for (BlockArgument argument : function.getArguments()) {
      unsigned index = argument.getArgNumber();
      if (failed(readPin(argument.getLoc(), function.getArgAttr(index, kPin),
                         argument)) ||
          failed(readStorage(argument, function.getArgAttr(index, kPlan))))
        return failure();
    }
    for (Operation &op : function.getBody().front().without_terminator())
      if (failed(readPin(op.getLoc(), op.getAttr(kPin), op.getResults())) ||
          failed(readOp(op)))
        return failure();
    return success();
  }

private:
  LogicalResult readPin(Location loc, Attribute attribute, ValueRange values) {
    if (!attribute)
      return success();
    SmallVector<Attribute> texts{attribute};
    if (auto list = dyn_cast<ArrayAttr>(attribute))
      texts.assign(list.begin(), list.end());
    if (texts.size() != values.size() ||
        !llvm::all_of(texts, llvm::IsaPred<StringAttr>))
      return emitError(loc) << kPin << " of '" << valueName(values[0])
                            << "' is to be the text of a layout, one for each "
                               "of its "
                            << values.size() << " results";
    for (auto [value, text] : llvm::zip_equal(values, texts))
      pins.layouts.push_back(
          {kPin.str(), cast<StringAttr>(text).str(), {value}, {}});
    return success();
  }

  LogicalResult readLayouts(Location loc, StringRef name, DictionaryAttr entry,
                            StringRef key, ValueRange values,
                            SmallVectorImpl<Layout> &layouts) {
    auto list = entry.getAs<ArrayAttr>(key);
    if (!list || list.size() != values.size())
      return emitError(loc) << kPlan << " of '" << name << "' needs "
                            << values.size() << " " << key;
    for (auto [value, text] : llvm::zip_equal(values, list)) {
      std::string error = "a layout is not a text";
      std::optional<Layout> layout;
      if (auto string = dyn_cast<StringAttr>(text))
        layout = parseLayout(string,
                             cast<RankedTensorType>(value.getType()).getShape(),
                             mesh, error);
      if (!layout)
        return emitError(loc) << kPlan << " of '" << name << "': " << error;
      layouts.push_back(std::move(*layout));
    }
    return success();
  }

  LogicalResult readStorage(Value value, Attribute attribute) {
    if (!attribute)
      return success();
    auto entry = dyn_cast<DictionaryAttr>(attribute);
    SmallVector<Layout> layouts;
    std::string name = valueName(value);
    if (!entry)
      return emitError(value.getLoc())
             << kPlan << " of '" << name << "' is not {results = [..]}";
    if (failed(readLayouts(value.getLoc(), name, entry, "results", value,
                           layouts)))
      return failure();
    if (llvm::any_of(layouts[0].states, [](AxisState s) {
          return s.kind != Kind::I && s.kind != Kind::S;
        }))
      return emitError(value.getLoc())
             << kPlan << ": '" << name
             << "' is stored invariant or sharded only, not <"
             << layouts[0].text(mesh) << ">";
    pins.storage[value] = layouts[0];
    return success();
  }

  LogicalResult readOp(Operation &op) {
    Attribute attribute = op.getAttr(kPlan);
    auto rule = cast<ShardingOpInterface>(op).getShardingRule();
    if (!attribute || failed(rule))
      return rule;
    if (isParameter(&op, *rule))
      return readStorage(op.getResult(0), attribute);
    std::string name = valueName(op.getResult(0));
    auto entry = dyn_cast<DictionaryAttr>(attribute);
    if (!entry || isFreeSource(&op, *rule))
      return op.emitError() << kPlan << " of '" << name << "' "
                            << (entry ? "says a layout of a constant"
                                      : "is not {operands, results}");
    SmallVector<Layout> operands, results;
    if (failed(readLayouts(op.getLoc(), name, entry, "operands",
                           op.getOperands(), operands)) ||
        failed(readLayouts(op.getLoc(), name, entry, "results", op.getResults(),
                           results)))
      return failure();
    auto strategy = strategyOf(&op, *rule, operands, results, mesh);
    if (!strategy)
      return op.emitError()
             << kPlan << ": the layouts of '" << name
             << "' are not a case of the sharding rule of " << op.getName()
             << ": " << strategyText(operands, results, mesh);
    return fixStrategy(pins, &op, std::move(*strategy), kPlan);
  }

  func::FuncOp function;
  const MeshShape &mesh;
  Pins &pins;
};
} // namespace

LogicalResult findPins(func::FuncOp function, const PlanOptions &options,
                       ArrayRef<std::pair<std::string, int64_t>> axes,
                       const MeshShape &mesh, Pins &pins) {
  NamedPins named(function, mesh, pins);
  for (const auto &[pattern, text] : options.pins)
    if (failed(named.add(pattern, text)))
      return failure();
  // On one rank all layouts are the same.
  if (!options.annotations || mesh.ranks() == 1)
    return success();
  auto made = function->getParentOp()->getAttrOfType<StringAttr>(kPlanMesh);
  if (made && made != meshText(axes))
    return function.emitError()
           << "the module is annotated with a plan for mesh " << made.getValue()
           << ", not for " << meshText(axes);
  return AnnotationReader(function, mesh, pins).run();
}

/// What a pin asks of one value; nothing, and `error`, if it is malformed for
/// it.
static std::optional<std::function<bool(const Layout &)>>
demandOf(const Pin &pin, Value value, const MeshShape &mesh,
         std::string &error) {
  if (StringRef(pin.text).contains('<')) {
    auto wanted = parseWhole(pin.text, value, mesh, error);
    if (!wanted)
      return std::nullopt;
    return
        [wanted = *wanted](const Layout &layout) { return layout == wanted; };
  }
  auto shape = cast<RankedTensorType>(value.getType()).getShape();
  auto wanted = parseLayout(pin.text, shape, mesh, error);
  if (!wanted)
    return std::nullopt;
  bool unit = StringRef(pin.text).contains("unit");
  return [wanted = *wanted, named = namedAxes(pin.text, mesh),
          unit](const Layout &layout) {
    for (int axis : named) {
      AxisState want = wanted.states[axis];
      if (!(layout.states[axis] == want))
        return false;
      if (unit && want.kind == Kind::S &&
          layout.dims[want.dim].unit != wanted.dims[want.dim].unit)
        return false;
    }
    return true;
  };
}

/// True if the space has no such layout for the value unless it is relaxed.
static bool asksForMore(const Space &space, const Pin &pin, Value value) {
  std::string error;
  auto fits = demandOf(pin, value, space.meshShape(), error);
  if (!fits)
    return false;
  Operation *op = value.getDefiningOp();
  if (!op || isParameter(op, *cast<ShardingOpInterface>(op).getShardingRule()))
    return llvm::none_of(space.storage(value), *fits);
  unsigned result = cast<OpResult>(value).getResultNumber();
  return llvm::none_of(space.of(op).strategies, [&](const Strategy &strategy) {
    return (*fits)(strategy.results[result]);
  });
}

void openSpace(Space &space, const Pins &pins) {
  for (const auto &[op, strategy] : pins.ops)
    space.fix(op, strategy);
  for (const auto &[value, layout] : pins.storage)
    space.fix(value, layout);
  for (const Pin &pin : pins.layouts)
    for (Value value : pin.values)
      if (asksForMore(space, pin, value))
        space.relax(value);
}

static std::string inBrackets(const std::string &layout) {
  return layout.starts_with("<") ? layout : "<" + layout + ">";
}

LogicalResult restrictTo(Model &model, const Pin &pin, const MeshShape &mesh,
                         bool quiet) {
  for (Value value : pin.values) {
    std::string error;
    auto fits = demandOf(pin, value, mesh, error);
    if (!fits)
      return emitError(value.getLoc()) << pin.source << ": " << error;
    if (model.restrict(value, *fits))
      continue;
    if (quiet)
      return failure();
    std::vector<Layout> possible = model.choices(value);
    if (llvm::any_of(possible, *fits))
      return emitError(value.getLoc())
             << pin.source << ": '" << valueName(value)
             << "' cannot have the layout " << inBrackets(pin.text)
             << " together with the pins before it";
    std::string choices;
    for (const Layout &layout : possible)
      choices += (choices.empty() ? "<" : ", <") + layout.text(mesh) + ">";
    return emitError(value.getLoc())
           << pin.source << ": '" << valueName(value)
           << "' cannot have the layout " << inBrackets(pin.text)
           << "; it can have " << choices;
  }
  for (OpOperand *operand : pin.operands) {
    std::string error;
    auto fits = demandOf(pin, operand->get(), mesh, error);
    if (!fits)
      return operand->getOwner()->emitError() << pin.source << ": " << error;
    if (model.restrict(*operand, *fits))
      continue;
    if (quiet)
      return failure();
    Operation *reader = operand->getOwner();
    return reader->emitError()
           << pin.source << ": '" << valueName(reader->getResult(0))
           << "' cannot read '" << valueName(operand->get()) << "' as "
           << inBrackets(pin.text)
           << " in this plan, or not together with the pins before it";
  }
  return success();
}

std::optional<Strategy> strategyOf(Operation *op, const ShardingRule &rule,
                                   ArrayRef<Layout> operands,
                                   ArrayRef<Layout> results,
                                   const MeshShape &mesh) {
  SmallVector<AxisCase, 4> chosen(mesh.size());
  SmallVector<AxisCase, 8> all = enumerateCases(rule);
  SmallVector<int64_t, 4> units{1};
  for (ArrayRef<Layout> layouts : {operands, results})
    for (const Layout &layout : layouts)
      for (const DimCut &cut : layout.dims)
        for (int64_t part = 1; part <= cut.unit; ++part)
          if (cut.unit % part == 0 &&
              !llvm::is_contained(units, cut.unit / part))
            units.push_back(cut.unit / part);
  auto search = [&](auto &&self, int axis) -> std::optional<Strategy> {
    if (axis == mesh.size()) {
      auto strategy = combine(op, rule, chosen, mesh);
      if (strategy && ArrayRef<Layout>(strategy->operands) == operands &&
          ArrayRef<Layout>(strategy->results) == results)
        return strategy;
      return std::nullopt;
    }
    for (AxisCase c : all)
      for (int64_t unit : units) {
        if (unit > 1 && c.row != AxisCase::Row::Sharded)
          continue;
        c.unit = unit;
        chosen[axis] = c;
        if (auto found = self(self, axis + 1))
          return found;
      }
    return std::nullopt;
  };
  return search(search, 0);
}

//===----------------------------------------------------------------------===//
// Plans as attributes
//===----------------------------------------------------------------------===//

void annotatePlan(ModuleOp module, const Plan &plan) {
  func::FuncOp function = mainFunction(module);
  Builder builder(module.getContext());
  auto texts = [&](ArrayRef<Layout> layouts) {
    SmallVector<Attribute> list;
    for (const Layout &layout : layouts)
      list.push_back(builder.getStringAttr(layout.text(plan.mesh)));
    return builder.getArrayAttr(list);
  };
  auto entry = [&](StringRef key, ArrayRef<Layout> layouts) {
    return builder.getNamedAttr(key, texts(layouts));
  };
  module->setAttr(kPlanMesh, builder.getStringAttr(meshText(plan.axes)));
  for (auto [index, planned] : llvm::enumerate(plan.arguments))
    function.setArgAttr(
        index, kPlan,
        builder.getDictionaryAttr(entry("results", planned.results)));
  for (auto [op, planned] : llvm::zip_equal(
           function.getBody().front().without_terminator(), plan.ops)) {
    if (isConstant(&op))
      continue;
    SmallVector<NamedAttribute> entries;
    if (!planned.operands.empty())
      entries.push_back(entry("operands", planned.operands));
    entries.push_back(entry("results", planned.results));
    op.setAttr(kPlan, builder.getDictionaryAttr(entries));
  }
}

int64_t countAnnotations(ModuleOp module) {
  int64_t count = 0;
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (!function)
    return 0;
  for (StringRef name : {kPin, kPlan}) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      count += function.getArgAttr(i, name) != nullptr;
    function.walk([&](Operation *op) { count += op->hasAttr(name); });
  }
  return count;
}

void removeAnnotations(ModuleOp module) {
  module->removeAttr(kPlanMesh);
  func::FuncOp function = mainFunction(module);
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    for (StringRef name : {kPin, kPlan})
      function.removeArgAttr(i, name);
  for (Operation &op : function.getBody().front().without_terminator())
    for (StringRef name : {kPin, kPlan})
      op.removeAttr(name);
}

std::string annotatedMesh(ModuleOp module) {
  auto mesh = module->getAttrOfType<StringAttr>(kPlanMesh);
  return mesh ? mesh.str() : "";
}

std::string meshText(ArrayRef<std::pair<std::string, int64_t>> axes) {
  std::string text;
  for (const auto &[name, size] : axes)
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(size);
  return text;
}

} // namespace mtp::plan
