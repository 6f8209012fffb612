// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/io/HostTensor.h"
#include "runtime/loader/Convert.h"
#include "runtime/support/Checked.h"

using namespace mtp;

HostTensor::HostTensor(DType type, std::vector<int64_t> shape)
    : type(type), shape(std::move(shape)) {
  bytes = AlignedBuffer(elements() * byteSize(type));
}

int64_t HostTensor::elements() const { return elementCount(shape); }

double HostTensor::valueAt(int64_t i) const {
  double value = 0;
  convertElements(type, bytes.data() + i * byteSize(type), DType::F64,
                  reinterpret_cast<char *>(&value), 1);
  return value;
}

std::string mtp::shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}
