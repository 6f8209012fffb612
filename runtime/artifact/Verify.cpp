// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Verify.cpp - every size, index and offset of an artifact -----------===//
//
// After verify() the rest of the runtime computes addresses without checks.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/Recipe.h"
#include "runtime/artifact/VerifyProgram.h"
#include "runtime/support/Checked.h"

#include <algorithm>
#include <set>
#include <stdexcept>

using namespace mtp;
using namespace mtp::verify;

namespace {

constexpr int64_t kMaxRanks = 4096;
/// Far beyond any tensor, small enough that sums of a few such sizes fit.
constexpr int64_t kMaxBytes = int64_t(1) << 56;

void checkMesh(const Mesh &mesh) {
  std::set<std::string> names;
  int64_t ranks = 1;
  for (const Mesh::Axis &axis : mesh.axes) {
    require(axis.size >= 1, "mesh axis " + quoted(axis.name) + " has size " +
                                std::to_string(axis.size));
    require(!axis.name.empty() && names.insert(axis.name).second,
            "mesh axis name " + quoted(axis.name) + " is empty or used twice");
    require(checkedMul(ranks, axis.size, ranks) && ranks <= kMaxRanks,
            "the mesh has more than " + std::to_string(kMaxRanks) + " ranks");
  }
}

void checkRecipe(const Parameter &parameter, const std::string &what) {
  std::vector<int64_t> shape = parameter.source.shape;
  std::string error;
  for (size_t i = 0; i < parameter.recipe.size(); ++i)
    require(applyToShape(parameter.recipe[i], shape, error),
            what + " recipe step " + std::to_string(i) + ": " + error);
  require(shape == parameter.layout.shape,
          what + " recipe leads to another shape than its layout has");
}

bool isHash(const std::string &text) {
  return text.empty() ||
         (text.size() == 64 &&
          text.find_first_not_of("0123456789abcdef") == std::string::npos);
}

void checkParameter(const Artifact &artifact, const Parameter &parameter,
                    const std::string &what) {
  const Source &source = parameter.source;
  checkLayout(artifact.axes, parameter.layout, what);
  bool isZero = source.kind == Source::Kind::Zero;
  int64_t bytes = checkedBytes(source.type, source.shape, what + " source");
  if (isZero)
    bytes = 0;
  require(isZero == !parameter.state.empty(),
          what + " is zero at first but no state, or the other way round");
  require(source.bytes == static_cast<uint64_t>(bytes),
          what + " source has " + std::to_string(source.bytes) +
              " bytes, its shape needs " + std::to_string(bytes));
  uint64_t end;
  require(!__builtin_add_overflow(source.offset, source.bytes, &end) &&
              end <= static_cast<uint64_t>(INT64_MAX),
          what + " source reaches past any file");
  if (source.kind == Source::Kind::Embedded)
    require(end <= artifact.data.size(),
            what + " source reaches past the data section");
  else if (source.kind == Source::Kind::File)
    require(!source.file.empty() && source.file.find('\0') == std::string::npos,
            what + " source names no file");
  std::set<int> cut;
  for (const DimSharding &dim : parameter.layout.dims)
    cut.insert(dim.axes.begin(), dim.axes.end());
  for (int axis : parameter.partial)
    require(axis >= 0 &&
                axis < static_cast<int64_t>(artifact.axes.axes.size()) &&
                cut.insert(axis).second,
            what + " is partial over a mesh axis that does not exist, stands "
                   "twice or cuts it");
  require(!isZero || source.sha256.empty(), what + " is zero and has a hash");
  require(parameter.partial.empty() || isZero,
          what + " is partial and no state");
  require(isHash(source.sha256), what + " source has a malformed SHA-256");
  checkRecipe(parameter, what);
}

void checkInput(const Artifact &artifact, const Input &input,
                std::set<std::string> &names) {
  std::string what = "input " + quoted(input.name);
  require(names.insert(input.name).second, what + " stands twice");
  checkLayout(artifact.axes, input.layout, what);
  require(input.dimNames.empty() ||
              input.dimNames.size() == input.layout.shape.size(),
          what + " names another number of dims than it has");
  static const std::set<std::string> generators = {"normal", "ids", "mask",
                                                   "positions", "zeros"};
  require(generators.count(input.random) != 0,
          what + " asks for unknown random values " + quoted(input.random));
}

void checkRankValue(const Mesh &mesh, const RankValue &value,
                    const std::string &what) {
  if (value.kind == RankValue::Kind::Coordinate) {
    require(!value.sharding.axes.empty(), what + " names no axis");
    checkSharding(mesh, value.sharding, 0, what);
    return;
  }
  checkSharding(mesh, value.sharding, value.extent, what);
}

/// Parts of a collective stand behind the first one.
void checkPart(const Artifact &a, int64_t index) {
  const CollectiveSite &site = a.collectiveSites[index];
  if (site.partOf == -1)
    return;
  std::string what = "collective site " + std::to_string(index);
  require(site.partOf >= 0 && site.partOf < index,
          what + " is part of number " + std::to_string(site.partOf) +
              ", which doesn't stand before it");
  const CollectiveSite &first = a.collectiveSites[site.partOf];
  require(first.partOf == -1 && first.kind == CollectiveSite::Kind::AllReduce &&
              site.kind == first.kind && site.axes == first.axes &&
              site.type == first.type,
          what + " is part of another kind of collective");
}

void checkArtifact(const Artifact &a) {
  checkMesh(a.axes);
  for (size_t i = 0; i < a.parameters.size(); ++i)
    checkParameter(a, a.parameters[i],
                   "parameter " + std::to_string(i) + " " +
                       quoted(a.parameters[i].name));
  for (size_t i = 0; i < a.rankValues.size(); ++i)
    checkRankValue(a.axes, a.rankValues[i], "rank value " + std::to_string(i));
  for (size_t i = 0; i < a.librarySites.size(); ++i)
    checkLibrarySite(a.librarySites[i], "library site " + std::to_string(i));
  for (size_t i = 0; i < a.collectiveSites.size(); ++i) {
    checkCollectiveSite(a.axes, a.collectiveSites[i],
                        "collective site " + std::to_string(i));
    checkPart(a, static_cast<int64_t>(i));
  }
  checkGpuCode(a);
  require(!a.entries.empty(), "there is no program");
  std::set<std::string> entryNames;
  for (const Entry &entry : a.entries) {
    require(entryNames.insert(entry.name).second,
            "entry " + quoted(entry.name) + " stands twice");
    std::set<std::string> inputs, outputs;
    for (const Input &input : entry.inputs)
      checkInput(a, input, inputs);
    for (const Output &output : entry.outputs) {
      std::string what = "output " + quoted(output.name);
      require(outputs.insert(output.name).second, what + " stands twice");
      checkLayout(a.axes, output.layout, what);
    }
    checkProgram(a, entry);
  }
}

} // namespace

void verify::require(bool condition, const std::string &message) {
  if (!condition)
    throw Invalid(message);
}

std::string verify::quoted(const std::string &name) { return "'" + name + "'"; }

int64_t verify::checkedBytes(DType type, const std::vector<int64_t> &shape,
                             const std::string &what) {
  int64_t bytes = 0;
  for (int64_t extent : shape)
    require(extent >= 0, what + " has a negative extent");
  require(shape.size() <= 64, what + " has more than 64 dims");
  require(checkedProduct(shape, bytes) &&
              checkedMul(bytes, byteSize(type), bytes) && bytes <= kMaxBytes,
          what + " is larger than any memory");
  return bytes;
}

void verify::checkSharding(const Mesh &mesh, const DimSharding &sharding,
                           int64_t extent, const std::string &what) {
  require(extent >= 0 && extent <= kMaxBytes, what + " has an invalid extent");
  require(sharding.unit >= 1 && sharding.unit <= (int64_t(1) << 40),
          what + " has unit " + std::to_string(sharding.unit));
  std::set<int> used;
  for (int axis : sharding.axes)
    require(axis >= 0 && axis < static_cast<int64_t>(mesh.axes.size()) &&
                used.insert(axis).second,
            what +
                " is cut by a mesh axis that does not exist or stands twice");
}

void verify::checkLayout(const Mesh &mesh, const TensorLayout &layout,
                         const std::string &what) {
  checkedBytes(layout.type, layout.shape, what);
  require(layout.dims.size() == layout.shape.size(),
          what + " has " + std::to_string(layout.shape.size()) +
              " dims and cuts for " + std::to_string(layout.dims.size()));
  std::set<int> used;
  for (size_t i = 0; i < layout.dims.size(); ++i) {
    checkSharding(mesh, layout.dims[i], layout.shape[i], what);
    for (int axis : layout.dims[i].axes)
      require(used.insert(axis).second,
              what + " is cut twice by one mesh axis");
  }
  checkedBytes(layout.type, layout.localShape(mesh), what);
}

bool mtp::applyToShape(const RecipeStep &step, std::vector<int64_t> &shape,
                       std::string &error) {
  int64_t rank = static_cast<int64_t>(shape.size());
  switch (step.kind) {
  case RecipeStep::Kind::Transpose: {
    std::vector<int64_t> result;
    std::set<int64_t> used;
    for (int64_t dim : step.values) {
      if (dim < 0 || dim >= rank || !used.insert(dim).second)
        break;
      result.push_back(shape[dim]);
    }
    if (result.size() != shape.size() || step.values.size() != shape.size()) {
      error = "its transpose is not a permutation of the dims";
      return false;
    }
    shape = result;
    return true;
  }
  case RecipeStep::Kind::Slice: {
    int64_t end;
    if (step.dim < 0 || step.dim >= rank ||
        !checkedAdd(step.start, step.size, end) || end > shape[step.dim]) {
      error = "its slice lies outside of the tensor";
      return false;
    }
    shape[step.dim] = step.size;
    return true;
  }
  case RecipeStep::Kind::Reshape: {
    int64_t before, after;
    bool valid = step.values.size() <= 64;
    for (int64_t extent : step.values)
      valid &= extent >= 0;
    if (!valid || !checkedProduct(shape, before) ||
        !checkedProduct(step.values, after) || before != after) {
      error = "its reshape changes the number of elements";
      return false;
    }
    shape = step.values;
    return true;
  }
  }
  error = "its kind is unknown";
  return false;
}

bool Artifact::verify(std::string &error) const {
  try {
    checkArtifact(*this);
    return true;
  } catch (const Invalid &e) {
    error = std::string("the artifact is invalid: ") + e.what();
    return false;
  }
}
