// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/fuzz/ConversionPrograms.h"

#include "test/fuzz/LayoutMaker.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::fuzz;

namespace {
/// One end of a conversion on some axes.
struct End {
  Kind kind;
  int dim = -1;
  int64_t unit = 1;
};

class ConversionBuilder {
public:
  ConversionBuilder(func::FuncOp values, const MeshShape &mesh,
                    std::vector<ConversionTrial> &trials)
      : program(values, &mesh), maker(program.builder, values.getLoc(), mesh),
        mesh(mesh), trials(trials) {}

  OwningOpRef<ModuleOp> run() {
    addTrials();
    return program.finish();
  }

  GradientProgram runGradients() {
    GradientProgram result;
    SourceCopies copies;
    LossMaker losses(program.builder, program.main.getLoc(),
                     wholeTypes(maker, mesh));
    Value total;
    source = [&](Value whole) {
      return copies.copy(program.builder, whole,
                         std::to_string(trials.size()) + ".0");
    };
    finish = [&](Value value, const Layout &layout) {
      total = losses.add(total, losses.make(maker.bringBack(value, layout)));
    };
    addTrials();
    program.add(total, "loss");
    func::FuncOp main = program.main;
    result.module = program.finish();
    result.error = copies.differentiate(main);
    return result;
  }

private:
  void addTrials() {
    MLIRContext *context = program.builder.getContext();
    for (BlockArgument argument : program.main.getArguments())
      for (RegisteredOperationName name : context->getRegisteredOperations())
        if (auto *conversion = name.getInterface<ConversionOpInterface>())
          for (SmallVector<int> &axes :
               axisLists(conversion->getTransfer() == Transfer::Permute))
            runOn(argument, name.getStringRef(), conversion->fromKind(),
                  conversion->toKind(), axes);
  }

  /// Every axis alone and neighbours in both orders.
  std::vector<SmallVector<int>> axisLists(bool severalOnly) {
    std::vector<SmallVector<int>> lists;
    for (int axis = 0; axis < mesh.size(); ++axis) {
      if (!severalOnly)
        lists.push_back({axis});
      if (axis + 1 < mesh.size())
        lists.insert(lists.end(), {{axis, axis + 1}, {axis + 1, axis}});
    }
    return lists;
  }

  std::vector<End> ends(ArrayRef<int64_t> shape, Kind kind) {
    if (kind != Kind::S)
      return {{kind}};
    std::vector<End> all;
    for (int dim = 0, rank = shape.size(); dim < rank; ++dim)
      for (int64_t unit : {1, 2})
        all.push_back({kind, dim, unit});
    return all;
  }

  /// All combinations of both ends, with every state of one other axis.
  void runOn(BlockArgument argument, StringRef name, Kind from, Kind to,
             ArrayRef<int> axes) {
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(argument.getType()).getShape();
    SmallVector<Layout> grounds{Layout(mesh.size(), shape.size())};
    for (int other = 0; other < mesh.size(); ++other) {
      if (llvm::is_contained(axes, other))
        continue;
      grounds.push_back(grounds[0]);
      grounds.back().states[other] = {Kind::R, -1};
      for (int dim = 0, rank = shape.size(); dim < rank; ++dim) {
        grounds.push_back(grounds[0]);
        grounds.back().shard(other, dim);
      }
    }
    for (const Layout &ground : grounds)
      for (End start : ends(shape, from))
        for (End end : ends(shape, to))
          addTrial(argument, name, axes, ground, start, end);
  }

  std::optional<Layout> put(Layout layout, ArrayRef<int> axes, End end,
                            ArrayRef<int64_t> shape) {
    for (int axis : axes) {
      layout.states[axis] = {end.kind, -1};
      if (end.kind == Kind::S) {
        layout.states[axis] = {Kind::I, -1};
        layout.shard(axis, end.dim);
        layout.dims[end.dim].unit =
            std::max(layout.dims[end.dim].unit, end.unit);
      }
    }
    Layout canonical = layout;
    canonical.canonicalize(shape, mesh);
    // Another unit that makes no difference is another trial's.
    if (end.kind == Kind::S && end.unit != 1 &&
        canonical.dims[end.dim].unit != end.unit)
      return std::nullopt;
    return canonical;
  }

  void addTrial(BlockArgument argument, StringRef name, ArrayRef<int> axes,
                const Layout &ground, End start, End end) {
    auto type = cast<RankedTensorType>(argument.getType());
    bool permutes = name == "mtp.permute";
    if (start.kind == Kind::S && end.kind == Kind::S &&
        (start.dim == end.dim) != permutes)
      return;
    SmallVector<int> endAxes(axes);
    if (permutes)
      std::reverse(endAxes.begin(), endAxes.end());
    auto from = put(ground, axes, start, type.getShape()),
         to = put(ground, endAxes, end, type.getShape());
    if (!from || !to || !sameOutside(*from, *to, start, end))
      return;
    if (permutes &&
        (from->isPadded(start.dim, type.getDimSize(start.dim), mesh) ||
         to->isPadded(start.dim, type.getDimSize(start.dim), mesh)))
      return;
    if (source && (!isa<FloatType>(type.getElementType()) ||
                   start.kind == Kind::PMax || start.kind == Kind::PMin))
      return;
    Value whole = source ? source(argument) : argument;
    Value value = maker.make(whole, *from);
    if (!value)
      return;
    value = createConversion(program.builder, argument.getLoc(), name, value,
                             axes, *to, mesh);
    ConversionTrial trial;
    trial.argument = argument.getArgNumber();
    trial.op = name.str();
    trial.row = axes.size() == 1 ? "one axis" : "several axes";
    trial.text = name.str() + " " + llvm::join(mesh.names(axes), ",") + " <" +
                 from->text(mesh) + "> to <" + to->text(mesh) + ">";
    if (finish)
      finish(value, *to);
    else
      program.add(maker.finish(value, *to),
                  std::to_string(trials.size()) + ".0");
    trials.push_back(std::move(trial));
  }

  /// A unit may not change in a dimension that other axes cut as well.
  bool sameOutside(const Layout &from, const Layout &to, End start, End end) {
    for (auto [dim, cuts] :
         llvm::enumerate(llvm::zip_equal(from.dims, to.dims))) {
      auto &[a, b] = cuts;
      if (!a.axes.empty() && !b.axes.empty() && a.unit != b.unit)
        return false;
    }
    return start.kind != Kind::S || end.kind != Kind::S ||
           start.dim != end.dim || start.unit == end.unit;
  }

  Program program;
  LayoutMaker maker;
  const MeshShape &mesh;
  std::vector<ConversionTrial> &trials;
  /// With gradients: the copy of a value, and what becomes of a result.
  std::function<Value(Value)> source;
  std::function<void(Value, const Layout &)> finish;
};
} // namespace

GradientProgram
fuzz::buildConversionGradients(func::FuncOp values, const MeshShape &mesh,
                               std::vector<ConversionTrial> &trials) {
  return ConversionBuilder(values, mesh, trials).runGradients();
}

OwningOpRef<ModuleOp>
fuzz::buildConversions(func::FuncOp values, const MeshShape &mesh,
                       std::vector<ConversionTrial> &trials) {
  return ConversionBuilder(values, mesh, trials).run();
}
