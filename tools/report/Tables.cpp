// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/report/Tables.h"

#include "runtime/comm/Communicator.h"
#include "tools/common/PlanTable.h"
#include "tools/common/Report.h"
#include "tools/common/Table.h"
#include "tools/common/Text.h"
#include "tools/report/Html.h"

#include <algorithm>
#include <map>
#include <tuple>

using nlohmann::json;

namespace mtp::report {
namespace {

std::string withoutNumbers(const std::string &text) {
  std::string result;
  for (char c : text)
    if (c < '0' || c > '9')
      result += c;
    else if (result.empty() || result.back() != '#')
      result += '#';
  return result;
}

/// Rows whose cells are equal but for numbers in names are one row. `exact`
/// are cells that must be equal as they are.
class FoldedRows {
public:
  /// `names` fold into their cells; the rest is shown of the first row.
  void add(const std::string &name, const std::vector<std::string> &folding,
           const std::vector<std::string> &exact, const std::string &html) {
    std::string key = withoutNumbers(name);
    for (const std::string &cell : folding)
      key += '\1' + withoutNumbers(cell);
    for (const std::string &cell : exact)
      key += '\2' + cell;
    auto [it, isNew] = groupOf.insert({key, groups.size()});
    if (isNew)
      groups.push_back({{}, html});
    groups[it->second].names.push_back(name);
  }

  std::string html() const {
    std::string text;
    for (const Group &group : groups) {
      text += "<tr><td>";
      if (group.names.size() == 1) {
        text += escaped(group.names[0]);
      } else {
        text += "<details><summary>" + escaped(foldNames(group.names)) +
                " <span class=\"times\">× " +
                std::to_string(group.names.size()) + "</span></summary><ul>";
        for (const std::string &name : group.names)
          text += "<li>" + escaped(name) + "</li>";
        text += "</ul></details>";
      }
      text += "</td>" + group.html + "</tr>\n";
    }
    return text;
  }

private:
  struct Group {
    std::vector<std::string> names;
    std::string html;
  };
  std::vector<Group> groups;
  std::map<std::string, size_t> groupOf;
};

std::string cell(const std::string &text) {
  return "<td>" + escaped(text) + "</td>";
}
std::string numberCell(const std::string &text) {
  return "<td class=\"n\">" + escaped(text) + "</td>";
}

std::string shortCell(const std::string &text) {
  return "<td class=\"k\">" + escaped(text) + "</td>";
}

std::string shapeOf(const json &shape) {
  std::string text;
  for (const json &extent : shape)
    text += (text.empty() ? "" : " × ") + extent.dump();
  return text.empty() ? "scalar" : text;
}

std::string tableOf(const std::string &head, const std::string &rows) {
  return "<div class=\"card scroll\"><table><tr>" + head + "</tr>\n" + rows +
         "</table></div>\n";
}

struct Row {
  std::string phase, op, kind, axis, value, conjugate, reason, runnerUp;
  int64_t bytes = 0, wireBytes = 0;  ///< payload, and what a rank sends of it
  double timeUs = -1, regretUs = -1; ///< negative: not known
  bool regretIsBound = false;
};

/// The conversions of the graph that move something, in program order, with
/// what the explanation says of the same ones.
std::vector<Row> rowsOfGraph(const json &explain) {
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Key, std::vector<const json *>> known;
  const json none = json::array();
  for (const json &c :
       explain.contains("collectives") ? explain["collectives"] : none)
    known[{c.at("phase"), c.at("op"), c.at("axis"), c.at("value")}].push_back(
        &c);
  std::vector<Row> rows;
  for (const json &function : explain.at("graph"))
    for (const json &op : function.at("ops")) {
      if (!op.contains("conversion"))
        continue;
      const json &c = op["conversion"];
      std::string kind = c.at("kind");
      if (kind.empty())
        continue;
      Row row{op.at("phase"),
              c.at("op"),
              kind,
              c.at("axis"),
              op.at("name"),
              c.at("conjugate"),
              c.value("reason", ""),
              "",
              c.at("bytes"),
              c.at("wire_bytes"),
              c.at("time_us"),
              -1};
      auto it = known.find({row.phase, row.op, row.axis, row.value});
      if (it != known.end() && !it->second.empty()) {
        const json &match = *it->second.front();
        it->second.erase(it->second.begin());
        row.runnerUp = match.at("runner_up");
        row.regretUs = match.at("regret_us");
        row.regretIsBound = match.value("is_bound", false);
        if (row.reason.empty())
          row.reason = match.at("reason");
      }
      rows.push_back(std::move(row));
    }
  return rows;
}

std::vector<Row> rowsOfArtifact(const Artifact &artifact) {
  std::vector<Row> rows;
  for (const CollectiveSite &site : artifact.collectiveSites)
    if (site.partOf < 0)
      rows.push_back({site.phase, site.op, name(site.kind), site.axisName,
                      site.node, "", site.reason, "", site.predictedBytes,
                      predictedWireBytes(artifact, site), -1, -1});
  return rows;
}

std::string regretText(const Row &row) {
  if (row.runnerUp.empty())
    return row.regretUs < 0 ? "" : "not asked";
  if (row.runnerUp.rfind("none", 0) == 0)
    return row.runnerUp;
  return row.runnerUp + (row.regretIsBound ? ": at least " : ": ") +
         microsText(row.regretUs) + " more";
}

constexpr size_t kParts = 12; ///< largest parts that are shown

std::string largestTimes(const json &parts) {
  std::string rows;
  double total = 0;
  size_t shown = 0;
  for (const json &part : parts)
    total += part.at("us").get<double>();
  for (const json &part : parts)
    if (shown++ < kParts)
      rows += "<tr>" + cell(part.at("name")) + cell(part.at("kind")) +
              numberCell(microsText(part.at("us"))) +
              numberCell(numberText(100 * part.at("us").get<double>() /
                                    std::max(total, 1e-9)) +
                         " %") +
              "</tr>\n";
  return rows.empty()
             ? ""
             : "<h3>Largest parts of the time (forward and backward)</h3>" +
                   tableOf("<th>op or value</th><th>what</th><th class=\"n\">"
                           "time</th><th class=\"n\">share</th>",
                           rows);
}

std::string largestTensors(const json &parts) {
  std::string rows;
  size_t shown = 0;
  for (const json &part : parts)
    if (shown++ < kParts) {
      int64_t count = part.value("count", int64_t(1));
      rows += "<tr>" + cell(part.at("name")) +
              cell((count > 1 ? std::to_string(count) + " × " : "") +
                   part.at("kind").get<std::string>()) +
              numberCell(bytesText(part.at("bytes"))) + "</tr>\n";
    }
  return rows.empty() ? ""
                      : "<h3>Largest tensors of a rank at its peak</h3>" +
                            tableOf("<th>tensor</th><th>what</th><th "
                                    "class=\"n\">on each rank</th>",
                                    rows);
}

} // namespace

std::string layoutChips(const std::string &layout) {
  if (layout.empty())
    return "<span class=\"chip bi\">whole</span>";
  std::string text, entry;
  int depth = 0;
  auto flush = [&] {
    size_t equals = entry.find('=');
    std::string state =
        equals == std::string::npos ? entry : entry.substr(equals + 1);
    while (!state.empty() && state.front() == ' ')
      state.erase(state.begin());
    std::string plain = state.substr(0, state.find(','));
    if (plain.size() < state.size())
      plain += ")";
    text += "<span class=\"chip b" + stateClass(plain) + "\">" +
            escaped(entry) + "</span>";
    entry.clear();
  };
  for (char c : layout) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0)
      flush();
    else if (c != ' ' || !entry.empty())
      entry += c;
  }
  flush();
  return text;
}

std::string weightSection(const Artifact &artifact, const json &explain,
                          const std::vector<std::string> &order) {
  FoldedRows rows;
  int64_t whole = 0, each = 0;
  auto add = [&](const std::string &name, const json &shape,
                 const std::string &layout, const std::string &how,
                 int64_t bytes, int64_t bytesPerRank) {
    whole += bytes;
    each += bytesPerRank;
    rows.add(name, {}, {shapeOf(shape), layout, how},
             cell(shapeOf(shape)) + "<td>" + layoutChips(layout) + "</td>" +
                 cell(how) + numberCell(bytesText(bytesPerRank)) +
                 numberCell(bytesText(bytes)));
  };
  if (explain.contains("weights")) {
    std::map<std::string, size_t> position;
    for (const std::string &name : order)
      position.insert({name, position.size()});
    std::vector<const json *> weights;
    for (const json &weight : explain["weights"])
      weights.push_back(&weight);
    auto key = [&](const json *weight) {
      auto it = position.find(weight->at("name").get<std::string>());
      return it == position.end() ? position.size() : it->second;
    };
    std::stable_sort(weights.begin(), weights.end(),
                     [&](auto *a, auto *b) { return key(a) < key(b); });
    for (const json *row : weights) {
      const json &weight = *row;
      add(weight.at("name"), weight.at("shape"), weight.at("layout"),
          weight.at("how"), weight.at("bytes"), weight.at("bytes_per_rank"));
    }
  } else {
    for (const Parameter &parameter : artifact.parameters) {
      if (!parameter.state.empty())
        continue;
      int64_t bytes = byteSize(parameter.layout.type), local = bytes;
      for (int64_t extent : parameter.layout.shape)
        bytes *= extent;
      for (int64_t extent : parameter.layout.localShape(artifact.axes))
        local *= extent;
      add(parameter.name, parameter.layout.shape, parameter.layout.text, "",
          bytes, local);
    }
  }
  return "<p>" + bytesText(whole) + " in all, " + bytesText(each) +
         " of it on each of " + std::to_string(artifact.axes.ranks()) +
         " ranks.</p>" +
         tableOf("<th>weight</th><th>shape</th><th>layout</th><th>split</th>"
                 "<th class=\"n\">on each rank</th><th class=\"n\">whole</th>",
                 rows.html());
}

std::string collectiveSection(const Artifact &artifact, const json &explain) {
  bool hasGraph = explain.contains("graph");
  std::vector<Row> rows =
      hasGraph ? rowsOfGraph(explain) : rowsOfArtifact(artifact);
  if (rows.empty())
    return "<p>None: every rank works alone.</p>\n";
  int64_t bytes = 0;
  double time = 0;
  FoldedRows table;
  for (const Row &row : rows) {
    bytes += row.wireBytes;
    time += std::max(row.timeUs, 0.0);
    std::string what =
        row.op == row.kind ? row.op : row.op + " (" + row.kind + ")";
    table.add(row.value, {row.reason, regretText(row)},
              {row.phase, what, row.axis, std::to_string(row.bytes),
               std::to_string(row.wireBytes)},
              shortCell(row.phase) + shortCell(what) + shortCell(row.axis) +
                  numberCell(bytesText(row.bytes)) +
                  numberCell(bytesText(row.wireBytes)) +
                  numberCell(row.timeUs < 0 ? "" : microsText(row.timeUs)) +
                  cell(row.reason) + cell(regretText(row)) +
                  shortCell(row.conjugate));
  }
  return "<p>" + std::to_string(rows.size()) + " a step, " + bytesText(bytes) +
         " sent by each rank" +
         (time > 0 ? ", " + microsText(time) + " predicted" : "") + ".</p>" +
         tableOf("<th>value</th><th>phase</th><th>what</th><th>axis</th><th "
                 "class=\"n\">payload</th><th class=\"n\">sent</th><th "
                 "class=\"n\">time</th><th>why</th>"
                 "<th>without it, the best plan is</th><th>conjugate</th>",
                 table.html());
}

std::string reasonSection(const json &explain) {
  std::string text;
  if (explain.contains("contributions"))
    text +=
        largestTimes(explain["contributions"].value("time", json::array())) +
        largestTensors(explain["contributions"].value("memory", json::array()));
  FoldedRows whole;
  if (explain.contains("whole"))
    for (const json &value : explain["whole"])
      whole.add(value.at("value"), {value.at("why")}, {value.at("axis")},
                cell(value.at("axis")) + cell(value.at("why")));
  std::string rows = whole.html();
  if (!rows.empty())
    text += "<h3>What stayed whole, and why</h3><details><summary>values that "
            "no axis cuts</summary>" +
            tableOf("<th>value</th><th>axis</th><th>why</th>", rows) +
            "</details>";
  return text;
}

} // namespace mtp::report
