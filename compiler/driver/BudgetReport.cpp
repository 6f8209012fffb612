// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- BudgetReport.cpp - what is said about a search under a budget ------===//
#include "compiler/driver/Budget.h"

using namespace mtp;
using nlohmann::json;

std::string BudgetSearch::describe(const BudgetTrial &trial) const {
  std::string text = choices[trial.layouts].text;
  if (!request.train)
    return text;
  text += trial.zero ? ", ZeRO stage " + std::to_string(trial.zero)
                     : ", without ZeRO";
  if (!trial.layers)
    return text + ", nothing computed again";
  return text + ", " + std::to_string(trial.layers) + " segment" +
         (trial.layers > 1 ? "s" : "") + " computed again";
}

std::string BudgetSearch::message() const {
  std::string budget = std::to_string(request.memoryBudget);
  const BudgetTrial &trial = result();
  std::string bytes = std::to_string(trial.bytes);
  std::string note =
      unsearched.empty() ? "" : "; not all layouts were searched";
  if (found && !request.train && trials.size() == 1)
    return "memory: " + bytes + " of " + budget + " bytes on each rank; " +
           describe(trial) + " (chosen without a budget, too)";
  if (found)
    return "memory: " + bytes + " of " + budget + " bytes on each rank; " +
           describe(trial) + " (the fastest that fits, " +
           std::to_string(trials.size()) + " tried" + note + ")";
  return "no program fits a memory budget of " + budget +
         " bytes a rank; the least that would do is " + bytes + " (" +
         describe(trial) + note +
         "). Largest tensors of a rank then: " + text(largest);
}

static const char *sumOf(const BudgetLayouts &layouts) {
  return layouts.bounded ? "bound" : "estimate";
}

json BudgetSearch::json() const {
  auto entry = [&](const BudgetTrial &trial) {
    nlohmann::json value = {
        {"layouts", choices[trial.layouts].text},
        {"zero", trial.zero},
        {"sequence_parallel", choices[trial.layouts].options.sequenceParallel},
        {"recompute", trial.layers ? "layers" : "none"},
        {"recompute_segments", trial.layers}};
    return value;
  };
  nlohmann::json tried = nlohmann::json::array();
  for (const BudgetTrial &trial : trials) {
    nlohmann::json value = entry(trial);
    value["time_us"] = trial.time < plan::kIllegal
                           ? nlohmann::json(double(trial.time) / 1e6)
                           : nlohmann::json(nullptr);
    if (int64_t bound = choices[trial.layouts].plan.bytes) {
      value["bound"] = bound;
      value["sum"] = sumOf(choices[trial.layouts]);
    }
    if (trial.failure.empty())
      value["bytes"] = trial.bytes;
    else
      value["failure"] = trial.failure;
    tried.push_back(std::move(value));
  }
  nlohmann::json value = {
      {"bytes", request.memoryBudget}, {"unsearched", unsearched},
      {"used", result().bytes},        {"text", message()},
      {"chosen", entry(result())},     {"tried", std::move(tried)}};
  if (layouts().limit)
    value["sum"] = sumOf(layouts());
  if (auto known = boundedCosts.find(result().zero);
      known != boundedCosts.end())
    value["bounded_cost_us"] = known->second < plan::kIllegal
                                   ? nlohmann::json(double(known->second) / 1e6)
                                   : nlohmann::json(nullptr);
  return value;
}
