// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/cuda/Products.h"
#include "runtime/kernels/Matmul.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <sched.h>
#include <thread>

using namespace mtp;
using namespace mtp::cuda;

namespace {

constexpr int kCandidates = 8;
constexpr int kTimedRuns = 3;

int blasType(DType type) {
  switch (type) {
  case DType::F64:
    return blas::TypeF64;
  case DType::F32:
    return blas::TypeF32;
  case DType::F16:
    return blas::TypeF16;
  default:
    return blas::TypeBF16;
  }
}

/// A matrix of rows x columns with one stride of 1, as cuBLASLt sees it.
struct Operand {
  int type = 0;
  bool transposed = false;
  uint64_t rows = 0, columns = 0; ///< as stored, by columns
  int64_t leading = 0;
  int64_t batchStride = 0;
};

/// The transposed matrix of `view`, which has `rows` rows and `columns`
/// columns; nothing where neither stride is 1.
bool transposedOperand(const MatmulProblem::View &view, int64_t rows,
                       int64_t columns, Operand &operand) {
  operand.type = blasType(view.type);
  // A dimension of size 1 has any stride.
  bool rowsAreDense = view.column == 1 || columns == 1;
  bool columnsAreDense = view.row == 1 || rows == 1;
  if (rowsAreDense && (rows == 1 || view.row >= columns)) {
    operand.rows = static_cast<uint64_t>(columns);
    operand.columns = static_cast<uint64_t>(rows);
    operand.leading = rows == 1 ? std::max<int64_t>(columns, 1) : view.row;
    return true;
  }
  if (!columnsAreDense || (columns > 1 && view.column < rows))
    return false;
  operand.transposed = true;
  operand.rows = static_cast<uint64_t>(rows);
  operand.columns = static_cast<uint64_t>(columns);
  operand.leading = columns == 1 ? std::max<int64_t>(rows, 1) : view.column;
  return true;
}

/// Of all addresses that the calls of a product have.
int64_t alignmentOf(Address address, const MatmulProblem::View &view) {
  // The last batch dimension is a stride that cuBLASLt knows.
  for (size_t i = 0; i + 1 < view.batch.size(); ++i)
    address |= static_cast<Address>(view.batch[i] * byteSize(view.type));
  return std::min<int64_t>(static_cast<int64_t>(address & -address), 256);
}

} // namespace

class Products::Call {
public:
  explicit Call(const CublasLtApi &blas) : blas(blas) {}
  ~Call() {
    for (LayoutHandle *layout : {a, b, y})
      if (layout)
        blas.layoutDestroy(layout);
    if (product)
      blas.productDestroy(product);
  }
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  const CublasLtApi &blas;
  MatmulProblem problem;
  ProductHandle *product = nullptr;
  /// Column-major: the first operand is B', the second A'.
  LayoutHandle *a = nullptr, *b = nullptr, *y = nullptr;
  Address aAt = 0, bAt = 0, yAt = 0, aux = 0;
  Address bias = 0;  ///< or its gradient
  int64_t inner = 1; ///< batches of one cuBLASLt call, the last dimension
  ProductChoices::Choice choice;
  /// Of B', A' and the result.
  std::array<int64_t, 3> alignments{};
  std::string key; ///< everything that the choice depends on
  std::string where;
  std::vector<Touched> touched;
  int64_t yBytes = 0;
  bool isZero = false; ///< nothing is contracted
};

bool ProductChoices::find(const std::string &key, Choice &choice) const {
  std::lock_guard lock(mutex);
  auto it = choices.find(key);
  if (it != choices.end())
    choice = it->second;
  return it != choices.end();
}

void ProductChoices::add(const std::string &key, const Choice &choice) {
  std::lock_guard lock(mutex);
  choices.emplace(key, choice);
}

void ProductChoices::finish() {
  finished.store(true, std::memory_order_release);
}

void ProductChoices::await(Crew &crew) const {
  while (!finished.load(std::memory_order_acquire)) {
    crew.checkStopped();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void ProductChoices::send(Processes &processes, Crew &crew) const {
  std::string bytes;
  {
    std::lock_guard lock(mutex);
    for (const auto &[key, choice] : choices) {
      uint64_t size = key.size();
      bytes.append(reinterpret_cast<const char *>(&size), sizeof(size));
      bytes += key;
      bytes.append(reinterpret_cast<const char *>(&choice), sizeof(choice));
    }
  }
  uint64_t size = bytes.size();
  std::vector<ProcessGroup::Ticket> tickets;
  for (int rank = 1; rank < processes.size(); ++rank) {
    ProcessGroup &group = processes.messages();
    tickets.push_back(
        group.send(rank, Processes::Choices, &size, sizeof(size)));
    tickets.push_back(
        group.send(rank, Processes::Choices, bytes.data(), bytes.size()));
  }
  for (ProcessGroup::Ticket ticket : tickets)
    if (!processes.finish(ticket, 0, [&] { crew.checkStopped(); }))
      fail(exits::RankFailure, "communication",
           "rank 0 can't send how products are computed: " +
               processes.messages().failure());
}

void ProductChoices::receive(Processes &processes, Crew &crew) {
  ProcessGroup &group = processes.messages();
  auto take = [&](void *bytes, size_t size) {
    if (!processes.finish(group.receive(0, Processes::Choices, bytes, size), 0,
                          [&] { crew.checkStopped(); }))
      fail(exits::RankFailure, "communication",
           "how products are computed does not come from rank 0: " +
               group.failure());
  };
  uint64_t size = 0;
  take(&size, sizeof(size));
  std::string bytes(size, 0);
  take(bytes.data(), size);
  size_t at = 0;
  while (at < size) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof(length));
    at += sizeof(length);
    std::string key = bytes.substr(at, length);
    at += length;
    Choice choice;
    std::memcpy(&choice, bytes.data() + at, sizeof(choice));
    at += sizeof(choice);
    add(key, choice);
  }
  finish();
}

void mtp::cuda::finishStream(const DriverApi &driver, StreamHandle *stream,
                             Crew &crew) {
  for (int polls = 0;; ++polls) {
    DriverStatus status = driver.streamQuery(stream);
    if (status == driver::Success)
      return;
    if (status != driver::NotReady)
      check(driver, status, "a stream");
    crew.checkStopped();
    if (polls < 1000)
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

Products::Products(const CublasLtApi &blas, const Device &device,
                   std::shared_ptr<Crew> crew,
                   std::shared_ptr<ProductChoices> choices)
    : blas(blas), device(device), crew(std::move(crew)),
      choices(std::move(choices)) {
  workspace = device.allocate(kWorkspaceBytes, "the workspace of cuBLASLt");
  checkBlas(blas.create(&handle), "starting cuBLASLt");
}

Products::~Products() {
  calls.clear();
  blas.destroy(handle);
}

std::set<std::string> Products::implementations() const {
  if (calls.empty())
    return {};
  return {"matmul: cuBLASLt"};
}

void Products::checkBlas(BlasStatus status, const std::string &what) const {
  if (status != blas::Success)
    fail(exits::RankFailure, "device",
         what + " failed: " + blas.statusText(status));
}

namespace {

/// Checks what cuBLASLt computes as the op means it.
void checkProblem(const MatmulProblem &problem, const std::string &where) {
  auto require = [&](bool condition, const std::string &what) {
    if (!condition)
      fail(exits::BadInput, "artifact", where + ": " + what);
  };
  require(isFloat(problem.a.type),
          "cuBLASLt has no product of " + std::string(name(problem.a.type)));
  bool gelu = problem.activation == Activation::GeluTanh ||
              problem.activation == Activation::GeluTanhGradient;
  require(problem.activation == Activation::None ||
              (gelu && problem.y.type != DType::F64),
          "cuBLASLt doesn't compute this activation as the operator means it");
  require(!problem.hasResidual, "cuBLASLt takes no residual of its own shape");
  bool sums = problem.biasGradient != BiasGradient::None;
  require(problem.k > 0 || (!problem.hasBias && !gelu && !sums),
          "a product over nothing with bias or activation");
  require(problem.batch.empty() || (!problem.hasAux && !sums),
          "a pre-activation or bias gradient of several products");
  require(problem.batch.size() <= 1 ||
              problem.batches() <= std::numeric_limits<int32_t>::max(),
          "too many batches");
}

int computeType(const MatmulProblem &problem, bool tf32) {
  if (problem.y.type == DType::F64)
    return blas::ComputeF64;
  if (problem.roundToBf16 && problem.a.type == DType::F32)
    return blas::ComputeFastBF16;
  bool rounds = tf32 && problem.a.type == DType::F32;
  return rounds ? blas::ComputeFastTF32 : blas::ComputeF32;
}

/// The product is transposed: what cuBLASLt calls A is B.
int epilogueOf(const MatmulProblem &problem) {
  if (problem.biasGradient == BiasGradient::A)
    return blas::EpilogueSumB;
  if (problem.biasGradient == BiasGradient::B)
    return blas::EpilogueSumA;
  if (problem.activation == Activation::GeluTanhGradient)
    return blas::EpilogueGeluGradient |
           (problem.biasGradient == BiasGradient::Result
                ? blas::EpilogueGradientSum
                : 0);
  if (problem.activation == Activation::GeluTanh)
    return (problem.hasBias ? blas::EpilogueGeluBias : blas::EpilogueGelu) |
           (problem.hasAux ? blas::EpilogueAux : 0);
  return problem.hasBias ? blas::EpilogueBias : blas::EpilogueNone;
}

/// Whether cuBLASLt can read or write the auxiliary matrix where it is.
bool auxFits(const MatmulProblem &problem, Address aux) {
  return !problem.hasAux ||
         (problem.n % blas::AuxGranule == 0 &&
          aux % static_cast<Address>(blas::AuxAlignment) == 0);
}

MatmulProblem read(const LibrarySite &site, const std::string &where) {
  try {
    PrepareContext context;
    SiteReader reader(site, context);
    return readMatmul(reader);
  } catch (const KernelError &e) {
    fail(exits::BadInput, "artifact", where + ": " + e.what());
  }
}

} // namespace

const Products::Call *
Products::prepare(const LibrarySite &site, const std::vector<Address> &buffers,
                  bool tf32, bool chooses, const std::string &where,
                  StreamHandle *stream, const Otherwise *otherwise) {
  auto call = std::make_unique<Call>(blas);
  call->where = where;
  call->problem = read(site, where);
  const MatmulProblem &problem = call->problem;
  checkProblem(problem, where);
  auto at = [&](int position) {
    return position < 0 ? 0 : buffers[static_cast<size_t>(position)];
  };
  call->aAt = buffers[0];
  call->bAt = buffers[1];
  call->yAt = at(problem.yAt);
  call->aux = at(problem.auxAt);
  call->bias = at(problem.hasBias ? problem.biasAt : problem.biasGradientAt);
  size_t results = site.operands.size() - static_cast<size_t>(site.results);
  for (size_t i = 0; i < site.operands.size(); ++i) {
    int64_t bytes = byteSize(site.operands[i].type);
    for (int64_t extent : site.operands[i].shape)
      bytes *= extent;
    call->touched.push_back(
        {buffers[i], static_cast<uint64_t>(bytes), i >= results});
    if (static_cast<int>(i) == problem.yAt)
      call->yBytes = bytes;
  }
  call->isZero = problem.k == 0;
  if (!auxFits(problem, call->aux)) {
    if (otherwise)
      return nullptr;
    fail(exits::BadInput, "artifact",
         where +
             ": cuBLASLt needs pre-activations with rows of a multiple of " +
             std::to_string(blas::AuxGranule) +
             " elements that begin at a "
             "multiple of " +
             std::to_string(blas::AuxAlignment) + " bytes");
  }
  if (call->yBytes > 0 && !call->isZero) {
    describe(*call, tf32);
    if (otherwise)
      call->key += "or " + otherwise->key;
    if (!choices->find(call->key, call->choice)) {
      if (!chooses)
        fail(exits::Internal, "internal",
             where + ": rank 0 has no product of this shape");
      choose(*call, stream, otherwise);
      choices->add(call->key, call->choice);
    }
    if (!call->choice.isTaken)
      return nullptr;
  }
  calls.push_back(std::move(call));
  return calls.back().get();
}

/// Makes what cuBLASLt is told of a product, and the key of its choice.
void Products::describe(Call &call, bool tf32) const {
  const MatmulProblem &problem = call.problem;
  Operand a, b, y;
  if (!transposedOperand(problem.a, problem.m, problem.k, a) ||
      !transposedOperand(problem.b, problem.k, problem.n, b) ||
      !transposedOperand(problem.y, problem.m, problem.n, y) || y.transposed)
    fail(exits::BadInput, "artifact",
         call.where + ": cuBLASLt needs operands with one dense dimension and "
                      "a row-major result");
  int compute = computeType(problem, tf32), epilogue = epilogueOf(problem);
  int scale = problem.y.type == DType::F64 ? blas::TypeF64 : blas::TypeF32;
  checkBlas(blas.productCreate(&call.product, compute, scale), call.where);
  auto set = [&](int attribute, const auto &value) {
    checkBlas(blas.productSet(call.product, attribute, &value, sizeof(value)),
              call.where);
  };
  // The first operand of the transposed product is B'.
  set(blas::TransposeA,
      b.transposed ? blas::TransposedOperand : blas::PlainOperand);
  set(blas::TransposeB,
      a.transposed ? blas::TransposedOperand : blas::PlainOperand);
  set(blas::Epilogue, static_cast<uint32_t>(epilogue));
  // The heuristics look at addresses: they are those of every run.
  if (call.bias)
    set(blas::BiasPointer, call.bias);
  if (problem.hasAux) {
    set(blas::AuxPointer, call.aux);
    set(blas::AuxLeading, problem.n);
  }
  if (!problem.batch.empty())
    call.inner = problem.batch.back();
  auto makeLayout = [&](LayoutHandle *&layout, const Operand &operand,
                        const MatmulProblem::View &view) {
    checkBlas(blas.layoutCreate(&layout, operand.type, operand.rows,
                                operand.columns, operand.leading),
              call.where);
    if (call.inner == 1)
      return;
    auto count = static_cast<int32_t>(call.inner);
    int64_t stride = view.batch.back();
    checkBlas(blas.layoutSet(layout, blas::BatchCount, &count, sizeof(count)),
              call.where);
    checkBlas(
        blas.layoutSet(layout, blas::BatchStride, &stride, sizeof(stride)),
        call.where);
  };
  makeLayout(call.b, b, problem.b);
  makeLayout(call.a, a, problem.a);
  makeLayout(call.y, y, problem.y);
  auto add = [&](int64_t number) { call.key += std::to_string(number) + " "; };
  for (const Operand *operand : {&b, &a, &y})
    for (int64_t number :
         {int64_t(operand->type), int64_t(operand->transposed),
          int64_t(operand->rows), int64_t(operand->columns), operand->leading})
      add(number);
  for (const MatmulProblem::View *view : {&problem.b, &problem.a, &problem.y})
    add(problem.batch.empty() ? 0 : view->batch.back());
  call.alignments = {alignmentOf(call.bAt, problem.b),
                     alignmentOf(call.aAt, problem.a),
                     alignmentOf(call.yAt, problem.y)};
  for (int64_t alignment : call.alignments)
    add(alignment);
  add(alignmentOf(call.bias, {}));
  add(alignmentOf(call.aux, {}));
  for (int64_t number : {call.inner, int64_t(compute), int64_t(epilogue)})
    add(number);
}

/// What the heuristics name for a product and can run.
std::vector<BlasCandidate> Products::candidatesOf(const Call &call,
                                                  BlasStatus &status) const {
  PreferenceHandle *preference = nullptr;
  checkBlas(blas.preferenceCreate(&preference), call.where);
  auto set = [&](int attribute, const auto &value) {
    checkBlas(blas.preferenceSet(preference, attribute, &value, sizeof(value)),
              call.where);
  };
  set(blas::MaxWorkspace, static_cast<uint64_t>(kWorkspaceBytes));
  set(blas::ReductionMask,
      static_cast<uint32_t>(blas::DeterministicReductions));
  auto alignment = [&](int operand) {
    return static_cast<uint32_t>(call.alignments[operand]);
  };
  set(blas::AlignmentA, alignment(0));
  set(blas::AlignmentB, alignment(1));
  set(blas::AlignmentC, alignment(2));
  set(blas::AlignmentD, alignment(2));
  std::vector<BlasCandidate> candidates(kCandidates);
  int found = 0;
  status = blas.candidates(handle, call.product, call.b, call.a, call.y, call.y,
                           preference, kCandidates, candidates.data(), &found);
  blas.preferenceDestroy(preference);
  std::erase_if(candidates, [&](const BlasCandidate &candidate) {
    return status != blas::Success || &candidate - candidates.data() >= found ||
           candidate.status != blas::Success ||
           candidate.workspaceBytes > static_cast<size_t>(kWorkspaceBytes);
  });
  return candidates;
}

/// Asks the heuristics and times what they name, into memory of its own: the
/// result may be state that is there already.
void Products::choose(Call &call, StreamHandle *stream,
                      const Otherwise *otherwise) {
  BlasStatus status = blas::Success;
  std::vector<BlasCandidate> candidates = candidatesOf(call, status);
  call.choice.isTaken = !candidates.empty();
  if (candidates.empty()) {
    if (otherwise)
      return;
    fail(exits::NotPresent, "device",
         call.where + ": cuBLASLt on " + device.name() +
             " has no way to compute this product: " +
             blas.statusText(status == blas::Success ? blas::NotSupported
                                                     : status));
  }
  size_t best = 0;
  float least = std::numeric_limits<float>::infinity();
  if (candidates.size() > 1 || otherwise) {
    DeviceMemory result =
        device.allocate(call.yBytes, "timing matrix products");
    for (size_t i = 0; i < candidates.size(); ++i) {
      float took = time(call, candidates[i], result.get(), stream);
      if (took < least) {
        least = took;
        best = i;
      }
    }
  }
  call.choice.algorithm = candidates[best].algorithm;
  call.choice.workspaceBytes = candidates[best].workspaceBytes;
  if (otherwise) {
    auto enqueue = [&] {
      otherwise->enqueue();
      return true;
    };
    call.choice.isTaken = least < time(enqueue, stream);
  }
}

namespace {
/// The factors 1 and 0 in the type that the product scales in.
struct Factors {
  explicit Factors(const MatmulProblem &problem)
      : isDouble(problem.y.type == DType::F64), wide(problem.alpha),
        narrow(static_cast<float>(problem.alpha)) {}
  const void *alpha() const {
    return isDouble ? static_cast<const void *>(&wide) : &narrow;
  }
  const void *beta() const {
    return isDouble ? static_cast<const void *>(&wideZero) : &narrowZero;
  }
  bool isDouble;
  double wide, wideZero = 0;
  float narrow, narrowZero = 0;
};
} // namespace

float Products::time(const Call &call, const BlasCandidate &candidate,
                     Address result, StreamHandle *stream) const {
  const DriverApi &driver = device.api();
  Factors factors(call.problem);
  auto enqueue = [&] {
    if (driver.touches) {
      std::vector<Touched> ranges = call.touched;
      for (Touched &range : ranges)
        if (range.begin == call.yAt)
          range.begin = result;
      driver.touches(ranges.data(), ranges.size());
    }
    return blas.multiply(handle, call.product, factors.alpha(),
                         pointerTo(call.bAt), call.b, pointerTo(call.aAt),
                         call.a, factors.beta(), pointerTo(result), call.y,
                         pointerTo(result), call.y, &candidate.algorithm,
                         pointerTo(workspace.get()), candidate.workspaceBytes,
                         stream) == blas::Success;
  };
  return time(enqueue, stream);
}

/// Milliseconds of some runs; infinite if `enqueue` fails.
float Products::time(const std::function<bool()> &enqueue,
                     StreamHandle *stream) const {
  const DriverApi &driver = device.api();
  Event begin = device.makeEvent(true), end = device.makeEvent(true);
  for (int i = 0; i <= kTimedRuns; ++i) {
    // The first run loads the kernel and isn't timed.
    if (i == 1)
      check(driver, driver.eventRecord(begin.get(), stream), "timing");
    if (!enqueue())
      return std::numeric_limits<float>::infinity();
  }
  check(driver, driver.eventRecord(end.get(), stream), "timing");
  finishStream(driver, stream, *crew);
  float milliseconds = 0;
  check(driver, driver.eventElapsed(&milliseconds, begin.get(), end.get()),
        "timing");
  return milliseconds;
}

void Products::enqueue(const Call &call, StreamHandle *stream) const {
  const DriverApi &driver = device.api();
  if (call.yBytes == 0)
    return;
  if (call.isZero)
    return check(
        driver,
        driver.fill(call.yAt, 0, static_cast<size_t>(call.yBytes), stream),
        "clearing a product");
  const MatmulProblem &problem = call.problem;
  Factors factors(problem);
  auto at = [&](Address base, const MatmulProblem::View &view, int64_t batch) {
    return pointerTo(base + static_cast<Address>(problem.offset(view, batch) *
                                                 byteSize(view.type)));
  };
  for (int64_t batch = 0; batch < problem.batches(); batch += call.inner) {
    if (driver.touches)
      driver.touches(call.touched.data(), call.touched.size());
    char *y = at(call.yAt, problem.y, batch);
    checkBlas(blas.multiply(handle, call.product, factors.alpha(),
                            at(call.bAt, problem.b, batch), call.b,
                            at(call.aAt, problem.a, batch), call.a,
                            factors.beta(), y, call.y, y, call.y,
                            &call.choice.algorithm, pointerTo(workspace.get()),
                            call.choice.workspaceBytes, stream),
              call.where);
  }
}
