// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/cuda/DeviceCopy.h"

using namespace mtp;
using namespace mtp::cuda;

namespace {
/// Larger distances between rows are copied row by row.
constexpr int64_t kMaxPitch = (int64_t(1) << 31) - 1;
constexpr const char *kCopying = "copying on a CUDA device";
} // namespace

DeviceCopy::DeviceCopy(const BoxCopy &box)
    : loops(box.loops()), from(box.sourceStart()), to(box.targetStart()),
      width(box.runBytes()) {
  join();
}

/// Two loops that walk both sides in one step are one; so are a loop and the
/// run that it repeats without a gap.
void DeviceCopy::join() {
  for (size_t i = loops.size(); i-- > 1;) {
    BoxCopy::Loop &outer = loops[i - 1], &inner = loops[i];
    if (outer.sourceStep != inner.count * inner.sourceStep ||
        outer.targetStep != inner.count * inner.targetStep)
      continue;
    outer = {outer.count * inner.count, inner.sourceStep, inner.targetStep};
    loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i));
  }
  while (!loops.empty() && loops.back().sourceStep == width &&
         loops.back().targetStep == width) {
    width *= loops.back().count;
    loops.pop_back();
  }
}

DeviceCopy DeviceCopy::packing() const {
  DeviceCopy packed = *this;
  packed.to = 0;
  int64_t step = width;
  for (size_t i = loops.size(); i-- > 0;) {
    packed.loops[i].targetStep = step;
    step *= loops[i].count;
  }
  packed.join();
  return packed;
}

DeviceCopy DeviceCopy::unpacking() const {
  DeviceCopy packed = *this;
  packed.from = 0;
  int64_t step = width;
  for (size_t i = loops.size(); i-- > 0;) {
    packed.loops[i].sourceStep = step;
    step *= loops[i].count;
  }
  packed.join();
  return packed;
}

int64_t DeviceCopy::bytes() const {
  int64_t bytes = width;
  for (const BoxCopy::Loop &loop : loops)
    bytes *= loop.count;
  return bytes;
}

void DeviceCopy::enqueue(const DriverApi &driver, Address source,
                         Address target, StreamHandle *stream) const {
  if (empty())
    return;
  source += static_cast<Address>(from);
  target += static_cast<Address>(to);
  if (loops.empty())
    return copyBytes(driver, source, target, width, stream);
  BoxCopy::Loop rows = loops.back();
  bool byRows = rows.sourceStep >= width && rows.targetStep >= width &&
                rows.sourceStep <= kMaxPitch && rows.targetStep <= kMaxPitch;
  // Every combination of the outer loops, and of rows if they can't be pitched.
  DeviceCopy outer;
  outer.loops.assign(loops.begin(), loops.end() - (byRows ? 1 : 0));
  std::vector<int64_t> index(outer.loops.size(), 0);
  while (true) {
    Address a = source, b = target;
    for (size_t i = 0; i < index.size(); ++i) {
      a += static_cast<Address>(index[i] * outer.loops[i].sourceStep);
      b += static_cast<Address>(index[i] * outer.loops[i].targetStep);
    }
    if (byRows) {
      Copy2D copy{};
      copy.sourceType = copy.targetType = driver::MemoryDevice;
      copy.source = a;
      copy.target = b;
      copy.sourcePitch = static_cast<size_t>(rows.sourceStep);
      copy.targetPitch = static_cast<size_t>(rows.targetStep);
      copy.width = static_cast<size_t>(width);
      copy.height = static_cast<size_t>(rows.count);
      check(driver, driver.copy2D(&copy, stream), kCopying);
    } else {
      copyBytes(driver, a, b, width, stream);
    }
    size_t dim = index.size();
    while (dim-- > 0 && ++index[dim] == outer.loops[dim].count)
      index[dim] = 0;
    if (dim == static_cast<size_t>(-1))
      return;
  }
}

void mtp::cuda::copyBytes(const DriverApi &driver, Address source,
                          Address target, int64_t bytes, StreamHandle *stream) {
  if (bytes > 0 && source != target)
    check(driver,
          driver.copy(target, source, static_cast<size_t>(bytes), stream),
          kCopying);
}
