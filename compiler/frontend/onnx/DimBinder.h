// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- DimBinder.h - numbers for symbolic dimensions ----------------------===//
#ifndef MTP_COMPILER_FRONTEND_ONNX_DIMBINDER_H
#define MTP_COMPILER_FRONTEND_ONNX_DIMBINDER_H

#include "compiler/frontend/onnx/ReadOptions.h"

#include <optional>

namespace mtp::onnx {

/// Gives every dimension of the inputs a number. A name has one value over the
/// whole model; a dimension may be an expression of names,
/// "past_sequence_length + sequence_length", and then serves to compute
/// whichever of its names is missing.
class DimBinder {
public:
  DimBinder(const ReadOptions &options, std::vector<std::string> &warnings)
      : options(options), warnings(warnings) {}

  /// Shapes of `inputs`, in order. Throws OnnxFailure that names the input, the
  /// dimension and what to give.
  std::vector<Shape> bind(const std::vector<ValueInfo> &inputs);

private:
  struct Site {
    const ValueInfo *input;
    size_t axis;
    std::string symbol;           ///< name or expression
    std::optional<int64_t> value; ///< from the given inputs
    std::string describe() const;
  };
  /// The given array's shape, of one micro-batch; nothing if none is given.
  std::optional<Shape> givenShape(const ValueInfo &input) const;
  void set(const std::string &name, int64_t value, const std::string &who);
  bool solve(const Site &site);
  void applyDefaults(const std::vector<Site> &sites);

  const ReadOptions &options;
  std::vector<std::string> &warnings;
  std::map<std::string, int64_t> values;
  std::map<std::string, std::string> setBy; ///< who said so, for messages
};

/// Value of an expression over names: + - * / // with parentheses, integers,
/// and names (anything else up to an operator). nullopt if a name has no value
/// or it doesn't parse; `missing` then has the names without one.
std::optional<int64_t> evaluateDim(const std::string &expression,
                                   const std::map<std::string, int64_t> &values,
                                   std::vector<std::string> &missing);

} // namespace mtp::onnx

#endif // MTP_COMPILER_FRONTEND_ONNX_DIMBINDER_H
