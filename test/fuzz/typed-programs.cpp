// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- typed-programs.cpp - run every op in every case of its rule --------===//
//
//   typed-programs OPS.mlir --mesh tp=2 --mesh dp=2,tp=3 ... [--limit N]
//   [--only NAME]
//
// Each typed program runs on n ranks with NaN in all padding and in the fresh
// arena, and is compared with the whole program on one rank. Prints a table of
// ops and rows of their rules, what could not be made and why, and `N passed, N
// failed`. Exit 1 on any difference, and with --full where a row never ran
// though it can be made.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/ConversionPrograms.h"
#include "test/fuzz/ProgramRunner.h"
#include "test/fuzz/TypedPrograms.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mtp;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::Required,
                                      cl::desc("OPS.mlir"));
static cl::list<std::string>
    meshTexts("mesh", cl::desc("a mesh, repeatable; tp=2x2 refines an axis"));
static cl::opt<unsigned>
    limit("limit", cl::init(64),
          cl::desc("trials an op and mesh, if cases are covered"));
static cl::opt<std::string> only("only", cl::desc("run this function only"));
static cl::opt<bool> dump("dump", cl::desc("print the typed programs"));
static cl::opt<bool> full("full",
                          cl::desc("fail where a row of a rule never ran"));
static cl::opt<bool> single(
    "f32",
    cl::desc("float32 and a bound of 2e-5 instead of float64 and 1e-12"));

namespace {
/// How often each row of each op's rule ran.
struct Table {
  std::map<std::string, std::map<std::string, int>>
      cells; ///< op, row of the rule
  std::map<std::string, std::map<std::string, std::set<std::string>>>
      notMade; ///< op, row, reasons
  int passed = 0, failed = 0;

  void addRows(Operation *op) {
    if (auto rule = fuzz::ruleOf(op))
      for (AxisCase c : enumerateCases(*rule))
        cells[op->getName().getStringRef().str()][c.text(*rule)];
  }

  /// True if every row ran or cannot be made.
  bool print() const {
    bool complete = true;
    llvm::outs() << "\nop and row of its rule: programs run\n";
    for (auto &[op, rows] : cells) {
      llvm::outs() << "  " << op << ":";
      for (auto &[row, count] : rows)
        if (count || !isNotMade(op, row))
          llvm::outs() << "  " << row << " " << count;
      llvm::outs() << "\n";
      for (auto &[row, count] : rows)
        complete &= count || isNotMade(op, row);
    }
    llvm::outs() << "rows that no program has\n";
    for (auto &[op, rows] : notMade)
      for (auto &[row, reasons] : rows)
        if (!cells.at(op).at(row))
          llvm::outs() << "  " << op << ": " << row << " (" << *reasons.begin()
                       << ")\n";
    if (!complete)
      llvm::outs() << "FAIL the table has a zero\n";
    return complete;
  }

private:
  bool isNotMade(const std::string &op, const std::string &row) const {
    auto rows = notMade.find(op);
    return rows != notMade.end() && rows->second.count(row);
  }
};

/// Runs programs on one mesh and counts.
class MeshRun {
public:
  MeshRun(MeshShape mesh, std::string text, Table &table)
      : mesh(std::move(mesh)), text(std::move(text)), table(table) {}

  void run(func::FuncOp seed) {
    Operation *op = fuzz::mainOp(seed);
    std::string name = op->getName().getStringRef().str();
    table.addRows(op);
    std::vector<fuzz::Trial> trials = fuzz::enumerateTrials(op, mesh, limit);
    std::vector<std::string> notMade;
    auto typed = fuzz::buildTyped(seed, trials, mesh, notMade);
    TensorMap have;
    if (!runTyped(*typed, seed, have, trials.size()))
      return;
    const TensorMap &want = reference(seed);
    for (auto [number, trial] : llvm::enumerate(trials)) {
      if (!notMade[number].empty()) {
        for (const std::string &row : trial.rows)
          if (StringRef(row).starts_with("linear") ||
              StringRef(row).starts_with("partial"))
            table.notMade[name][row].insert(notMade[number]);
        continue;
      }
      compare(seed, trial.text, std::to_string(number), have, want);
      for (const std::string &row : trial.rows)
        table.cells[name][row]++;
    }
  }

  void runConversions(func::FuncOp values) {
    std::vector<fuzz::ConversionTrial> trials;
    auto typed = fuzz::buildConversions(values, mesh, trials);
    TensorMap have;
    if (!runTyped(*typed, values, have, trials.size()))
      return;
    for (auto [number, trial] : llvm::enumerate(trials)) {
      TensorMap want{
          {"reference.0",
           inputs(values).at("arg" + std::to_string(trial.argument))}};
      compare(values, trial.text, std::to_string(number), have, want);
      table.cells[trial.op][trial.row]++;
    }
  }

private:
  TensorMap inputs(func::FuncOp seed) {
    StringRef name =
        fuzz::mainOp(seed) ? fuzz::mainOp(seed)->getName().stripDialect() : "";
    bool isIndex = name.contains("gather") || name.contains("scatter");
    return fuzz::randomInputs(seed, isIndex ? fuzz::indexRange(seed) : 0, 7);
  }

  bool runTyped(ModuleOp typed, func::FuncOp seed, TensorMap &have,
                size_t trials) {
    if (dump)
      typed.print(llvm::outs());
    fuzz::RunOptions options;
    options.mesh = fuzz::plainMesh(mesh);
    options.poison = true;
    options.doublePrecision = !single;
    std::string error =
        failed(verify(typed))
            ? "the typed program is refused"
            : fuzz::runProgram(typed, options, inputs(seed), have);
    if (error.empty())
      return true;
    llvm::outs() << "FAIL " << seed.getName() << " on " << text << ": " << error
                 << "\n";
    table.failed += std::max<int>(1, trials);
    return false;
  }

  /// The whole program's results, computed once.
  const TensorMap &reference(func::FuncOp seed) {
    static std::map<std::string, TensorMap> all;
    auto [it, isNew] = all.try_emplace(seed.getName().str());
    if (isNew) {
      fuzz::RunOptions options;
      options.doublePrecision = !single;
      std::string error = fuzz::runProgram(*fuzz::buildReference(seed), options,
                                           inputs(seed), it->second);
      if (!error.empty())
        llvm::outs() << "FAIL " << seed.getName() << ", whole: " << error
                     << "\n";
    }
    return it->second;
  }

  void compare(func::FuncOp seed, const std::string &trial,
               const std::string &number, TensorMap &have,
               const TensorMap &want) {
    double worst = want.empty() ? INFINITY : 0;
    for (auto &[key, tensor] : want)
      worst = std::max(
          worst,
          fuzz::difference(have[number + key.substr(key.find('.'))], tensor));
    bool ok = worst <= (single ? 2e-5 : 1e-12);
    (ok ? table.passed : table.failed)++;
    if (!ok)
      llvm::outs() << "FAIL " << seed.getName() << " on " << text << ", "
                   << trial << ": error " << llvm::format("%.3g", worst)
                   << "\n";
  }

  MeshShape mesh;
  std::string text;
  Table &table;
};
} // namespace

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv,
                              "runs every op in every case of its rule\n");
  MLIRContext context(MLIRContext::Threading::DISABLED);
  auto seeds = fuzz::loadSeeds(inputFile, context, !single);
  if (!seeds)
    return 1;
  Table table;
  for (const std::string &text : meshTexts) {
    auto mesh = fuzz::parseMesh(text);
    if (!mesh) {
      llvm::errs() << "not a mesh: " << text << "\n";
      return 2;
    }
    MeshRun run(*mesh, text, table);
    for (auto seed : seeds->getOps<func::FuncOp>()) {
      if (!only.empty() && seed.getName() != only)
        continue;
      if (fuzz::mainOp(seed))
        run.run(seed);
      else
        run.runConversions(seed);
    }
  }
  bool complete = table.print() || !full;
  llvm::outs() << table.passed << " passed, " << table.failed + !complete
               << " failed\n";
  return table.failed || !complete;
}
