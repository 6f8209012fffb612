// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ModuleText.h - writes modules of the mtp dialect as text -----------===//
#ifndef MTP_TEST_UNIT_PLAN_MODULETEXT_H
#define MTP_TEST_UNIT_PLAN_MODULETEXT_H

#include <set>
#include <string>
#include <vector>

namespace mtp::plan {

class ModuleText {
public:
  struct Value {
    std::string name;
    std::vector<int> shape;
    std::string element = "f32";
  };

  /// The parameter of that name, declared once.
  Value parameter(const std::string &name, std::vector<int> shape) {
    Value value{"%" + name, std::move(shape)};
    if (known.insert(name).second) {
      int64_t bytes = 4;
      for (int extent : value.shape)
        bytes *= extent;
      initializers +=
          "mtp.initializer @" + name + " : " + type(value) +
          " {file = \"m\", offset = 0 : i64, bytes = " + std::to_string(bytes) +
          " : i64, parameter}\n";
      body +=
          value.name + " = mtp.parameter @" + name + " : " + type(value) + "\n";
    }
    return value;
  }

  /// `mtp.KIND operands ATTRIBUTES`, whose location is its kind and a number.
  Value op(const std::string &kind, const std::vector<Value> &operands,
           std::vector<int> shape, const std::string &attributes = "") {
    Value result{"%v" + std::to_string(next++), std::move(shape)};
    std::string names, types;
    for (const Value &operand : operands) {
      names += (names.empty() ? " " : ", ") + operand.name;
      types += (types.empty() ? "" : ", ") + type(operand);
    }
    body += result.name + " = mtp." + kind + names + attributes + " : (" +
            types + ") -> " + type(result) + " loc(\"" + kind +
            std::to_string(next) + "\")\n";
    return result;
  }

protected:
  static std::string type(const Value &value) {
    std::string text = "tensor<";
    for (int extent : value.shape)
      text += std::to_string(extent) + "x";
    return text + value.element + ">";
  }

  std::string initializers, body;
  int next = 0;

private:
  std::set<std::string> known;
};

} // namespace mtp::plan

#endif // MTP_TEST_UNIT_PLAN_MODULETEXT_H
