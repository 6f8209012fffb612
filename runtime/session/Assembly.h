// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Assembly.h - whole tensors from the blocks of processes ------------===//
#ifndef MTP_RUNTIME_SESSION_ASSEMBLY_H
#define MTP_RUNTIME_SESSION_ASSEMBLY_H

#include "runtime/program/World.h"
#include "runtime/session/Inputs.h"

#include <optional>

namespace mtp {

/// How the block of `rank` lies in the whole tensor, if that rank is the one
/// that writes it. `partial`: axes over whose ranks blocks are summed; those
/// with the coordinates `at` on them count.
std::optional<BlockMap> writtenBlock(const TensorLayout &layout,
                                     const Mesh &mesh, int rank,
                                     const std::vector<int> &partial = {},
                                     const std::vector<int64_t> &at = {});

/// Every process has put the block of its rank into its own `whole`; process 0
/// gets those of the others. Without processes there is nothing to do.
bool assemble(World &world, const TensorLayout &layout, char *whole,
              const std::vector<int> &partial, const std::vector<int64_t> &at,
              Error &error);

/// The outputs of an entry, assembled as above; what has one element goes to
/// all processes.
bool assembleOutputs(World &world, const Entry &entry,
                     const std::vector<HostTensor *> &outputs, Error &error);

/// Exit 1 if the processes were given different bytes.
bool checkSameInputs(World &world, const std::vector<const HostTensor *> &given,
                     Error &error);

} // namespace mtp

#endif // MTP_RUNTIME_SESSION_ASSEMBLY_H
