// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Compilation.h"

#include "dialects/mtp/MtpDialect.h"
#include "dialects/spmd/SpmdDialect.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace mtp;

void mtp::registerDialects(DialectRegistry &registry) {
  registry.insert<func::FuncDialect, MtpDialect, spmd::SpmdDialect>();
}

static DialectRegistry allDialects() {
  DialectRegistry registry;
  registerDialects(registry);
  return registry;
}

Compilation::Compilation(const CompileRequest &request, CompileResult &result, std::string modelHash)
    : request(request), result(result), modelHash(std::move(modelHash)),
      context(allDialects(), MLIRContext::Threading::DISABLED), stages(request, result, &context) {
  context.printOpOnDiagnostic(false);
  context.loadAllAvailableDialects();
}
Compilation::~Compilation() = default;

bool Compilation::run(std::vector<ReadFile> &files) {
  stages.expect(12);
  bool good = import(files) && simplify() && plan() && lower() && emit();
  result.warnings.insert(result.warnings.end(), stages.diagnostics.warnings.begin(),
                         stages.diagnostics.warnings.end());
  return good;
}

bool Compilation::import(std::vector<ReadFile> &files) {
  bool isMlir = llvm::StringRef(request.model).ends_with(".mlir");
  return stages.run("import", [&] { return isMlir ? importMlir() : importOnnx(files); }, kBadInput, "input");
}

bool Compilation::importMlir() {
  module = parseSourceFile<ModuleOp>(request.model, ParserConfig(&context));
  if (!module)
    return false;
  if (!module->lookupSymbol<func::FuncOp>("main"))
    return stages.fail(kBadInput, "input", request.model + ": there is no func.func @main");
  return stages.gate("import", *module);
}

bool Compilation::importOnnx(std::vector<ReadFile> &) {
  return stages.fail(kInternal, "internal", "the ONNX front end is not linked");
}

bool Compilation::simplify() {
  bool good = stages.runPasses("simplify", *module, [](OpPassManager &passes) { passes.addPass(createMtpSimplify()); });
  if (good && !request.noRaise)
    good = stages.runPasses("raise", *module, [](OpPassManager &passes) {
      passes.addPass(createMtpRaise());
      passes.addPass(createMtpSimplify());
    });
  return good && stages.runPasses("precision", *module, [&](OpPassManager &passes) {
           MtpConvertPrecisionOptions options;
           options.precision = request.precision;
           passes.addPass(createMtpConvertPrecision(options));
         });
}

bool Compilation::plan() { return true; }
bool Compilation::lower() { return true; }
bool Compilation::emit() { return stages.fail(kInternal, "internal", "emission is not linked"); }
