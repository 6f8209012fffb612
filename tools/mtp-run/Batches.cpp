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

static TrainingFacts::Tie parseTie(const std::string &text) {
  static const std::string ending = ":transposed";
  TrainingFacts::Tie tie;
  size_t end = text.size(), comma = text.find(',');
  if (end > ending.size() &&
      !text.compare(end - ending.size(), ending.size(), ending)) {
    tie.transposed = true;
    end -= ending.size();
  }
  if (comma < end) {
    tie.a = text.substr(0, comma);
    tie.b = text.substr(comma + 1, end - comma - 1);
  }
  return tie;
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
    for (const auto &text : training.at("ties").get<std::vector<std::string>>())
      facts.ties.push_back(parseTie(text));
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

namespace {
/// How an input relates to what an entry takes of it.
enum class Share { Cut, Whole, Neither };
} // namespace

static Share shareOf(const std::vector<int64_t> &given,
                     const std::vector<int64_t> &taken, int64_t parts) {
  if (given == taken)
    return Share::Whole;
  if (given.size() == taken.size() && !given.empty() && given[0] % parts == 0 &&
      given[0] / parts == taken[0] &&
      std::equal(given.begin() + 1, given.end(), taken.begin() + 1))
    return Share::Cut;
  return Share::Neither;
}

static Error shapeError(const std::string &name, const HostTensor &given,
                        const std::vector<int64_t> &taken, int64_t parts) {
  std::string each = shapeText(taken), many = std::to_string(parts);
  return inputError("input '" + name + "' has shape " + shapeText(given.shape) +
                    "; a micro-batch (--accumulate) takes " + each + ", so " +
                    many + " of them need " + many +
                    " times its rows, or its shape, which all have then");
}

bool mtp::splitBatch(const TensorMap &batch, const Entry &entry,
                     const TrainingFacts &facts, MicroBatches &micro,
                     Error &error) {
  int64_t parts = facts.accumulate;
  micro = {};
  micro.parts.assign(size_t(parts), {});
  std::string cut; // an input that is, other than the labels
  for (auto &[name, tensor] : batch) {
    auto input = std::find_if(entry.inputs.begin(), entry.inputs.end(),
                              [&](const Input &i) { return i.name == name; });
    Share share = parts == 1 || input == entry.inputs.end()
                      ? Share::Whole // others are the session's to refuse
                      : shareOf(tensor.shape, input->layout.shape, parts);
    if (share == Share::Neither) {
      error = shapeError(name, tensor, input->layout.shape, parts);
      return false;
    }
    if (share == Share::Whole)
      micro.whole.push_back(name);
    else if (name != facts.loss.labels)
      cut = name;
    for (int64_t i = 0; i < parts; ++i) {
      int64_t rows = share == Share::Cut ? input->layout.shape[0] : 0;
      micro.parts[size_t(i)][name] =
          share == Share::Cut ? rowsOf(tensor, i * rows, rows) : tensor;
    }
  }
  auto isWhole = [&](const std::string &name) {
    return std::find(micro.whole.begin(), micro.whole.end(), name) !=
           micro.whole.end();
  };
  const std::string &labels = facts.loss.labels;
  bool cutsLabels = batch.count(labels) && !isWhole(labels);
  if (batch.count(labels) && batch.size() > 1 && cutsLabels == cut.empty()) {
    std::string other = cut;
    for (auto &[name, tensor] : batch)
      if (other.empty() && name != labels)
        other = name;
    error =
        inputError("'" + (cutsLabels ? labels : other) + "' has the rows of " +
                   std::to_string(parts) + " micro-batches (--accumulate), '" +
                   (cutsLabels ? other : labels) + "' those of one");
    return false;
  }
  micro.repeated = parts > 1 && !cutsLabels && cut.empty();
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

void mtp::addTerm(HostTensor &sum, const HostTensor &term) {
  if (sum.bytes.size() == 0)
    sum = HostTensor(term.type == DType::F64 ? DType::F64 : DType::F32,
                     term.shape);
  for (int64_t i = 0, e = sum.elements(); i < e; ++i)
    if (sum.type == DType::F64)
      sum.as<double>()[i] += term.valueAt(i);
    else
      sum.as<float>()[i] += float(term.valueAt(i));
}

//===----------------------------------------------------------------------===//
// Ties
//===----------------------------------------------------------------------===//

static HostTensor transposed(const HostTensor &matrix) {
  int64_t rows = matrix.shape[0], columns = matrix.shape[1];
  HostTensor result(matrix.type, {columns, rows});
  size_t size = size_t(byteSize(matrix.type));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      std::memcpy(result.bytes.data() + size_t(j * rows + i) * size,
                  matrix.bytes.data() + size_t(i * columns + j) * size, size);
  return result;
}

void mtp::forEachTied(
    const TrainingFacts &facts,
    const std::function<bool(const std::string &)> &has,
    const std::function<void(const std::string &, const std::string &, bool)>
        &give) {
  // Ties may form chains, in any order.
  for (size_t round = 0; round < facts.ties.size(); ++round)
    for (const TrainingFacts::Tie &tie : facts.ties) {
      bool a = has(tie.a), b = has(tie.b);
      if (a && !b)
        give(tie.a, tie.b, tie.transposed);
      else if (b && !a)
        give(tie.b, tie.a, tie.transposed);
    }
}

void mtp::addTied(const TrainingFacts &facts, TensorMap &trained) {
  forEachTied(
      facts, [&](const std::string &name) { return trained.count(name) != 0; },
      [&](const std::string &from, const std::string &to, bool turns) {
        const HostTensor &known = trained[from];
        if (!turns || known.shape.size() == 2)
          trained[to] = turns ? transposed(known) : known;
      });
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
