// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PlanFile.cpp - plans as JSON ---------------------------------------===//
//
// { "version": 1, "model": SHA-256, "mesh": "dp=2,tp=4", "refined":
// "dp=2,tp=2x2",
//   "inputs": [ {"name", "layout", "copy"?} ],
//   "ops": [ {"name", "op", "operands": [LAYOUT..], "results": [LAYOUT..],
//             "copies"?: [LAYOUT|null..]} ] }
//
// One entry for each op of @main, in order. Only choices are stored; costs are
// computed anew.
//
//===----------------------------------------------------------------------===//
#include "compiler/cost/Target.h"
#include "compiler/plan/Pins.h"

using namespace mlir;
using nlohmann::json;

namespace mtp::plan {

static std::string refinedText(const MeshShape &mesh) {
  std::string text;
  for (const AxisGroup &group : groupsOf(mesh)) {
    text += (text.empty() ? "" : ",") + group.name + "=";
    for (auto [index, part] : llvm::enumerate(group.parts))
      text += (index ? "x" : "") + std::to_string(mesh.axes[part].size);
  }
  return text;
}

json savePlan(const Plan &plan, StringRef modelHash) {
  auto texts = [&](ArrayRef<Layout> layouts) {
    json list = json::array();
    for (const Layout &layout : layouts)
      list.push_back(layout.text(plan.mesh));
    return list;
  };
  auto addCopies = [&](json &entry, const PlannedOp &op) {
    if (llvm::none_of(op.copies,
                      [](const auto &copy) { return copy.has_value(); }))
      return;
    entry["copies"] = json::array();
    for (const auto &copy : op.copies)
      entry["copies"].push_back(copy ? json(copy->text(plan.mesh)) : json());
  };
  json file = {{"version", 1},
               {"model", modelHash.str()},
               {"mesh", meshText(plan.axes)},
               {"refined", refinedText(plan.mesh)},
               {"inputs", json::array()},
               {"ops", json::array()}};
  for (const PlannedOp &argument : plan.arguments) {
    json entry = {{"name", argument.name},
                  {"results", texts(argument.results)}};
    addCopies(entry, argument);
    file["inputs"].push_back(std::move(entry));
  }
  for (const PlannedOp &op : plan.ops) {
    json entry = {{"name", op.name},
                  {"op", op.kind},
                  {"operands", texts(op.operands)},
                  {"results", texts(op.results)}};
    addCopies(entry, op);
    file["ops"].push_back(std::move(entry));
  }
  return file;
}

namespace {
/// Reads a plan file against a module. Every message names the op.
class Reader {
public:
  Reader(func::FuncOp function, const json &file, Plan &plan)
      : function(function), file(file), plan(plan) {}

  LogicalResult run(StringRef modelHash) {
    if (!file.is_object() || file.value("version", json()) != json(1))
      return function.emitError() << "the plan file is not of version 1";
    if (text(file, "model") != modelHash)
      return function.emitError()
             << "the plan was made for another model (hash "
             << text(file, "model") << ", this one has " << modelHash << ")";
    if (text(file, "mesh") != meshText(plan.axes))
      return function.emitError()
             << "the plan was made for mesh " << text(file, "mesh")
             << ", not for " << meshText(plan.axes);
    if (text(file, "refined") != refinedText(plan.mesh))
      return function.emitError()
             << "the plan refines the mesh to " << text(file, "refined")
             << ", this compiler to " << refinedText(plan.mesh);
    if (failed(checkCount("inputs", function.getNumArguments())))
      return failure();
    for (auto [argument, entry] :
         llvm::zip_equal(function.getArguments(), file["inputs"])) {
      PlannedOp planned;
      if (failed(readEntry(argument.getLoc(), entry, valueName(argument),
                           "input", {}, argument, planned)))
        return failure();
      if (llvm::any_of(planned.results[0].states, [](AxisState s) {
            return isPartial(s.kind) || s.kind == Kind::R;
          }))
        return emitError(argument.getLoc())
               << "plan: input '" << planned.name
               << "' is stored invariant or sharded only";
      plan.arguments.push_back(std::move(planned));
    }
    auto ops = function.getBody().front().without_terminator();
    if (failed(checkCount("ops", std::distance(ops.begin(), ops.end()))))
      return failure();
    for (auto [op, entry] : llvm::zip_equal(ops, file["ops"]))
      if (failed(readOp(op, entry)))
        return failure();
    return success();
  }

private:
  static std::string text(const json &object, const char *key) {
    auto it = object.find(key);
    return it != object.end() && it->is_string() ? it->get<std::string>() : "";
  }

  LogicalResult checkCount(const char *key, size_t expected) {
    auto it = file.find(key);
    if (it == file.end() || !it->is_array())
      return function.emitError()
             << "the plan file has no list '" << key << "'";
    if (it->size() != expected)
      return function.emitError() << "the plan is stale: it has " << it->size()
                                  << " " << key << ", the model " << expected;
    return success();
  }

  LogicalResult readLayouts(Location loc, const json &entry, const char *key,
                            StringRef name, ValueRange values,
                            SmallVectorImpl<Layout> &layouts) {
    auto it = entry.find(key);
    if (it == entry.end() || !it->is_array() || it->size() != values.size())
      return emitError(loc)
             << "plan: '" << name << "' needs " << values.size() << " " << key;
    for (auto [value, layoutText] : llvm::zip_equal(values, *it)) {
      std::string error = "a layout is not a text";
      auto layout =
          layoutText.is_string()
              ? parseLayout(layoutText.get<std::string>(),
                            cast<RankedTensorType>(value.getType()).getShape(),
                            plan.mesh, error)
              : std::nullopt;
      if (!layout)
        return emitError(loc) << "plan: '" << name << "': " << error;
      layouts.push_back(std::move(*layout));
    }
    return success();
  }

  LogicalResult readEntry(Location loc, const json &entry,
                          const std::string &name, StringRef kind,
                          ValueRange operands, ValueRange results,
                          PlannedOp &planned) {
    planned.name = name;
    planned.kind = kind.str();
    std::string found = entry.is_object() ? text(entry, "name") : "";
    if (found != name || (kind != "input" && text(entry, "op") != kind))
      return emitError(loc)
             << "the plan is stale: it has '" << found
             << "' where the model has '" << name << "' (" << kind << ")";
    SmallVector<Layout> read;
    if (kind != "input" &&
        failed(readLayouts(loc, entry, "operands", name, operands, read)))
      return failure();
    planned.operands.assign(read.begin(), read.end());
    read.clear();
    if (failed(readLayouts(loc, entry, "results", name, results, read)))
      return failure();
    planned.results.assign(read.begin(), read.end());
    planned.copies.resize(results.size());
    auto copies = entry.find("copies");
    if (copies == entry.end())
      return success();
    if (!copies->is_array() || copies->size() != results.size())
      return emitError(loc)
             << "plan: '" << name << "' needs " << results.size() << " copies";
    for (auto [value, copy, slot] :
         llvm::zip_equal(results, *copies, planned.copies)) {
      if (copy.is_null())
        continue;
      std::string error = "a layout is not a text";
      if (copy.is_string())
        slot = parseLayout(copy.get<std::string>(),
                           cast<RankedTensorType>(value.getType()).getShape(),
                           plan.mesh, error);
      if (!slot)
        return emitError(loc) << "plan: '" << name << "': " << error;
    }
    return success();
  }

  LogicalResult readOp(Operation &op, const json &entry) {
    auto rule = cast<ShardingOpInterface>(op).getShardingRule();
    if (failed(rule))
      return failure();
    bool constant = isFreeSource(&op, *rule);
    PlannedOp planned;
    ValueRange results = constant ? ValueRange() : ValueRange(op.getResults());
    if (failed(readEntry(op.getLoc(), entry, valueName(op.getResult(0)),
                         op.getName().getStringRef(), op.getOperands(), results,
                         planned)))
      return failure();
    if (!rule->anyState &&
        !strategyOf(&op, *rule, planned.operands, planned.results, plan.mesh))
      return emitError(op.getLoc())
             << "plan: the layouts of '" << planned.name
             << "' are not a case of the sharding rule of " << planned.kind
             << ": "
             << strategyText(planned.operands, planned.results, plan.mesh);
    if (!constant && rule->anyState &&
        llvm::any_of(planned.results[0].states, [](AxisState s) {
          return isPartial(s.kind) || s.kind == Kind::R;
        }))
      return emitError(op.getLoc()) << "plan: parameter '" << planned.name
                                    << "' is stored invariant or sharded only";
    plan.ops.push_back(std::move(planned));
    return success();
  }

  func::FuncOp function;
  const json &file;
  Plan &plan;
};
} // namespace

FailureOr<Plan> loadPlan(ModuleOp module,
                         ArrayRef<std::pair<std::string, int64_t>> axes,
                         const json &file, StringRef modelHash) {
  func::FuncOp function = mainFunction(module);
  if (!function)
    return failure();
  Roles roles(function);
  Plan plan;
  plan.origin = "file";
  plan.axes.assign(axes.begin(), axes.end());
  plan.mesh = refineMesh(function, roles, axes);
  if (failed(Reader(function, file, plan).run(modelHash)))
    return failure();
  std::vector<std::pair<std::string, int64_t>> links;
  for (const MeshShape::Axis &axis : plan.mesh.axes)
    links.push_back({axis.name(), axis.size});
  Conversions conversions(plan.mesh, targetMachine(links));
  if (failed(describe(function, plan, conversions)))
    return failure();
  return plan;
}

} // namespace mtp::plan
