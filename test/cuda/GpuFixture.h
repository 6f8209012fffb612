// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GpuFixture.h - programs of device cuda on the recording driver -----===//
#ifndef MTP_TEST_CUDA_GPUFIXTURE_H
#define MTP_TEST_CUDA_GPUFIXTURE_H

#include "runtime/cuda/software/Recorder.h"
#include "runtime/session/Session.h"
#include "test/cuda/Checker.h"
#include "test/unit/runtime/TestArtifact.h"

#include <gtest/gtest.h>

namespace mtp::test {

/// The recording driver, which this process takes for its CUDA. Reset before
/// each test, with host bodies for the kernels below and for all mtp_reduce_*.
class GpuTest : public testing::Test {
protected:
  GpuTest() { reset({}); }

  static void reset(const software::Settings &settings);
  static software::Record record();
  static uint64_t alive();
  /// Nothing is wrong with what was recorded.
  static void expectClean(bool ended = true);

  std::unique_ptr<Session> start(Artifact artifact, const std::string &comm,
                                 SessionOptions options = {});
};

void registerKernel(const std::string &name, software::KernelBody body);
/// Bodies of all mtp_reduce_*.
void registerReductions();

/// PTX with these entries, which do nothing, and all mtp_reduce_*.
std::string
ptxOf(const std::vector<std::pair<std::string, int>> &namesAndParameters);

/// The same program for device cuda; each kernel of the test objects gets one
/// thread an iteration and writes its last buffer.
Artifact forGpu(Artifact artifact);

} // namespace mtp::test

#endif // MTP_TEST_CUDA_GPUFIXTURE_H
