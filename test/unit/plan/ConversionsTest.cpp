// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Conversions.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>
#include <random>

using namespace mtp;
using namespace mtp::plan;

namespace {

MeshShape meshOf(std::vector<std::tuple<std::string, int, int64_t>> axes) {
  MeshShape mesh;
  for (auto &[name, part, size] : axes)
    mesh.axes.push_back({name, part, size});
  return mesh;
}

Machine machineOf(const MeshShape &mesh) {
  std::vector<std::pair<std::string, int64_t>> axes;
  for (const MeshShape::Axis &axis : mesh.axes)
    axes.push_back({axis.name(), axis.size});
  return Machine::cpuThreads(axes);
}

/// A layout of any states but partial maxima and minima.
Layout randomLayout(std::mt19937_64 &random, const TensorInfo &tensor,
                    const MeshShape &mesh) {
  Layout layout(mesh.size(), int(tensor.shape.size()));
  std::vector<int> order(mesh.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (int axis : order)
    switch (random() % 4) {
    case 0:
      layout.setKind(axis, Kind::I);
      break;
    case 1:
      layout.setKind(axis, Kind::R);
      break;
    case 2:
      layout.setKind(axis, Kind::PSum);
      break;
    default:
      layout.shard(axis, int(random() % tensor.shape.size()));
      break;
    }
  for (size_t dim = 0; dim < tensor.shape.size(); ++dim)
    if (!layout.dims[dim].axes.empty() && random() % 3 == 0)
      layout.dims[dim].unit = 2;
  layout.canonicalize(tensor.shape, mesh);
  return layout;
}

Layout dualOf(const Layout &layout) {
  Layout result = layout;
  for (AxisState &state : result.states)
    state.kind = dual(state.kind);
  return result;
}

const std::vector<MeshShape> meshes = {
    meshOf({{"tp", -1, 2}}), meshOf({{"tp", -1, 3}}),
    meshOf({{"dp", -1, 2}, {"tp", -1, 2}}),
    meshOf({{"dp", -1, 2}, {"tp", 0, 2}, {"tp", 1, 2}})};
const TensorInfo even{{4, 8, 16}, 4, true}, uneven{{3, 7, 10}, 8, true},
    integers{{4, 6}, 8, false};

TEST(Conversions, AreTheTable) {
  MeshShape mesh = meshOf({{"tp", -1, 2}});
  Conversions conversions(mesh, machineOf(mesh));
  auto name = [&](const char *from, const char *to) -> std::string {
    std::string error;
    auto a = parseLayout(from, even.shape, mesh, error),
         b = parseLayout(to, even.shape, mesh, error);
    ConversionPath path = conversions.pathBetween(even, *a, *b);
    std::string names;
    for (const ConversionStep &step : path.steps)
      names += (names.empty() ? "" : " ") + step.name.str();
    return path.cost >= kIllegal ? "none" : names;
  };
  EXPECT_EQ(name("", "tp = R"), "mtp.copy_to");
  EXPECT_EQ(name("tp = P(sum)", ""), "mtp.reduce_from");
  EXPECT_EQ(name("tp = P(sum)", "tp = R"), "mtp.all_reduce");
  EXPECT_EQ(name("tp = S(1)", "tp = R"), "mtp.all_gather");
  EXPECT_EQ(name("tp = S(1)", ""), "mtp.gather_from");
  EXPECT_EQ(name("tp = P(sum)", "tp = S(2)"), "mtp.reduce_scatter");
  EXPECT_EQ(name("", "tp = S(0)"), "mtp.scatter_to");
  EXPECT_EQ(name("tp = R", "tp = S(0)"), "mtp.slice");
  EXPECT_EQ(name("tp = S(0)", "tp = S(1)"), "mtp.all_to_all");
  EXPECT_EQ(name("tp = S(0)", "tp = P(sum)"), "mtp.pad_to");
  EXPECT_EQ(name("", "tp = P(sum)"), "mtp.root_to");
  EXPECT_EQ(name("tp = R", ""), "mtp.assert_invariant");
  EXPECT_EQ(name("tp = R", "tp = P(sum)"), "mtp.root_of");
  EXPECT_EQ(name("tp = P(max)", ""), "mtp.reduce_max_from");
  EXPECT_EQ(name("tp = P(max)", "tp = S(0)"),
            "mtp.reduce_max_from mtp.scatter_to");
  EXPECT_EQ(name("", "tp = P(max)"), "none");
  EXPECT_EQ(name("tp = P(sum)", "tp = P(max)"), "none");
}

TEST(Conversions, OfValuesWithoutCotangentReadInvariantAsReplicated) {
  MeshShape mesh = meshOf({{"tp", -1, 2}});
  Conversions conversions(mesh, machineOf(mesh));
  Layout whole(1, 2), replicated(1, 2);
  replicated.setKind(0, Kind::R);
  EXPECT_TRUE(
      conversions.pathBetween(integers, whole, replicated).steps.empty());
  EXPECT_EQ(conversions.cost(integers, whole, replicated), 0);
  TensorInfo floats{{4, 6}, 4, true};
  EXPECT_GT(conversions.cost(floats, whole, replicated), 0);
}

TEST(Conversions, ObeyTheTriangleInequality) {
  std::mt19937_64 random(5);
  const TensorInfo longs{{12, 24, 48}, 8, false};
  for (const MeshShape &mesh : meshes)
    for (const TensorInfo &tensor : {even, uneven, longs}) {
      Conversions conversions(mesh, machineOf(mesh));
      for (int run = 0; run < 150; ++run) {
        Layout a = randomLayout(random, tensor, mesh),
               b = randomLayout(random, tensor, mesh),
               c = randomLayout(random, tensor, mesh);
        ASSERT_LT(conversions.cost(tensor, a, b), kIllegal)
            << a.text(mesh) << " -> " << b.text(mesh);
        EXPECT_LE(conversions.cost(tensor, a, c),
                  conversions.cost(tensor, a, b) +
                      conversions.cost(tensor, b, c))
            << a.text(mesh) << " -> " << b.text(mesh) << " -> " << c.text(mesh);
        EXPECT_EQ(conversions.cost(tensor, a, a), 0);
        EXPECT_TRUE(conversions.pathBetween(tensor, a, a).steps.empty());
      }
    }
}

TEST(Conversions, LeastCostsAreBoundsOfAllCosts) {
  std::mt19937_64 random(8);
  Time allLeast = 0, allCosts = 0;
  for (const MeshShape &mesh : meshes)
    for (const TensorInfo &tensor : {even, uneven, integers}) {
      Conversions conversions(mesh, machineOf(mesh));
      std::vector<Layout> layouts;
      std::vector<const Layout *> all;
      for (int i = 0; i < 20; ++i)
        layouts.push_back(randomLayout(random, tensor, mesh));
      for (const Layout &layout : layouts)
        all.push_back(&layout);
      std::vector<Time> least = conversions.leastCosts(tensor, all, all);
      ASSERT_EQ(least.size(), layouts.size() * layouts.size());
      for (size_t i = 0; i < least.size(); ++i) {
        const Layout &from = layouts[i / layouts.size()],
                     &to = layouts[i % layouts.size()];
        Time cost = conversions.cost(tensor, from, to);
        EXPECT_LE(least[i], cost);
        allLeast += least[i];
        allCosts += cost;
      }
    }
  EXPECT_GT(double(allLeast), 0.9 * double(allCosts));
}

TEST(Conversions, CostAsMuchAsTheirConjugates) {
  std::mt19937_64 random(6);
  for (const MeshShape &mesh : meshes)
    for (const TensorInfo &tensor : {even, uneven}) {
      Conversions conversions(mesh, machineOf(mesh));
      for (int run = 0; run < 150; ++run) {
        Layout a = randomLayout(random, tensor, mesh),
               b = randomLayout(random, tensor, mesh);
        EXPECT_EQ(conversions.cost(tensor, a, b),
                  conversions.cost(tensor, dualOf(b), dualOf(a)))
            << a.text(mesh) << " -> " << b.text(mesh);
      }
    }
}

TEST(Conversions, AreWellTypedOpsThatEndInTheTarget) {
  mlir::MLIRContext context;
  context.loadDialect<MtpDialect>();
  std::mt19937_64 random(7);
  for (const MeshShape &mesh : meshes)
    for (const TensorInfo &tensor : {even, uneven}) {
      Conversions conversions(mesh, machineOf(mesh));
      for (int run = 0; run < 60; ++run) {
        Layout from = randomLayout(random, tensor, mesh),
               to = randomLayout(random, tensor, mesh);
        mlir::OwningOpRef<mlir::ModuleOp> module(
            mlir::ModuleOp::create(mlir::UnknownLoc::get(&context)));
        auto builder = mlir::OpBuilder::atBlockBegin(module->getBody());
        llvm::SmallVector<mlir::Attribute> names, factors;
        for (size_t axis = 0; axis < mesh.axes.size(); ++axis)
          if (mesh.axes[axis].part <= 0) {
            names.push_back(builder.getStringAttr(mesh.axes[axis].parent));
            llvm::SmallVector<int64_t> sizes;
            for (int part : mesh.find(mesh.axes[axis].parent))
              sizes.push_back(mesh.axes[part].size);
            factors.push_back(builder.getDenseI64ArrayAttr(sizes));
          }
        MeshOp::create(builder, module->getLoc(), "mesh",
                       builder.getArrayAttr(names),
                       builder.getArrayAttr(factors));
        auto type =
            mlir::RankedTensorType::get(tensor.shape, builder.getF32Type());
        mlir::OperationState state(module->getLoc(),
                                   "builtin.unrealized_conversion_cast");
        state.addTypes(withLayout(type, toAttr(&context, from, mesh)));
        mlir::Value value = builder.create(state)->getResult(0);
        Time sum = 0;
        ConversionPath path = conversions.pathBetween(tensor, from, to);
        for (const ConversionStep &step : path.steps) {
          value = createConversion(builder, module->getLoc(), step.name, value,
                                   step.axes, step.result, mesh);
          sum += step.forward.time + step.backward.time;
        }
        EXPECT_EQ(sum, path.cost);
        EXPECT_EQ(layoutOf(value.getType()), toAttr(&context, to, mesh));
        EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)))
            << from.text(mesh) << " -> " << to.text(mesh);
      }
    }
}

TEST(Conversions, JoinThePartsOfARefinedAxis) {
  MeshShape mesh = meshOf({{"tp", 0, 2}, {"tp", 1, 2}});
  Conversions conversions(mesh, machineOf(mesh));
  std::string error;
  auto partial = parseLayout("tp = P(sum)", even.shape, mesh, error);
  ConversionPath path = conversions.pathBetween(even, *partial, Layout(2, 3));
  ASSERT_EQ(path.steps.size(), 1u);
  EXPECT_EQ(path.steps[0].name, "mtp.reduce_from");
  EXPECT_EQ(path.steps[0].axes.size(), 2u);
  EXPECT_EQ(path.steps[0].forward.bytes, 4 * 8 * 16 * 4);
  auto sharded = parseLayout("tp = S(1)", even.shape, mesh, error);
  path = conversions.pathBetween(even, *sharded, Layout(2, 3));
  ASSERT_EQ(path.steps.size(), 1u);
  EXPECT_EQ(path.steps[0].forward.bytes, 4 * 2 * 16 * 4);
}

} // namespace
