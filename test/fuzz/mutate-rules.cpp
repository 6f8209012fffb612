// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mutate-rules.cpp - does a test fail when a rule is wrong? ----------===//
//
//   mutate-rules OPS.mlir LAYOUTS.txt CASES.txt [--jobs N] [--only NAME]
//   [--every]
//
// Changes each factor, linear set, flag, conjugate and neutral element in turn,
// each in a process of its own, and runs the tests of the changed op: the
// verifier against layouts.txt, the op's typed programs on several ranks, the
// rule against cases.txt. The first that fails kills the mutant; a crash or
// 60 seconds count as failure. --every runs all three on each. Exit 1 if a
// mutant survives.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/ProgramRunner.h"
#include "test/fuzz/RuleMutations.h"
#include "test/fuzz/RuleTables.h"
#include "test/fuzz/TypedPrograms.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace mtp;
namespace cl = llvm::cl;

static cl::opt<std::string> opsFile(cl::Positional, cl::Required,
                                    cl::desc("OPS.mlir"));
static cl::opt<std::string> layoutsFile(cl::Positional, cl::Required,
                                        cl::desc("LAYOUTS.txt"));
static cl::opt<std::string> casesFile(cl::Positional, cl::Required,
                                      cl::desc("CASES.txt"));
static cl::opt<unsigned> jobs("jobs", cl::init(2),
                              cl::desc("processes at a time"));
static cl::opt<std::string> only("only",
                                 cl::desc("change this function's op only"));
static cl::opt<bool> every("every", cl::desc("run all tests on each mutant"));
static cl::opt<bool> list("list", cl::desc("print the mutants and stop"));

namespace {
enum Killer { kLayouts = 1, kPrograms = 2, kCases = 4 };

/// The tests of one op.
class Checks {
public:
  explicit Checks(ModuleOp seeds)
      : seeds(seeds), layouts(fuzz::readTable(layoutsFile)),
        cases(fuzz::readTable(casesFile)) {}

  /// Which tests fail; stops at the first unless --every.
  int failing(fuzz::RuleMutation &mutation) {
    if (!mutation.seed) {
      for (auto seed : seeds.getOps<func::FuncOp>())
        if (fuzz::mainOp(seed) && contracts(seed) && !programsPass(seed))
          return kPrograms;
      return 0;
    }
    int failed = 0;
    std::string name = mutation.seed.getName().str();
    fuzz::LayoutCounts counts;
    if (!fuzz::checkLayouts(mutation.seed, layouts[name], counts).empty())
      failed |= kLayouts;
    if ((!failed || every) && !programsPass(mutation.seed))
      failed |= kPrograms;
    if ((!failed || every) &&
        StringRef(fuzz::describeRule(mutation.seed)).trim() != cases[name])
      failed |= kCases;
    return failed;
  }

private:
  /// Masks padding: contracts a factor, or looks up by position.
  static bool contracts(func::FuncOp seed) {
    StringRef name = fuzz::mainOp(seed)->getName().stripDialect();
    return name.starts_with("reduce_") || name == "matmul" ||
           name == "convolution" || name.starts_with("gather");
  }

  bool programsPass(func::FuncOp seed) {
    StringRef name = fuzz::mainOp(seed)->getName().stripDialect();
    bool isIndex = name.contains("gather") || name.contains("scatter");
    TensorMap inputs = fuzz::randomInputs(
                  seed, isIndex ? fuzz::indexRange(seed) : 0, 7),
              want;
    if (!fuzz::runProgram(*fuzz::buildReference(seed), {}, inputs, want)
             .empty())
      return false;
    for (const char *text : {"tp=2", "tp=3", "dp=2,tp=2", "dp=3,tp=2"})
      if (!meshPasses(seed, text, inputs, want))
        return false;
    return true;
  }

  bool meshPasses(func::FuncOp seed, const char *text, const TensorMap &inputs,
                  const TensorMap &want) {
    MeshShape mesh = *fuzz::parseMesh(text);
    std::vector<fuzz::Trial> trials =
        fuzz::enumerateTrials(fuzz::mainOp(seed), mesh, 12);
    std::vector<std::string> notMade;
    auto typed = fuzz::buildTyped(seed, trials, mesh, notMade);
    fuzz::RunOptions options;
    options.mesh = text;
    options.poison = true;
    TensorMap have;
    if (failed(verify(*typed)) ||
        !fuzz::runProgram(*typed, options, inputs, have).empty())
      return false;
    for (size_t number = 0; number < trials.size(); ++number)
      for (auto &[key, tensor] : want)
        if (notMade[number].empty() &&
            !(fuzz::difference(
                  have[std::to_string(number) + key.substr(key.find('.'))],
                  tensor) <= 1e-12))
          return false;
    return true;
  }

  ModuleOp seeds;
  std::map<std::string, std::string> layouts, cases;
};

/// Runs mutants in processes of their own and counts.
class MutationRun {
public:
  MutationRun(Checks &checks) : checks(checks) {}

  void start(fuzz::RuleMutation &mutation) {
    if (running.size() >= jobs)
      waitForOne();
    llvm::outs().flush();
    pid_t process = fork();
    if (process < 0)
      llvm::report_fatal_error("no process");
    if (process > 0) {
      running[process] = mutation.text;
      return;
    }
    alarm(60);
    int null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    dup2(null, 2);
    fuzz::setMutation(&mutation);
    _exit(checks.failing(mutation));
  }

  void count(const std::string &text, int failed) {
    ++total;
    layouts += (failed & kLayouts) != 0;
    programs += (failed & kPrograms) != 0;
    cases += (failed & kCases) != 0;
    onlyCases += failed == kCases;
    if (failed == kCases && every)
      llvm::outs() << "by cases.txt alone: " << text << "\n";
    if (!failed) {
      ++survived;
      llvm::outs() << "SURVIVES " << text << "\n";
    }
  }

  void finish() {
    while (!running.empty())
      waitForOne();
  }

  int total = 0, survived = 0, layouts = 0, programs = 0, cases = 0,
      onlyCases = 0;

private:
  void waitForOne() {
    int status = 0;
    pid_t process = waitpid(-1, &status, 0);
    auto it = running.find(process);
    if (it == running.end())
      return;
    count(it->second, WIFEXITED(status) ? WEXITSTATUS(status) : kPrograms);
    running.erase(it);
  }

  Checks &checks;
  std::map<pid_t, std::string> running;
};
} // namespace

/// Each entry of each conversion's row in turn.
static void mutateConversions(MLIRContext &context, MutationRun &run) {
  const auto right = fuzz::conversionRows(context);
  auto check = [&](const std::string &text, const std::string &name,
                   auto change) {
    auto rows = right;
    change(rows[name]);
    if (list)
      llvm::outs() << text << "\n";
    else
      run.count(text, fuzz::checkConversions(rows).empty() ? 0 : kLayouts);
  };
  for (auto &[name, row] : right) {
    for (auto &[other, otherRow] : right)
      if (other != row.conjugate)
        check(name + ": the conjugate is " + other, name,
              [&](auto &r) { r.conjugate = other; });
    for (Kind kind :
         {Kind::I, Kind::R, Kind::S, Kind::PSum, Kind::PMax, Kind::PMin}) {
      if (kind != row.from)
        check(name + ": from another state", name,
              [&](auto &r) { r.from = kind; });
      if (kind != row.to)
        check(name + ": to another state", name, [&](auto &r) { r.to = kind; });
    }
    check(name + ": another transfer", name, [&](auto &r) {
      r.transfer =
          row.transfer == Transfer::None ? Transfer::AllReduce : Transfer::None;
    });
  }
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv,
                              "changes rules and demands that a test fails\n");
  MLIRContext context(MLIRContext::Threading::DISABLED);
  auto seeds = fuzz::loadSeeds(opsFile, context, true);
  if (!seeds)
    return 1;
  std::vector<fuzz::RuleMutation> mutations;
  if (only.empty())
    mutations = fuzz::neutralMutations();
  for (auto seed : seeds->getOps<func::FuncOp>())
    if (fuzz::mainOp(seed) && (only.empty() || seed.getName() == only))
      llvm::append_range(mutations, fuzz::mutationsOf(seed));
  Checks checks(*seeds);
  MutationRun run(checks);
  if (only.empty())
    mutateConversions(context, run);
  for (fuzz::RuleMutation &mutation : mutations) {
    if (list)
      llvm::outs() << mutation.text << "\n";
    else
      run.start(mutation);
  }
  run.finish();
  if (list)
    return 0;
  llvm::outs() << "killed " << run.total - run.survived << " of " << run.total
               << ": by tables of layouts and conjugates " << run.layouts
               << ", by typed programs " << run.programs
               << ", by the rules of cases.txt " << run.cases
               << (every ? ""
                         : " (each counted for the first test that failed)")
               << "; by cases.txt alone " << run.onlyCases << "\n";
  llvm::outs() << run.total - run.survived << " passed, " << run.survived
               << " failed\n";
  return run.survived != 0;
}
