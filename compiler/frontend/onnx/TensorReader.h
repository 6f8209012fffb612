// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- TensorReader.h - TensorProto to a checked reference ----------------===//
#ifndef MTP_COMPILER_FRONTEND_ONNX_TENSORREADER_H
#define MTP_COMPILER_FRONTEND_ONNX_TENSORREADER_H

#include "compiler/frontend/onnx/Model.h"

namespace onnx {
class TensorProto;
}

namespace mtp::onnx {

/// The mtp type of TensorProto.DataType `onnxType`; false if mtp has none.
bool dtypeOf(int64_t onnxType, DType &type);
/// Its name in ONNX, for messages.
std::string foreignName(int64_t onnxType);

/// Reads tensors of one model; maps each file of external data once.
class TensorReader {
public:
  TensorReader(std::shared_ptr<const MappedFile> file, std::string modelPath)
      : model(std::move(file)), modelPath(std::move(modelPath)) {}

  /// Checks shape, type and payload against each other before anything is
  /// allocated. Throws OnnxFailure that names the tensor.
  Tensor read(const ::onnx::TensorProto &proto);

private:
  void readExternal(const ::onnx::TensorProto &proto, Tensor &tensor,
                    uint64_t bytes);
  bool readMapped(const ::onnx::TensorProto &proto, Tensor &tensor,
                  uint64_t bytes);
  void readTyped(const ::onnx::TensorProto &proto, Tensor &tensor);

  std::shared_ptr<const MappedFile> model;
  std::string modelPath;
  std::map<std::string, std::shared_ptr<const MappedFile>>
      external; ///< by resolved path
};

} // namespace mtp::onnx

#endif // MTP_COMPILER_FRONTEND_ONNX_TENSORREADER_H
