// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RegionEmitter.h - a region of mtp ops to loops ---------------------===//
//
// Emission is driven by demand. Storing element (i, j) of a result asks for
// that element of the tensor, which asks for elements of its operands, down to
// loads. Every op says in one function how one element of its result comes
// about (EmitterTable.h). Each value is computed at the outermost loop whose
// counters it depends on, and once there: the maximum of a softmax row is asked
// for inside of the loop over the row, depends on the row only, and so lands
// before it.
//
// Scalars have register types: f16 and bf16 are f32 in registers, booleans i1,
// integers signless.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_EMIT_REGIONEMITTER_H
#define MTP_COMPILER_CODEGEN_EMIT_REGIONEMITTER_H

#include "compiler/codegen/emit/LoopNest.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <deque>
#include <functional>

namespace mtp {

/// What emission of one kernel gives besides code.
struct EmittedKernel {
  mlir::FunctionOpInterface body;
  int64_t count = 1, grain = 1;
};

/// Messages by 1-based number; a message gets its number when first asked for.
using FaultNumber = llvm::function_ref<int64_t(const std::string &)>;

class RegionEmitter {
public:
  /// `region` is a func of mtp ops; the kernel's function goes into `target`,
  /// the block of a module.
  RegionEmitter(mlir::func::FuncOp region, mlir::Block &target,
                FaultNumber faultNumber);
  virtual ~RegionEmitter();

  mlir::FailureOr<EmittedKernel> emit(llvm::StringRef name);

  //===--- for the emitters of ops
  //-----------------------------------------===//

  mlir::OpBuilder builder;
  mlir::Location loc;

  /// The element of `tensor` at `indices`, as a register value.
  mlir::Value element(mlir::Value tensor, llvm::ArrayRef<IndexExpr> indices);
  /// The same with numpy broadcast of `tensor` to the rank of `indices`.
  mlir::Value broadcastElement(mlir::Value tensor,
                               llvm::ArrayRef<IndexExpr> indices);
  /// The value of a position, i64.
  mlir::Value materialize(const IndexExpr &expr);

  /// An integer of the program as a variable, with its inclusive range.
  /// `at` is the position at which the value was computed.
  IndexExpr variableAt(mlir::Value value, llvm::ArrayRef<IndexExpr> at,
                       int64_t low, int64_t high);
  std::pair<int64_t, int64_t> range(const IndexExpr &expr) const;
  /// Quotient and remainder. Asks for a cut where that makes both affine.
  std::pair<IndexExpr, IndexExpr> divMod(const IndexExpr &expr,
                                         int64_t divisor);
  /// Positions in a row-major tensor of `shape` from the position in order.
  Indices delinearize(IndexExpr linear, llvm::ArrayRef<int64_t> shape);
  /// The number of `bounds` (ascending) that are <= expr, or -1 if the loops
  /// are not broken so that it is known; asks for the break then.
  int segment(const IndexExpr &expr, llvm::ArrayRef<int64_t> bounds);

  /// `condition ? whenTrue() : whenFalse()`; code of a branch runs only there.
  mlir::Value conditional(mlir::Value condition, mlir::Type type,
                          llvm::function_ref<mlir::Value()> whenTrue,
                          llvm::function_ref<mlir::Value()> whenFalse);

  using SweepBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value element, llvm::ArrayRef<IndexExpr> indices,
      mlir::ValueRange carried)>;
  /// Loops over the dimensions `swept` of `input` at the position `indices` of
  /// the others. `number` tells the sweeps of one op apart. With
  /// `severalSweeps`, or if others in the region read `input`, the elements are
  /// kept for later unless they are as cheap to load again.
  llvm::SmallVector<mlir::Value>
  sweep(mlir::Operation *op, unsigned number, mlir::Value input,
        llvm::ArrayRef<IndexExpr> indices, llvm::ArrayRef<unsigned> swept,
        mlir::ValueRange initial, bool severalSweeps, SweepBody body);
  /// The values `compute` gives at a position, computed once there. `compute`
  /// is called at the level of `indices`.
  llvm::SmallVector<mlir::Value>
  once(mlir::Operation *op, unsigned number, llvm::ArrayRef<IndexExpr> indices,
       llvm::function_ref<llvm::SmallVector<mlir::Value>()> compute);

  /// Whether there is room for so much scratch memory: it lies on the stack.
  virtual bool hasRoom(mlir::Type type, int64_t elements) const;
  /// Memory of the kernel's own for `elements` of a register type.
  virtual mlir::Value scratch(mlir::Type type, int64_t elements);
  /// Element `at` (i64) of an array in memory as a register value, and back.
  mlir::Value loadElement(mlir::Value base, mlir::Type elementType,
                          mlir::Value at);
  void storeElement(mlir::Value base, mlir::Type elementType, mlir::Value at,
                    mlir::Value value);
  mlir::Value loadAt(mlir::Value base, mlir::Type elementType,
                     const IndexExpr &position);
  void storeAt(mlir::Value base, mlir::Type elementType,
               const IndexExpr &position, mlir::Value value);

  /// A constant array in the object, its address.
  mlir::Value globalArray(mlir::DenseElementsAttr values);
  /// Calls function `index` of MtpMath.
  virtual mlir::Value callMath(unsigned index, mlir::Type type,
                               mlir::ValueRange operands);
  /// Where `condition` holds, reports a fault.
  void faultIf(mlir::Value condition, const std::string &message);
  /// Refuses the kernel; the first message counts.
  mlir::Value refuse(mlir::Operation *op, const llvm::Twine &message);
  mlir::Value constant(int64_t value); ///< i64

  static mlir::Type registerType(mlir::Type elementType);
  static mlir::Type storageType(mlir::Type elementType);

protected:
  struct Nest;

  //===--- what a device does otherwise
  //------------------------------------===//

  /// Makes `function` and sets `rank`, `buffers`, `begin` and `end`.
  virtual void beginFunction(llvm::StringRef name);
  virtual void emitResults();
  /// True if several threads share the iterations of a nest inside of `parent`.
  virtual bool isShared(const Level &) const { return false; }
  virtual llvm::SmallVector<mlir::Value> emitShared(Nest &nest, Level &parent,
                                                    mlir::ValueRange initial);
  /// Called at the innermost parallel level, before its code.
  virtual void enterRow() {}
  /// True if loops are broken and tiled for straight code and caches.
  virtual bool shapesLoops() const { return true; }
  /// True if what a sweep stores in a result may be read from there.
  virtual bool readsResults() const { return true; }
  virtual void storeInResult(size_t number, const IndexExpr &position,
                             mlir::Value value);
  virtual int64_t faultOffset() const; ///< of the address, in the rank

  mlir::LogicalResult emitOnce(llvm::StringRef name);
  void openFunction(mlir::FunctionOpInterface made);
  void planRows();
  void planColumns();
  void storeResult(size_t number, llvm::ArrayRef<IndexExpr> indices);
  void emitElements();
  void emitRows();
  void emitColumns();
  Level &levelOf(llvm::ArrayRef<IndexExpr> indices);
  Level &naturalLevel(const IndexExpr &expr);
  void moveTo(Level &level);
  Level &newLevel(Level &parent, mlir::Block *block);
  void closeLevel(Level &level);
  IndexExpr variableOf(mlir::Value value, Level &level, int64_t low,
                       int64_t high);
  VariableId newVariable(Variable variable);
  mlir::Value variableValue(VariableId id);
  void recordAccess(const IndexExpr &expr);

  /// While it lives, code goes to a level.
  class At {
  public:
    At(mlir::OpBuilder &builder, Level *&current, Level &level)
        : guard(builder), current(current), saved(current) {
      current = &level;
    }
    ~At() { current = saved; }

  private:
    mlir::OpBuilder::InsertionGuard guard;
    Level *&current;
    Level *saved;
  };
  using NestBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      llvm::ArrayRef<IndexExpr> dims, mlir::ValueRange carried)>;
  llvm::SmallVector<mlir::Value> emitNest(Level &parent, NestKey key,
                                          llvm::ArrayRef<int64_t> extents,
                                          mlir::ValueRange initial,
                                          NestBody body, bool parallel,
                                          bool allParallel);
  llvm::SmallVector<mlir::Value>
  emitGroups(Nest &nest, Level &parent, size_t first, mlir::ValueRange carried);
  void emitParallel(Nest &nest, Level &parent, size_t taken);
  void addGroup(Nest &nest, size_t number, Level &level, mlir::Value counter,
                int64_t low, int64_t high);
  const Level::RowCache *findCache(Level &level, mlir::Value tensor,
                                   llvm::ArrayRef<IndexExpr> indices);
  bool worthKeeping(mlir::Value tensor, mlir::Operation *user,
                    bool severalSweeps);
  int resultBuffer(mlir::Value tensor, llvm::ArrayRef<IndexExpr> indices,
                   llvm::ArrayRef<unsigned> swept, Level &level);

  mlir::func::FuncOp region;
  mlir::Block &target;
  FaultNumber faultNumber;

  // Between passes.
  std::map<NestKey, NestPlan> plans;
  bool merging = false, replan = false;
  bool failedOnce = false;

  // Of one pass.
  mlir::FunctionOpInterface function;
  std::deque<Level> levels;
  std::deque<LoopGroup> groups;
  std::deque<NestInstance> nests;
  std::vector<Variable> variables;
  Level *root = nullptr, *floor = nullptr, *current = nullptr;
  mlir::Value rank, begin, end, mathTable;
  std::vector<mlir::Value> buffers;
  std::vector<mlir::Operation *> globals;
  int64_t count = 1, scratchBytes = 0;
  /// The innermost iterations of the result nest that are one thread's own:
  /// a factor of the last dimension. More than 1: all others run in parallel.
  int64_t vectorWidth = 1;

  // Rows: how results are iterated (planRows).
  bool rowMode = false;
  std::vector<llvm::SmallVector<unsigned>> rowDims; ///< by result
  std::vector<Indices> rowIndices; ///< by result, inside of a row
  std::vector<bool> stored;        ///< by result, inside of a row
  Level *rowLevel = nullptr;       ///< also of elements

  /// Columns: a reduction over leading dimensions that all results are
  /// elements of; it goes through blocks of columns, row by row.
  mlir::Operation *columnReduction = nullptr;
  int64_t columnWidth = 0; ///< of a block
};

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_EMIT_REGIONEMITTER_H
