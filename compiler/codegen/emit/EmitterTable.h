// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- EmitterTable.h - one function an op --------------------------------===//
//
// The one place where kernels learn about ops: each family registers, for each
// op, how an element of its result is computed, and what fusion needs to know.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_EMIT_EMITTERTABLE_H
#define MTP_COMPILER_CODEGEN_EMIT_EMITTERTABLE_H

#include "compiler/codegen/emit/RegionEmitter.h"

#include "llvm/ADT/StringMap.h"

namespace mtp {

/// Gives element `indices` of result `number` of `op`.
using EmitElement = mlir::Value (*)(RegionEmitter &emit, mlir::Operation *op,
                                    unsigned number,
                                    llvm::ArrayRef<IndexExpr> indices);

/// How an op reads its operands.
enum class FusionKind : uint8_t {
  Source,      ///< no tensor operands: constant, iota
  Elementwise, ///< element i of the (broadcast) operands
  Move,        ///< one element of an operand, somewhere else
  Look,        ///< elements of the first operand where the others say
  Row,         ///< all elements of a row give the elements of that row
  Reduce       ///< all elements of a row give one
};

struct OpEmitter {
  EmitElement emit = nullptr;
  FusionKind kind = FusionKind::Elementwise;
  /// Work of one element in multiplications; exp is about 10.
  unsigned cost = 1;
};

/// By op name ("mtp.add").
using EmitterTable = llvm::StringMap<OpEmitter>;

/// All emitters; built once.
const EmitterTable &emitterTable();
/// The emitter of an op; null if it has none.
const OpEmitter *emitterOf(mlir::Operation *op);

void registerElementwiseEmitters(EmitterTable &table);
void registerMoveEmitters(EmitterTable &table);
void registerGatherEmitters(EmitterTable &table);
void registerReductionEmitters(EmitterTable &table);
void registerNormEmitters(EmitterTable &table);
void registerSpmdEmitters(EmitterTable &table);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_EMIT_EMITTERTABLE_H
