// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/emit/EmitterTable.h"

using namespace mtp;

const EmitterTable &mtp::emitterTable() {
  static const EmitterTable table = [] {
    EmitterTable all;
    registerElementwiseEmitters(all);
    registerMoveEmitters(all);
    registerGatherEmitters(all);
    registerReductionEmitters(all);
    registerNormEmitters(all);
    registerSpmdEmitters(all);
    return all;
  }();
  return table;
}

const OpEmitter *mtp::emitterOf(mlir::Operation *op) {
  const EmitterTable &table = emitterTable();
  auto it = table.find(op->getName().getStringRef());
  return it == table.end() ? nullptr : &it->second;
}
