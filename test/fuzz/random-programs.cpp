// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- random-programs.cpp - random graphs under random plans -------------===//
//
//   random-programs OPS.mlir --mesh tp=2 ... [--from N] [--count N] [--ops N]
//                   [--seconds S] [--dump N]
//
// Program N is composed of the functions of OPS.mlir, planned with
// `--plan random:N` on each mesh, run with NaN in all padding, and compared
// with the same program on one rank in float64 (1e-9). Prints `N passed, N
// failed`.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/ProgramRunner.h"
#include "test/fuzz/RandomPrograms.h"
#include "test/fuzz/TypedPrograms.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace mlir;
using namespace mtp;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::Required,
                                      cl::desc("OPS.mlir"));
static cl::list<std::string> meshTexts("mesh", cl::desc("a mesh, repeatable"));
static cl::opt<uint64_t> from("from", cl::init(1),
                              cl::desc("number of the first program"));
static cl::opt<uint64_t> count("count", cl::init(20), cl::desc("programs"));
static cl::opt<unsigned> ops("ops", cl::init(12),
                             cl::desc("functions a program is composed of"));
static cl::opt<unsigned>
    seconds("seconds", cl::init(0),
            cl::desc("go on with further programs so long"));
static cl::opt<bool> dump("dump", cl::desc("print the programs"));

/// Runs one program on one mesh; the reason if it differs.
static std::string check(ModuleOp program, const std::string &mesh,
                         const std::string &plan, const TensorMap &inputs,
                         const TensorMap &want) {
  fuzz::RunOptions options;
  options.mesh = mesh;
  options.plan = plan;
  options.poison = true;
  TensorMap have;
  std::string error = fuzz::runProgram(program, options, inputs, have);
  if (!error.empty())
    return error;
  for (auto &[name, tensor] : want) {
    double difference = fuzz::difference(have[name], tensor);
    if (!(difference <= 1e-9))
      return llvm::formatv("{0}: error {1:e2}", name, difference).str();
  }
  return "";
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv,
                              "runs random programs under random plans\n");
  MLIRContext context(MLIRContext::Threading::DISABLED);
  auto seeds = fuzz::loadSeeds(inputFile, context, true);
  if (!seeds)
    return 1;
  int passed = 0, failed = 0;
  auto start = std::chrono::steady_clock::now();
  auto goesOn = [&](uint64_t number) {
    return number < from + count || std::chrono::steady_clock::now() - start <
                                        std::chrono::seconds(seconds);
  };
  for (uint64_t number = from; goesOn(number); ++number) {
    auto program = fuzz::buildRandomProgram(*seeds, number, ops);
    if (dump)
      program->print(llvm::outs());
    auto main = program->lookupSymbol<func::FuncOp>("main");
    TensorMap inputs = fuzz::randomInputs(main, 2, number), want;
    std::string error = mlir::failed(verify(*program))
                            ? "is not sound"
                            : fuzz::runProgram(*program, {}, inputs, want);
    if (!error.empty()) {
      ++failed;
      llvm::outs() << "FAIL program " << number << " whole: " << error << "\n";
      continue;
    }
    for (const std::string &mesh : meshTexts)
      for (const std::string &plan :
           {std::string(), "random:" + std::to_string(number)}) {
        error = check(*program, mesh, plan, inputs, want);
        (error.empty() ? passed : failed)++;
        if (!error.empty())
          llvm::outs() << "FAIL program " << number << " on " << mesh
                       << (plan.empty() ? "" : ", plan ") << plan << ": "
                       << error << "\n";
      }
  }
  llvm::outs() << passed << " passed, " << failed << " failed\n";
  return failed != 0;
}
