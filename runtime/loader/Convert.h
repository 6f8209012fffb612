// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Convert.h - element types ------------------------------------------===//
#ifndef MTP_RUNTIME_LOADER_CONVERT_H
#define MTP_RUNTIME_LOADER_CONVERT_H

#include "runtime/artifact/Artifact.h"

namespace mtp {

/// Converts `count` dense elements; `source` needs no alignment. Floats round
/// to nearest even; float to integer truncates and saturates, NaN gives 0;
/// integers wrap; anything to bool is "not zero".
void convertElements(DType from, const char *source, DType to, char *target,
                     int64_t count);

} // namespace mtp

#endif // MTP_RUNTIME_LOADER_CONVERT_H
