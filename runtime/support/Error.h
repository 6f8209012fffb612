// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Error.h - what the runtime reports ---------------------------------===//
#ifndef MTP_RUNTIME_SUPPORT_ERROR_H
#define MTP_RUNTIME_SUPPORT_ERROR_H

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mtp {

/// Exit codes of the tools that the runtime can cause.
namespace exits {
inline constexpr int BadInput = 1;
inline constexpr int Usage = 2;
inline constexpr int RankFailure = 4;
inline constexpr int Internal = 5;
inline constexpr int NotPresent = 6;
} // namespace exits

/// A failure as a user reads it. `exitCode` 0: no failure.
struct Error {
  int exitCode = 0;
  std::string kind;    ///< "input", "artifact", "memory", "communication", ...
  std::string message; ///< one sentence that names the thing and the numbers
  std::vector<std::string> nodes; ///< source nodes it is about
  explicit operator bool() const { return exitCode != 0; }
};

/// How errors travel inside the runtime; no public function lets one out.
class RuntimeError : public std::runtime_error {
public:
  explicit RuntimeError(Error error)
      : std::runtime_error(error.message), error(std::move(error)) {}
  Error error;
};

[[noreturn]] inline void fail(int exitCode, std::string kind,
                              std::string message) {
  throw RuntimeError({exitCode, std::move(kind), std::move(message), {}});
}

/// A bad input, exit 1.
[[noreturn]] inline void failInput(std::string message) {
  fail(exits::BadInput, "input", std::move(message));
}

} // namespace mtp

#endif // MTP_RUNTIME_SUPPORT_ERROR_H
