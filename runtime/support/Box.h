// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Box.h - copies between parts of dense tensors ----------------------===//
#ifndef MTP_RUNTIME_SUPPORT_BOX_H
#define MTP_RUNTIME_SUPPORT_BOX_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mtp {

/// A box of `size` elements per dim that lies at `sourceStart` in a dense
/// row-major tensor of `sourceShape` and at `targetStart` in one of
/// `targetShape`. All of it must lie inside both.
///
/// Example: rows 2..3 of a 4x3 matrix into the top of a 2x5 one is the box of
/// size {2, 3} with source {4, 3} at {2, 0}, target {2, 5} at {0, 0}: two runs
/// of three elements.
class BoxCopy {
public:
  BoxCopy() = default;
  BoxCopy(const std::vector<int64_t> &size,
          const std::vector<int64_t> &sourceShape,
          const std::vector<int64_t> &sourceStart,
          const std::vector<int64_t> &targetShape,
          const std::vector<int64_t> &targetStart, int64_t elementBytes);

  void operator()(const char *source, char *target) const;

  /// Calls run(source byte offset, target byte offset) for every contiguous
  /// run of runBytes() bytes.
  template <typename Run> void forEachRun(Run &&run) const {
    if (runLength == 0)
      return;
    std::vector<int64_t> index(counts.size(), 0);
    int64_t from = sourceBase, to = targetBase;
    while (true) {
      run(from, to);
      size_t dim = counts.size();
      while (dim-- > 0) {
        from += sourceSteps[dim];
        to += targetSteps[dim];
        if (++index[dim] < counts[dim])
          break;
        from -= sourceSteps[dim] * counts[dim];
        to -= targetSteps[dim] * counts[dim];
        index[dim] = 0;
      }
      if (dim == static_cast<size_t>(-1))
        return;
    }
  }
  int64_t runBytes() const { return runLength; }

  struct Loop {
    int64_t count, sourceStep, targetStep; ///< steps in bytes
  };
  /// Around a run, outermost first, and where the first run lies.
  std::vector<Loop> loops() const {
    std::vector<Loop> result;
    for (size_t i = 0; i < counts.size(); ++i)
      result.push_back({counts[i], sourceSteps[i], targetSteps[i]});
    return result;
  }
  int64_t sourceStart() const { return sourceBase; }
  int64_t targetStart() const { return targetBase; }

private:
  /// Loops around a run, outermost first; steps in bytes.
  std::vector<int64_t> counts, sourceSteps, targetSteps;
  int64_t sourceBase = 0, targetBase = 0;
  int64_t runLength = 0; ///< bytes, 0 for an empty box
};

} // namespace mtp

#endif // MTP_RUNTIME_SUPPORT_BOX_H
