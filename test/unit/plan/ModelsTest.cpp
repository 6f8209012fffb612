// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ModelsTest.cpp - plans of real exports -----------------------------===//
#include "ModelFile.h"
#include "PlanFixture.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::plan;

namespace {

struct ModelsTest : PlanTest {
  ModelsTest() { loadDialects(context); }
  void read(const std::string &name, bool training = false) {
    std::string error;
    module = readModel(MTP_MODELS "/" + name, context, training, error);
    ASSERT_TRUE(module) << name << ": " << error << messages;
  }
  /// With MTP_EVERY_EXPORT in the environment all of GPT-2 and LLaMA.
  static std::vector<std::string> exports(std::vector<std::string> names) {
    if (std::getenv("MTP_EVERY_EXPORT")) {
      names = modelNames(MTP_MODELS);
      llvm::erase_if(names, [](StringRef name) {
        return !name.starts_with("gpt2") && !name.starts_with("llama");
      });
    }
    return names;
  }
};

TEST_F(ModelsTest, RegretOfEveryOpIsThatOfPlanningAgain) {
  for (const std::string &name :
       exports({"gpt2-ts", "gpt2-dynamo", "llama-ts", "llama-dynamo"})) {
    SCOPED_TRACE(name);
    read(name);
    comparePlansWithRunnersUp("tp=2", 30);
  }
}

TEST_F(ModelsTest, RegretOfEveryOpOnTwoAxes) {
  for (const std::string &name :
       exports({"gpt2-ts", "gpt2-dynamo", "llama-dynamo"})) {
    SCOPED_TRACE(name);
    read(name);
    comparePlansWithRunnersUp("dp=2,tp=2", 30);
  }
}

TEST_F(ModelsTest, RegretUnderABudgetIsThatOfPlanningAgain) {
  for (const char *name : {"gpt2-ts", "gpt2-dynamo"}) {
    SCOPED_TRACE(name);
    read(name);
    compareWithinBudgets("tp=2", /*training=*/false, 60);
  }
  read("gpt2-ts", /*training=*/true);
  compareWithinBudgets("dp=2,tp=2", /*training=*/true, 60);
}

} // namespace
