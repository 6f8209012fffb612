// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- rule-tables.cpp - rules against tables -----------------------------===//
//
//   rule-tables OPS.mlir LAYOUTS.txt CASES.txt [--write-cases]
//
// Every combination of states of every op on one axis: the verifier accepts
// what layouts.txt allows and refuses all others with the axis and the rule
// named. The rules are those of cases.txt (--write-cases writes that file).
// Conversions have the conjugates that their states ask for.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/RuleTables.h"
#include "test/fuzz/TypedPrograms.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <fstream>

using namespace mlir;
using namespace mtp;
namespace cl = llvm::cl;

static cl::opt<std::string> opsFile(cl::Positional, cl::Required,
                                    cl::desc("OPS.mlir"));
static cl::opt<std::string> layoutsFile(cl::Positional, cl::Required,
                                        cl::desc("LAYOUTS.txt"));
static cl::opt<std::string> casesFile(cl::Positional, cl::Required,
                                      cl::desc("CASES.txt"));
static cl::opt<bool>
    writeCases("write-cases", cl::desc("write CASES.txt instead of comparing"));
static cl::opt<std::string> only("only", cl::desc("check this function only"));

static int writeAll(ModuleOp seeds) {
  std::ofstream file(casesFile);
  file << "# The rule of each seed of ops.mlir as the code has it, and its "
          "cases: written by\n"
          "# rule-tables --write-cases, read by people when a rule changes.\n";
  for (auto seed : seeds.getOps<func::FuncOp>())
    if (fuzz::mainOp(seed))
      file << seed.getName().str() << ": "
           << StringRef(fuzz::describeRule(seed)).trim().str() << "\n";
  return 0;
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv,
                              "checks rules and the verifier against tables\n");
  MLIRContext context(MLIRContext::Threading::DISABLED);
  auto seeds = fuzz::loadSeeds(opsFile, context, true);
  if (!seeds)
    return 1;
  if (writeCases)
    return writeAll(*seeds);
  int passed = 0, failed = 0;
  auto check = [&](StringRef what, const std::string &error) {
    (error.empty() ? passed : failed)++;
    if (!error.empty())
      llvm::outs() << "FAIL " << what << ": " << error << "\n";
  };
  auto layouts = fuzz::readTable(layoutsFile),
       cases = fuzz::readTable(casesFile);
  fuzz::LayoutCounts counts;
  for (auto seed : seeds->getOps<func::FuncOp>()) {
    std::string name = seed.getName().str();
    if (!fuzz::mainOp(seed) || (!only.empty() && name != only))
      continue;
    std::string rule = StringRef(fuzz::describeRule(seed)).trim().str();
    check(name, rule == cases[name] ? ""
                                    : "the rule is\n  " + rule +
                                          "\n  and was\n  " + cases[name]);
    check(name, layouts.count(name)
                    ? fuzz::checkLayouts(seed, layouts[name], counts)
                    : "layouts.txt has no line for it");
  }
  check("conversions", fuzz::checkConversions(fuzz::conversionRows(context)));
  llvm::outs() << "combinations of states: " << counts.accepted << " accepted, "
               << counts.refused << " refused:\n";
  for (auto &[reason, count] : counts.reasons)
    llvm::outs() << "  " << count << "  " << reason << "\n";
  llvm::outs() << passed << " passed, " << failed << " failed\n";
  return failed != 0;
}
