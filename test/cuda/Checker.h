// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Checker.h - what must hold for a record of the driver --------------===//
//
//   step        between the begin and the end of a capture its thread allocates
//               nothing, waits for nothing and loads nothing; nor is there an
//               allocation between two launches of captured steps
//   order       of two pieces of work that touch the same bytes, one of them
//               writing, one comes after the other: by streams and events, or
//               because the host had seen the end of one. In a graph the edges
//               alone count, so every replay is covered
//   memory      work touches no bytes that have been given back
//   collectives two ranks give the collectives of the communicators that they
//               share in one order, and launch them equally often
//   handles     each is given back once; graphs before the communicators in
//               them, communicators before their streams, all before the device
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TEST_CUDA_CHECKER_H
#define MTP_TEST_CUDA_CHECKER_H

#include "runtime/cuda/software/Record.h"

#include <string>
#include <vector>

namespace mtp::software {

/// One sentence for each thing that is wrong, beginning with its word above.
/// `ended`: the session is over, so that nothing may be alive.
std::vector<std::string> checkRecord(const Record &record, bool ended = true);

// Its parts.
void checkStep(const Record &record, std::vector<std::string> &findings);
void checkOrder(const Record &record, std::vector<std::string> &findings);
void checkMemory(const Record &record, std::vector<std::string> &findings);
void checkCollectives(const Record &record, std::vector<std::string> &findings);
void checkHandles(const Record &record, bool ended,
                  std::vector<std::string> &findings);

} // namespace mtp::software

#endif // MTP_TEST_CUDA_CHECKER_H
