// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/training/LossSpec.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <fstream>
#include <map>
#include <set>

using namespace mtp;
using nlohmann::json;

namespace {

/// Ends reading; caught in parseLoss.
struct Wrong {
  std::string reason;
};

using Keys = std::map<std::string, std::string>;

std::string number(double value) { return json(value).dump(); }

/// Removes a key that has a number, if it is there; `range` says which numbers
/// are meant, `isIn` whether one is.
template <typename T, typename Range>
void takeNumber(Keys &keys, const std::string &key, const char *range,
                Range isIn, T &value) {
  auto found = keys.find(key);
  if (found == keys.end())
    return;
  const std::string &text = found->second;
  auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !isIn(value))
    throw Wrong{key + " '" + text + "': " + range + " is needed"};
  keys.erase(found);
}

std::string take(Keys &keys, const std::string &kind, const std::string &key) {
  auto found = keys.find(key);
  if (found == keys.end() || found->second.empty())
    throw Wrong{kind + " needs " + key + "=NAME"};
  std::string value = found->second;
  keys.erase(found);
  return value;
}

void checkKind(const std::string &kind) {
  if (kind != "cross_entropy" && kind != "mse" && kind != "output")
    throw Wrong{"'" + kind +
                "' is no loss; there are cross_entropy, mse and output"};
}

LossSpec fromKeys(const std::string &kind, Keys keys) {
  checkKind(kind);
  LossSpec loss;
  if (kind == "cross_entropy") {
    loss.output = take(keys, kind, "logits");
    loss.labels = take(keys, kind, "labels");
    takeNumber(
        keys, "ignore_index", "a whole number of 64 bits",
        [](int64_t) { return true; }, loss.ignoreIndex);
    takeNumber(
        keys, "label_smoothing", "a number from 0 to 1",
        [](double x) { return x >= 0 && x <= 1; }, loss.labelSmoothing);
  } else if (kind == "mse") {
    loss.kind = LossSpec::Kind::MeanSquare;
    loss.output = take(keys, kind, "prediction");
    loss.labels = take(keys, kind, "target");
  } else {
    loss.kind = LossSpec::Kind::Output;
    loss.output = take(keys, kind, "output");
  }
  if (!keys.empty())
    throw Wrong{kind + " has no '" + keys.begin()->first + "'"};
  return loss;
}

LossSpec fromText(const std::string &text) {
  size_t colon = text.find(':');
  std::string kind = text.substr(0, colon);
  std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  checkKind(kind);
  if (kind == "output" && rest.empty())
    throw Wrong{"output needs a name, output:NAME"};
  if (kind == "output")
    return fromKeys(kind, {{"output", rest}});
  Keys keys;
  for (size_t begin = 0; begin < rest.size();) {
    size_t end = std::min(rest.find(',', begin), rest.size());
    std::string entry = rest.substr(begin, end - begin);
    size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Wrong{kind + ": '" + entry +
                  "' is not of the form KEY=VALUE; names with ',' or '=' need "
                  "@FILE.json"};
    if (!keys.emplace(entry.substr(0, equals), entry.substr(equals + 1)).second)
      throw Wrong{"'" + entry.substr(0, equals) + "' is given twice"};
    begin = end + 1;
  }
  return fromKeys(kind, std::move(keys));
}

LossSpec fromObject(const json &object, const std::string &where) {
  if (!object.is_object() || !object.contains("kind") ||
      !object["kind"].is_string())
    throw Wrong{where + "is not a JSON object with a text 'kind'"};
  if (object.value("reduction", json("mean")) != "mean")
    throw Wrong{where +
                "has another reduction than 'mean', which is the only one"};
  Keys keys;
  for (auto &[key, value] : object.items()) {
    if (key == "kind" || key == "reduction")
      continue;
    if (!value.is_string() && !value.is_number())
      throw Wrong{where + "has a '" + key +
                  "' that is neither text nor a number"};
    keys[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return fromKeys(object["kind"], std::move(keys));
}

LossSpec fromFile(const std::string &path) {
  std::ifstream stream(path);
  if (!stream)
    throw Wrong{"cannot read " + path};
  return fromObject(json::parse(stream, nullptr, /*allow_exceptions=*/false),
                    path + " ");
}

LossSpec read(const std::string &text) {
  if (text.rfind("@", 0) == 0)
    return fromFile(text.substr(1));
  if (text.rfind("{", 0) == 0)
    return fromObject(json::parse(text, nullptr, false), "'" + text + "' ");
  return fromText(text);
}

} // namespace

bool mtp::parseLoss(const std::string &text, LossSpec &loss,
                    std::string &error) {
  try {
    loss = read(text);
    return true;
  } catch (const Wrong &wrong) {
    error = wrong.reason;
    return false;
  }
}

std::string LossSpec::text() const {
  switch (kind) {
  case Kind::Output:
    return "output:" + output;
  case Kind::MeanSquare:
    return "mse:prediction=" + output + ",target=" + labels;
  case Kind::CrossEntropy:
    break;
  }
  std::string all = "cross_entropy:logits=" + output + ",labels=" + labels;
  if (ignoreIndex != -100)
    all += ",ignore_index=" + std::to_string(ignoreIndex);
  if (labelSmoothing != 0)
    all += ",label_smoothing=" + number(labelSmoothing);
  return all;
}

std::string LossSpec::json() const {
  nlohmann::json object;
  switch (kind) {
  case Kind::Output:
    object = {{"kind", "output"}, {"output", output}};
    break;
  case Kind::MeanSquare:
    object = {{"kind", "mse"}, {"prediction", output}, {"target", labels}};
    break;
  case Kind::CrossEntropy:
    object = {{"kind", "cross_entropy"},
              {"logits", output},
              {"labels", labels},
              {"ignore_index", ignoreIndex},
              {"label_smoothing", labelSmoothing}};
    break;
  }
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
