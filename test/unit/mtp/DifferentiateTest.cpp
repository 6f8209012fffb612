// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- DifferentiateTest.cpp - no conjugate can be left out ---------------===//

#include "compiler/autodiff/Differentiate.h"
#include "dialects/mtp/Gradient.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mtp;

namespace {
// A norm whose scale and input pass through f, a column cut and a row cut on
// tp, all with the batch cut on dp. The loss is a square, so that no cotangent
// is a constant, which would be accepted in any state.
constexpr const char *program = R"mlir(
mtp.mesh @mesh <dp = 2, tp = 2>
mtp.initializer @s : tensor<8xf32> {file = "m", offset = 0 : i64, bytes = 32 : i64}
mtp.initializer @v : tensor<8x16xf32> {file = "m", offset = 0 : i64, bytes = 512 : i64}
mtp.initializer @w : tensor<16x8xf32> {file = "m", offset = 0 : i64, bytes = 512 : i64}
func.func @main(%x: tensor<4x8xf32, #mtp.layout<@mesh, dp = S(0)>>) -> (tensor<f32, #mtp.layout<@mesh>> {mtp.loss}) {
  %s = mtp.parameter @s {mtp.trainable = 0 : i64} : tensor<8xf32, #mtp.layout<@mesh>>
  %v = mtp.parameter @v {mtp.trainable = 1 : i64} : tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>
  %w = mtp.parameter @w {mtp.trainable = 2 : i64} : tensor<16x8xf32, #mtp.layout<@mesh, tp = S(0)>>
  %s1 = mtp.copy_to %s ["dp"] : (tensor<8xf32, #mtp.layout<@mesh>>) -> tensor<8xf32, #mtp.layout<@mesh, dp = R>>
  %v1 = mtp.copy_to %v ["dp"] : (tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1)>>) -> tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1), dp = R>>
  %w1 = mtp.copy_to %w ["dp"] : (tensor<16x8xf32, #mtp.layout<@mesh, tp = S(0)>>) -> tensor<16x8xf32, #mtp.layout<@mesh, tp = S(0), dp = R>>
  %n = mtp.rms_norm %x, %s1 {epsilon = 1.0e-6 : f64} : (tensor<4x8xf32, #mtp.layout<@mesh, dp = S(0)>>, tensor<8xf32, #mtp.layout<@mesh, dp = R>>) -> tensor<4x8xf32, #mtp.layout<@mesh, dp = S(0)>>
  %f = mtp.copy_to %n ["tp"] : (tensor<4x8xf32, #mtp.layout<@mesh, dp = S(0)>>) -> tensor<4x8xf32, #mtp.layout<@mesh, dp = S(0), tp = R>>
  %h = mtp.matmul %f, %v1 : (tensor<4x8xf32, #mtp.layout<@mesh, dp = S(0), tp = R>>, tensor<8x16xf32, #mtp.layout<@mesh, tp = S(1), dp = R>>) -> tensor<4x16xf32, #mtp.layout<@mesh, dp = S(0), tp = S(1)>>
  %a = mtp.gelu %h : (tensor<4x16xf32, #mtp.layout<@mesh, dp = S(0), tp = S(1)>>) -> tensor<4x16xf32, #mtp.layout<@mesh, dp = S(0), tp = S(1)>>
  %p = mtp.matmul %a, %w1 : (tensor<4x16xf32, #mtp.layout<@mesh, dp = S(0), tp = S(1)>>, tensor<16x8xf32, #mtp.layout<@mesh, tp = S(0), dp = R>>) -> tensor<4x8xf32, #mtp.layout<@mesh, dp = S(0), tp = P(sum)>>
  %y = mtp.reduce_from %p ["tp"] : (tensor<4x8xf32, #mtp.layout<@mesh, dp = S(0), tp = P(sum)>>) -> tensor<4x8xf32, #mtp.layout<@mesh, dp = S(0)>>
  %l = mtp.reduce_sum %y dims [0, 1] : (tensor<4x8xf32, #mtp.layout<@mesh, dp = S(0)>>) -> tensor<f32, #mtp.layout<@mesh, dp = P(sum)>>
  %z = mtp.reduce_from %l ["dp"] : (tensor<f32, #mtp.layout<@mesh, dp = P(sum)>>) -> tensor<f32, #mtp.layout<@mesh>>
  %q = mtp.mul %z, %z : (tensor<f32, #mtp.layout<@mesh>>, tensor<f32, #mtp.layout<@mesh>>) -> tensor<f32, #mtp.layout<@mesh>>
  return %q : tensor<f32, #mtp.layout<@mesh>>
}
)mlir";

struct Fixture {
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  Fixture() {
    context.loadDialect<MtpDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(program, &context);
    EXPECT_TRUE(module);
    EXPECT_TRUE(succeeded(autodiff::differentiate(main(*module))));
    EXPECT_TRUE(succeeded(verify(*module)));
  }
  static func::FuncOp main(ModuleOp module) {
    return *module.getOps<func::FuncOp>().begin();
  }
  /// Conversions of the backward, in a copy of the module.
  static SmallVector<Operation *> backward(ModuleOp module) {
    SmallVector<Operation *> found;
    module.walk([&](ConversionOpInterface op) {
      if (op->hasAttr("phase"))
        found.push_back(op);
    });
    return found;
  }
};
} // namespace

/// Every conversion has a conjugate: of dual states, from the result's
/// cotangent to the operand's, and both carry one number.
TEST(Differentiate, PairsOfConjugates) {
  Fixture fixture;
  MeshShape mesh = fixture.module->lookupSymbol<MeshOp>("mesh").getShape();
  std::map<int64_t, SmallVector<ConversionOpInterface>> pairs;
  fixture.module->walk([&](ConversionOpInterface op) {
    pairs[op->getAttrOfType<IntegerAttr>("pair").getInt()].push_back(op);
  });
  EXPECT_EQ(pairs.size(), 6u);
  for (auto &[number, pair] : pairs) {
    ASSERT_EQ(pair.size(), 2u);
    EXPECT_EQ(pair[1]->getName().getStringRef(), pair[0].getConjugateName());
    EXPECT_EQ(pair[1].fromKind(), dual(pair[0].toKind()));
    EXPECT_EQ(pair[1].toKind(), dual(pair[0].fromKind()));
    EXPECT_EQ(pair[1]->getResult(0).getType(),
              cotangentType(pair[0]->getOperand(0), mesh));
    EXPECT_EQ(pair[1]->getOperand(0).getType(),
              cotangentType(pair[0]->getResult(0), mesh));
  }
}

/// A program in which one of them is missing is refused.
TEST(Differentiate, MissingConjugateIsRefused) {
  Fixture fixture;
  size_t count = Fixture::backward(*fixture.module).size();
  EXPECT_EQ(count, 6u);
  for (size_t index = 0; index < count; ++index) {
    OwningOpRef<ModuleOp> copy(fixture.module->clone());
    Operation *missing = Fixture::backward(*copy)[index];
    missing->getResult(0).replaceAllUsesWith(missing->getOperand(0));
    missing->erase();
    ScopedDiagnosticHandler quiet(&fixture.context, [](Diagnostic &) {});
    EXPECT_TRUE(failed(verify(*copy)))
        << "without conversion " << index << " of the backward";
  }
}

/// Not even with all types behind it made anew: then an op has no layout, or a
/// gradient is not the dual of its value.
TEST(Differentiate, MissingConjugateCannotBeTypedAround) {
  Fixture fixture;
  MeshShape mesh = fixture.module->lookupSymbol<MeshOp>("mesh").getShape();
  TypeRange types = Fixture::main(*fixture.module)
                        .getBody()
                        .front()
                        .getTerminator()
                        ->getOperandTypes();
  size_t count = Fixture::backward(*fixture.module).size();
  for (size_t index = 0; index < count; ++index) {
    OwningOpRef<ModuleOp> copy(fixture.module->clone());
    Operation *missing = Fixture::backward(*copy)[index];
    Operation *next = missing->getNextNode();
    missing->getResult(0).replaceAllUsesWith(missing->getOperand(0));
    missing->erase();
    ScopedDiagnosticHandler quiet(&fixture.context, [](Diagnostic &) {});
    bool typed = true;
    for (; next && !isa<func::ReturnOp>(next); next = next->getNextNode()) {
      std::string why;
      typed &= isa<ConversionOpInterface>(next)
                   ? succeeded(verify(next))
                   : succeeded(inferLayouts(next, mesh, why));
    }
    EXPECT_TRUE(!typed || next->getOperandTypes() != types)
        << "without conversion " << index << " of the backward";
  }
}
