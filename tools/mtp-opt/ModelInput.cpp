// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mtp-opt/ModelInput.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorOr.h"

using namespace mtp;

void ModelInput::registerOptions() {}

std::unique_ptr<llvm::MemoryBuffer> ModelInput::open(const std::string &name,
                                                     std::string &error) {
  auto file = llvm::MemoryBuffer::getFileOrSTDIN(name, /*IsText=*/true);
  if (file)
    return std::move(*file);
  error = "cannot open " + name + ": " + file.getError().message();
  return nullptr;
}
