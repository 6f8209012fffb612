// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/loader/CpuFeatures.h"
#include "runtime/loader/ElfCheck.h"
#include "runtime/loader/ObjectLoader.h"
#include "runtime/support/Error.h"
#include "test/unit/runtime/TestArtifact.h"

#include <gtest/gtest.h>
#include <random>

using namespace mtp;
using namespace mtp::test;

namespace {

std::string refusal(const std::string &bytes) {
  std::string error;
  return checkSharedObject(bytes, MTP_KERNELS_SYMBOL, error) ? "" : error;
}

TEST(ElfCheck, AcceptsAHermeticObject) {
  EXPECT_EQ(refusal(objectBytes("kernels")), "");
}

TEST(ElfCheck, RefusesWhatReachesOutside) {
  const std::pair<const char *, const char *> cases[] = {
      {"needed", "needs another library"},
      {"initializer", "runs when it is loaded"},
      {"undefined", "undefined symbol 'elsewhere'"},
      {"exports", "exports 'another'"},
      {"writable_code", "writable and executable"}};
  for (auto &[object, says] : cases)
    EXPECT_NE(refusal(objectBytes(object)).find(says), std::string::npos)
        << object << ": " << refusal(objectBytes(object));
  EXPECT_NE(refusal("hello"), "");
  EXPECT_NE(refusal(""), "");
}

TEST(ElfCheck, DamagedObjectsNeverCrash) {
  std::string bytes = objectBytes("kernels");
  for (size_t size = 0; size < bytes.size(); size += 1 + size / 32)
    refusal(bytes.substr(0, size));
  std::mt19937 random(6);
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = bytes;
    for (unsigned k = 0; k <= random() % 4; ++k)
      damaged[random() % (i % 2 ? bytes.size() : 1024)] =
          static_cast<char>(random());
    refusal(damaged);
  }
}

TEST(LoadedObject, FindsKernelsAndCanBeLoadedTwice) {
  Artifact artifact = multiplyAndGather(4, 1);
  LoadedObject first(artifact), second(artifact);
  EXPECT_NE(first.kernel(Multiply), nullptr);
  EXPECT_NE(first.kernel(Multiply), second.kernel(Multiply));
  EXPECT_NE(first.kernel(Multiply), first.kernel(AddOne));
}

TEST(LoadedObject, NamesWhatDoesNotFit) {
  auto message = [](Artifact artifact) -> std::string {
    try {
      LoadedObject object(artifact);
    } catch (const RuntimeError &e) {
      EXPECT_EQ(e.error.exitCode, 1);
      return e.error.message;
    }
    return "";
  };
  Artifact artifact = multiplyAndGather(4, 1);
  artifact.kernelNames.push_back("one more");
  EXPECT_NE(message(artifact).find("5 kernels"), std::string::npos);
  artifact = multiplyAndGather(4, 1);
  artifact.cpuFeatures = {"+avx9000"};
  EXPECT_NE(message(artifact).find("avx9000"), std::string::npos);
  artifact = multiplyAndGather(4, 1);
  artifact.object.clear();
  EXPECT_NE(message(artifact), "");
}

TEST(CpuFeatures, KnowsLlvmNames) {
#if defined(__x86_64__)
  EXPECT_TRUE(missingCpuFeatures({"+sse2", "cmov", "64bit", "x87", "-avx512f"})
                  .empty());
#endif
  EXPECT_EQ(missingCpuFeatures({"nonsense"}),
            std::vector<std::string>{"nonsense"});
}

} // namespace
