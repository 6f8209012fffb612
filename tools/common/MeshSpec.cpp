// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/MeshSpec.h"

#include "tools/common/Text.h"

#include <algorithm>

using namespace mtp;

static bool isAxisName(const std::string &name) {
  auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && letter(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || digit(c); });
}

bool mtp::parseMesh(const std::string &text, Mesh &mesh, std::string &error) {
  auto refuse = [&](const std::string &reason) {
    error = "mesh '" + text + "': " + reason;
    return false;
  };
  mesh.axes.clear();
  if (text.empty())
    return refuse("it has no axis; write for example dp=2,tp=4");
  int64_t ranks = 1;
  for (const std::string &part : split(text, ',')) {
    size_t equals = part.find('=');
    if (equals == std::string::npos)
      return refuse("'" + part + "' is not of the form NAME=SIZE");
    std::string name = part.substr(0, equals), size = part.substr(equals + 1);
    if (!isAxisName(name))
      return refuse("'" + name +
                    "' is not a name of an axis (letters, digits and '_', not "
                    "a digit first)");
    for (const Mesh::Axis &other : mesh.axes)
      if (other.name == name)
        return refuse("axis '" + name + "' is given twice");
    if (!size.empty() && size[0] == '-')
      return refuse("axis '" + name + "' has negative size " + size);
    std::optional<int64_t> value = parseInteger(size);
    bool digits = !size.empty() &&
                  size.find_first_not_of("0123456789") == std::string::npos;
    if (!value && !digits)
      return refuse("axis '" + name + "': '" + size + "' is not a size");
    if (value && *value == 0)
      return refuse("axis '" + name + "' has size 0; at least 1 is needed");
    if (!value || *value > kMaxRanks / ranks)
      return refuse("axis '" + name + "' = " + size + " makes more than " +
                    std::to_string(kMaxRanks) + " ranks");
    ranks *= *value;
    mesh.axes.push_back({name, *value});
  }
  return true;
}
