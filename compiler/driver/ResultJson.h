// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ResultJson.h - a compile result as text for the cache --------------===//
#ifndef MTP_COMPILER_DRIVER_RESULTJSON_H
#define MTP_COMPILER_DRIVER_RESULTJSON_H

#include "compiler/driver/CompilerApi.h"

namespace mtp {

/// Everything that a successful compile says beside the artifact: tables,
/// parameters, explanation, warnings.
nlohmann::json toJson(const CompileResult &result);

/// Every field of it.
nlohmann::json toJson(const TrainRequest &train);

/// Fills the same from `json`; false if it is not what toJson writes.
bool fromJson(const nlohmann::json &json, CompileResult &result);

} // namespace mtp

#endif // MTP_COMPILER_DRIVER_RESULTJSON_H
