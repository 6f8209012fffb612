// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MappedFile.h - a file of the model, mapped for reading -------------===//
#ifndef MTP_COMPILER_FRONTEND_ONNX_MAPPEDFILE_H
#define MTP_COMPILER_FRONTEND_ONNX_MAPPEDFILE_H

#include <cstdint>
#include <memory>
#include <string>

namespace mtp::onnx {

/// A regular file, mapped read-only for as long as the object lives.
class MappedFile {
public:
  /// Throws OnnxFailure with a message of its own for each way it can fail.
  static std::shared_ptr<const MappedFile> open(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const std::string &path() const { return filePath; }
  const uint8_t *data() const { return bytes; }
  uint64_t size() const { return length; }

private:
  MappedFile() = default;
  std::string filePath;
  const uint8_t *bytes = nullptr;
  uint64_t length = 0;
};

/// Where the external data `location` of the model at `modelPath` lies. The
/// resolved regular file must be under the model's folder, or under the folder
/// of the model's real path (a Hugging Face cache has the model and its data as
/// links into a store). Throws OnnxFailure that names `tensor` otherwise.
std::string resolveExternalData(const std::string &modelPath,
                                const std::string &location,
                                const std::string &tensor);

} // namespace mtp::onnx

#endif // MTP_COMPILER_FRONTEND_ONNX_MAPPEDFILE_H
