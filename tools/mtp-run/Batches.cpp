// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mtp-run/Batches.h"

#include "runtime/io/Npz.h"

#include <algorithm>
#include <cstring>
#include <glob.h>

using namespace mtp;

static Error inputError(const std::string &message) {
  return {exits::BadInput, "input", message, {}};
}

bool mtp::readFacts(const Artifact &artifact, TrainingFacts &facts,
                    Error &error) {
  error = inputError("the artifact was not compiled for training (--train)");
  if (!artifact.plan.is_object() || !artifact.plan.contains("training"))
    return false;
  try {
    const nlohmann::json &training = artifact.plan.at("training");
    std::string reason;
    if (!parseLoss(training.at("loss"), facts.loss, reason))
      return false;
    training.at("optimizer").get_to(facts.optimizer);
    training.at("beta1").get_to(facts.beta1);
    training.at("beta2").get_to(facts.beta2);
    training.at("eps").get_to(facts.eps);
    training.at("accumulate").get_to(facts.accumulate);
    training.at("classes").get_to(facts.classes);
    training.at("keep_gradients").get_to(facts.keepGradients);
    training.at("keep_outputs").get_to(facts.keepOutputs);
    training.at("loss_scale").get_to(facts.lossScale);
    training.at("input_gradients").get_to(facts.inputGradients);
  } catch (const nlohmann::json::exception &) {
    return false;
  }
  error = {};
  return true;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static std::vector<std::string> filesOf(const std::string &pattern) {
  std::vector<std::string> files;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return files;
}

bool BatchSource::open(const std::string &pattern, TensorMap inputs,
                       Error &error) {
  given = std::move(inputs);
  if (pattern.empty()) {
    batch = given;
    return true;
  }
  files = filesOf(pattern);
  if (files.empty()) {
    error = inputError("--data '" + pattern + "' matches no file");
    return false;
  }
  return take(error);
}

/// Makes file `at` the batch and starts to read the one after it.
bool BatchSource::take(Error &error) {
  auto load = [](std::string path) {
    Loaded loaded;
    readNpz(path, loaded.tensors, loaded.error);
    return loaded;
  };
  Loaded loaded = ahead.valid() ? ahead.get() : load(files[at]);
  if ((error = loaded.error))
    return false;
  batch = given;
  for (auto &[name, tensor] : loaded.tensors)
    if (!batch.emplace(name, std::move(tensor)).second) {
      error = {exits::Usage,
               "usage",
               "input '" + name + "' is given, and again in " + files[at],
               {}};
      return false;
    }
  if (files.size() > 1)
    ahead =
        std::async(std::launch::async, load, files[(at + 1) % files.size()]);
  return true;
}

bool BatchSource::next(Error &error) {
  if (!started || files.size() < 2) {
    started = true;
    return true;
  }
  at = (at + 1) % files.size();
  return take(error);
}

//===----------------------------------------------------------------------===//
// Micro-batches
//===----------------------------------------------------------------------===//

/// Rows [begin, begin + rows) of dimension 0.
static HostTensor rowsOf(const HostTensor &tensor, int64_t begin,
                         int64_t rows) {
  std::vector<int64_t> shape = tensor.shape;
  int64_t all = shape[0];
  shape[0] = rows;
  HostTensor part(tensor.type, shape);
  int64_t row = all ? tensor.elements() / all * byteSize(tensor.type) : 0;
  std::memcpy(part.bytes.data(), tensor.bytes.data() + begin * row,
              size_t(rows * row));
  return part;
}

bool mtp::splitBatch(const TensorMap &whole, int64_t parts,
                     std::vector<TensorMap> &micro, Error &error) {
  micro.assign(size_t(parts), {});
  int64_t batch = 0;
  for (auto &[name, tensor] : whole)
    if (!tensor.shape.empty())
      batch = std::max(batch, tensor.shape[0]);
  if (batch % parts) {
    error = inputError("a batch of " + std::to_string(batch) + " is not " +
                       std::to_string(parts) +
                       " micro-batches (--accumulate) of equal size");
    return false;
  }
  for (auto &[name, tensor] : whole)
    for (int64_t i = 0; i < parts; ++i)
      micro[size_t(i)][name] =
          parts > 1 && !tensor.shape.empty() && tensor.shape[0] == batch
              ? rowsOf(tensor, i * (batch / parts), batch / parts)
              : tensor;
  return true;
}

void mtp::appendRows(HostTensor &whole, HostTensor rows) {
  if (whole.bytes.size() == 0 || whole.shape.empty()) {
    whole = std::move(rows);
    return;
  }
  std::vector<int64_t> shape = whole.shape;
  shape[0] += rows.shape[0];
  HostTensor joined(whole.type, shape);
  auto first = size_t(whole.elements() * byteSize(whole.type));
  std::memcpy(joined.bytes.data(), whole.bytes.data(), first);
  std::memcpy(joined.bytes.data() + first, rows.bytes.data(),
              size_t(rows.elements() * byteSize(rows.type)));
  whole = std::move(joined);
}

//===----------------------------------------------------------------------===//
// Labels
//===----------------------------------------------------------------------===//

static int64_t labelAt(const HostTensor &labels, int64_t i) {
  return labels.type == DType::I32 ? labels.as<int32_t>()[i]
                                   : labels.as<int64_t>()[i];
}

/// "[1, 3]" of flat position `i`.
static std::string positionOf(int64_t i, const std::vector<int64_t> &shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0; i /= shape[dim])
    index[dim] = i % shape[dim];
  return shapeText(index);
}

static bool countLabels(const TrainingFacts &facts, const HostTensor &labels,
                        int64_t &count, Error &error) {
  if (labels.type != DType::I64 && labels.type != DType::I32) {
    error = inputError("labels '" + facts.loss.labels + "' are of type " +
                       name(labels.type) + ", int64 or int32 is needed");
    return false;
  }
  for (int64_t i = 0, e = labels.elements(); i < e; ++i) {
    int64_t label = labelAt(labels, i);
    if (label == facts.loss.ignoreIndex)
      continue;
    ++count;
    if (label >= 0 && label < facts.classes)
      continue;
    error = inputError(
        "label " + std::to_string(label) + " at " +
        positionOf(i, labels.shape) + " of '" + facts.loss.labels +
        "' is none of the " + std::to_string(facts.classes) +
        " classes (0 to " + std::to_string(facts.classes - 1) +
        ") and not the ignored " + std::to_string(facts.loss.ignoreIndex));
    return false;
  }
  return true;
}

bool mtp::countTerms(const TrainingFacts &facts, const TensorMap &whole,
                     int64_t &count, Error &error) {
  count = 0;
  if (facts.loss.kind == LossSpec::Kind::Output) {
    count = facts.accumulate;
    return true;
  }
  auto labels = whole.find(facts.loss.labels);
  if (labels == whole.end()) {
    error = inputError("'" + facts.loss.labels +
                       "', which the loss needs, is not given");
    return false;
  }
  if (facts.loss.kind == LossSpec::Kind::CrossEntropy)
    return countLabels(facts, labels->second, count, error);
  count = labels->second.elements();
  return true;
}

HostTensor mtp::randomLabels(DType type, const std::vector<int64_t> &shape,
                             int64_t classes, uint64_t seed) {
  HostTensor labels(type, shape);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
  for (int64_t i = 0, e = labels.elements(); i < e; ++i) {
    // splitmix64
    uint64_t x = (state += 0x9e3779b97f4a7c15u);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    auto label =
        int64_t((x ^ (x >> 31)) % uint64_t(std::max<int64_t>(classes, 1)));
    if (type == DType::I32)
      labels.as<int32_t>()[i] = int32_t(label);
    else
      labels.as<int64_t>()[i] = label;
  }
  return labels;
}
