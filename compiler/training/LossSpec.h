// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LossSpec.h - what is minimized -------------------------------------===//
//
// Knows no IR: the tools read --loss with it, the compiler takes the result.
//
//   cross_entropy:logits=NAME,labels=NAME[,ignore_index=N][,label_smoothing=X]
//   mse:prediction=NAME,target=NAME
//   output:NAME
//   @FILE.json   a file with {"kind": "cross_entropy", "logits": NAME, ...}
//   {"kind": "cross_entropy", "logits": NAME, ...}
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_TRAINING_LOSSSPEC_H
#define MTP_COMPILER_TRAINING_LOSSSPEC_H

#include <cstdint>
#include <string>

namespace mtp {

struct LossSpec {
  enum class Kind : uint8_t {
    CrossEntropy, ///< mean over labels that are not ignored
    MeanSquare,   ///< mean over all elements
    Output        ///< a scalar output of the model
  } kind = Kind::CrossEntropy;
  std::string output; ///< the model's output: logits, prediction or the loss
  std::string labels; ///< input: labels or target; "" for Output
  int64_t ignoreIndex = -100;
  double labelSmoothing = 0; ///< torch's: towards the uniform distribution

  /// For people: "cross_entropy:logits=logits,labels=labels".
  std::string text() const;
  /// The JSON object of the last form; parses back whatever the names are.
  std::string json() const;
};

/// Reads one of the forms above. On failure returns false and `error` says what
/// is wrong, in one sentence.
bool parseLoss(const std::string &text, LossSpec &loss, std::string &error);

} // namespace mtp

#endif // MTP_COMPILER_TRAINING_LOSSSPEC_H
