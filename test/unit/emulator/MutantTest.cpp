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
};

const Family families[] = {
    {"Elements", MTP_CODEGEN_TEST_DIR "/elementwise.mlir", Road::Fused},
    {"Moves", MTP_CODEGEN_TEST_DIR "/moves.mlir", Road::Fused},
    {"Rows", MTP_CODEGEN_TEST_DIR "/rows.mlir", Road::Fused},
    {"Blocks", MTP_CODEGEN_TEST_DIR "/blocks.mlir", Road::Fused},
    {"Library", MTP_EMULATOR_TEST_DIR "/library.mlir", Road::Single},
    {"Matrix", MTP_EMULATOR_TEST_DIR "/matrix.mlir", Road::Single}};

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
  std::vector<std::string> survivors;
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

void testMutants(func::FuncOp func, Road road, Choice choice, Tally &tally) {
  OwningOpRef<ModuleOp> alone = ModuleOp::create(func.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(alone->getBody());
  auto copy = cast<func::FuncOp>(builder.clone(*func));
  auto arguments = randomArguments(copy, 17);
  auto attempt = [&](Mutator &mutator) {
    EmulatedRunner runner(*alone, road, "sm_80", [&](gpu::GPUModuleOp module) {
      mutator.run(module);
    });
    return runner.run(copy, arguments);
  };
  Mutator none(-1);
  std::vector<Tensor> expected = attempt(none);
  for (int64_t place = 0; place < int64_t(none.names.size()); ++place) {
    bool isBarrier = StringRef(none.names[place]).starts_with("without");
    if (!choice.has(place, isBarrier))
      continue;
    bool caught = isCaught([&] {
      Mutator mutator(place);
      std::vector<Tensor> actual = attempt(mutator);
      bool differs = false;
      for (size_t i = 0; i < expected.size(); ++i)
        differs |= !difference(actual[i], expected[i], 1e-6).empty();
      return differs;
    });
    tally.barriers += isBarrier;
    if (isBarrier && !caught) {
      ++tally.redundant;
      continue;
    }
    ++tally.mutants;
    tally.caught += caught;
    if (!caught)
      tally.survivors.push_back(copy.getName().str() + ": " +
                                none.names[place] + ", place " +
                                std::to_string(place));
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
    if (!isSample)
      testMutants(func, family.road, part, tally);
    else if (number % 4 == 0)
      testMutants(func, family.road, {number % step, step, true}, tally);
    ++number;
  }
  printf("%s: %ld mutants, %ld caught; %ld of %ld barriers are redundant\n",
         family.name.c_str(), tally.mutants, tally.caught, tally.redundant,
         tally.barriers);
  for (const std::string &survivor : tally.survivors)
    printf("lives: %s\n", survivor.c_str());
  EXPECT_GT(tally.mutants, 0);
  EXPECT_GE(double(tally.caught), 0.95 * double(tally.mutants));
}

INSTANTIATE_TEST_SUITE_P(Families, Mutants, testing::ValuesIn(families),
                         [](const auto &info) { return info.param.name; });
