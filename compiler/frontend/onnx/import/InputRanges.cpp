// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- InputRanges.cpp - what values an input may take --------------------===//

#include "compiler/frontend/onnx/import/InputRanges.h"
#include "dialects/mtp/MtpDialect.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mtp;

namespace {
struct Range {
  int64_t rows = 0; ///< 0: looks nothing up
  std::string table;
};

/// The smallest table that `input` looks up, through data movement.
Range followInput(Value input) {
  Range range;
  llvm::SetVector<Value> work;
  work.insert(input);
  for (size_t i = 0; i < work.size(); ++i)
    for (OpOperand &use : work[i].getUses()) {
      Operation *user = use.getOwner();
      if (auto gather = dyn_cast<GatherOp>(user);
          gather && use.getOperandNumber() == 1) {
        int64_t rows = cast<RankedTensorType>(gather.getData().getType())
                           .getDimSize(gather.getDim());
        if (range.rows && rows >= range.rows)
          continue;
        auto parameter = gather.getData().getDefiningOp<ParameterOp>();
        range = {rows, parameter ? parameter.getSource().str() : "a table"};
        continue;
      }
      auto type = dyn_cast_or_null<RankedTensorType>(
          user->getNumResults() ? user->getResult(0).getType() : Type());
      bool isInteger = type && type.getElementType().isInteger() &&
                       !type.getElementType().isInteger(1);
      if (isInteger &&
          isa<ReshapeOp, TransposeOp, BroadcastOp, StridedSliceOp, ConvertOp>(
              user))
        work.insert(user->getResult(0));
    }
  return range;
}
} // namespace

void mtp::onnx::annotateInputs(func::FuncOp main) {
  OpBuilder builder(main.getContext());
  for (BlockArgument argument : main.getArguments()) {
    unsigned index = argument.getArgNumber();
    Type element = cast<RankedTensorType>(argument.getType()).getElementType();
    std::string name =
        main.getArgAttrOfType<StringAttr>(index, "mtp.name").getValue().lower();
    std::string random = isa<FloatType>(element) ? "normal" : "zeros";
    auto has = [&](const char *part) {
      return name.find(part) != std::string::npos;
    };
    if (element.isInteger(1) || has("mask"))
      random = "mask";
    else if (element.isInteger()) {
      Range range = followInput(argument);
      if (range.rows) {
        main.setArgAttr(
            index, "mtp.range",
            builder.getDenseI64ArrayAttr({-range.rows, range.rows - 1}));
        main.setArgAttr(index, "mtp.range_reason",
                        builder.getStringAttr("rows of " + range.table + " (" +
                                              std::to_string(range.rows) +
                                              ")"));
        random = has("position") ? "positions" : "ids";
      } else if (has("position")) {
        random = "positions";
      }
    }
    main.setArgAttr(index, "mtp.random", builder.getStringAttr(random));
  }
}
