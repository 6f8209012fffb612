// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/emit/LoopNest.h"

#include <algorithm>

using namespace mtp;

/// Ranges of one part, and of all parts of a nest together: there is a copy of
/// the code for each.
static constexpr size_t kMaxBreaks = 16, kMaxCopies = 48;

llvm::SmallVector<LoopPart>
NestPlan::parts(llvm::ArrayRef<int64_t> extents) const {
  llvm::SmallVector<LoopPart> result;
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    llvm::SmallVector<LoopPart> minorFirst;
    int64_t stride = 1;
    if (auto it = cuts.find(dim); it != cuts.end())
      for (int64_t next : it->second) {
        if (next % stride != 0 || extents[dim] % next != 0)
          continue;
        minorFirst.push_back({dim, stride, next / stride});
        stride = next;
      }
    minorFirst.push_back({dim, stride, extents[dim] / stride});
    for (auto part = minorFirst.rbegin(); part != minorFirst.rend(); ++part)
      if (part->extent != 1)
        result.push_back(*part);
  }
  if (tiledWithLast >= 0) {
    auto minor = llvm::find_if(result, [&](const LoopPart &part) {
      return part.dim == unsigned(tiledWithLast) && part.stride == 1;
    });
    std::rotate(minor, minor + 1, result.end() - 1);
  }
  return result;
}

bool NestPlan::tile(const LoopPart &part, const LoopPart &last) {
  if (tiledWithLast >= 0 || !breaks.empty() || part.stride != 1 ||
      last.stride != 1)
    return false;
  for (int64_t size : {16, 32, 24, 8}) {
    if (part.extent % size != 0 || last.extent % size != 0 ||
        part.extent == size || last.extent == size)
      continue;
    tiledWithLast = part.dim;
    cuts[part.dim].insert(size);
    cuts[last.dim].insert(size);
    return true;
  }
  return false;
}

llvm::SmallVector<std::pair<int64_t, int64_t>>
NestPlan::ranges(const LoopPart &part) const {
  llvm::SmallVector<std::pair<int64_t, int64_t>> result;
  int64_t first = 0;
  if (auto it = breaks.find({part.dim, part.stride, part.extent});
      it != breaks.end())
    for (int64_t position : it->second) {
      result.push_back({first, position - 1});
      first = position;
    }
  result.push_back({first, part.extent - 1});
  return result;
}

bool NestPlan::cut(unsigned dim, int64_t stride) {
  return cuts[dim].insert(stride).second;
}

bool NestPlan::breakAt(const LoopPart &part, int64_t position) {
  auto &points = breaks[{part.dim, part.stride, part.extent}];
  if (position <= 0 || position >= part.extent || points.size() >= kMaxBreaks)
    return false;
  size_t copies = 1;
  for (auto &[key, positions] : breaks)
    copies *= positions.size() + 1 + (&positions == &points);
  return copies <= kMaxCopies && points.insert(position).second;
}
