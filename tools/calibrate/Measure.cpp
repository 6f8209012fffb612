// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/calibrate/Measure.h"

#include "runtime/comm/Communicator.h"
#include "runtime/kernels/LibraryKernel.h"
#include "runtime/kernels/Parallel.h"
#include "runtime/support/AlignedBuffer.h"
#include "runtime/support/System.h"
#include "tools/common/UserCalibration.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>

using namespace mtp;
using plan::CollectiveKind;

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double lowerDecile(std::vector<double> times) {
  if (times.empty())
    return 0;
  auto at = times.begin() + std::ptrdiff_t(times.size() / 10);
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

/// Threads that meet before every repetition.
class Team {
public:
  explicit Team(int ranks)
      : crew(std::make_shared<Crew>(ranks, 60, ranks <= usableCores())) {}

  /// Repeats `body(rank, times)` on every rank for about `seconds`, at least 5
  /// times; seconds of one execution, of the slowest rank. `body` executes
  /// `times` times. 0 and `error` on failure.
  double run(double seconds, const std::function<void(int, int)> &body,
             Error &error) {
    int ranks = crew->ranks();
    std::vector<std::vector<double>> times(static_cast<size_t>(ranks));
    std::atomic<int> repetitions{0}, inner{1};
    auto rank = [&](int self) {
      uint32_t turn = 0;
      try {
        setLibraryThreads(1);
        body(self, 1); // warm up
        crew->barrier(self, turn++);
        auto begin = Clock::now();
        body(self, 2);
        if (self == 0) {
          // Each repetition lasts about 2 ms, or one execution.
          double once = std::max(since(begin) / 2, 1e-8);
          inner = int(std::clamp(2e-3 / once, 1.0, 1e5));
          repetitions = int(std::clamp(seconds / (once * inner), 5.0, 1000.0));
        }
        crew->barrier(self, turn++);
        for (int i = 0, count = repetitions, n = inner; i < count; ++i) {
          crew->barrier(self, turn++);
          begin = Clock::now();
          body(self, n);
          times[size_t(self)].push_back(since(begin) / n);
          crew->checkStopped();
        }
      } catch (const RankStopped &) {
      } catch (const std::exception &failure) {
        crew->report({exits::Internal, "internal", failure.what(), {}});
      }
    };
    std::vector<std::thread> threads;
    for (int self = 0; self < ranks; ++self)
      threads.emplace_back(rank, self);
    for (std::thread &thread : threads)
      thread.join();
    error = crew->firstError();
    if (error)
      return 0;
    if (int signal = stopRequested()) {
      error = {128 + signal, "signal", "ended by a signal", {}};
      return 0;
    }
    std::vector<double> slowest = times[0];
    for (const auto &other : times)
      for (size_t i = 0; i < std::min(slowest.size(), other.size()); ++i)
        slowest[i] = std::max(slowest[i], other[i]);
    return lowerDecile(slowest);
  }

  std::shared_ptr<Crew> crew;
};

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

CollectiveSite::Kind runtimeKind(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllReduce:
    return CollectiveSite::Kind::AllReduce;
  case CollectiveKind::AllGather:
    return CollectiveSite::Kind::AllGather;
  case CollectiveKind::ReduceScatter:
    return CollectiveSite::Kind::ReduceScatter;
  case CollectiveKind::AllToAll:
    return CollectiveSite::Kind::AllToAll;
  case CollectiveKind::Permute:
    return CollectiveSite::Kind::Permute;
  }
  return CollectiveSite::Kind::AllReduce;
}

/// A collective of f32 on axis 0 whose full tensor has about `bytes`: rows of
/// 256 elements, cut in dimension 0; all_to_all moves the cut to dimension 1.
/// Every byte 0x3f: 0.75 as f32 and bf16. A page that was never written would
/// be the system's one page of zeros, which stays in cache however large the
/// buffer.
AlignedBuffer written(int64_t bytes) {
  AlignedBuffer buffer(static_cast<size_t>(bytes));
  std::memset(buffer.data(), 0x3f, buffer.size());
  return buffer;
}

CollectiveSite siteOf(CollectiveKind kind, int64_t ranks, int64_t bytes) {
  CollectiveSite site;
  site.kind = runtimeKind(kind);
  site.op = name(site.kind);
  site.axes = {0};
  site.axisName = "tp";
  site.node = "calibration";
  int64_t elements = std::max<int64_t>(bytes / 4 / (ranks * ranks), 1);
  std::vector<int64_t> whole = {ranks, ranks * elements},
                       cut = {1, ranks * elements};
  site.dim = 0;
  site.extent = ranks;
  site.sharding.axes = {0};
  switch (kind) {
  case CollectiveKind::AllReduce:
    site.inShape = site.outShape = whole;
    break;
  case CollectiveKind::AllGather:
    site.inShape = cut;
    site.outShape = whole;
    break;
  case CollectiveKind::ReduceScatter:
    site.inShape = whole;
    site.outShape = cut;
    break;
  case CollectiveKind::AllToAll:
    site.inShape = cut;
    site.outShape = {ranks, elements};
    site.splitDim = 1;
    site.splitExtent = ranks * elements;
    site.splitSharding.axes = {0};
    break;
  case CollectiveKind::Permute:
    site.inShape = site.outShape = cut;
    for (int64_t i = 0; i < ranks; ++i)
      site.sourceOf.push_back((i + 1) % ranks);
    break;
  }
  return site;
}

size_t bytesOf(const std::vector<int64_t> &shape) {
  size_t bytes = 4;
  for (int64_t extent : shape)
    bytes *= size_t(extent);
  return bytes;
}

//===----------------------------------------------------------------------===//
// Products and memory
//===----------------------------------------------------------------------===//

struct Product {
  DType type;
  bool bf16;
  int64_t m, n, k;
};

/// Bytes of weights that a core goes through before it comes to one again.
constexpr int64_t kWeightBytes = 32 << 20;

/// Each core multiplies matrices of its own. The right one never changes, as
/// the weights of a model, and is not in the cache, as after a step: many lie
/// side by side.
double timeProduct(const Product &product, double seconds, Error &error) {
  int cores = usableCores();
  LibrarySite site;
  site.kind = "matmul";
  site.attributes = nlohmann::json::object();
  if (product.bf16)
    site.attributes["compute"] = "bf16";
  site.operands = {{product.type, {product.m, product.k}, {}},
                   {product.type, {product.k, product.n}, {}},
                   {product.type, {product.m, product.n}, {}}};
  int64_t weight = product.k * product.n * byteSize(product.type);
  int64_t weights = std::clamp<int64_t>(kWeightBytes / weight, 1, 64);
  struct Job {
    AlignedBuffer left, right, result;
    std::vector<std::unique_ptr<LibraryKernel>> kernels; ///< one a weight
  };
  std::vector<Job> jobs(static_cast<size_t>(cores));
  for (Job &job : jobs) {
    job.left = written(product.m * product.k * 8);
    job.right = written(weight * weights);
    job.result = written(product.m * product.n * 8);
    for (int64_t i = 0; i < weights; ++i) {
      PrepareContext context;
      context.constant = {nullptr, job.right.data() + i * weight};
      std::string reason;
      job.kernels.push_back(prepareLibraryKernel(site, context, reason));
      if (!job.kernels.back()) {
        error = {exits::Internal, "internal", "matmul: " + reason, {}};
        return 0;
      }
    }
  }
  Team team(cores);
  std::vector<size_t> next(static_cast<size_t>(cores), 0);
  return team.run(
      seconds,
      [&](int self, int times) {
        MtpRank rank = {};
        std::string reason;
        Job &job = jobs[size_t(self)];
        for (int i = 0; i < times; ++i) {
          size_t which = next[size_t(self)]++ % size_t(weights);
          char *buffers[] = {job.left.data(),
                             job.right.data() + int64_t(which) * weight,
                             job.result.data()};
          if (!job.kernels[which]->run(&rank, buffers, reason))
            throw std::runtime_error("matmul: " + reason);
        }
      },
      error);
}

double timeMemory(double seconds, int64_t bytes, Error &error) {
  int cores = usableCores();
  std::vector<AlignedBuffer> from, to;
  for (int i = 0; i < cores; ++i) {
    from.push_back(written(bytes));
    to.push_back(written(bytes));
  }
  Team team(cores);
  return team.run(
      seconds,
      [&](int self, int times) {
        for (int i = 0; i < times; ++i)
          std::memcpy(to[size_t(self)].data(), from[size_t(self)].data(),
                      size_t(bytes));
      },
      error);
}

const CollectiveKind kinds[] = {
    CollectiveKind::AllReduce, CollectiveKind::AllGather,
    CollectiveKind::ReduceScatter, CollectiveKind::AllToAll,
    CollectiveKind::Permute};

/// Bytes that each core copies to measure memory: more than its own caches.
constexpr int64_t kCopied = 8 << 20;

class Measurement {
public:
  Measurement(const MeasureOptions &options, plan::Calibration &result,
              Error &error)
      : options(options), result(result), error(error) {}

  bool run() {
    auto ranks = measuredRanks();
    auto sizes = measuredBytes(options.largestBytes);
    steps =
        shapes().size() + 4 + ranks.size() * std::size(kinds) * sizes.size();
    result = {};
    result.fingerprint = machineFingerprint();
    result.machine = machineDescription();
    result.cores = usableCores();
    char day[32];
    time_t now = time(nullptr);
    tm utc;
    strftime(day, sizeof day, "%Y-%m-%d", gmtime_r(&now, &utc));
    result.measured = day;
    return products() && memory() && collectives(ranks, sizes);
  }

private:
  /// [tokens, in] x [in, out] of small and large transformers and their shards.
  static std::vector<Product> shapes() {
    std::vector<Product> all;
    for (int64_t m : {16, 128, 512})
      for (auto [k, n] : {std::pair<int64_t, int64_t>{64, 128},
                          {128, 64},
                          {768, 768},
                          {768, 2304},
                          {768, 3072},
                          {3072, 768},
                          {1536, 768},
                          {768, 384}})
        all.push_back({DType::F32, false, m, n, k});
    return all;
  }

  void show(const std::string &what) {
    if (options.progress)
      options.progress(what, double(done) / double(steps));
    ++done;
  }

  bool products() {
    std::vector<plan::ProductTime> times;
    for (const Product &p : shapes()) {
      show("product " + std::to_string(p.m) + " x " + std::to_string(p.k) +
           " x " + std::to_string(p.n));
      double seconds = timeProduct(p, options.secondsPerPoint, error);
      if (error)
        return false;
      times.push_back({p.m, p.n, p.k, seconds});
    }
    result.f32 = plan::fitProducts(times, result.products);
    // The other types are taken to depend on the shape alike.
    auto rate = [&](DType type, bool bf16, const char *what) {
      const int64_t size = 512;
      show(what);
      double seconds = timeProduct({type, bf16, size, size, size},
                                   options.secondsPerPoint, error);
      double work = 2 * double(size * size + result.products.area) *
                    double(size + result.products.depth);
      return error ? 0 : work / seconds;
    };
    result.f64 = rate(DType::F64, false, "product in f64");
    if (!error)
      result.bf16 = rate(DType::F32, true, "product in bf16");
    if (error)
      return false;
    show("smallest kernel");
    result.kernelUs =
        1e6 * timeProduct({DType::F32, false, 1, 1, 1}, 0.02, error);
    return !error;
  }

  bool memory() {
    show("memory");
    double seconds = timeMemory(2 * options.secondsPerPoint, kCopied, error);
    if (!error)
      result.memoryBytesPerSecond = 2 * double(kCopied) / seconds;
    return !error;
  }

  bool collectives(const std::vector<int64_t> &ranks,
                   const std::vector<int64_t> &sizes) {
    for (int64_t n : ranks)
      for (CollectiveKind kind : kinds) {
        plan::MeasuredCollective measured{kind, n, {}};
        for (int64_t bytes : sizes) {
          show(std::string(plan::name(kind)) + " over " + std::to_string(n) +
               " ranks, " + std::to_string(bytes >> 10) + " KiB");
          double seconds;
          if (!measureCollective(kind, n, bytes, options.secondsPerPoint,
                                 seconds, error))
            return false;
          measured.points.push_back(
              {bytes, std::max<plan::Time>(1, plan::Time(seconds * 1e12))});
        }
        result.collectives.push_back(measured);
      }
    plan::fitLink(result);
    return true;
  }

  const MeasureOptions &options;
  plan::Calibration &result;
  Error &error;
  size_t steps = 1, done = 0;
};

} // namespace

std::vector<int64_t> mtp::measuredRanks() {
  std::vector<int64_t> ranks;
  int64_t cores = usableCores();
  for (int64_t n = 2; n <= std::max<int64_t>(cores, 4) && n <= 64; n *= 2)
    ranks.push_back(n);
  if (cores > 2 && cores <= 64 &&
      std::find(ranks.begin(), ranks.end(), cores) == ranks.end())
    ranks.push_back(cores);
  return ranks;
}

std::vector<int64_t> mtp::measuredBytes(int64_t largest) {
  std::vector<int64_t> sizes;
  // Up to 16 KiB a rank's input is copied when a collective starts.
  for (int64_t bytes = 1024; bytes <= largest; bytes *= 2)
    sizes.push_back(bytes);
  return sizes;
}

bool mtp::measureCollective(CollectiveKind kind, int64_t ranks, int64_t bytes,
                            double seconds, double &time, Error &error) {
  Mesh mesh{{{"tp", ranks}}};
  std::vector<CollectiveSite> sites = {siteOf(kind, ranks, bytes)};
  Team team(static_cast<int>(ranks));
  auto communicators = makeThreadCommunicators(team.crew, mesh, sites);
  struct Buffers {
    AlignedBuffer in, out;
  };
  std::vector<Buffers> buffers;
  for (int64_t i = 0; i < ranks; ++i)
    buffers.push_back({written(bytesOf(sites[0].inShape)),
                       written(bytesOf(sites[0].outShape))});
  time = team.run(
      seconds,
      [&](int self, int times) {
        Buffers &mine = buffers[size_t(self)];
        Communicator &communicator = *communicators[size_t(self)];
        for (int i = 0; i < times; ++i) {
          communicator.start(0, mine.in.data(), mine.out.data());
          communicator.done(0);
        }
      },
      error);
  return !error;
}

bool mtp::measureMachine(const MeasureOptions &options,
                         plan::Calibration &result, Error &error) {
  return Measurement(options, result, error).run();
}
