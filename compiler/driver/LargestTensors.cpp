// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/LargestTensors.h"

#include "compiler/codegen/BufferPlan.h"
#include "compiler/plan/Plan.h"

#include <map>
#include <set>

using namespace mlir;
using namespace mtp;

static int64_t localBytes(const Artifact &artifact,
                          const TensorLayout &layout) {
  int64_t bytes = byteSize(layout.type);
  for (int64_t extent : layout.localShape(artifact.axes))
    bytes *= extent;
  return bytes;
}

/// Names a value of the arena. Gradients that are summed together lie in one
/// buffer; a gradient of its own has the name of its parameter.
static ResidentTensor describe(Value home, int64_t bytes,
                               const std::set<std::string> &trainable) {
  std::string name = plan::valueName(home);
  Operation *op = home.getDefiningOp();
  auto sum = op && joinsInPlace(op) && op->hasOneUse()
                 ? dyn_cast<spmd::AllReduceOp>(*op->user_begin())
                 : spmd::AllReduceOp();
  if (!sum || sum.getPhase() == "forward")
    return {name, trainable.count(name) ? "gradient" : "value", bytes};
  std::string last;
  op->getLoc()->walk([&](Location part) {
    auto named = dyn_cast<NameLoc>(part);
    if (named)
      last = named.getName().str();
    return named ? WalkResult::skip() : WalkResult::advance();
  });
  return {std::to_string(op->getNumOperands()) + " gradients, " + name +
              " to " + last,
          "bucket", bytes};
}

/// The values of the arena that are needed at the step which needs most.
static std::vector<ResidentTensor>
peakValues(func::FuncOp function, const std::set<std::string> &trainable) {
  BufferPlan plan(function);
  SmallVector<Value> homes;
  std::map<int64_t, int64_t> changes; // of the bytes in use, by step
  for (Operation &op : function.getBody().front())
    for (Value result : op.getResults()) {
      auto place = plan.place(result);
      if (plan.home(result) != result || !place ||
          place->space != BufferRef::Space::Arena)
        continue;
      homes.push_back(result);
      auto [first, last] = plan.life(result);
      changes[first] += place->bytes;
      changes[last + 1] -= place->bytes;
    }
  int64_t used = 0, most = -1, peak = 0;
  for (auto [step, change] : changes) {
    used += change;
    if (used > most) {
      most = used;
      peak = step;
    }
  }
  std::vector<ResidentTensor> tensors;
  for (Value home : homes)
    if (auto [first, last] = plan.life(home); first <= peak && peak <= last)
      tensors.push_back(describe(home, plan.place(home)->bytes, trainable));
  return tensors;
}

/// A value and its gradients have the name of one node, and so do the pieces of
/// a parameter: they are named once.
static std::vector<ResidentTensor>
joined(const std::vector<ResidentTensor> &tensors) {
  std::vector<ResidentTensor> result;
  std::map<std::pair<std::string, std::string>, size_t> index;
  for (const ResidentTensor &tensor : tensors) {
    auto [known, isNew] =
        index.try_emplace({tensor.name, tensor.what}, result.size());
    if (isNew) {
      result.push_back(tensor);
      continue;
    }
    result[known->second].bytes += tensor.bytes;
    ++result[known->second].count;
  }
  return result;
}

std::vector<ResidentTensor>
mtp::largestTensors(ModuleOp module, const Artifact &artifact, size_t most) {
  std::vector<ResidentTensor> tensors;
  std::set<std::string> trainable;
  for (const Parameter &parameter : artifact.parameters) {
    if (parameter.trainable)
      trainable.insert(parameter.name);
    tensors.push_back({parameter.name,
                       parameter.state.empty() ? "parameter" : parameter.state,
                       localBytes(artifact, parameter.layout)});
  }
  const Entry *largest = nullptr;
  for (const Entry &entry : artifact.entries) {
    if (!largest || entry.arenaBytes > largest->arenaBytes)
      largest = &entry;
    for (const Input &input : entry.inputs)
      tensors.push_back(
          {input.name, "input", localBytes(artifact, input.layout)});
    for (const Output &output : entry.outputs)
      tensors.push_back(
          {output.name, "output", localBytes(artifact, output.layout)});
  }
  if (largest)
    llvm::append_range(
        tensors, peakValues(module.lookupSymbol<func::FuncOp>(largest->name),
                            trainable));
  tensors = joined(tensors);
  llvm::stable_sort(
      tensors, [](const auto &a, const auto &b) { return a.bytes > b.bytes; });
  if (tensors.size() > most)
    tensors.resize(most);
  return tensors;
}

std::string mtp::text(const std::vector<ResidentTensor> &tensors) {
  std::string text;
  for (const ResidentTensor &tensor : tensors)
    text += (text.empty() ? "'" : ", '") + tensor.name + "' (" +
            (tensor.count > 1 ? std::to_string(tensor.count) + " x " : "") +
            tensor.what + ") " + std::to_string(tensor.bytes) + " bytes";
  return text;
}
