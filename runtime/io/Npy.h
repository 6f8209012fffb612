// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Npy.h - the header of .npy -----------------------------------------===//
#ifndef MTP_RUNTIME_IO_NPY_H
#define MTP_RUNTIME_IO_NPY_H

#include "runtime/io/HostTensor.h"
#include "runtime/io/Npz.h"

namespace mtp {

struct NpyHeader {
  TensorHeader tensor;
  uint64_t dataOffset = 0;
  int64_t dataBytes = 0;
  bool fortran = false, bigEndian = false;
};

/// Reads magic, version and dictionary; `size` may be less than the whole file.
/// Throws RuntimeError that names `what`.
NpyHeader parseNpyHeader(const char *bytes, uint64_t size,
                         const std::string &what);

/// The tensor of a whole .npy file in memory.
HostTensor parseNpy(const char *bytes, uint64_t size, const std::string &what);

/// Magic, version 1 and dictionary, padded to 64 bytes as NumPy does.
std::string npyHeaderText(const HostTensor &tensor);

/// An ONNX TensorProto. External data isn't accepted.
HostTensor parseTensorProto(const char *bytes, uint64_t size,
                            const std::string &what);

} // namespace mtp

#endif // MTP_RUNTIME_IO_NPY_H
