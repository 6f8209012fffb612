// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/onnx/DimBinder.h"
#include "test/unit/onnx/TestModels.h"

using namespace mtp::onnx;

namespace {
std::optional<int64_t>
value(const std::string &expression,
      const std::map<std::string, int64_t> &values = {}) {
  std::vector<std::string> missing;
  return evaluateDim(expression, values, missing);
}

TEST(DimExpression, FollowsPrecedence) {
  EXPECT_EQ(value("2 + 3 * 4"), 14);
  EXPECT_EQ(value("(2 + 3) * 4"), 20);
  EXPECT_EQ(value("7//2 - 1"), 2);
  EXPECT_EQ(value("past + seq", {{"past", 5}, {"seq", 3}}), 8);
  EXPECT_EQ(value("a-b", {{"a-b", 9}}), 9); // a name as a whole comes first
}

TEST(DimExpression, RefusesWhatItCannotCompute) {
  for (const char *text : {"", "2 +", "(2", "2)", "1/0",
                           "9223372036854775807 + 1", "3037000500*3037000500"})
    EXPECT_EQ(value(text), std::nullopt) << text;
  EXPECT_EQ(value(std::string(100000, '(')), std::nullopt);
  std::vector<std::string> missing;
  EXPECT_EQ(evaluateDim("a + b + a", {}, missing), std::nullopt);
  EXPECT_EQ(missing, (std::vector<std::string>{"a", "b"}));
}

ValueInfo input(const std::string &name, const std::vector<std::string> &dims) {
  ValueInfo info;
  info.name = name;
  info.hasShape = true;
  for (const std::string &text : dims) {
    Dim dim;
    if (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])))
      dim.value = std::stoll(text);
    else
      dim.symbol = text;
    info.dims.push_back(dim);
  }
  return info;
}

struct Outcome {
  std::vector<Shape> shapes;
  std::string kind, message;
  std::vector<std::string> warnings;
};

Outcome bindAll(const std::vector<ValueInfo> &inputs,
                const ReadOptions &options) {
  Outcome outcome;
  try {
    outcome.shapes = DimBinder(options, outcome.warnings).bind(inputs);
  } catch (const OnnxFailure &failure) {
    outcome.kind = failure.error.kind;
    outcome.message = failure.error.message;
  }
  return outcome;
}

const std::vector<ValueInfo> kDecoder = {
    input("input_ids", {"batch", "seq"}),
    input("attention_mask", {"batch", "past + seq"}),
    input("past.0.key", {"batch", "4", "past", "16"})};

TEST(DimBinder, NamesFromTheCommandLine) {
  ReadOptions options;
  options.dims = {{"batch", 2}, {"seq", 3}, {"past", 5}};
  Outcome outcome = bindAll(kDecoder, options);
  EXPECT_EQ(outcome.message, "");
  EXPECT_EQ(outcome.shapes,
            (std::vector<Shape>{{2, 3}, {2, 8}, {2, 4, 5, 16}}));
}

TEST(DimBinder, AnExpressionGivesItsMissingName) {
  ReadOptions options;
  options.inputs["input_ids"].shape = {2, 3};
  options.inputs["attention_mask"].shape = {2, 8};
  Outcome outcome = bindAll(kDecoder, options);
  EXPECT_EQ(outcome.shapes,
            (std::vector<Shape>{{2, 3}, {2, 8}, {2, 4, 5, 16}}));
}

TEST(DimBinder, ConflictsNameBothSides) {
  ReadOptions options;
  options.inputs["input_ids"].shape = {2, 3};
  options.inputs["past.0.key"].shape = {1, 4, 5, 16};
  std::string message = bindAll(kDecoder, options).message;
  EXPECT_HAS(message, "'batch' is 2");
  EXPECT_HAS(message, "'input_ids'");
  EXPECT_HAS(message, "'past.0.key'");
  options.inputs["past.0.key"].shape = {2, 4, 5, 16};
  options.inputs["attention_mask"].shape = {2, 9};
  message = bindAll(kDecoder, options).message;
  EXPECT_HAS(message, "'attention_mask' is 8, but the given array has 9");
}

TEST(DimBinder, TheMissingNameIsTold) {
  ReadOptions options;
  options.dims = {{"batch", 2}};
  Outcome outcome = bindAll(kDecoder, options);
  EXPECT_EQ(outcome.kind, "input");
  EXPECT_HAS(outcome.message, "input 'input_ids'");
  EXPECT_HAS(outcome.message, "--dim seq=N");
}

TEST(DimBinder, UnknownNamesAndNegativeNumbersAreUsageErrors) {
  ReadOptions options;
  options.dims = {{"length", 2}};
  EXPECT_EQ(bindAll(kDecoder, options).kind, "usage");
  options.dims = {{"seq", -2}};
  EXPECT_EQ(bindAll(kDecoder, options).kind, "usage");
}

TEST(DimBinder, GivenArraysMustFit) {
  ReadOptions options;
  options.inputs["past.0.key"].shape = {2, 3, 5, 16};
  EXPECT_HAS(bindAll(kDecoder, options).message,
             "dimension 1 of input 'past.0.key' is 4");
  options.inputs["past.0.key"].shape = {2, 4, 5};
  EXPECT_HAS(bindAll(kDecoder, options).message, "has 4 dimensions");
}

TEST(DimBinder, MicroBatchesCutTheRowsOfTheBatch) {
  ReadOptions options;
  options.microBatches = 2;
  options.batch = 6;
  std::vector<ValueInfo> inputs = {input("x", {"batch", "seq"}),
                                   input("mask", {"1", "seq"}),
                                   input("fixed", {"3", "6"})};
  options.inputs["x"].shape = {6, 5};
  options.inputs["mask"].shape = {1, 5};
  options.inputs["fixed"].shape = {6, 6};
  EXPECT_EQ(bindAll(inputs, options).shapes,
            (std::vector<Shape>{{3, 5}, {1, 5}, {3, 6}}));
  // The model has all of the rows: every micro-batch does.
  inputs[2] = input("fixed", {"6", "6"});
  EXPECT_EQ(bindAll(inputs, options).shapes[2], (Shape{6, 6}));
  inputs[2] = input("fixed", {"2", "6"});
  EXPECT_HAS(bindAll(inputs, options).message,
             "input 'fixed' has 2 rows; 2 micro-batches (--accumulate) need");
  inputs.pop_back();
  options.microBatches = 4;
  EXPECT_HAS(bindAll(inputs, options).message,
             "which is not 4 micro-batches (--accumulate) of equal size");
}

TEST(DimBinder, DefaultsAreReported) {
  ReadOptions options;
  options.defaultDims = true;
  Outcome outcome = bindAll({input("x", {"batch_size", "seq"})}, options);
  EXPECT_EQ(outcome.shapes, (std::vector<Shape>{{1, 16}}));
  ASSERT_EQ(outcome.warnings.size(), 2u);
  EXPECT_HAS(outcome.warnings[1], "--dim seq=N");
}

TEST(DimBinder, TheDefaultOfATotalIsASum) {
  ReadOptions options;
  options.defaultDims = true;
  options.dims = {{"seq", 3}};
  Outcome outcome = bindAll({input("ids", {"batch", "seq"}),
                             input("mask", {"batch", "total"}),
                             input("key", {"batch", "past"})},
                            options);
  EXPECT_EQ(outcome.shapes, (std::vector<Shape>{{1, 3}, {1, 19}, {1, 16}}));
  EXPECT_HAS(outcome.warnings.back(), "past + seq = 19");
}

TEST(DimBinder, DimensionsWithoutANameGoByInputAndAxis) {
  ReadOptions options;
  options.dims = {{"x[1]", 7}};
  EXPECT_EQ(bindAll({input("x", {"2", ""})}, options).shapes,
            (std::vector<Shape>{{2, 7}}));
}
} // namespace
