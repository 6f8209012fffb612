// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/support/Box.h"

#include <algorithm>
#include <cstring>

using namespace mtp;

BoxCopy::BoxCopy(const std::vector<int64_t> &size,
                 const std::vector<int64_t> &sourceShape,
                 const std::vector<int64_t> &sourceStart,
                 const std::vector<int64_t> &targetShape,
                 const std::vector<int64_t> &targetStart,
                 int64_t elementBytes) {
  for (int64_t extent : size)
    if (extent == 0)
      return;
  // From the innermost dim outwards: as long as all inner dims are whole on
  // both sides the run grows, after that each dim is a loop.
  runLength = elementBytes;
  int64_t sourceStep = elementBytes, targetStep = elementBytes;
  bool contiguous = true;
  for (size_t dim = size.size(); dim-- > 0;) {
    sourceBase += sourceStart[dim] * sourceStep;
    targetBase += targetStart[dim] * targetStep;
    if (contiguous) {
      runLength *= size[dim];
      contiguous =
          size[dim] == sourceShape[dim] && size[dim] == targetShape[dim];
    } else if (size[dim] > 1) {
      counts.push_back(size[dim]);
      sourceSteps.push_back(sourceStep);
      targetSteps.push_back(targetStep);
    }
    sourceStep *= sourceShape[dim];
    targetStep *= targetShape[dim];
  }
  std::reverse(counts.begin(), counts.end());
  std::reverse(sourceSteps.begin(), sourceSteps.end());
  std::reverse(targetSteps.begin(), targetSteps.end());
}

void BoxCopy::operator()(const char *source, char *target) const {
  forEachRun([&](int64_t from, int64_t to) {
    std::memcpy(target + to, source + from, runLength);
  });
}
