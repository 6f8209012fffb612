// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Npz.h - tensors in files -------------------------------------------===//
//
// .npy (versions 1 to 3), .npz (zip of .npy, stored or deflated, zip64), and
// ONNX TensorProto .pb (reading). Files are untrusted: every size is checked
// before memory is taken. NumPy has no bfloat16: it is written as uint16 with
// the bits of the value.
//
// Written files hold the same bytes for the same tensors: names in sorted
// order, stored, fixed time stamps. They are written beside and renamed, so a
// reader sees the old file or the whole new one.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_IO_NPZ_H
#define MTP_RUNTIME_IO_NPZ_H

#include "runtime/io/HostTensor.h"
#include "runtime/support/Error.h"

#include <string>

namespace mtp {

/// Shape and type of an array in a file, without its data.
struct TensorHeader {
  DType type = DType::F32;
  std::vector<int64_t> shape;
};

/// All arrays of an .npz. The key is the member's name without ".npy".
bool readNpz(const std::string &path, TensorMap &tensors, Error &error);
/// Only types and shapes.
bool readNpzHeaders(const std::string &path,
                    std::map<std::string, TensorHeader> &headers, Error &error);
/// One tensor of a .npy or .pb file, by the ending of the name.
bool readTensorFile(const std::string &path, HostTensor &tensor, Error &error);

bool writeNpz(const std::string &path, const TensorMap &tensors, Error &error);
bool writeNpy(const std::string &path, const HostTensor &tensor, Error &error);
/// One .npy an array in `directory` (created), named after the key with '/'
/// as %2F and '%' as %25, and index.json: {"key": {"file", "dtype", "shape"}}.
bool writeOutputDirectory(const std::string &directory,
                          const TensorMap &tensors, Error &error);

/// Whether writeFileAtomically() can begin with `path`: its folder is there and
/// can be written to. Nothing is written.
bool isWritableFile(const std::string &path, Error &error);
/// Writes `bytes` beside `path`, syncs, renames.
bool writeFileAtomically(const std::string &path, const std::string &bytes,
                         Error &error);
/// Whole file; `limit` in bytes.
bool readFile(const std::string &path, std::string &bytes, Error &error,
              uint64_t limit = uint64_t(1) << 40);

} // namespace mtp

#endif // MTP_RUNTIME_IO_NPZ_H
