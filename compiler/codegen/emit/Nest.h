// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Nest.h - a nest while its loops are made ---------------------------===//
#ifndef MTP_COMPILER_CODEGEN_EMIT_NEST_H
#define MTP_COMPILER_CODEGEN_EMIT_NEST_H

#include "compiler/codegen/emit/RegionEmitter.h"

namespace mtp {

struct RegionEmitter::Nest {
  NestInstance *instance;
  NestPlan *plan;
  llvm::SmallVector<llvm::SmallVector<unsigned>> groups; ///< parts of each loop
  llvm::SmallVector<int64_t> extents;
  llvm::SmallVector<VariableId> variables; ///< by part, of the current range
  NestBody body;

  int64_t trips(size_t group) const {
    int64_t product = 1;
    for (unsigned part : groups[group])
      product *= instance->parts[part].extent;
    return product;
  }
  bool broken(size_t group) const {
    return groups[group].size() == 1 &&
           plan->hasBreaks(instance->parts[groups[group][0]]);
  }
};

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_EMIT_NEST_H
