// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mtp-run/Inputs.h"

#include "runtime/io/Npz.h"

#include <algorithm>

using namespace mtp;

static bool addInput(TensorMap &inputs, const std::string &name,
                     HostTensor tensor, Error &error) {
  if (inputs.emplace(name, std::move(tensor)).second)
    return true;
  error = {kUsage, "usage", "input '" + name + "' is given twice", {}};
  return false;
}

bool mtp::readGivenInputs(const Options &options, TensorMap &inputs,
                          Error &error) {
  for (const std::string &path : options.inputArchives) {
    TensorMap archive;
    if (!readNpz(path, archive, error))
      return false;
    for (auto &[name, tensor] : archive)
      if (!addInput(inputs, name, std::move(tensor), error))
        return false;
  }
  for (auto &[name, path] : options.inputFiles) {
    HostTensor tensor;
    if (!readTensorFile(path, tensor, error) ||
        !addInput(inputs, name, std::move(tensor), error))
      return false;
  }
  return true;
}

void mtp::addRandomInputs(const Artifact &artifact, const Entry &entry,
                          uint64_t seed, TensorMap &inputs) {
  for (auto &[name, tensor] : randomInputs(artifact, entry, seed))
    inputs.emplace(name, tensor);
}

static HostTensor widen(const HostTensor &tensor, DType type) {
  HostTensor wide(type, tensor.shape);
  for (int64_t i = 0, e = tensor.elements(); i < e; ++i)
    if (type == DType::F64)
      wide.as<double>()[i] = tensor.valueAt(i);
    else
      wide.as<float>()[i] = float(tensor.valueAt(i));
  return wide;
}

TensorMap mtp::widened(const TensorMap &inputs, const Entry &entry) {
  TensorMap result = inputs;
  for (const Input &input : entry.inputs) {
    auto found = result.find(input.name);
    DType wanted = input.layout.type;
    if (found == result.end() || !isFloat(found->second.type) ||
        (wanted != DType::F64 && wanted != DType::F32) ||
        byteSize(found->second.type) >= byteSize(wanted))
      continue;
    found->second = widen(found->second, wanted);
  }
  return result;
}

bool mtp::checkDims(const Options &options, const Entry &entry, Error &error) {
  for (auto &[name, values] : options.dims)
    for (const Input &input : entry.inputs)
      for (size_t i = 0; i < input.dimNames.size(); ++i) {
        int64_t extent = input.layout.shape[i];
        if (input.dimNames[i] != name ||
            std::find(values.begin(), values.end(), extent) != values.end())
          continue;
        error = {kBadInput,
                 "input",
                 "input '" + input.name + "' has " + name + " = " +
                     std::to_string(extent) +
                     ", which is not among the sizes of --dim " + name,
                 {}};
        return false;
      }
  return true;
}
