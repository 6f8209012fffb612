// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LibrariesTest.cpp - what is missing is named -----------------------===//
#include "runtime/cuda/Libraries.h"
#include "test/cuda/GpuFixture.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace mtp;
using namespace mtp::cuda;

namespace {

class LibrariesTest : public test::GpuTest {
protected:
  static Error failure(const LibraryNames &names) {
    try {
      loadLibraries(names, {});
      return {};
    } catch (const RuntimeError &e) {
      return e.error;
    }
  }
};

TEST_F(LibrariesTest, AMissingLibraryIsNamed) {
  LibraryNames names = LibraryNames::ofThisProcess();
  EXPECT_FALSE(failure(names));
  names.driver = {"libno-such-driver.so.1"};
  Error error = failure(names);
  EXPECT_EQ(error.exitCode, 6);
  EXPECT_NE(error.message.find("the CUDA driver, and libno-such-driver.so.1"),
            std::string::npos)
      << error.message;
  names = LibraryNames::ofThisProcess();
  names.blas = {"libno-such-blas.so.13", "libno-such-blas.so.12"};
  EXPECT_NE(failure(names).message.find(
                "cuBLASLt, and libno-such-blas.so.13 or libno-such-blas.so.12"),
            std::string::npos);
  names = LibraryNames::ofThisProcess();
  names.nccl = {"libno-such-nccl.so.2"};
  EXPECT_NE(failure(names).message.find("NCCL, and libno-such-nccl.so.2"),
            std::string::npos);
}

TEST_F(LibrariesTest, AMissingFunctionIsNamed) {
  LibraryNames names = LibraryNames::ofThisProcess();
  names.driver = {"libm.so.6"};
  Error error = failure(names);
  EXPECT_EQ(error.exitCode, 6);
  EXPECT_NE(error.message.find("the function cuInit"), std::string::npos)
      << error.message;
}

TEST_F(LibrariesTest, AMachineWithoutADeviceSaysSo) {
  software::Settings settings;
  settings.initStatus = driver::NoDevice;
  reset(settings);
  Error error = checkMachine("nccl", 2);
  EXPECT_EQ(error.exitCode, 6);
  EXPECT_NE(error.message.find("no CUDA-capable device is detected"),
            std::string::npos)
      << error.message;
  settings.initStatus = 0;
  settings.devices = 0;
  reset(settings);
  EXPECT_NE(checkMachine("nccl", 2).message.find("no CUDA device"),
            std::string::npos);
  settings.devices = 1;
  reset(settings);
  error = checkMachine("nccl", 2);
  EXPECT_EQ(error.exitCode, 6);
  EXPECT_NE(error.message.find("2 ranks and here is 1 CUDA device"),
            std::string::npos)
      << error.message;
  EXPECT_FALSE(checkMachine("loopback", 2));
}

TEST_F(LibrariesTest, TheRecorderIsAskedForByTheAbsolutePathOfAFile) {
  std::string before = std::getenv("MTP_CUDA_RECORDER");
  for (const char *wrong : {"", "librecorder.so", "/", "/no/such/file"}) {
    setenv("MTP_CUDA_RECORDER", wrong, 1);
    Error error = checkMachine("nccl", 1);
    EXPECT_EQ(error.exitCode, 2) << wrong;
  }
  setenv("MTP_CUDA_RECORDER", before.c_str(), 1);
  EXPECT_FALSE(checkMachine("nccl", 1));
}

} // namespace
