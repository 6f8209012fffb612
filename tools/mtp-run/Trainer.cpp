// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mtp-run/Trainer.h"

#include "tools/common/Text.h"
#include "tools/mtp-run/Inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace mtp;

static HostTensor scalar(DType type, double value) {
  HostTensor tensor(type, {});
  if (type == DType::F64)
    *tensor.as<double>() = value;
  else if (type == DType::F32)
    *tensor.as<float>() = float(value);
  else
    *tensor.as<int64_t>() = int64_t(value);
  return tensor;
}

void Trainer::addHidden(const Entry &entry, int64_t micro,
                        TensorMap &inputs) const {
  double t = double(updates + 1);
  const std::map<std::string, double> values = {
      {"mtp.label_count", double(std::max<int64_t>(terms, 1))},
      {"mtp.step", double(done)},
      {"mtp.micro_batch", double(micro)},
      {"mtp.learning_rate", learningRate(options, done, steps)},
      {"mtp.bias_correction1", 1 - std::pow(facts.beta1, t)},
      {"mtp.bias_correction2", 1 - std::pow(facts.beta2, t)},
      {"mtp.loss_scale", scale}};
  for (const Input &input : entry.inputs) {
    if (auto value = values.find(input.name); value != values.end())
      inputs[input.name] = scalar(input.layout.type, value->second);
    if (input.name == "mtp.seed") {
      inputs[input.name] = HostTensor(DType::I64, {});
      *inputs[input.name].as<int64_t>() = seed;
    }
  }
}

bool Trainer::step(const TensorMap &batch, Error &error) {
  const std::vector<Entry> &entries = session.artifact().entries;
  MicroBatches micro;
  if (!countTerms(facts, batch, terms, error) ||
      !splitBatch(batch, entries[0], facts, micro, error))
    return false;
  if (micro.repeated && facts.loss.kind != LossSpec::Kind::Output)
    terms *= facts.accumulate;
  if (micro.repeated && !done)
    warnings.push_back("the inputs have the rows of one micro-batch, so all " +
                       std::to_string(facts.accumulate) +
                       " of a step (--accumulate) have the same");
  if (terms == 0)
    warnings.push_back("step " + std::to_string(done + 1) +
                       ": every label is ignored, the loss and all gradients "
                       "are 0");
  counts.clear();
  outputs.clear();
  milliseconds = loss = norm = 0;
  wholeInputs = micro.whole;
  for (size_t i = 0; i < micro.parts.size(); ++i)
    if (!runEntry("main", int64_t(i), std::move(micro.parts[i]), error))
      return false;
  if (facts.accumulate > 1 && !runEntry("update", 0, {}, error))
    return false;
  losses.push_back(loss);
  norms.push_back(norm);
  times.push_back(milliseconds);
  adaptScale();
  ++done;
  return true;
}

void Trainer::adaptScale() {
  if (!facts.lossScale || std::isfinite(norm)) {
    ++updates;
    if (options.dynamicScale && ++sinceOverflow == 2000) {
      scale *= 2;
      sinceOverflow = 0;
    }
    return;
  }
  sinceOverflow = 0;
  std::string warning = "step " + std::to_string(done + 1) +
                        ": a gradient overflowed at loss scale " +
                        numberText(scale, 6) + ", nothing is updated";
  if (options.dynamicScale)
    warning += "; the scale is halved";
  warnings.push_back(warning);
  if (options.dynamicScale)
    scale /= 2;
}

bool Trainer::runEntry(const std::string &name, int64_t micro, TensorMap inputs,
                       Error &error) {
  const std::vector<Entry> &entries = session.artifact().entries;
  auto entry = std::find_if(entries.begin(), entries.end(),
                            [&](const Entry &e) { return e.name == name; });
  if (entry == entries.end()) {
    error = {exits::Internal,
             "internal",
             "the artifact has no entry '" + name + "'",
             {}};
    return false;
  }
  inputs = widened(inputs, *entry);
  addHidden(*entry, micro, inputs);
  widenLabels(*entry, inputs);
  TensorMap results;
  if (!session.run(name, inputs, results, error))
    return false;
  milliseconds += session.lastStepMs();
  addCounts();
  takeOutputs(results);
  return true;
}

void Trainer::takeOutputs(TensorMap &results) {
  const std::string prefix = kInputGradient;
  for (auto &[name, tensor] : results) {
    if (name == "mtp.loss")
      loss += tensor.valueAt(0);
    else if (name == "mtp.grad_norm")
      norm = tensor.valueAt(0);
    else if (name.rfind(prefix, 0) != 0)
      appendRows(outputs[name], std::move(tensor));
    else if (done == 0)
      takeInputGradient(name.substr(prefix.size()), std::move(tensor));
  }
}

void Trainer::takeInputGradient(const std::string &input, HostTensor part) {
  if (facts.accumulate > 1 && std::find(wholeInputs.begin(), wholeInputs.end(),
                                        input) != wholeInputs.end())
    addTerm(inputGradients[input], part);
  else
    appendRows(inputGradients[input], std::move(part));
}

void Trainer::widenLabels(const Entry &entry, TensorMap &inputs) const {
  auto given = inputs.find(facts.loss.labels);
  for (const Input &input : entry.inputs)
    if (given != inputs.end() && input.name == given->first &&
        input.layout.type == DType::I64 && given->second.type == DType::I32) {
      HostTensor wide(DType::I64, given->second.shape);
      for (int64_t i = 0, e = wide.elements(); i < e; ++i)
        wide.as<int64_t>()[i] = given->second.as<int32_t>()[i];
      given->second = std::move(wide);
    }
}

void Trainer::addCounts() {
  for (const SiteCount &count : session.counters()) {
    auto known =
        std::find_if(counts.begin(), counts.end(), [&](const SiteCount &other) {
          return other.site == count.site;
        });
    if (known == counts.end()) {
      counts.push_back(count);
      continue;
    }
    known->count += count.count;
    known->bytes += count.bytes;
    known->wireBytes += count.wireBytes;
  }
}

bool Trainer::readGradients(TensorMap &gradients, Error &error) {
  TensorMap states;
  if (!session.readStates(states, error))
    return false;
  static const std::string ending = "/gradient";
  for (auto &[name, tensor] : states)
    if (name.size() > ending.size() &&
        !name.compare(name.size() - ending.size(), ending.size(), ending))
      gradients[name.substr(0, name.size() - ending.size())] =
          std::move(tensor);
  return true;
}
