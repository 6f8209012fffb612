// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- SpmdDialect.cpp - the program of one rank --------------------------===//

#include "dialects/spmd/SpmdDialect.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::spmd;

#include "dialects/spmd/SpmdDialect.cpp.inc"
#include "dialects/spmd/SpmdEnums.cpp.inc"
#include "dialects/spmd/SpmdInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/spmd/SpmdAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/spmd/SpmdOps.cpp.inc"

void SpmdDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/spmd/SpmdAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/spmd/SpmdOps.cpp.inc"
      >();
}

MeshOp spmd::findMesh(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  if (auto self = dyn_cast<ModuleOp>(op))
    module = self;
  MeshOp found;
  if (module)
    for (MeshOp mesh : module.getOps<MeshOp>()) {
      if (found) {
        op->emitOpError() << "the module has two meshes, @"
                          << found.getSymName() << " and @"
                          << mesh.getSymName();
        return {};
      }
      found = mesh;
    }
  if (!found)
    op->emitOpError() << "the module has no mtp.mesh";
  return found;
}

SmallVector<int, 2> spmd::findAxes(ArrayAttr names, const MeshShape &mesh) {
  SmallVector<int, 2> axes;
  for (Attribute name : names) {
    auto text = dyn_cast<StringAttr>(name);
    SmallVector<int, 2> found =
        text ? mesh.find(text.getValue()) : SmallVector<int, 2>();
    if (found.empty())
      return {};
    for (int axis : found) {
      if (llvm::is_contained(axes, axis))
        return {};
      axes.push_back(axis);
    }
  }
  return axes;
}

DimCut spmd::toCut(CutAttr cut, const MeshShape &mesh) {
  return {findAxes(cut.getAxes(), mesh), cut.getUnit()};
}

CutAttr spmd::toCutAttr(MLIRContext *context, int64_t extent, const DimCut &cut,
                        const MeshShape &mesh) {
  SmallVector<Attribute> names;
  for (const std::string &name : mesh.names(cut.axes))
    names.push_back(StringAttr::get(context, name));
  return CutAttr::get(context, extent, ArrayAttr::get(context, names),
                      cut.unit);
}
