// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/onnx/Resolver.h"

#include <algorithm>

namespace mtp::onnx {

bool readOnnx(const std::string &path, const ReadOptions &options, FlatGraph &graph, OnnxError &error) {
  try {
    Model model = readModel(path);
    Resolver(model, options, graph).run();
    return true;
  } catch (const OnnxFailure &failure) {
    error = failure.error;
  } catch (const std::bad_alloc &) {
    error = {"input", "there is not enough memory to read " + path, {}};
  } catch (const std::exception &exception) {
    error = {"input", path + " cannot be read: " + exception.what(), {}};
  }
  return false;
}

std::vector<std::string> supportedOperators() {
  std::vector<std::string> names = {"If"};
  for (const auto &[name, rule] : opTable())
    if (rule.since <= 1000)
      names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::map<std::string, int64_t> FlatGraph::countOps() const {
  std::map<std::string, int64_t> counts;
  for (const FlatNode &node : nodes)
    ++counts[node.op];
  return counts;
}

} // namespace mtp::onnx
