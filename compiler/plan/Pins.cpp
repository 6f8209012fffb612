// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Pins.h"

#include "llvm/Support/GlobPattern.h"

#include <functional>

using namespace mlir;

namespace mtp::plan {

/// Axes (finest) that the layout text names.
static SmallVector<int, 4> namedAxes(StringRef text, const MeshShape &mesh) {
  SmallVector<int, 4> named;
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

LogicalResult findPinned(func::FuncOp function, const PlanOptions &options,
                         std::vector<Pin> &pins) {
  std::vector<Value> all(function.getArguments().begin(),
                         function.getArguments().end());
  for (Operation &op : function.getBody().front().without_terminator())
    all.insert(all.end(), op.result_begin(), op.result_end());
  for (const auto &[pattern, text] : options.pins) {
    auto glob = llvm::GlobPattern::create(pattern);
    if (!glob) {
      llvm::consumeError(glob.takeError());
      return function.emitError()
             << "--pin: '" << pattern << "' is not a pattern";
    }
    Pin pin{pattern, text, {}};
    for (Value value : all)
      if (std::string name = valueName(value);
          name == pattern || glob->match(name))
        pin.values.push_back(value);
    if (pin.values.empty())
      return function.emitError()
             << "--pin: no value is named '" << pattern << "'";
    pins.push_back(std::move(pin));
  }
  return success();
}

/// What a pin asks of one value; nothing, and `error`, if it is malformed for
/// it.
static std::optional<std::function<bool(const Layout &)>>
demandOf(const Pin &pin, Value value, const MeshShape &mesh,
         std::string &error) {
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

bool asksForMore(const Space &space, const Pin &pin, Value value) {
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

LogicalResult restrictTo(Model &model, const Pin &pin, const MeshShape &mesh,
                         bool quiet) {
  for (Value value : pin.values) {
    std::string error;
    auto fits = demandOf(pin, value, mesh, error);
    if (!fits)
      return emitError(value.getLoc())
             << "--pin " << pin.pattern << ": " << error;
    if (model.restrict(value, *fits))
      continue;
    if (quiet)
      return failure();
    std::string choices;
    for (const Layout &layout : model.choices(value))
      choices += (choices.empty() ? "<" : ", <") + layout.text(mesh) + ">";
    return emitError(value.getLoc())
           << "--pin " << pin.pattern << ": '" << valueName(value)
           << "' cannot have the layout <" << pin.text << ">; it can have "
           << choices;
  }
  return success();
}

} // namespace mtp::plan
