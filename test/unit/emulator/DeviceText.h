// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- DeviceText.h - kernels written as text, emulated -------------------===//
#ifndef MTP_TEST_UNIT_EMULATOR_DEVICETEXT_H
#define MTP_TEST_UNIT_EMULATOR_DEVICETEXT_H

#include "compiler/codegen/emulate/EmulatorLowering.h"
#include "runtime/emulator/Emulator.h"
#include "runtime/support/Error.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"

#include <memory>
#include <stdexcept>

namespace mtp::test {

/// The kernels of a gpu.module.
class DeviceText {
public:
  /// `text` is what stands in the gpu.module. Throws std::runtime_error if it
  /// can't be read or lowered.
  explicit DeviceText(const std::string &text) {
    context.loadDialect<mlir::gpu::GPUDialect, mlir::NVVM::NVVMDialect,
                        mlir::LLVM::LLVMDialect, mlir::arith::ArithDialect,
                        mlir::scf::SCFDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(
        "module { gpu.module @kernels {\n" + text + "\n} }", &context);
    if (!module)
      throw std::runtime_error("the text can't be read");
    auto device = *module->getOps<mlir::gpu::GPUModuleOp>().begin();
    std::string error;
    auto object = emitEmulated(device, KernelOptions(), error);
    if (mlir::failed(object))
      throw std::runtime_error(error);
    kernels =
        std::make_unique<emulator::Kernels>(object->bytes, object->cpuFeatures);
  }

  /// One block. Empty, or what the emulator says.
  std::string launch(const std::string &name, int64_t threads,
                     const std::vector<char *> &parameters) {
    emulator::Launch shape;
    shape.block[0] = threads;
    try {
      kernels->launch(kernels->find(name), shape, parameters);
    } catch (const RuntimeError &error) {
      return error.what();
    }
    return "";
  }

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<emulator::Kernels> kernels;
};

} // namespace mtp::test

#endif // MTP_TEST_UNIT_EMULATOR_DEVICETEXT_H
