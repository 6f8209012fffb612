// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/report/Difference.h"

#include "tools/common/Table.h"
#include "tools/common/Text.h"
#include "tools/report/ExplainFile.h"

#include <algorithm>
#include <cmath>
#include <map>

using nlohmann::json;

namespace mtp::report {
namespace {

/// Rows of a table that differ in numbers only become one; at most this many
/// are then shown.
using Key = std::string;

std::string layoutText(const json &layouts) {
  std::string text;
  for (const json &layout : layouts)
    text += (text.empty() ? "<" : ", <") + layout.get<std::string>() + ">";
  return text;
}

std::string strategyText(const json &op) {
  std::string results = layoutText(op.at("results"));
  std::string operands =
      op.contains("operands") ? layoutText(op["operands"]) : "";
  return operands.empty() ? results : operands + " -> " + results;
}

/// Entries by name, kind and how often these came before, so that several ops
/// of one name are told apart.
std::map<Key, const json *> byName(const json &entries, const char *kind,
                                   std::vector<Key> &order) {
  std::map<Key, const json *> found;
  for (const json &entry : entries) {
    Key key = entry.at("name").get<std::string>() + '\1' +
              entry.value(kind, std::string());
    std::string numbered = key;
    for (int i = 2; found.count(numbered); ++i)
      numbered = key + '\1' + std::to_string(i);
    found[numbered] = &entry;
    order.push_back(numbered);
  }
  return found;
}

std::string nameIn(const Key &key) { return key.substr(0, key.find('\1')); }

std::string layoutDifference(const json &before, const json &now) {
  Table table({{"op or value"}, {"before"}, {"now"}});
  size_t count = 0;
  // Plan files give no kind of an input.
  for (auto [list, kind] : {std::pair("inputs", ""), std::pair("ops", "op")}) {
    std::vector<Key> order, ignored;
    auto old = byName(before.at(list), kind, ignored);
    auto mine = byName(now.at(list), kind, order);
    for (const Key &key : order) {
      auto it = old.find(key);
      std::string was = it == old.end() ? "absent" : strategyText(*it->second);
      std::string is = strategyText(*mine.at(key));
      if (was == is)
        continue;
      ++count;
      table.add({nameIn(key), was, is});
    }
    for (const Key &key : ignored)
      if (!mine.count(key)) {
        ++count;
        table.add({nameIn(key), strategyText(*old.at(key)), "absent"});
      }
  }
  if (!count)
    return "Layouts: the same\n";
  return "Layouts: " + std::to_string(count) + " ops or values differ\n" +
         table.text();
}

Key collectiveKey(const json &c) {
  return c.at("phase").get<std::string>() + " " +
         c.at("op").get<std::string>() + " on " +
         c.at("axis").get<std::string>() + '\1' +
         c.at("value").get<std::string>();
}

std::string collectiveDifference(const json &before, const json &now) {
  std::map<Key, std::vector<const json *>> old, mine;
  std::vector<Key> order;
  auto collect = [&](const json &list, auto &into) {
    for (const json &c : list) {
      Key key = collectiveKey(c);
      if (!old.count(key) && !mine.count(key))
        order.push_back(key);
      into[key].push_back(&c);
    }
  };
  collect(now.at("collectives"), mine);
  collect(before.at("collectives"), old);
  Table table(
      {{"value"}, {"collective"}, {"payload", true}, {"time", true}, {""}});
  size_t came = 0, went = 0, changed = 0;
  auto add = [&](const Key &key, const json &c, const std::string &what) {
    table.add({c.at("value"), nameIn(key), bytesText(c.at("bytes")),
               timeText(c.at("time_us").get<double>() / 1000), what});
  };
  for (const Key &key : order) {
    const auto &a = old[key], &b = mine[key];
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i)
      if (i >= a.size()) {
        ++came;
        add(key, *b[i], "came");
      } else if (i >= b.size()) {
        ++went;
        add(key, *a[i], "went");
      } else if ((*a[i])["bytes"] != (*b[i])["bytes"]) {
        ++changed;
        add(key, *b[i], "was " + bytesText((*a[i])["bytes"].get<int64_t>()));
      }
  }
  if (came + went + changed == 0)
    return "Collectives: the same\n";
  return "Collectives: " + std::to_string(came) + " came, " +
         std::to_string(went) + " went, " + std::to_string(changed) +
         " with another payload\n" + table.text();
}

std::string signedText(double value, std::string text) {
  return (value < 0 ? "-" : "+") + text;
}

/// The parts whose amounts differ most, ten at most.
std::string partDifference(const json &before, const json &now,
                           const char *which, const char *unit) {
  std::map<Key, std::pair<double, double>> parts;
  auto key = [](const json &part) {
    return part.at("name").get<std::string>() + '\1' +
           part.at("kind").get<std::string>();
  };
  for (const json &part : before.at("contributions").at(which))
    parts[key(part)].first += part.at(unit).get<double>();
  for (const json &part : now.at("contributions").at(which))
    parts[key(part)].second += part.at(unit).get<double>();
  std::vector<std::pair<double, Key>> differences;
  for (const auto &[name, amounts] : parts)
    if (double d = amounts.second - amounts.first; d != 0)
      differences.push_back({d, name});
  std::stable_sort(differences.begin(), differences.end(),
                   [](const auto &a, const auto &b) {
                     return std::abs(a.first) > std::abs(b.first);
                   });
  if (differences.empty())
    return "";
  if (differences.size() > 10)
    differences.resize(10);
  bool isTime = std::string(unit) == "us";
  Table table({{"largest differences"}, {"part"}, {"", true}});
  for (const auto &[d, name] : differences)
    table.add({nameIn(name), name.substr(name.find('\1') + 1),
               signedText(d, isTime ? timeText(std::abs(d) / 1000)
                                    : bytesText(int64_t(std::abs(d))))});
  return table.text();
}

std::string timeDifference(const json &before, const json &now) {
  double was = before.at("cost_us"), is = now.at("cost_us");
  std::string text = "Time, forward and backward: " + timeText(was / 1000) +
                     " before, " + timeText(is / 1000) + " now";
  if (was != is)
    text +=
        ", " + signedText(is - was, timeText(std::abs(is - was) / 1000)) +
        (was > 0 ? " (" +
                       signedText(is - was,
                                  numberText(100 * std::abs(is - was) / was)) +
                       " %)"
                 : "");
  return text + "\n" + partDifference(before, now, "time", "us");
}

std::string memoryDifference(const json &before, const json &now) {
  if (!before.contains("memory") || !now.contains("memory"))
    return "";
  Table table(
      {{"memory of a rank"}, {"before", true}, {"now", true}, {"", true}});
  for (const char *kind : {"parameters", "gradients", "optimizer",
                           "activations", "workspace", "total"}) {
    int64_t was = before["memory"].value(kind, int64_t(0)),
            is = now["memory"].value(kind, int64_t(0));
    if (was || is)
      table.add({kind, bytesText(was), bytesText(is),
                 was == is ? ""
                           : signedText(double(is - was),
                                        bytesText(std::abs(is - was)))});
  }
  return table.text() + partDifference(before, now, "memory", "bytes");
}

} // namespace

std::string differenceText(const json &before, const json &now) {
  std::string text = "Compared with a plan for mesh " +
                     before.value("mesh", std::string()) + " (now " +
                     now.value("mesh", std::string()) + ")\n" +
                     layoutDifference(before, now);
  if (!isExplanation(before))
    return text + "A plan file has no costs to compare.\n";
  return text + collectiveDifference(before, now) +
         timeDifference(before, now) + memoryDifference(before, now);
}

} // namespace mtp::report
