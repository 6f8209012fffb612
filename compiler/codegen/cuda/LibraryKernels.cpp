// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/cuda/LibraryKernels.h"

using namespace mlir;
using namespace mtp;

static const LibraryKernelTable &libraryKernelTable() {
  static const LibraryKernelTable table = [] {
    LibraryKernelTable all;
    registerAttentionKernels(all);
    registerConvolutionKernels(all);
    registerGatherGradientKernels(all);
    registerLineKernels(all);
    registerProductKernels(all);
    registerScatterKernels(all);
    return all;
  }();
  return table;
}

const LibraryKernelEmitter *mtp::libraryKernelOf(Operation *op) {
  const LibraryKernelTable &table = libraryKernelTable();
  auto it = table.find(op->getName().getStringRef());
  return it == table.end() ? nullptr : &it->second;
}

SmallVector<KernelPart> mtp::onePart(Operation *op) {
  KernelPart part;
  for (unsigned number = 0; number < op->getNumResults(); ++number)
    part.results.push_back(number);
  return {part};
}

Value LibraryKernelContext::resultBuffer(unsigned number) const {
  for (auto [i, result] : llvm::enumerate(results))
    if (result == number)
      return emit.arguments()[op->getNumOperands() + i];
  return {};
}

ArrayRef<int64_t> LibraryKernelContext::resultStrides(unsigned number) const {
  for (auto [i, result] : llvm::enumerate(results))
    if (result == number)
      return strides[op->getNumOperands() + i];
  return {};
}
