// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/ResultJson.h"

using namespace mtp;
using nlohmann::json;

namespace mtp {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlannedWeight, name, layout, how, shape,
                                   bytes, bytesPerRank)

} // namespace mtp

json mtp::toJson(const CompileResult &result) {
  return {{"warnings", result.warnings},
          {"weights", result.weights},
          {"parameters", result.parameters},
          {"explain_json", result.explainJson},
          {"explain", result.explain}};
}

json mtp::toJson(const TrainRequest &train) {
  return {{"loss", train.loss.json()},
          {"label_type", name(train.labelType)},
          {"optimizer", train.optimizer},
          {"momentum", train.momentum},
          {"weight_decay", train.weightDecay},
          {"beta1", train.beta1},
          {"beta2", train.beta2},
          {"eps", train.eps},
          {"clip_norm", train.clipNorm},
          {"accumulate", train.accumulate},
          {"zero", train.zero},
          {"sequence_parallel", train.sequenceParallel},
          {"recompute", train.recompute},
          {"recompute_layers", train.recomputeLayers},
          {"dropout", train.dropout},
          {"loss_scale", train.lossScale},
          {"freeze", train.freeze},
          {"train_only", train.trainOnly},
          {"ties", train.ties},
          {"keep_gradients", train.keepGradients},
          {"input_gradients", train.inputGradients},
          {"keep_outputs", train.keepOutputs}};
}

bool mtp::fromJson(const json &json, CompileResult &result) {
  try {
    json.at("warnings").get_to(result.warnings);
    json.at("weights").get_to(result.weights);
    result.parameters = json.at("parameters");
    result.explainJson = json.at("explain_json");
    json.at("explain").get_to(result.explain);
    return true;
  } catch (const nlohmann::json::exception &) {
    return false;
  }
}
