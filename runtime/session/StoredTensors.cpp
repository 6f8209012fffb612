// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/session/StoredTensors.h"
#include "runtime/loader/Convert.h"
#include "runtime/loader/ParameterLoader.h"
#include "runtime/session/Assembly.h"
#include "runtime/support/Checked.h"

#include <algorithm>

using namespace mtp;

namespace {

/// What a file keeps and what the program computes in, the wider of both.
DType wholeType(const Parameter &parameter) {
  DType stored = parameter.source.type, computed = parameter.layout.type;
  if (!parameter.state.empty() || byteSize(computed) >= byteSize(stored))
    return computed;
  return stored;
}

/// sum += term, elementwise, in f32 or f64.
void addTo(HostTensor &sum, const HostTensor &term) {
  auto add = [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0, n = sum.elements(); i < n; ++i)
      sum.as<T>()[i] += term.as<T>()[i];
  };
  if (sum.type == DType::F64)
    add(0.0);
  else
    add(0.0f);
}

/// The next coordinates on `axes`, the last one fastest; false after the last.
bool advance(std::vector<int64_t> &coordinates, const std::vector<int> &axes,
             const Mesh &mesh) {
  for (size_t i = axes.size(); i-- > 0;) {
    if (++coordinates[axes[i]] < mesh.axes[axes[i]].size)
      return true;
    coordinates[axes[i]] = 0;
  }
  return false;
}

Error storedError(std::string message) {
  return {exits::BadInput, "input", std::move(message), {}};
}

} // namespace

std::map<std::string, std::vector<int64_t>>
StoredTensors::pieces(bool states) const {
  std::map<std::string, std::vector<int64_t>> result;
  for (size_t i = 0; i < artifact.parameters.size(); ++i) {
    const Parameter &parameter = artifact.parameters[i];
    if (parameter.updated && parameter.state.empty() != states)
      result[parameter.name + (states ? "/" + parameter.state : "")].push_back(
          static_cast<int64_t>(i));
  }
  return result;
}

bool StoredTensors::readPiece(int64_t index, HostTensor &piece, Error &error) {
  const Parameter &parameter = artifact.parameters[index];
  std::vector<int64_t> at(artifact.axes.axes.size(), 0);
  bool first = true;
  do {
    // The blocks of the ranks with these coordinates on the partial axes.
    HostTensor term;
    if (!first)
      term = HostTensor(piece.type, piece.shape);
    HostTensor &target = first ? piece : term;
    if (!threads.run(
            [&](Rank &rank, int) {
              rank.readStored(index, at, target.bytes.data());
            },
            error) ||
        !assemble(world, parameter.layout, target.bytes.data(),
                  parameter.partial, at, error))
      return false;
    if (!first)
      addTo(piece, term);
    first = false;
  } while (advance(at, parameter.partial, artifact.axes));
  return true;
}

bool StoredTensors::read(bool states, TensorMap &whole, Error &error) {
  whole.clear();
  for (const auto &[name, parts] : pieces(states)) {
    const Parameter &some = artifact.parameters[parts[0]];
    HostTensor tensor(wholeType(some), some.source.shape);
    int64_t covered = 0;
    for (int64_t index : parts) {
      const Parameter &parameter = artifact.parameters[index];
      HostTensor piece(parameter.layout.type, parameter.layout.shape);
      covered += piece.elements();
      if (!readPiece(index, piece, error))
        return false;
      if (piece.type != tensor.type) {
        HostTensor wide(tensor.type, piece.shape);
        convertElements(piece.type, piece.bytes.data(), wide.type,
                        wide.bytes.data(), piece.elements());
        piece = std::move(wide);
      }
      undoRecipe(parameter.recipe, byteSize(tensor.type), piece.bytes.data(),
                 tensor.bytes.data(), tensor.shape);
    }
    if (covered != tensor.elements()) {
      error = {exits::Internal,
               "internal",
               "the updated pieces of '" + name + "' have " +
                   std::to_string(covered) + " elements, it has " +
                   std::to_string(tensor.elements()),
               {}};
      return false;
    }
    whole.emplace(name, std::move(tensor));
  }
  return true;
}

bool StoredTensors::check(const std::string &name,
                          const std::vector<int64_t> &parts,
                          const HostTensor &tensor, Error &error) const {
  const Parameter &some = artifact.parameters[parts[0]];
  if (tensor.shape != some.source.shape)
    error = storedError("'" + name + "' has dims " + shapeText(tensor.shape) +
                        "; the program keeps " + shapeText(some.source.shape));
  else if (isFloat(tensor.type) != isFloat(some.layout.type))
    error = storedError("'" + name + "' has type " + mtp::name(tensor.type) +
                        "; the program keeps " + mtp::name(some.layout.type));
  return !error;
}

bool StoredTensors::write(bool states, const TensorMap &whole, Error &error) {
  error = {};
  auto known = pieces(states);
  for (const auto &[name, tensor] : whole) {
    auto it = known.find(name);
    if (it == known.end()) {
      error = storedError("the program keeps no tensor '" + name + "'");
      return false;
    }
    if (!check(name, it->second, tensor, error))
      return false;
  }
  for (const auto &[name, tensor] : whole) {
    const HostTensor &from = tensor;
    const std::vector<int64_t> &parts = known.at(name);
    if (!threads.run(
            [&](Rank &rank, int) {
              for (int64_t index : parts)
                rank.writeStored(index, from);
            },
            error))
      return false;
  }
  return true;
}
