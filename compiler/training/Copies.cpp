// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/training/Training.h"

#include "llvm/Support/MemoryBuffer.h"

#include <cstring>
#include <map>

using namespace mlir;
using namespace mtp;
using namespace mtp::training;

namespace {

/// The elements of an initializer as bytes, row-major.
class StoredBytes {
public:
  explicit StoredBytes(InitializerOp op)
      : op(op), type(cast<RankedTensorType>(op.getType())) {
    if (auto value = dyn_cast_if_present<DenseElementsAttr>(
            op.getValue().value_or(nullptr))) {
      if (!value.isSplat())
        bytes = value.getRawData();
      return;
    }
    if (!op.getFile())
      return;
    auto slice = llvm::MemoryBuffer::getFileSlice(*op.getFile(), *op.getBytes(),
                                                  *op.getOffset());
    if (!slice)
      return;
    file = std::move(*slice);
    bytes = {file->getBufferStart(), file->getBufferSize()};
    if (isSplat())
      bytes = {};
  }

  bool equals(const StoredBytes &other) const {
    return type == other.type && bytes == other.bytes;
  }

  /// True if `other` is this matrix with its dimensions exchanged.
  bool isTransposeOf(const StoredBytes &other) const {
    if (type.getRank() != 2 || other.type.getRank() != 2 ||
        type.getElementType() != other.type.getElementType() ||
        type.getDimSize(0) != other.type.getDimSize(1) ||
        type.getDimSize(1) != other.type.getDimSize(0) ||
        bytes.size() != other.bytes.size())
      return false;
    int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
    size_t size = elementBytes();
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        if (std::memcmp(bytes.data() + (i * columns + j) * size,
                        other.bytes.data() + (j * rows + i) * size, size))
          return false;
    return true;
  }

  bool empty() const { return bytes.empty(); }

  InitializerOp op;
  RankedTensorType type;

private:
  size_t elementBytes() const {
    return type.getElementType().getIntOrFloatBitWidth() / 8;
  }
  /// All elements are equal: fresh biases and scales, which are no copies.
  bool isSplat() const {
    size_t size = elementBytes();
    return bytes.size() <= size ||
           !std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size);
  }

  std::unique_ptr<llvm::MemoryBuffer> file;
  ArrayRef<char> bytes;
};

} // namespace

void training::warnOfCopies(ModuleOp module) {
  // Only tensors with the same sizes, in any order, can be copies.
  std::map<std::vector<int64_t>, std::vector<StoredBytes>> groups;
  for (auto op : module.getOps<InitializerOp>()) {
    if (!op.getTrainable() || op->hasAttr(names::tiedTo))
      continue;
    ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getType()).getShape();
    std::vector<int64_t> key(shape.begin(), shape.end());
    llvm::sort(key);
    StoredBytes mine(op);
    if (mine.empty())
      continue;
    std::vector<StoredBytes> &group = groups[key];
    for (const StoredBytes &other : group) {
      bool same = mine.equals(other);
      if (!same && !mine.isTransposeOf(other))
        continue;
      InitializerOp first = other.op;
      op.emitWarning() << "'" << op.getSymName() << "' and '"
                       << first.getSymName() << "' hold the same values"
                       << (same ? "" : ", one transposed,")
                       << " and are trained apart; --tie '"
                       << first.getSymName() << "," << op.getSymName()
                       << (same ? "" : ":transposed")
                       << "' makes them one parameter";
      break;
    }
    group.push_back(std::move(mine));
  }
}
