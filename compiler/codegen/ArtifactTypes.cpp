// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/ArtifactTypes.h"

#include "llvm/Support/Endian.h"

using namespace mlir;
using namespace mtp;

std::optional<DType> mtp::dtypeOf(Type element) {
  if (element.isF64())
    return DType::F64;
  if (element.isF32())
    return DType::F32;
  if (element.isF16())
    return DType::F16;
  if (element.isBF16())
    return DType::BF16;
  bool isUnsigned = element.isUnsignedInteger();
  if (element.isInteger(64))
    return isUnsigned ? DType::U64 : DType::I64;
  if (element.isInteger(32))
    return isUnsigned ? DType::U32 : DType::I32;
  if (element.isInteger(16))
    return isUnsigned ? DType::U16 : DType::I16;
  if (element.isInteger(8))
    return isUnsigned ? DType::U8 : DType::I8;
  if (element.isInteger(1))
    return DType::Bool;
  return std::nullopt;
}

int64_t mtp::bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  auto dtype = dtypeOf(tensor.getElementType());
  return dtype ? tensor.getNumElements() * byteSize(*dtype) : 0;
}

std::vector<int64_t> mtp::vectorOf(ArrayRef<int64_t> values) {
  return {values.begin(), values.end()};
}

Mesh mtp::meshOf(const MeshShape &shape) {
  Mesh mesh;
  for (const MeshShape::Axis &axis : shape.axes)
    mesh.axes.push_back({axis.name(), axis.size});
  return mesh;
}

DimSharding mtp::shardingOf(const DimCut &cut) {
  return {{cut.axes.begin(), cut.axes.end()}, cut.unit};
}

FailureOr<TensorLayout> mtp::tensorLayoutOf(Operation *op,
                                            RankedTensorType global,
                                            LayoutAttr attr,
                                            const MeshShape &mesh) {
  auto layout = toLayout(op, withLayout(global, attr), mesh);
  if (failed(layout))
    return failure();
  auto dtype = dtypeOf(global.getElementType());
  if (!dtype)
    return op->emitOpError() << "has elements of type "
                             << global.getElementType() << ", which do not run";
  TensorLayout result;
  result.type = *dtype;
  result.shape = vectorOf(global.getShape());
  for (const DimCut &cut : layout->dims)
    result.dims.push_back(shardingOf(cut));
  result.text = layout->text(mesh);
  return result;
}

/// Appends the low `bytes` bytes of `value`.
static void append(std::string &data, const APInt &value, int64_t bytes) {
  uint64_t word = value.getZExtValue();
  for (int64_t i = 0; i < bytes; ++i)
    data.push_back(static_cast<char>(word >> (8 * i)));
}

std::optional<std::string> mtp::elementBytes(ElementsAttr value) {
  auto dense = dyn_cast<DenseElementsAttr>(value);
  auto dtype = dtypeOf(value.getElementType());
  if (!dense || !dtype)
    return std::nullopt;
  std::string data;
  data.reserve(dense.getNumElements() * byteSize(*dtype));
  if (isFloat(*dtype))
    for (const APFloat &element : dense.getValues<APFloat>())
      append(data, element.bitcastToAPInt(), byteSize(*dtype));
  else
    for (const APInt &element : dense.getValues<APInt>())
      append(data, element, byteSize(*dtype));
  return data;
}

std::string mtp::nodeName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (std::string name = nodeName(part); !name.empty())
        return name;
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return nodeName(call.getCallee());
  return "";
}
