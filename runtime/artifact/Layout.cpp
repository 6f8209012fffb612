// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Layout.cpp - element types, meshes, blocks -------------------------===//
#include "runtime/artifact/Artifact.h"
#include "runtime/support/Checked.h"

#include <algorithm>

using namespace mtp;

namespace {
struct TypeRow {
  DType type;
  const char *name;
  int64_t size;
};
constexpr TypeRow kTypes[] = {
    {DType::F64, "f64", 8},   {DType::F32, "f32", 4}, {DType::F16, "f16", 2},
    {DType::BF16, "bf16", 2}, {DType::I64, "i64", 8}, {DType::I32, "i32", 4},
    {DType::I16, "i16", 2},   {DType::I8, "i8", 1},   {DType::U64, "u64", 8},
    {DType::U32, "u32", 4},   {DType::U16, "u16", 2}, {DType::U8, "u8", 1},
    {DType::Bool, "bool", 1}};
} // namespace

int64_t mtp::byteSize(DType type) {
  return kTypes[static_cast<size_t>(type)].size;
}
const char *mtp::name(DType type) {
  return kTypes[static_cast<size_t>(type)].name;
}
bool mtp::parseDType(const std::string &text, DType &type) {
  for (const TypeRow &row : kTypes)
    if (text == row.name) {
      type = row.type;
      return true;
    }
  return false;
}
bool mtp::isFloat(DType type) { return type <= DType::BF16; }

int64_t Mesh::ranks() const {
  int64_t product = 1;
  for (const Axis &axis : axes)
    product *= axis.size;
  return product;
}

std::vector<int64_t> Mesh::coordinates(int64_t rank) const {
  std::vector<int64_t> result(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    result[i] = rank % axes[i].size;
    rank /= axes[i].size;
  }
  return result;
}

Block mtp::blockOf(int64_t extent, const DimSharding &sharding,
                   const Mesh &mesh, const std::vector<int64_t> &coordinates) {
  if (sharding.axes.empty())
    return {0, extent, extent};
  // Everything in units until the end; what is valid in elements, because the
  // last unit may be cut. A sub-block ends where its parent ends: it can reach
  // past it into padding, never into the next parent's elements.
  Block block{0, 0, extent};
  int64_t units = ceilDiv(extent, sharding.unit);
  for (int axis : sharding.axes) {
    units = ceilDiv(units, mesh.axes[axis].size);
    block.capacity = units * sharding.unit;
    int64_t skipped = coordinates[axis] * block.capacity;
    block.offset += skipped;
    block.valid = std::clamp(block.valid - skipped, int64_t(0), block.capacity);
  }
  return block;
}

std::vector<int64_t> TensorLayout::localShape(const Mesh &mesh) const {
  std::vector<int64_t> origin(mesh.axes.size(), 0), result;
  for (size_t i = 0; i < shape.size(); ++i)
    result.push_back(blockOf(shape[i], dims[i], mesh, origin).capacity);
  return result;
}
