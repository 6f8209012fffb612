// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- TinyCompiler.cpp - a compiler that knows one model, for tests ------===//
//
// Lets the tests of mtp-run go without LLVM, under sanitizers as well. Whatever
// file it is given, the program is y = x W with x [batch, 8] (batch 2 unless
// --dim says), W [8, 3] split along the contraction over axis tp, then an
// all-reduce. W[i][j] = i - 2 j, in f64 more by TINY_MISTAKE if that is set.
// TINY_STALL makes it never end.
//
//===----------------------------------------------------------------------===//
#include "compiler/driver/CompilerApi.h"
#include "tools/common/MeshSpec.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

using namespace mtp;

static TensorLayout layoutOf(DType type, std::vector<int64_t> shape,
                             int shardedDim) {
  TensorLayout layout;
  layout.type = type;
  layout.shape = shape;
  layout.dims.resize(shape.size());
  if (shardedDim >= 0) {
    layout.dims[size_t(shardedDim)].axes = {0};
    layout.text = "tp = S(" + std::to_string(shardedDim) + ")";
  }
  return layout;
}

template <typename T> static std::string weights(double mistake) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 3; ++j) {
      T value = T(i - 2 * j + mistake);
      bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
    }
  return bytes;
}

static void addParameter(Artifact &artifact, DType type, double mistake) {
  artifact.data =
      type == DType::F64 ? weights<double>(mistake) : weights<float>(0);
  Parameter weight;
  weight.name = "w";
  weight.source.kind = Source::Kind::Embedded;
  weight.source.bytes = artifact.data.size();
  weight.source.type = type;
  weight.source.shape = {8, 3};
  weight.layout = layoutOf(type, {8, 3}, 0);
  artifact.parameters = {weight};
}

static void addProgram(Artifact &artifact, DType type, int64_t batch) {
  int64_t depth =
      blockOf(8, {{0}, 1}, artifact.axes, artifact.axes.coordinates(0))
          .capacity;
  int64_t size = byteSize(type);
  LibrarySite product;
  product.kind = "matmul";
  product.attributes = nlohmann::json::object();
  product.operands = {{type, {batch, depth}, {}},
                      {type, {depth, 3}, {}},
                      {type, {batch, 3}, {}}};
  artifact.librarySites = {product};
  CollectiveSite reduce;
  reduce.kind = CollectiveSite::Kind::AllReduce;
  reduce.op = "reduce_from";
  reduce.axes = {0};
  reduce.axisName = "tp";
  reduce.type = type;
  reduce.inShape = reduce.outShape = {batch, 3};
  reduce.node = "product";
  reduce.reason = "the contraction is split";
  reduce.predictedBytes = 3 * batch * size;
  artifact.collectiveSites = {reduce};

  using Space = BufferRef::Space;
  auto ref = [](Space space, int64_t bytes) {
    BufferRef buffer;
    buffer.space = space;
    buffer.bytes = bytes;
    return buffer;
  };
  BufferRef partial = ref(Space::Arena, 3 * batch * size);
  Instruction multiply, start, done;
  multiply.kind = Instruction::Kind::Library;
  multiply.name = "product";
  multiply.buffers = {ref(Space::Input, batch * depth * size),
                      ref(Space::Parameter, depth * 3 * size), partial};
  start.kind = Instruction::Kind::Start;
  start.name = done.name = "reduce";
  start.buffers = {partial, ref(Space::Output, 3 * batch * size)};
  done.kind = Instruction::Kind::Done;

  Entry entry;
  Input x;
  x.name = "x";
  x.layout = layoutOf(type, {batch, 8}, 1);
  x.dimNames = {"batch", ""};
  entry.inputs = {x};
  entry.outputs = {{"a/y", layoutOf(type, {batch, 3}, -1)}};
  entry.program = {multiply, start, done};
  entry.arenaBytes = 64 * batch;
  artifact.entries = {entry};
}

extern "C" {
void mtpCompile(const CompileRequest *request, CompileResult *result) {
  while (std::getenv("TINY_STALL"))
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  Artifact &artifact = result->artifact;
  std::string error;
  if (!parseMesh(request->mesh, artifact.axes, error)) {
    result->exitCode = kUsage;
    result->errorKind = "usage";
    result->message = error;
    return;
  }
  DType type = request->precision == "f64" ? DType::F64 : DType::F32;
  const char *mistake = std::getenv("TINY_MISTAKE");
  artifact.model = request->model;
  artifact.precision = request->precision;
  artifact.mesh = request->mesh;
  std::ifstream object(TINY_OBJECT, std::ios::binary);
  artifact.object.assign(std::istreambuf_iterator<char>(object), {});
  addParameter(artifact, type, mistake ? std::atof(mistake) : 0);
  auto batch = request->dims.find("batch");
  addProgram(artifact, type, batch == request->dims.end() ? 2 : batch->second);
  result->stageMs = {{"import", 1}, {"codegen", 2}};
  result->warnings = {"this is the compiler of the tests"};
  result->explain = "the all-reduce sums the parts of the contraction";
  result->explainJson = {{"collectives", 1}};
}

uint64_t mtpInterface(void) { return compilerInterface(); }
const char *mtpOperators(void) { return "Add\nMatMul\n"; }
}
