// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Inputs.h - the inputs that the command line names ------------------===//
#ifndef MTP_TOOLS_MTP_RUN_INPUTS_H
#define MTP_TOOLS_MTP_RUN_INPUTS_H

#include "runtime/io/HostTensor.h"
#include "tools/common/CommandLine.h"

namespace mtp {

/// Reads --input and --inputs; a name given twice is wrong use.
bool readGivenInputs(const Options &options, TensorMap &inputs, Error &error);

/// Adds random inputs (--random-inputs) for the names that are not given.
void addRandomInputs(const Artifact &artifact, const Entry &entry,
                     uint64_t seed, TensorMap &inputs);

/// `inputs` as `entry` wants them: floats are widened (never narrowed), so that
/// a model compiled in f64 takes the f32 inputs of the same model in f32.
TensorMap widened(const TensorMap &inputs, const Entry &entry);

/// Refuses a named dimension whose size is not among those of --dim.
bool checkDims(const Options &options, const Entry &entry, Error &error);

} // namespace mtp

#endif // MTP_TOOLS_MTP_RUN_INPUTS_H
