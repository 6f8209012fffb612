// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/io/Npy.h"
#include "runtime/loader/StridedView.h"
#include "runtime/support/Checked.h"

#include <algorithm>
#include <cctype>
#include <cstring>

using namespace mtp;

namespace {

struct TypeCode {
  DType type;
  const char *code; ///< as NumPy writes it, little-endian
};
constexpr TypeCode kCodes[] = {
    {DType::F64, "<f8"}, {DType::F32, "<f4"}, {DType::F16, "<f2"},
    {DType::I64, "<i8"}, {DType::I32, "<i4"}, {DType::I16, "<i2"},
    {DType::I8, "|i1"},  {DType::U64, "<u8"}, {DType::U32, "<u4"},
    {DType::U16, "<u2"}, {DType::U8, "|u1"},  {DType::Bool, "|b1"}};

/// Reads the literal of a Python dictionary as NumPy writes it:
/// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderParser {
public:
  HeaderParser(const std::string &text, const std::string &what)
      : text(text), what(what) {}

  void parse(NpyHeader &header) {
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      std::string key = quoted();
      expect(':');
      if (key == "descr") {
        type(quoted(), header);
        descr = true;
      } else if (key == "fortran_order") {
        header.fortran = boolean();
        order = true;
      } else if (key == "shape") {
        header.tensor.shape = tuple();
        shape = true;
      } else {
        bad("it has the unknown key '" + key + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!descr || !order || !shape)
      bad("it lacks descr, fortran_order or shape");
  }

private:
  [[noreturn]] void bad(const std::string &reason) const {
    failInput(what + " has an invalid .npy header: " + reason);
  }
  void space() {
    while (at < text.size() &&
           std::isspace(static_cast<unsigned char>(text[at])))
      ++at;
  }
  bool accept(char c) {
    space();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      bad(std::string("expected '") + c + "'");
  }
  std::string quoted() {
    space();
    if (at >= text.size() || (text[at] != '\'' && text[at] != '"'))
      bad("expected a string (structured types are not supported)");
    size_t end = text.find(text[at], at + 1);
    if (end == std::string::npos)
      bad("a string has no end");
    std::string result = text.substr(at + 1, end - at - 1);
    at = end + 1;
    return result;
  }
  bool boolean() {
    space();
    for (const char *word : {"True", "False"})
      if (text.compare(at, strlen(word), word) == 0) {
        at += strlen(word);
        return *word == 'T';
      }
    bad("expected True or False");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> values;
    expect('(');
    while (!accept(')')) {
      space();
      size_t begin = at;
      int64_t value = 0;
      while (at < text.size() &&
             std::isdigit(static_cast<unsigned char>(text[at]))) {
        if (!checkedMul(value, 10, value) ||
            !checkedAdd(value, text[at] - '0', value))
          bad("an extent is too large");
        ++at;
      }
      if (begin == at)
        bad("expected an extent");
      values.push_back(value);
      if (values.size() > 64)
        bad("it has more than 64 dims");
      accept('L'); // Python 2 wrote longs so
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }
  void type(const std::string &descr, NpyHeader &header) {
    for (const TypeCode &row : kCodes) {
      bool sized = descr.size() == 3 && descr.substr(1) == row.code + 1;
      if (!sized || !strchr("<>|=", descr[0]))
        continue;
      header.tensor.type = row.type;
      header.bigEndian = descr[0] == '>' && byteSize(row.type) > 1;
      return;
    }
    bad("element type '" + descr + "' is not supported");
  }

  const std::string &text;
  const std::string &what;
  size_t at = 0;
};

} // namespace

NpyHeader mtp::parseNpyHeader(const char *bytes, uint64_t size,
                              const std::string &what) {
  if (size < 10 || std::memcmp(bytes, "\x93NUMPY", 6) != 0)
    failInput(what + " is not a .npy file");
  auto byte = [&](int i) { return uint64_t(static_cast<uint8_t>(bytes[i])); };
  uint64_t major = byte(6), length, begin;
  if (major == 1) {
    length = byte(8) | byte(9) << 8;
    begin = 10;
  } else if (major == 2 || major == 3) {
    if (size < 12)
      failInput(what + " is cut short");
    length = byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
    begin = 12;
  } else {
    failInput(what + " has .npy version " + std::to_string(major));
  }
  if (length > size - begin)
    failInput(what + " is cut short in its header");
  std::string text(bytes + begin, length);
  NpyHeader header;
  HeaderParser(text, what).parse(header);
  header.dataOffset = begin + length;
  if (!checkedProduct(header.tensor.shape, header.dataBytes) ||
      !checkedMul(header.dataBytes, byteSize(header.tensor.type),
                  header.dataBytes))
    failInput(what + " has shape " + shapeText(header.tensor.shape) +
              ", larger than any memory");
  return header;
}

HostTensor mtp::parseNpy(const char *bytes, uint64_t size,
                         const std::string &what) {
  NpyHeader header = parseNpyHeader(bytes, size, what);
  uint64_t have = size - header.dataOffset;
  if (have != static_cast<uint64_t>(header.dataBytes))
    failInput(what + " has " + std::to_string(have) +
              " bytes of data; its shape " + shapeText(header.tensor.shape) +
              " of " + name(header.tensor.type) + " needs " +
              std::to_string(header.dataBytes));
  const char *data = bytes + header.dataOffset;
  HostTensor tensor(header.tensor.type, header.tensor.shape);
  int64_t element = byteSize(tensor.type);
  if (header.fortran && header.dataBytes > 0) {
    // The stored order is the dense one of the reversed shape.
    std::vector<int64_t> shape(tensor.shape.rbegin(), tensor.shape.rend()),
        order;
    for (size_t i = shape.size(); i-- > 0;)
      order.push_back(static_cast<int64_t>(i));
    StridedView view = StridedView::dense(data, element, shape);
    view.transpose(order);
    copyStrided(view, tensor.bytes.data(), denseStrides(tensor.shape));
  } else if (header.dataBytes > 0) {
    std::memcpy(tensor.bytes.data(), data, header.dataBytes);
  }
  if (header.bigEndian)
    for (char *at = tensor.bytes.data(), *end = at + header.dataBytes; at < end;
         at += element)
      std::reverse(at, at + element);
  if (tensor.type == DType::Bool)
    for (int64_t i = 0; i < header.dataBytes; ++i)
      tensor.bytes.data()[i] = tensor.bytes.data()[i] != 0;
  return tensor;
}

std::string mtp::npyHeaderText(const HostTensor &tensor) {
  DType type = tensor.type == DType::BF16 ? DType::U16 : tensor.type;
  const char *code = "";
  for (const TypeCode &row : kCodes)
    if (row.type == type)
      code = row.code;
  std::string text = std::string("{'descr': '") + code +
                     "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(tensor.shape[i]);
  text += tensor.shape.size() == 1 ? ",), }" : "), }";
  text.resize((10 + text.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\0", 8);
  header += static_cast<char>(text.size());
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}
