// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MutantTest.cpp - kernels that are wrong in one place are caught ----===//
//
// A mutant (Mutator.h) is caught if the emulator reports an error or a result
// differs. A sample is tested. MTP_MUTANTS=all tests every one and prints those
// that live; MTP_MUTANTS=i/n the i-th of n parts of them, from 0.
//
//===----------------------------------------------------------------------===//
#include "test/unit/codegen/KernelRunner.h"
#include "test/unit/emulator/EmulatedRunner.h"
#include "test/unit/emulator/Mutator.h"

#include "dialects/mtp/MtpDialect.h"
#include "dialects/spmd/SpmdDialect.h"

#include "mlir/Parser/Parser.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace mtp;
using namespace mtp::test;

namespace {

struct Family {
  std::string name, file;
  Road road;
  /// Also tried with inputs so many times as large: attention computes scores
  /// of more than 256 by other code, and the shift of a softmax matters only
  /// where exp would overflow.
  double factor = 1;
};

const Family families[] = {
    {"Elements", MTP_CODEGEN_TEST_DIR "/elementwise.mlir", Road::Fused},
    {"Moves", MTP_CODEGEN_TEST_DIR "/moves.mlir", Road::Fused},
    {"Rows", MTP_CODEGEN_TEST_DIR "/rows.mlir", Road::Fused, 1000},
    {"Wide", MTP_EMULATOR_TEST_DIR "/wide.mlir", Road::Fused, 1000},
    {"Blocks", MTP_CODEGEN_TEST_DIR "/blocks.mlir", Road::Fused},
    {"Library", MTP_EMULATOR_TEST_DIR "/library.mlir", Road::Single, 30},
    {"Matrix", MTP_EMULATOR_TEST_DIR "/matrix.mlir", Road::Single, 30}};

/// Which places of a func are tested.
struct Choice {
  int64_t first = 0, step = 1;
  bool barriers = false; ///< all of them
  bool has(int64_t place, bool isBarrier) const {
    return place % step == first || (barriers && isBarrier);
  }
};

/// A barrier without which no race is found orders nothing: each thread reads
/// what it wrote itself. Such mutants are no other programs.
struct Tally {
  int64_t mutants = 0, caught = 0, barriers = 0, redundant = 0;
  std::vector<std::string> survivors, redundantOnes;
};

/// Runs a mutant in a process of its own: it may divide by zero, or never end.
bool isCaught(llvm::function_ref<bool()> differs) {
  constexpr rlim_t kSeconds = 10;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    rlimit limit{kSeconds, kSeconds};
    setrlimit(RLIMIT_CPU, &limit);
    bool caught = true;
    try {
      caught = differs();
    } catch (const std::exception &) {
    }
    _exit(caught);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

/// Runs all kernels of one func.
class Subject {
public:
  Subject(func::FuncOp func, const Family &family)
      : family(family), alone(ModuleOp::create(func.getLoc())) {
    OpBuilder builder = OpBuilder::atBlockEnd(alone->getBody());
    copy = cast<func::FuncOp>(builder.clone(*func));
    arguments.push_back(randomArguments(copy, 17));
    if (family.factor == 1)
      return;
    arguments.push_back(arguments[0]);
    for (auto [type, tensor] :
         llvm::zip(copy.getArgumentTypes(), arguments.back()))
      if (isa<FloatType>(cast<RankedTensorType>(type).getElementType()))
        for (double &x : tensor.data)
          x *= family.factor;
  }
  EmulatedRunner build(Mutator &mutator) {
    return EmulatedRunner(*alone, family.road, "sm_80",
                          [&](gpu::GPUModuleOp code) { mutator.run(code); });
  }
  std::vector<Tensor> run(Mutator &mutator) {
    EmulatedRunner runner = build(mutator);
    std::vector<Tensor> all;
    for (const auto &set : arguments)
      for (Tensor &tensor : runner.run(copy, set))
        all.push_back(std::move(tensor));
    return all;
  }
  std::string name() { return copy.getName().str(); }

private:
  const Family &family;
  OwningOpRef<ModuleOp> alone;
  func::FuncOp copy;
  std::vector<std::vector<Tensor>> arguments;
};

void testMutants(Subject &subject, Choice choice, Tally &tally) {
  Mutator none(-1);
  std::vector<Tensor> expected = subject.run(none);
  for (int64_t place = 0; place < int64_t(none.names.size()); ++place) {
    const std::string &name = none.names[place];
    bool isBarrier = StringRef(name).starts_with("without");
    if (!choice.has(place, isBarrier))
      continue;
    bool caught = isCaught([&] {
      Mutator mutator(place);
      std::vector<Tensor> actual = subject.run(mutator);
      bool differs = false;
      for (size_t i = 0; i < expected.size(); ++i)
        differs |= !difference(actual[i], expected[i], 1e-6).empty();
      return differs;
    });
    tally.barriers += isBarrier;
    tally.redundant += isBarrier && !caught;
    tally.mutants += !isBarrier || caught;
    tally.caught += caught;
    if (caught)
      continue;
    Mutator shown(place);
    subject.build(shown);
    (isBarrier ? tally.redundantOnes : tally.survivors)
        .push_back(subject.name() + ": " + name + ", place " +
                   std::to_string(place) + ": " + shown.wantedText);
  }
}

class Mutants : public testing::TestWithParam<Family> {};

} // namespace

TEST_P(Mutants, AreCaught) {
  const Family &family = GetParam();
  const char *variable = getenv("MTP_MUTANTS");
  std::string wish = variable ? variable : "";
  Choice part;
  bool isSample = wish != "all" &&
                  sscanf(wish.c_str(), "%ld/%ld", &part.first, &part.step) != 2;
  Tally tally;
  MLIRContext context(MLIRContext::Threading::DISABLED); // survives fork
  context.loadDialect<MtpDialect, spmd::SpmdDialect, func::FuncDialect>();
  auto module = parseSourceFile<ModuleOp>(family.file, &context);
  ASSERT_TRUE(module);
  // A sample: of every fourth func some places.
  int64_t number = 0, step = family.road == Road::Fused ? 5 : 41;
  for (auto func : module->getOps<func::FuncOp>()) {
    Subject subject(func, family);
    if (!isSample)
      testMutants(subject, part, tally);
    else if (number % 4 == 0)
      testMutants(subject, {number % step, step, true}, tally);
    ++number;
  }
  printf("%s: %ld mutants, %ld caught; %ld of %ld barriers are redundant\n",
         family.name.c_str(), tally.mutants, tally.caught, tally.redundant,
         tally.barriers);
  for (const std::string &survivor : tally.survivors)
    printf("lives: %s\n", survivor.c_str());
  for (const std::string &barrier : tally.redundantOnes)
    printf("redundant: %s\n", barrier.c_str());
  EXPECT_GT(tally.mutants, 0);
  EXPECT_GE(double(tally.caught), 0.95 * double(tally.mutants));
}

INSTANTIATE_TEST_SUITE_P(Families, Mutants, testing::ValuesIn(families),
                         [](const auto &info) { return info.param.name; });
