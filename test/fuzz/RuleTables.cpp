// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/fuzz/RuleTables.h"

#include "dialects/mtp/Strategy.h"
#include "test/fuzz/TypedPrograms.h"

#include <fstream>

using namespace mlir;
using namespace mtp;

std::map<std::string, std::string> fuzz::readTable(const std::string &path) {
  std::map<std::string, std::string> table;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    auto [name, text] = StringRef(line).split(':');
    if (!line.empty() && line[0] != '#')
      table[name.trim().str()] = text.trim().str();
  }
  return table;
}

static std::string factorsText(const ShardingRule &rule,
                               ArrayRef<TensorFactors> tensors) {
  std::string text;
  for (const TensorFactors &tensor : tensors) {
    text += text.empty() ? "(" : ",(";
    for (auto [dim, factors] : llvm::enumerate(tensor)) {
      text += dim ? " " : "";
      for (auto [index, factor] : llvm::enumerate(factors))
        text += (index ? "*" : "") + rule.factors[factor].name;
      text += factors.empty() ? "1" : "";
    }
    text += ")";
  }
  return text;
}

std::string fuzz::describeRule(func::FuncOp seed) {
  auto rule = ruleOf(mainOp(seed));
  if (!rule)
    return "no rule";
  std::string text = factorsText(*rule, rule->operands) + " -> " +
                     factorsText(*rule, rule->results) + ";";
  for (const Factor &factor : rule->factors) {
    text += " " + factor.name + "=" + std::to_string(factor.size);
    text += factor.kind == FactorKind::Whole ? " whole" : "";
    text += factor.reduction == Kind::PMax   ? " max"
            : factor.reduction == Kind::PMin ? " min"
                                             : "";
    text += factor.indexed ? " indexed" : "";
  }
  text += ";";
  for (AxisCase c : enumerateCases(*rule))
    text += (text.back() == ';' ? " " : ", ") + c.text(*rule);
  if (rule->anyState)
    text += "; any state";
  if (rule->positions)
    text += "; positions " + std::to_string(rule->positions);
  return text;
}

std::map<std::string, fuzz::ConversionRow>
fuzz::conversionRows(MLIRContext &context) {
  std::map<std::string, ConversionRow> rows;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (auto *conversion = name.getInterface<ConversionOpInterface>())
      rows[name.getStringRef().str()] = {
          conversion->fromKind(), conversion->toKind(),
          conversion->getTransfer(), conversion->getConjugateName().str()};
  return rows;
}

/// What ranks do to bring one state into another.
static std::optional<Transfer> transferOf(Kind from, Kind to) {
  auto copies = [](Kind kind) { return kind == Kind::I || kind == Kind::R; };
  if (copies(from) && copies(to))
    return Transfer::None;
  if (copies(from) && to == Kind::S)
    return Transfer::Slice;
  if (copies(from) && to == Kind::PSum)
    return Transfer::Root;
  if (from == Kind::S)
    return copies(to)      ? Transfer::AllGather
           : to == Kind::S ? Transfer::AllToAll
                           : Transfer::Pad;
  if (isPartial(from))
    return to == Kind::S ? Transfer::ReduceScatter : Transfer::AllReduce;
  return std::nullopt;
}

std::string
fuzz::checkConversions(const std::map<std::string, ConversionRow> &rows) {
  if (rows.size() != 18)
    return std::to_string(rows.size()) + " conversions instead of 18";
  for (auto &[name, row] : rows) {
    bool permutes = name == "mtp.permute";
    if (!permutes && conversionName(row.from, row.to) != name)
      return name + " is not the conversion of its states";
    if (row.transfer !=
        (permutes ? Transfer::Permute : transferOf(row.from, row.to)))
      return name + " does something else than its states ask for";
    auto conjugate = rows.find(row.conjugate);
    if (conjugate == rows.end())
      return name + " has a conjugate that is no conversion";
    if (conjugate->second.conjugate != name)
      return name + ": the conjugate of the conjugate is another op";
    if (permutes && (row.from != Kind::S || row.to != Kind::S))
      return name + " permutes something else than blocks";
    if (row.from == Kind::PMax || row.from == Kind::PMin) {
      if (row.conjugate != name) // behind stop-gradient only
        return name + " has a conjugate";
      continue;
    }
    if (conjugate->second.from != dual(row.to) ||
        conjugate->second.to != dual(row.from))
      return name + ": the conjugate goes between other states than the duals";
  }
  return "";
}
