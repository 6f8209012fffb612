// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MatmulOneDnn.cpp - matrix products in f32 and bf16 by oneDNN -------===//
#include "runtime/kernels/Convert.h"
#include "runtime/kernels/Matmul.h"
#include "runtime/kernels/Parallel.h"
#include <algorithm>
#include <dnnl.hpp>
#include <unordered_map>

namespace mtp {
namespace {

using dnnl::memory;
using View = MatmulProblem::View;

const dnnl::engine &cpuEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

std::optional<memory::data_type> dataType(DType type) {
  if (type == DType::F32)
    return memory::data_type::f32;
  if (type == DType::BF16)
    return memory::data_type::bf16;
  return std::nullopt;
}

/// [batch..., rows, columns]; batch dimensions that `view` doesn't have are 1.
memory::dims dimsOf(const MatmulProblem &problem, const View &view,
                    int64_t rows, int64_t columns) {
  memory::dims dims;
  for (size_t i = 0; i < problem.batch.size(); ++i)
    dims.push_back(view.batch[i] == 0 ? 1 : problem.batch[i]);
  dims.push_back(rows);
  dims.push_back(columns);
  return dims;
}

memory::desc describe(const MatmulProblem &problem, const View &view,
                      int64_t rows, int64_t columns) {
  memory::dims strides;
  for (int64_t stride : view.batch)
    strides.push_back(stride == 0 ? rows * columns : stride);
  strides.push_back(view.row);
  strides.push_back(view.column);
  return {dimsOf(problem, view, rows, columns), *dataType(view.type), strides};
}

/// `view` of f32 copied densely to bf16.
View denseBf16(const MatmulProblem &problem, const View &view, int64_t rows,
               int64_t columns) {
  View dense = view;
  dense.type = DType::BF16;
  dense.column = 1;
  dense.row = columns;
  int64_t stride = rows * columns;
  for (size_t i = problem.batch.size(); i-- > 0;)
    if (view.batch[i] != 0) {
      dense.batch[i] = stride;
      stride *= problem.batch[i];
    }
  return dense;
}

/// True if rows of B lie so that their elements compete for few lines of a
/// cache, a case that oneDNN walks into (half the rate): it copies B itself
/// only if rows are powers of two apart.
bool rowsMeetInCache(const View &b) {
  int64_t bytes = b.row * byteSize(b.type);
  bool single = std::all_of(b.batch.begin(), b.batch.end(),
                            [](int64_t stride) { return stride == 0; });
  return single && b.column == 1 && bytes % 2048 == 0 &&
         (bytes & (bytes - 1)) != 0;
}

class OneDnnMatmul final : public LibraryKernel {
public:
  /// Throws dnnl::error or KernelError where oneDNN can't do it well.
  OneDnnMatmul(const MatmulProblem &problem, const PrepareContext &context);
  bool run(const MtpRank *rank, char *const *buffers,
           std::string &error) override;
  bool keepsConstant(int operand) const override {
    return operand != 1 || !packed;
  }
  int64_t packedBytes() const override {
    return packed ? int64_t(packed->size()) : 0;
  }
  std::string implementation() const override {
    return "oneDNN " + primitiveName;
  }

private:
  struct Rounded {
    View from, to;
    int64_t rows = 0, columns = 0;
    size_t at = 0; ///< in scratch
    bool used = false;
  };
  void prepareRounding(Rounded &rounded, View &view, int64_t rows,
                       int64_t columns);
  void round(const Rounded &rounded, const char *from, char *to) const;
  /// Argument argument is operand operand of the site, or -1.
  memory &bind(int argument, const memory::desc &desc, int operand);
  void reluAndResidual(char *const *buffers) const;
  void packWeights(const char *constant, const PrepareContext &context,
                   const memory::desc &plain, const memory::desc &wanted);
  void prepareRepacking(const memory::desc &plain, const memory::desc &wanted);

  const MatmulProblem problem;
  const int threads;
  dnnl::matmul primitive;
  dnnl::stream stream;
  std::string primitiveName;
  std::unordered_map<int, memory> arguments;
  std::vector<std::pair<memory, int>> operands; ///< arguments set by each run
  memory scratchpad;
  std::shared_ptr<AlignedBytes> packed;
  dnnl::reorder repacking; ///< of B by each run, if `repacks`
  memory plainB, repackedB;
  bool repacks = false;
  size_t repackedAt = 0; ///< in scratch
  std::shared_ptr<Scratch> scratch;
  Rounded roundedA, roundedB;
  size_t scratchBytes = 0;
};

void OneDnnMatmul::prepareRounding(Rounded &rounded, View &view, int64_t rows,
                                   int64_t columns) {
  rounded.from = view;
  rounded.rows = rows;
  rounded.columns = columns;
  rounded.used = true;
  view = rounded.to = denseBf16(problem, view, rows, columns);
  int64_t elements = rows * columns;
  for (size_t i = 0; i < problem.batch.size(); ++i)
    elements *= view.batch[i] == 0 ? 1 : problem.batch[i];
  rounded.at = scratchBytes;
  scratchBytes += alignUp(size_t(elements) * 2);
}

memory &OneDnnMatmul::bind(int argument, const memory::desc &desc,
                           int operand) {
  memory &bound = arguments[argument];
  bound = memory(desc, cpuEngine(), DNNL_MEMORY_NONE);
  if (operand >= 0)
    operands.push_back({bound, operand});
  return bound;
}

OneDnnMatmul::OneDnnMatmul(const MatmulProblem &given,
                           const PrepareContext &context)
    : problem(given), threads(context.threads), stream(cpuEngine()),
      scratch(scratchOf(context)) {
  const MatmulProblem &p = problem;
  setLibraryThreads(threads);
  const char *constant = constantBytes(context, 1);
  bool constantB =
      constant && std::all_of(p.b.batch.begin(), p.b.batch.end(),
                              [](int64_t stride) { return stride == 0; });
  View a = p.a, b = p.b;
  if (p.roundToBf16 && a.type == DType::F32) {
    prepareRounding(roundedA, a, p.m, p.k);
    if (constantB)
      b.type = DType::BF16;
    else
      prepareRounding(roundedB, b, p.k, p.n);
  }

  memory::desc aDesc = describe(p, a, p.m, p.k),
               yDesc = describe(p, p.y, p.m, p.n);
  memory::desc bDesc = describe(p, b, p.k, p.n);
  repacks = !constantB && !roundedB.used && rowsMeetInCache(b);
  if (constantB || repacks)
    bDesc = memory::desc(dimsOf(p, b, p.k, p.n), *dataType(b.type),
                         memory::format_tag::any);

  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (p.alpha != 1)
    attributes.set_output_scales(0, {float(p.alpha)});
  dnnl::post_ops postOps;
  memory::dims biasDims(p.batch.size() + 1, 1);
  biasDims.push_back(p.n);
  memory::desc biasDesc(biasDims, *dataType(p.y.type),
                        rowMajorStrides(biasDims));
  // oneDNN scales product plus bias; with alpha the bias must be added after.
  bool biasIsPostOp = p.hasBias && p.alpha != 1;
  if (biasIsPostOp)
    postOps.append_binary(dnnl::algorithm::binary_add, biasDesc);
  switch (p.activation) {
  case Activation::None:
  case Activation::Relu: // oneDNN's makes 0 of NaN: see reluAndResidual()
    break;
  case Activation::GeluErf:
    postOps.append_eltwise(1, dnnl::algorithm::eltwise_gelu_erf, 0, 0);
    break;
  case Activation::GeluTanh:
    postOps.append_eltwise(1, dnnl::algorithm::eltwise_gelu_tanh, 0, 0);
    break;
  case Activation::Silu:
    postOps.append_eltwise(1, dnnl::algorithm::eltwise_swish, 1, 0);
    break;
  case Activation::GeluTanhGradient: // prepareMatmul() refuses it
    break;
  }
  memory::desc residualDesc;
  bool residualIsPostOp = p.hasResidual && p.activation != Activation::Relu;
  if (residualIsPostOp) {
    residualDesc = describe(p, p.residual, p.m, p.n);
    postOps.append_binary(dnnl::algorithm::binary_add, residualDesc);
  }
  attributes.set_post_ops(postOps);

  dnnl::matmul::desc desc =
      p.hasBias && !biasIsPostOp
          ? dnnl::matmul::desc(aDesc, bDesc, biasDesc, yDesc)
          : dnnl::matmul::desc(aDesc, bDesc, yDesc);
  dnnl::matmul::primitive_desc chosen(desc, attributes, cpuEngine());
  primitiveName = chosen.impl_info_str();
  if (primitiveName.find("ref") != std::string::npos)
    refuse("oneDNN has only " + primitiveName);
  primitive = dnnl::matmul(chosen);

  bind(DNNL_ARG_SRC, chosen.src_desc(), 0);
  bind(DNNL_ARG_DST, chosen.dst_desc(), p.yAt);
  if (constantB)
    packWeights(constant, context, describe(p, p.b, p.k, p.n),
                chosen.weights_desc());
  if (repacks)
    prepareRepacking(describe(p, p.b, p.k, p.n), chosen.weights_desc());
  memory &weights =
      bind(DNNL_ARG_WEIGHTS, chosen.weights_desc(), packed || repacks ? -1 : 1);
  if (packed)
    weights.set_data_handle(packed->data());
  else if (repacks)
    repackedB = weights;
  int at = 0;
  if (biasIsPostOp)
    bind(DNNL_ARG_ATTR_MULTIPLE_POST_OP(at++) | DNNL_ARG_SRC_1, biasDesc,
         p.biasAt);
  else if (p.hasBias)
    bind(DNNL_ARG_BIAS, biasDesc, p.biasAt);
  at += p.activation != Activation::None;
  if (residualIsPostOp)
    bind(DNNL_ARG_ATTR_MULTIPLE_POST_OP(at) | DNNL_ARG_SRC_1, residualDesc,
         p.residualAt);
  scratchpad = bind(DNNL_ARG_SCRATCHPAD, chosen.scratchpad_desc(), -1);
  scratch->reserve(scratchBytes + chosen.scratchpad_desc().get_size());
}

void OneDnnMatmul::prepareRepacking(const memory::desc &plain,
                                    const memory::desc &wanted) {
  if (plain == wanted) {
    repacks = false;
    return;
  }
  plainB = memory(plain, cpuEngine(), DNNL_MEMORY_NONE);
  memory into(wanted, cpuEngine(), DNNL_MEMORY_NONE);
  repacking = dnnl::reorder(plainB, into);
  repackedAt = scratchBytes;
  scratchBytes += alignUp(wanted.get_size());
}

void OneDnnMatmul::packWeights(const char *constant,
                               const PrepareContext &context,
                               const memory::desc &plain,
                               const memory::desc &wanted) {
  if (plain == wanted)
    return;
  // The descriptors are plain structures: their bytes name the format.
  std::string format = "oneDNN ";
  format.append(reinterpret_cast<const char *>(&plain.data),
                sizeof(plain.data));
  format.append(reinterpret_cast<const char *>(&wanted.data),
                sizeof(wanted.data));
  packed = packConstant(context, 1, format, wanted.get_size(), [&](char *to) {
    memory from(plain, cpuEngine(), const_cast<char *>(constant));
    memory into(wanted, cpuEngine(), to);
    dnnl::reorder(from, into).execute(stream, from, into);
    stream.wait();
  });
}

void OneDnnMatmul::round(const Rounded &rounded, const char *from,
                         char *to) const {
  int64_t batches = 1;
  for (size_t i = 0; i < problem.batch.size(); ++i)
    batches *= rounded.to.batch[i] == 0 ? 1 : problem.batch[i];
  const float *source = reinterpret_cast<const float *>(from);
  uint16_t *target = reinterpret_cast<uint16_t *>(to);
  parallelFor(threads, batches * rounded.rows, [&](int64_t index, int) {
    int64_t batch = index / rounded.rows, row = index % rounded.rows;
    const float *line = source + row * rounded.from.row;
    for (size_t i = problem.batch.size(); i-- > 0;)
      if (rounded.to.batch[i] != 0) {
        line += batch % problem.batch[i] * rounded.from.batch[i];
        batch /= problem.batch[i];
      }
    uint16_t *out = target + index * rounded.columns;
    for (int64_t j = 0; j < rounded.columns; ++j)
      out[j] = floatToBf16(line[j * rounded.from.column]);
  });
}

/// Y = relu(Y) + residual, NaN kept.
void OneDnnMatmul::reluAndResidual(char *const *buffers) const {
  const MatmulProblem &p = problem;
  parallelFor(threads, p.batches() * p.m, [&](int64_t index, int) {
    int64_t batch = index / p.m, row = index % p.m;
    float *y = reinterpret_cast<float *>(buffers[p.yAt]) +
               p.offset(p.y, batch) + row * p.y.row;
    for (int64_t j = 0; j < p.n; ++j)
      y[j] = y[j] < 0 ? 0 : y[j];
    if (!p.hasResidual)
      return;
    const float *residual = reinterpret_cast<float *>(buffers[p.residualAt]) +
                            p.offset(p.residual, batch) + row * p.residual.row;
    for (int64_t j = 0; j < p.n; ++j)
      y[j] += residual[j * p.residual.column];
  });
}

bool OneDnnMatmul::run(const MtpRank *, char *const *buffers,
                       std::string &error) {
  setLibraryThreads(threads);
  char *work = scratch->data();
  char *a = buffers[0], *b = buffers[1];
  if (roundedA.used) {
    round(roundedA, a, work + roundedA.at);
    a = work + roundedA.at;
  }
  if (roundedB.used) {
    round(roundedB, b, work + roundedB.at);
    b = work + roundedB.at;
  }
  try {
    for (auto &[bound, operand] : operands)
      bound.set_data_handle(operand == 0   ? a
                            : operand == 1 ? b
                                           : buffers[operand],
                            stream);
    if (repacks) {
      plainB.set_data_handle(b, stream);
      repackedB.set_data_handle(work + repackedAt, stream);
      repacking.execute(stream, plainB, repackedB);
    }
    scratchpad.set_data_handle(work + scratchBytes, stream);
    primitive.execute(stream, arguments);
    stream.wait();
  } catch (const std::exception &exception) {
    error = std::string("matmul: ") + exception.what();
    return false;
  }
  if (problem.activation == Activation::Relu)
    reluAndResidual(buffers);
  return true;
}

} // namespace

std::unique_ptr<LibraryKernel>
prepareOneDnnMatmul(const MatmulProblem &p, const PrepareContext &context,
                    std::string &reason) {
  auto supported = [](DType type) { return dataType(type).has_value(); };
  if (!supported(p.a.type) || !supported(p.b.type) || !supported(p.y.type)) {
    reason = "type";
    return nullptr;
  }
  if (p.activation == Activation::Relu && p.y.type != DType::F32) {
    reason = "relu of bf16";
    return nullptr;
  }
  if (p.m == 0 || p.n == 0 || p.k == 0 || p.batches() == 0) {
    reason = "empty";
    return nullptr;
  }
  // oneDNN wants one dimension of each matrix to be contiguous, none broadcast.
  auto plain = [](const View &view, int64_t rows, int64_t columns) {
    return (view.column == 1 && view.row >= columns) ||
           (view.row == 1 && view.column >= rows);
  };
  if (!plain(p.a, p.m, p.k) || !plain(p.b, p.k, p.n) || p.y.column != 1 ||
      p.y.row < p.n || (p.hasResidual && !plain(p.residual, p.m, p.n))) {
    reason = "strides";
    return nullptr;
  }
  try {
    return std::make_unique<OneDnnMatmul>(p, context);
  } catch (const std::bad_alloc &) {
    throw;
  } catch (const std::exception &exception) {
    reason = exception.what();
    return nullptr;
  }
}

} // namespace mtp
