// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MemoryChart.h - what a rank holds while it runs --------------------===//
#ifndef MTP_TOOLS_REPORT_MEMORYCHART_H
#define MTP_TOOLS_REPORT_MEMORYCHART_H

#include "runtime/artifact/Artifact.h"

namespace mtp::report {

/// Bytes of the arena that hold a value that is still needed, at each
/// instruction. A value lives from the instruction that writes it to the last
/// that reads it; a collective holds its operands until it is done.
std::vector<int64_t> liveBytes(const Artifact &artifact, const Entry &entry);

/// Chart of the program of each entry, and a table by what bytes are for.
std::string memorySection(const Artifact &artifact);

} // namespace mtp::report

#endif // MTP_TOOLS_REPORT_MEMORYCHART_H
