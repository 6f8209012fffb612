// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/report/ExplainFile.h"

#include "runtime/io/Npz.h"
#include "tools/common/LayoutText.h"
#include "tools/common/MeshSpec.h"

#include <set>

using nlohmann::json;

namespace mtp::report {
namespace {

/// Ends checking; caught in readExplanation.
struct Wrong {
  std::string reason;
};

/// A value of the file and where it stands: "ops[3].results".
struct Node {
  const json &value;
  std::string path;

  [[noreturn]] void refuse(const std::string &why) const {
    throw Wrong{path + " " + why};
  }
  Node at(const char *key) const {
    if (!value.is_object())
      refuse("is no JSON object");
    auto found = value.find(key);
    std::string name = path.empty() ? key : path + "." + key;
    if (found == value.end())
      throw Wrong{name + " is missing"};
    return {*found, name};
  }
  std::vector<Node> list() const {
    if (!value.is_array())
      refuse("is no list");
    std::vector<Node> entries;
    for (size_t i = 0; i < value.size(); ++i)
      entries.push_back({value[i], path + "[" + std::to_string(i) + "]"});
    return entries;
  }
  const std::string &text() const {
    if (!value.is_string())
      refuse("is no text");
    return value.get_ref<const std::string &>();
  }
  /// Microseconds; more than 10^13 are more than a plan's cost can be.
  void time() const {
    if (!value.is_number() ||
        !(value.get<double>() >= 0 && value.get<double>() <= 1e13))
      refuse("is no time, a number of microseconds");
  }
  void bytes() const {
    if (!value.is_number_integer() || value.get<int64_t>() < 0)
      refuse("is no number of bytes");
  }
};

class Checker {
public:
  explicit Checker(const json &file) : file{file, ""} {}

  void run() {
    for (const char *key : {"inputs", "ops"})
      if (!file.value.contains(key))
        throw Wrong{"it is neither an explanation (--explain-json) nor a plan "
                    "(--save-plan)"};
    bool explains = isExplanation(file.value);
    if (!explains && !file.value.contains("refined"))
      throw Wrong{"it is neither an explanation (--explain-json) nor a plan "
                  "(--save-plan)"};
    Node version = file.at("version");
    if (version.value != json(1))
      version.refuse("is " + version.value.dump() + ", not 1");
    checkMesh();
    for (const Node &input : file.at("inputs").list())
      checkChoice(input, /*hasOperands=*/explains);
    for (const Node &op : file.at("ops").list()) {
      op.at("op").text();
      checkChoice(op, true);
    }
    if (explains)
      checkCosts();
  }

private:
  void checkMesh() {
    Node mesh = file.at("mesh");
    Mesh parsed;
    std::string error;
    if (!parseMesh(mesh.text(), parsed, error))
      mesh.refuse("is wrong: " + error);
    for (const Mesh::Axis &axis : parsed.axes)
      axes.insert(axis.name);
  }

  void checkLayouts(const Node &layouts) const {
    for (const Node &layout : layouts.list()) {
      const std::string &text = layout.text();
      if (text.empty()) // invariant on every axis
        continue;
      auto named = axesOfLayout(text);
      if (!named)
        layout.refuse("is '" + text + "', which is no layout");
      for (const std::string &axis : *named)
        if (!axes.count(axis))
          layout.refuse("is '" + text + "', but the mesh has no axis '" + axis +
                        "'");
    }
  }

  void checkChoice(const Node &entry, bool hasOperands) const {
    entry.at("name").text();
    checkLayouts(entry.at("results"));
    if (hasOperands)
      checkLayouts(entry.at("operands"));
  }

  void checkCosts() const {
    file.at("cost_us").time();
    for (const Node &c : file.at("collectives").list()) {
      for (const char *key : {"phase", "op", "axis", "value"})
        c.at(key).text();
      c.at("bytes").bytes();
      c.at("time_us").time();
    }
    for (const Node &part : file.at("contributions").at("time").list()) {
      part.at("kind").text();
      part.at("name").text();
      part.at("us").time();
    }
    for (const Node &part : file.at("contributions").at("memory").list()) {
      part.at("kind").text();
      part.at("name").text();
      part.at("bytes").bytes();
    }
    if (file.value.contains("memory"))
      for (const char *key : {"parameters", "gradients", "optimizer",
                              "activations", "workspace", "total"})
        file.at("memory").at(key).bytes();
    checkChosen();
  }

  /// What was chosen stands twice: as an input or op, and first among its
  /// choices. (A plan that was given has no choices, a constant no layout.)
  void checkChosen() const {
    std::vector<Node> choices = file.at("choices").list(), all;
    if (choices.empty())
      return;
    for (const char *key : {"inputs", "ops"})
      for (const Node &entry : file.at(key).list())
        if (!entry.at("results").value.empty())
          all.push_back(entry);
    for (size_t i = 0; i < all.size(); ++i) {
      if (i == choices.size())
        all[i].refuse("has no entry in choices; the file was edited");
      for (const char *key : {"name", "op"})
        agree(all[i].at(key), choices[i].at(key));
      std::vector<Node> strategies = choices[i].at("strategies").list();
      if (strategies.empty())
        choices[i].at("strategies").refuse("is empty");
      for (const char *key : {"operands", "results"})
        agree(all[i].at(key), strategies[0].at(key));
    }
    if (choices.size() > all.size())
      choices[all.size()].refuse("is of no input or op; the file was edited");
  }

  static void agree(const Node &chosen, const Node &choice) {
    if (chosen.value != choice.value)
      chosen.refuse("is " + chosen.value.dump() + " and " + choice.path +
                    " is " + choice.value.dump() + "; the file was edited");
  }

  Node file;
  std::set<std::string> axes;
};

} // namespace

bool isExplanation(const json &file) {
  auto format = file.find("format");
  return format != file.end() && *format == "mtp-explain";
}

bool readExplanation(const std::string &path, json &explain, Error &error) {
  std::string bytes;
  if (!readFile(path, bytes, error))
    return false;
  try {
    explain = json::parse(bytes, nullptr, /*allow_exceptions=*/false);
    if (explain.is_discarded() || !explain.is_object())
      throw Wrong{"it is no JSON object; --explain-json and --save-plan write "
                  "what can be compared with"};
    Checker(explain).run();
    return true;
  } catch (const Wrong &wrong) {
    error = {1, "input", "--explain-against " + path + ": " + wrong.reason, {}};
    return false;
  }
}

} // namespace mtp::report
