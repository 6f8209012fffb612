// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Matmul.cpp - checks a matrix product and chooses who computes it ---===//
#include "runtime/kernels/Matmul.h"
#include <algorithm>

namespace mtp {

int64_t MatmulProblem::batches() const {
  int64_t count = 1;
  for (int64_t extent : batch)
    count *= extent;
  return count;
}

int64_t MatmulProblem::offset(const View &view, int64_t index) const {
  int64_t offset = 0;
  for (size_t i = batch.size(); i-- > 0; index /= batch[i])
    offset += index % batch[i] * view.batch[i];
  return offset;
}

namespace {

using View = MatmulProblem::View;

/// The strides of `tensor` under the `batch` dimensions of the result.
View viewOf(const Tensor &tensor, const std::vector<int64_t> &batch,
            bool transpose) {
  View view;
  view.type = tensor.type;
  int missing = int(batch.size()) - (tensor.rank() - 2);
  for (int i = 0; i < int(batch.size()); ++i)
    view.batch.push_back(i < missing || tensor.dim(i - missing) == 1
                             ? 0
                             : tensor.stride(i - missing));
  view.row = tensor.stride(transpose ? -1 : -2);
  view.column = tensor.stride(transpose ? -2 : -1);
  return view;
}

/// Merges neighbouring batch dimensions that every view walks in one stride.
void mergeBatches(MatmulProblem &problem, const std::vector<View *> &views) {
  for (size_t i = problem.batch.size(); i-- > 0;)
    if (problem.batch[i] == 1) {
      problem.batch.erase(problem.batch.begin() + i);
      for (View *view : views)
        view->batch.erase(view->batch.begin() + i);
    }
  for (size_t i = problem.batch.size(); i-- > 1;) {
    if (!std::all_of(views.begin(), views.end(), [&](View *view) {
          return view->batch[i - 1] == problem.batch[i] * view->batch[i];
        }))
      continue;
    problem.batch[i - 1] *= problem.batch[i];
    problem.batch.erase(problem.batch.begin() + i);
    for (View *view : views)
      view->batch.erase(view->batch.begin() + i - 1);
  }
}

/// One batch dimension that B doesn't have becomes rows of A, Y and residual.
void foldIntoRows(MatmulProblem &problem) {
  if (problem.batch.size() != 1 || problem.b.batch[0] != 0)
    return;
  std::vector<View *> views = {&problem.a, &problem.y};
  if (problem.hasResidual)
    views.push_back(&problem.residual);
  for (View *view : views)
    if (problem.m == 1)
      view->row = view->batch[0];
    else if (view->batch[0] != problem.m * view->row)
      return;
  if (problem.m == 1 && problem.a.row == 0)
    return;
  problem.m *= problem.batch[0];
  problem.batch.clear();
  for (View *view : {&problem.a, &problem.b, &problem.y, &problem.residual})
    view->batch.clear();
}

bool isInteger(DType type) {
  return type == DType::I32 || type == DType::I64 || type == DType::U32 ||
         type == DType::U64;
}

bool typesAreSupported(DType a, DType b, DType y) {
  if (a == b && b == y)
    return isFloat(a) || isInteger(a);
  bool bytes =
      (a == DType::I8 || a == DType::U8) && (b == DType::I8 || b == DType::U8);
  bool halves = a == b && (a == DType::F16 || a == DType::BF16);
  return (bytes && y == DType::I32) || (halves && y == DType::F32);
}

} // namespace

MatmulProblem readMatmul(SiteReader &reader) {
  MatmulProblem problem;
  Tensor a = reader.next("A"), b = reader.next("B");
  bool transposeA = reader.flag("transposeA", false);
  bool transposeB = reader.flag("transposeB", false);
  reader.require(a.rank() >= 2 && b.rank() >= 2, "A " + toString(a) +
                                                     " and B " + toString(b) +
                                                     " need rank 2 or more");
  problem.m = a.dim(transposeA ? -1 : -2);
  problem.k = a.dim(transposeA ? -2 : -1);
  problem.n = b.dim(transposeB ? -2 : -1);
  reader.require(problem.k == b.dim(transposeB ? -1 : -2),
                 "A " + toString(a) + " and B " + toString(b) +
                     " differ in the contracted dimension");
  int rank = std::max(a.rank(), b.rank());
  for (int i = rank; i > 2; --i) {
    int64_t ofA = i <= a.rank() ? a.dim(-i) : 1,
            ofB = i <= b.rank() ? b.dim(-i) : 1;
    reader.require(ofA == ofB || ofA == 1 || ofB == 1,
                   "batch dimensions of A " + toString(a) + " and B " +
                       toString(b) + " don't broadcast");
    problem.batch.push_back(ofA == 1 ? ofB : ofA);
  }

  problem.hasBias = reader.flag("bias", false);
  problem.hasResidual = reader.flag("residual", false);
  std::vector<std::string> names = {"none",      "relu", "gelu_erf",
                                    "gelu_tanh", "silu", "gelu_tanh_gradient"};
  std::string activation = reader.choice("activation", "none", names);
  problem.activation = Activation(
      std::find(names.begin(), names.end(), activation) - names.begin());
  std::vector<std::string> summed = {"none", "result", "a", "b"};
  problem.biasGradient =
      BiasGradient(std::find(summed.begin(), summed.end(),
                             reader.choice("biasGradient", "none", summed)) -
                   summed.begin());
  bool isGradient = problem.activation == Activation::GeluTanhGradient;
  bool givesAux = reader.flag("aux", false);
  problem.hasAux = givesAux || isGradient;
  reader.require(!givesAux || problem.activation == Activation::GeluTanh,
                 "only gelu_tanh gives what it is applied to");
  problem.roundToBf16 = reader.choice("compute", "", {"bf16"}) == "bf16";
  problem.alpha = reader.number("alpha", 1.0);

  Tensor bias, residual, aux;
  if (problem.hasBias) {
    problem.biasAt = reader.position();
    bias = reader.next("bias");
  }
  if (problem.hasResidual) {
    problem.residualAt = reader.position();
    residual = reader.next("residual");
  }
  if (isGradient) {
    problem.auxAt = reader.position();
    aux = reader.next("pre-activation");
  }
  problem.yAt = reader.position();
  Tensor y = reader.next("Y");
  if (givesAux) {
    problem.auxAt = reader.position();
    aux = reader.next("pre-activation");
  }
  if (problem.hasAux)
    reader.require(
        aux.type == y.type && aux.shape == y.shape && aux.isRowMajor(),
        "the pre-activation is " + toString(aux) + ", Y " + toString(y));
  reader.require(
      (!problem.hasAux && problem.biasGradient == BiasGradient::None) ||
          (a.type == y.type && isFloat(y.type)),
      "pre-activations and bias gradients are for one floating "
      "point type");
  if (problem.biasGradient != BiasGradient::None) {
    problem.biasGradientAt = reader.position();
    Tensor sum = reader.next("bias gradient");
    int64_t size =
        problem.biasGradient == BiasGradient::A ? problem.m : problem.n;
    reader.require(sum.type == y.type && sum.rank() == 1 &&
                       sum.dim(0) == size && sum.isRowMajor(),
                   "the bias gradient is " + toString(sum) + ", not of " +
                       std::to_string(size) + " elements of Y's type");
    reader.require(
        !problem.hasBias &&
            (problem.biasGradient == BiasGradient::Result
                 ? isGradient
                 : problem.activation == Activation::None && rank == 2),
        "this product gives no bias gradient");
  }
  std::vector<int64_t> expected = problem.batch;
  expected.push_back(problem.m);
  expected.push_back(problem.n);
  Tensor wanted{y.type, expected, {}};
  reader.require(y.shape == expected,
                 "Y is " + toString(y) + ", not " + toString(wanted));
  reader.require(typesAreSupported(a.type, b.type, y.type),
                 "types " + std::string(name(a.type)) + ", " + name(b.type) +
                     " -> " + name(y.type) + " aren't supported");
  if (problem.hasBias)
    reader.require(bias.type == y.type && bias.rank() == 1 &&
                       bias.dim(0) == problem.n && bias.isRowMajor(),
                   "bias is " + toString(bias) + ", not one row of Y " +
                       toString(y));
  if (problem.hasResidual)
    reader.require(residual.type == y.type && residual.shape == y.shape,
                   "residual is " + toString(residual) + ", Y " + toString(y));
  if (!isFloat(y.type))
    reader.require(problem.activation == Activation::None && problem.alpha == 1,
                   "activation and alpha are for floating point types");
  reader.require(!problem.roundToBf16 ||
                     (isFloat(a.type) && a.type != DType::F64),
                 "compute bf16 isn't for " + std::string(name(a.type)));
  reader.finish();

  problem.a = viewOf(a, problem.batch, transposeA);
  problem.b = viewOf(b, problem.batch, transposeB);
  problem.y = viewOf(y, problem.batch, false);
  std::vector<View *> views = {&problem.a, &problem.b, &problem.y};
  if (problem.hasResidual) {
    problem.residual = viewOf(residual, problem.batch, false);
    views.push_back(&problem.residual);
  }
  mergeBatches(problem, views);
  foldIntoRows(problem);
  return problem;
}

std::unique_ptr<LibraryKernel> prepareMatmul(SiteReader &reader) {
  MatmulProblem problem = readMatmul(reader);
  reader.require(!problem.hasAux && problem.biasGradient == BiasGradient::None,
                 "pre-activations and bias gradients are for GPUs");
  std::string reason;
  if (auto kernel = prepareOneDnnMatmul(problem, reader.context, reason))
    return kernel;
  return prepareTiledMatmul(problem, reader.context);
}

} // namespace mtp
