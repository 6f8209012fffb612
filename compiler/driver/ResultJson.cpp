// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/ResultJson.h"

using namespace mtp;
using nlohmann::json;

namespace mtp {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlannedWeight, name, layout, how, shape,
                                   bytes, bytesPerRank)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlannedCollective, op, kind, axis, dtype,
                                   phase, node, reason, value, count, bytes,
                                   wireBytes, timeUs, runnerUp, regretUs)

} // namespace mtp

json mtp::toJson(const CompileResult &result) {
  return {
      {"warnings", result.warnings},        {"weights", result.weights},
      {"collectives", result.collectives},  {"parameters", result.parameters},
      {"explain_json", result.explainJson}, {"explain", result.explain}};
}

bool mtp::fromJson(const json &json, CompileResult &result) {
  try {
    json.at("warnings").get_to(result.warnings);
    json.at("weights").get_to(result.weights);
    json.at("collectives").get_to(result.collectives);
    result.parameters = json.at("parameters");
    result.explainJson = json.at("explain_json");
    json.at("explain").get_to(result.explain);
    return true;
  } catch (const nlohmann::json::exception &) {
    return false;
  }
}
