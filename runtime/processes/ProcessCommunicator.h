// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ProcessCommunicator.h - collectives between processes --------------===//
#ifndef MTP_RUNTIME_PROCESSES_PROCESSCOMMUNICATOR_H
#define MTP_RUNTIME_PROCESSES_PROCESSCOMMUNICATOR_H

#include "runtime/comm/Communicator.h"
#include "runtime/processes/Processes.h"

namespace mtp {

/// The communicator of the rank that is this process. Results are those of
/// makeThreadCommunicators(), bit for bit. `epoch` must differ between sessions
/// of one run, and be the same in all processes. Throws RuntimeError.
std::unique_ptr<Communicator>
makeProcessCommunicator(std::shared_ptr<Crew> crew,
                        std::shared_ptr<Processes> processes, const Mesh &mesh,
                        const std::vector<CollectiveSite> &sites,
                        int64_t epoch = 0);

} // namespace mtp

#endif // MTP_RUNTIME_PROCESSES_PROCESSCOMMUNICATOR_H
