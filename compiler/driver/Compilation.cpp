// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Compilation.h"

#include "compiler/codegen/ProgramEmitter.h"
#include "compiler/codegen/cuda/GpuKernels.h"
#include "compiler/codegen/cuda/GpuLowering.h"
#include "compiler/codegen/emulate/EmulatorLowering.h"
#include "compiler/cost/Target.h"
#include "compiler/driver/Budget.h"
#include "compiler/driver/GraphReport.h"
#include "compiler/driver/Pipelines.h"
#include "compiler/driver/PlanReport.h"
#include "compiler/driver/ResultJson.h"
#include "compiler/frontend/onnx/import/OnnxImport.h"
#include "compiler/plan/Pins.h"
#include "compiler/training/Training.h"
#include "dialects/mtp/MtpDialect.h"
#include "dialects/spmd/SpmdDialect.h"
#include "passes/Passes.h"
#include "runtime/io/Npz.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"

#include <fstream>
#include <set>

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

Compilation::Compilation(const CompileRequest &request, CompileResult &result,
                         std::string modelHash)
    : request(request), result(result), modelHash(std::move(modelHash)),
      train(request.train),
      context(allDialects(), MLIRContext::Threading::DISABLED),
      stages(request, result, &context) {
  context.printOpOnDiagnostic(false);
  context.loadAllAvailableDialects();
}
Compilation::~Compilation() = default;

bool Compilation::run(std::vector<ReadFile> &files) {
  stages.expect(12);
  if (isOnGpu() && gpuCapability(request.gpuArch) == 0)
    return stages.fail(kUsage, "usage",
                       "--gpu-arch '" + request.gpuArch +
                           "': kernels can be made for " +
                           llvm::join(gpuArchitectures(), ", "));
  bool good = import(files) && addLoss() && simplify() && chooseParameters() &&
              plan() && differentiate() && lower() && emit();
  result.warnings.insert(result.warnings.end(),
                         stages.diagnostics.warnings.begin(),
                         stages.diagnostics.warnings.end());
  return good;
}

bool Compilation::import(std::vector<ReadFile> &files) {
  bool isMlir = llvm::StringRef(request.model).ends_with(".mlir");
  return stages.run(
      "import", [&] { return isMlir ? importMlir() : importOnnx(files); },
      kBadInput, "input");
}

/// Inputs and outputs that a module of the user leaves unnamed.
static void nameInterface(func::FuncOp main) {
  Builder builder(main.getContext());
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    if (!main.getArgAttr(i, spmd::names::name))
      main.setArgAttr(i, spmd::names::name,
                      builder.getStringAttr("arg" + std::to_string(i)));
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    if (!main.getResultAttr(i, spmd::names::name))
      main.setResultAttr(i, spmd::names::name,
                         builder.getStringAttr("result" + std::to_string(i)));
}

bool Compilation::importMlir() {
  module = parseSourceFile<ModuleOp>(request.model, ParserConfig(&context));
  if (!module)
    return false;
  auto main = module->lookupSymbol<func::FuncOp>("main");
  if (!main || main.isExternal())
    return stages.fail(kBadInput, "input",
                       request.model + ": there is no func.func @main");
  nameInterface(main);
  annotations = plan::countAnnotations(*module);
  return stages.gate("import", *module, kBadInput, "input");
}

/// Files beside the model that initializers refer to, with their hashes.
static void addDataFiles(ModuleOp module, const std::string &model,
                         std::vector<ReadFile> &files) {
  std::set<std::string> seen{model};
  for (auto initializer : module.getOps<InitializerOp>())
    if (auto file = initializer.getFile();
        file && seen.insert(file->str()).second)
      if (auto hash = hashFile(file->str()))
        files.push_back({file->str(), *hash});
}

/// Rows of the batch that micro-batches cut: those of the labels, else the most
/// that an input has.
static int64_t batchRows(const CompileRequest &request) {
  auto labels = request.inputs.find(request.train->loss.labels);
  if (labels != request.inputs.end() && !labels->second.shape.empty())
    return labels->second.shape[0];
  int64_t rows = 0;
  for (auto &[name, given] : request.inputs)
    if (!given.shape.empty())
      rows = std::max(rows, given.shape[0]);
  return rows;
}

bool Compilation::importOnnx(std::vector<ReadFile> &files) {
  onnx::ReadOptions options;
  options.dims = request.dims;
  for (auto &[name, given] : request.inputs)
    options.inputs[name] = {given.type, given.shape};
  if (request.train) {
    options.microBatches = request.train->accumulate;
    options.batch = batchRows(request);
  }
  options.defaultDims = request.randomInputs;
  options.doublePrecision = request.precision == "f64";
  options.keepDropout = request.train.has_value();
  onnx::OnnxError error;
  module =
      onnx::importOnnx(request.model, options, context, result.warnings, error);
  if (!module && !error)
    return false;
  if (!module)
    return stages.fail(error.kind == "usage" ? kUsage : kBadInput, error.kind,
                       error.message, error.nodes);
  addDataFiles(*module, request.model, files);
  return stages.gate("import", *module, kBadInput, "input");
}

/// A module whose types carry layouts was planned by its author.
static bool isTyped(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return llvm::any_of(op->getResultTypes(), layoutOf)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Names of the inputs that have gradients.
static std::vector<std::string> floatInputs(func::FuncOp main) {
  std::vector<std::string> names;
  for (BlockArgument argument : main.getArguments())
    if (isa<FloatType>(
            cast<RankedTensorType>(argument.getType()).getElementType()))
      names.push_back(
          training::argumentName(main, argument.getArgNumber()).str());
  return names;
}

bool Compilation::addLoss() {
  if (!train)
    return true;
  if (isTyped(*module))
    return stages.fail(kUsage, "usage",
                       "--train: " + request.model +
                           " has its layouts already; give the model without");
  std::vector<std::string> inputs;
  if (train->inputGradients)
    inputs = floatInputs(module->lookupSymbol<func::FuncOp>("main"));
  return stages.runPasses(
      "loss", *module,
      [&](OpPassManager &passes) {
        addLossPasses(passes, *train, train->loss.json(), inputs);
      },
      kBadInput, "loss");
}

bool Compilation::simplify() {
  if (isTyped(*module))
    return true;
  bool good = stages.runPasses("simplify", *module, addSimplifyPasses);
  if (good && !request.noRaise)
    good = stages.runPasses("raise", *module, addRaisePasses);
  return good &&
         stages.runPasses("precision", *module, [&](OpPassManager &passes) {
           MtpConvertPrecisionOptions options;
           // The rounding to tf32 is in the products themselves.
           options.precision =
               request.precision == "tf32" ? "f32" : request.precision;
           options.masterWeights = train.has_value();
           passes.addPass(createMtpConvertPrecision(options));
         });
}

bool Compilation::chooseParameters() {
  if (!train)
    return succeeded(training::chooseTrainable(*module, {})) ||
           stages.fail(kInternal, "internal", "parameters can't be told");
  return stages.runPasses(
             "trainable", *module,
             [&](OpPassManager &passes) { addTrainablePasses(passes, *train); },
             kBadInput, "training") &&
         stages.run("copies", [&] {
           training::warnOfCopies(*module);
           return true;
         });
}

bool Compilation::plan() {
  std::vector<std::pair<std::string, int64_t>> axes;
  std::string error;
  if (!plan::parseMesh(request.mesh, axes, error))
    return stages.fail(kUsage, "usage", "--mesh: " + error);
  if (isTyped(*module))
    return takeTypedModule(axes);
  if (int64_t left = plan::countAnnotations(*module); left < annotations)
    return stages.fail(
        kBadInput, "plan",
        std::to_string(annotations - left) + " of the " +
            std::to_string(annotations) +
            " layouts that the module is annotated with (mtp.pin, mtp.plan) "
            "stand on ops that were simplified away; annotate what mtp-opt "
            "--mtp-plan prints, or pin by name");
  FailureOr<plan::Plan> plan = failure();
  bool planned = stages.run(
      "plan",
      [&] {
        return setTarget(axes) &&
               succeeded(plan = request.memoryBudget ? planWithin(axes)
                                                     : makePlan(axes));
      },
      kBadInput, "plan");
  if (!planned || !savePlan(*plan))
    return false;
  reportPlan(*plan, request.explain, result);
  if (!budget.is_null())
    result.artifact.plan["budget"] = budget;
  return stages.run("apply", [&] {
    if (failed(plan::applyPlan(*module, *plan)) ||
        !stages.gate("apply", *module))
      return false;
    result.parameters = reportParameters(*module);
    return true;
  });
}

bool Compilation::takeTypedModule(
    ArrayRef<std::pair<std::string, int64_t>> axes) {
  if (!request.plan.empty() || !request.pins.empty() ||
      !request.savePlan.empty())
    return stages.fail(kUsage, "usage",
                       "--plan, --pin, --save-plan: " + request.model +
                           " has its layouts already");
  auto meshes = module->getOps<MeshOp>();
  MeshShape shape = meshes.empty() ? MeshShape() : (*meshes.begin()).getShape();
  for (const MeshShape::Axis &axis : shape.axes)
    if (axis.part <= 0) {
      int64_t size = 1;
      for (int part : shape.find(axis.parent))
        size *= shape.axes[part].size;
      result.artifact.mesh += (result.artifact.mesh.empty() ? "" : ",") +
                              axis.parent + "=" + std::to_string(size);
    }
  for (const auto &[name, size] : axes) {
    int64_t own = 1;
    for (int axis : shape.find(name))
      own *= shape.axes[axis].size;
    if (own != size && request.mesh != CompileRequest().mesh)
      return stages.fail(kUsage, "usage",
                         "--mesh " + request.mesh + ": " + request.model +
                             " is laid out for " + name + " = " +
                             std::to_string(own));
  }
  result.parameters = reportParameters(*module);
  return true;
}

bool Compilation::setTarget(Axes axes) {
  std::string reason;
  return plan::setTarget(request.calibration, request.topology, axes.vec(),
                         reason) ||
         stages.fail(kUsage, "usage", reason);
}

plan::PlanOptions Compilation::planOptions() const {
  plan::PlanOptions options;
  options.objective = request.objective == "time" ? plan::Objective::Time
                                                  : plan::Objective::Parallel;
  options.sequenceParallel = train && train->sequenceParallel;
  options.pins = request.pins;
  options.explain = request.explain;
  return options;
}

FailureOr<plan::Plan> Compilation::makePlan(Axes axes) {
  return request.plan.empty() ? plan::choosePlan(*module, axes, planOptions())
                              : givenPlan(axes);
}

FailureOr<plan::Plan> Compilation::givenPlan(Axes axes) {
  if (!request.pins.empty())
    return stages.fail(
               kUsage, "usage",
               "--pin chooses a plan and --plan takes one: give one of them"),
           failure();
  llvm::StringRef text = request.plan;
  if (text.consume_front("random:")) {
    uint64_t seed;
    if (text.getAsInteger(10, seed))
      return stages.fail(kUsage, "usage",
                         "--plan random:SEED needs a number, not '" +
                             text.str() + "'"),
             failure();
    return plan::randomPlan(*module, axes, seed);
  }
  std::ifstream file(request.plan);
  if (!file)
    return stages.fail(kBadInput, "input",
                       "cannot read the plan " + request.plan),
           failure();
  nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  if (json.is_discarded())
    return stages.fail(kBadInput, "plan", request.plan + " is not JSON"),
           failure();
  return plan::loadPlan(*module, axes, json, modelHash);
}

FailureOr<plan::Plan> Compilation::planWithin(Axes axes) {
  BudgetSearch search(*module, request);
  if (request.plan.empty()) {
    plan::PlanOptions options = planOptions();
    options.explain = false;
    if (failed(search.addLayouts(axes, options)))
      return failure();
  } else {
    auto given = givenPlan(axes);
    if (failed(given))
      return failure();
    search.add({std::move(*given), planOptions(), "the given plan", false});
  }
  if (!search.run() && search.isSound())
    return stages.fail(kBadInput, "memory", search.message(),
                       search.largestNames()),
           failure();
  train = search.train();
  budget = search.json();
  plan::Plan plan = search.layouts().plan;
  if (request.explain) {
    auto explained = search.explained();
    if (failed(explained))
      return failure();
    plan = std::move(*explained);
  }
  if (search.isSound())
    plan.notes.push_back(search.message());
  return plan;
}

/// The bytes of the program itself. A module that has its layouts already was
/// not searched.
bool Compilation::checkBudget() {
  int64_t bytes = footprintOf(result.artifact).total;
  if (!request.memoryBudget || bytes <= request.memoryBudget)
    return true;
  std::string text = "the program needs " + std::to_string(bytes) +
                     " bytes a rank, more than the memory budget of " +
                     std::to_string(request.memoryBudget);
  if (!budget.is_null())
    return stages.fail(kInternal, "internal", text);
  return stages.fail(
      kBadInput, "memory",
      text + ". Its largest tensors: " +
          mtp::text(largestTensors(*module, result.artifact, 5)));
}

bool Compilation::differentiate() {
  if (!train)
    return true;
  return stages.runPasses(
      "differentiate", *module,
      [&](OpPassManager &passes) { addDifferentiatePasses(passes, *train); },
      kBadInput, "unsupported");
}

bool Compilation::savePlan(const plan::Plan &plan) {
  if (request.savePlan.empty())
    return true;
  Error error;
  std::string text =
      plan::savePlan(plan, modelHash)
          .dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  return writeFileAtomically(request.savePlan, text + "\n", error) ||
         stages.fail(error.exitCode, error.kind, error.message);
}

bool Compilation::lower() {
  plan::predictCollectives(*module, train ? train->accumulate : 1);
  if (request.explain)
    result.explainJson["graph"] = reportGraph(*module);
  return stages.runPasses("partition", *module, addPartitionPasses) &&
         stages.runPasses("fuse", *module, [&](OpPassManager &passes) {
           isOnGpu() ? addGpuFusePasses(passes, request.gpuArch)
                     : addFusePasses(passes);
         });
}

/// The compiled objects, by their own key: many plans of a model share kernels.
bool Compilation::emitKernels(KernelModule &kernels) {
  KernelOptions options;
  options.dumpDir = request.dumpDir;
  std::string error;
  FailureOr<KernelObject> object = kernels.emitObject(options, error);
  if (failed(object))
    return stages.fail(kInternal, "internal", "kernels: " + error);
  result.artifact.object = std::move(object->bytes);
  result.artifact.cpuFeatures = object->cpuFeatures;
  for (auto &[name, time] : object->stageMs)
    result.stageMs.push_back({"kernels_" + name, time});
  return true;
}

/// PTX, and what a launch needs to know of each kernel.
bool Compilation::emitGpuKernels(GpuKernelModule &kernels) {
  Artifact &artifact = result.artifact;
  if (failed(kernels.finish(artifact.collectiveSites)))
    return false;
  artifact.gpu = {request.gpuArch, kernels.gpuKernels()};
  auto write = [&](const char *name, const std::string &text) {
    Error error;
    std::string path = request.dumpDir + "/" + name;
    return request.dumpDir.empty() || writeFileAtomically(path, text, error) ||
           stages.fail(error.exitCode, error.kind, error.message);
  };
  std::string text, error;
  llvm::raw_string_ostream stream(text);
  kernels.code()->print(stream);
  if (!write("kernels.mlir", text))
    return false;
  if (request.device == "cuda-emulated") {
    KernelOptions options;
    options.dumpDir = request.dumpDir;
    FailureOr<KernelObject> object =
        emitEmulated(kernels.code(), options, error);
    if (failed(object))
      return stages.fail(kNotPresent, "kernels", "kernels: " + error);
    artifact.object = std::move(object->bytes);
    artifact.cpuFeatures = object->cpuFeatures;
    return true;
  }
  FailureOr<std::string> ptx = kernels.emitPtx(error);
  if (failed(ptx)) {
    bool isMissing = llvm::StringRef(error).contains("libdevice");
    return stages.fail(isMissing ? kNotPresent : kInternal,
                       isMissing ? "unsupported" : "internal",
                       "kernels: " + error);
  }
  artifact.object = std::move(*ptx);
  return write("kernels.ptx", artifact.object);
}

bool Compilation::emitCode() {
  auto program = [&](KernelModule &kernels) {
    return succeeded(emitProgram(*module, kernels, result.artifact)) &&
           checkBudget();
  };
  if (!isOnGpu()) {
    KernelModule kernels(&context);
    return stages.run("program", [&] { return program(kernels); }) &&
           stages.run("kernels", [&] { return emitKernels(kernels); });
  }
  GpuKernelModule kernels(&context, request.gpuArch, request.precision);
  return stages.run(
             "program", [&] { return program(kernels); }, kBadInput,
             "unsupported") &&
         stages.run("kernels", [&] { return emitGpuKernels(kernels); });
}

bool Compilation::emit() {
  Artifact &artifact = result.artifact;
  artifact.model = request.model;
  artifact.modelHash = modelHash;
  artifact.precision = request.precision;
  artifact.device = request.device;
  if (artifact.mesh.empty())
    artifact.mesh = request.mesh;
  if (train) {
    Operation *main = module->lookupSymbol("main");
    auto number = [&](StringRef name) {
      auto attr = main->getAttrOfType<IntegerAttr>(name);
      return attr ? attr.getInt() : 0;
    };
    nlohmann::json &training = artifact.plan["training"];
    training = toJson(*train);
    training["classes"] = number(training::names::classes);
    for (auto function : module->getOps<func::FuncOp>())
      if (auto bytes = function->getAttrOfType<IntegerAttr>(
              training::names::gradientBytes))
        training["gradient_bytes"][function.getName().str()] = bytes.getInt();
  }
  if (!emitCode())
    return false;
  reportProgram(*module, request, result);
  std::string error;
  return stages.run("verify", [&] {
    return artifact.verify(error) ||
           stages.fail(kInternal, "internal",
                       "the artifact is not sound: " + error);
  });
}
