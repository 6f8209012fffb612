// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/onnx/Skeleton.h"

namespace mtp::onnx {

namespace {
enum class Message : uint8_t {
  Model,
  Graph,
  Node,
  Attribute,
  Tensor,
  Function,
  Other
};

/// The message that `field` of `parent` holds, as far as tensors can be in it.
Message childOf(Message parent, uint32_t field) {
  switch (parent) {
  case Message::Model:
    return field == 7    ? Message::Graph
           : field == 25 ? Message::Function
                         : Message::Other;
  case Message::Graph:
    return field == 1   ? Message::Node
           : field == 5 ? Message::Tensor
                        : Message::Other;
  case Message::Node:
    return field == 5 ? Message::Attribute : Message::Other;
  case Message::Attribute:
    return field == 5 || field == 10   ? Message::Tensor
           : field == 6 || field == 11 ? Message::Graph
                                       : Message::Other;
  case Message::Function:
    return field == 7    ? Message::Node
           : field == 11 ? Message::Attribute
                         : Message::Other;
  default:
    return Message::Other;
  }
}

class Walker {
public:
  Walker(const uint8_t *data, std::string &error) : data(data), error(error) {}

  /// Copies the message of kind `kind` in bytes [at, end) to `out`.
  bool walk(Message kind, uint64_t at, uint64_t end, int depth,
            std::string &out) {
    if (depth > 90)
      return fail("messages are nested too deeply", at);
    uint64_t tensorField = 0, tensorOffset = 0, tensorLength = 0;
    while (at < end) {
      uint64_t start = at, tag = 0;
      if (!varint(at, end, tag))
        return false;
      uint64_t field = tag >> 3;
      if (field == 0 || field > 0x1fffffff)
        return fail("no such field", start);
      uint64_t length = 0;
      switch (tag & 7) {
      case 0: {
        uint64_t ignored = 0;
        if (!varint(at, end, ignored))
          return false;
        break;
      }
      case 1:
        length = 8;
        break;
      case 5:
        length = 4;
        break;
      case 2:
        if (!varint(at, end, length))
          return false;
        break;
      default:
        return fail("not a protobuf field", start);
      }
      if (length > end - at)
        return fail("the file ends inside a field of " +
                        std::to_string(length) + " bytes",
                    start);
      uint64_t body = at;
      at += length;
      if (kind == Message::Tensor) {
        if (field >= payload::First)
          continue;
        bool large = (tag & 7) == 2 && length >= payload::Least &&
                     (field == 9 || field == 4 || field == 10);
        if (large && tensorField == 0) {
          tensorField = field;
          tensorOffset = body;
          tensorLength = length;
          continue;
        }
      }
      Message child = (tag & 7) == 2
                          ? childOf(kind, static_cast<uint32_t>(field))
                          : Message::Other;
      if (child == Message::Other) {
        out.append(reinterpret_cast<const char *>(data + start), at - start);
        continue;
      }
      std::string inner;
      if (!walk(child, body, at, depth + 1, inner))
        return false;
      append(out, tag);
      append(out, inner.size());
      out += inner;
    }
    if (tensorField) {
      append(out, payload::Field << 3);
      append(out, tensorField);
      append(out, payload::Offset << 3);
      append(out, tensorOffset);
      append(out, payload::Length << 3);
      append(out, tensorLength);
    }
    return true;
  }

private:
  bool varint(uint64_t &at, uint64_t end, uint64_t &value) {
    uint64_t start = at;
    value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at == end)
        return fail("the file ends inside a number", start);
      uint8_t byte = data[at++];
      if (shift < 64)
        value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return true;
    }
    return fail("a number is longer than 10 bytes", start);
  }

  static void append(std::string &out, uint64_t value) {
    while (value >= 0x80) {
      out.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    out.push_back(static_cast<char>(value));
  }

  bool fail(const std::string &what, uint64_t at) {
    error = what + " (at byte " + std::to_string(at) + ")";
    return false;
  }

  const uint8_t *data;
  std::string &error;
};
} // namespace

bool makeSkeleton(const uint8_t *data, uint64_t size, std::string &skeleton,
                  std::string &error) {
  return Walker(data, error).walk(Message::Model, 0, size, 0, skeleton);
}

} // namespace mtp::onnx
