// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CommunicatorSuite.cpp - what every communicator must do ------------===//
//
// The suite runs on each communicator that the executable names. What is
// expected is computed from whole tensors and blockOf alone.
//
//===----------------------------------------------------------------------===//
#include "test/unit/runtime/CommunicatorSuite.h"
#include "runtime/loader/Convert.h"
#include "runtime/support/AlignedBuffer.h"
#include "runtime/support/Checked.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <thread>

using namespace mtp;
using Kind = CollectiveSite::Kind;
using Reduction = CollectiveSite::Reduction;

namespace {

using mtp::test::Implementation;

class CommunicatorTest : public testing::TestWithParam<Implementation> {
protected:
  static bool few() { return GetParam().few; }
  /// Runs `site` on a tensor of `shape` whose elements are their own numbers:
  /// each one that a rank has by `after` must arrive there.
  void expectMoved(const Mesh &mesh, const CollectiveSite &site,
                   const std::vector<int64_t> &shape,
                   const std::vector<DimSharding> &before,
                   const std::vector<DimSharding> &after);
  /// Runs `body` on every rank; the first failure.
  Error run(const Mesh &mesh, const std::vector<CollectiveSite> &sites,
            const std::function<void(Communicator &)> &body,
            double deadline = 60) {
    auto crew = std::make_shared<Crew>(static_cast<int>(mesh.ranks()), deadline,
                                       GetParam().spin);
    auto ranks = GetParam().make(crew, mesh, sites);
    std::vector<std::thread> threads;
    for (auto &rank : ranks)
      threads.emplace_back([&, crew] {
        try {
          body(*rank);
        } catch (const RankStopped &) {
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    return GetParam().meet ? GetParam().meet(crew->firstError())
                           : crew->firstError();
  }
  /// Ends the test where a mesh of so many ranks can't be had.
  static bool lacks(int64_t ranks) { return ranks > GetParam().mostRanks; }
};

#define NEEDS_RANKS(count)                                                     \
  if (lacks(count))                                                            \
  GTEST_SKIP() << "needs " << (count) << " ranks"

/// A dense tensor whose elements are floats, stored in any type.
struct Tensor {
  DType type;
  std::vector<int64_t> shape;
  std::vector<float> values;
  explicit Tensor(DType type, std::vector<int64_t> s, float fill = NAN)
      : type(type), shape(std::move(s)), values(elementCount(shape), fill) {}
  AlignedBuffer pack() const {
    AlignedBuffer bytes(std::max<size_t>(values.size() * byteSize(type), 64));
    convertElements(DType::F32, reinterpret_cast<const char *>(values.data()),
                    type, bytes.data(), static_cast<int64_t>(values.size()));
    return bytes;
  }
  void unpack(const AlignedBuffer &bytes) {
    convertElements(type, bytes.data(), DType::F32,
                    reinterpret_cast<char *>(values.data()),
                    static_cast<int64_t>(values.size()));
  }
};

/// Calls visit(local index, global index) for the valid part of a block.
void forEachValid(const std::vector<int64_t> &shape,
                  const std::vector<DimSharding> &dims, const Mesh &mesh,
                  int64_t rank,
                  const std::function<void(int64_t, int64_t)> &visit) {
  std::vector<Block> blocks;
  int64_t count = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    blocks.push_back(blockOf(shape[i], dims[i], mesh, mesh.coordinates(rank)));
    count *= blocks.back().valid;
  }
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n, local = 0, global = 0, localStep = 1, globalStep = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      int64_t at = rest % blocks[i].valid;
      rest /= blocks[i].valid;
      local += at * localStep;
      global += (blocks[i].offset + at) * globalStep;
      localStep *= blocks[i].capacity;
      globalStep *= shape[i];
    }
    visit(local, global);
  }
}

std::vector<int64_t> localShape(const std::vector<int64_t> &shape,
                                const std::vector<DimSharding> &dims,
                                const Mesh &mesh) {
  TensorLayout layout;
  layout.shape = shape;
  layout.dims = dims;
  return layout.localShape(mesh);
}

/// Small integers of both signs that every type holds and sums exactly.
float valueAt(int64_t rank, int64_t i) {
  return static_cast<float>((rank * 7 + i * 5) % 9 - 4);
}

CollectiveSite siteOf(Kind kind, std::vector<int> axes, DType type) {
  CollectiveSite site;
  site.kind = kind;
  site.op = name(kind);
  site.axes = std::move(axes);
  site.axisName = "tp";
  site.type = type;
  site.node = "node";
  return site;
}

/// The ranks of the group of `rank`, in order.
std::vector<int64_t> groupOf(const Mesh &mesh, const std::vector<int> &axes,
                             int64_t rank) {
  std::vector<int64_t> members;
  auto mine = mesh.coordinates(rank);
  int64_t size = 1;
  for (int axis : axes)
    size *= mesh.axes[axis].size;
  for (int64_t position = 0; position < size; ++position)
    for (int64_t r = 0; r < mesh.ranks(); ++r) {
      auto theirs = mesh.coordinates(r);
      int64_t place = 0;
      for (int axis : axes)
        place = place * mesh.axes[axis].size + theirs[axis];
      bool same = place == position;
      for (size_t axis = 0; axis < mesh.axes.size(); ++axis)
        if (std::find(axes.begin(), axes.end(), static_cast<int>(axis)) ==
            axes.end())
          same &= theirs[axis] == mine[axis];
      if (same)
        members.push_back(r);
    }
  return members;
}

struct MeshCase {
  Mesh mesh;
  std::vector<int> outer, axes; ///< cut before the collective's; of the group
};

/// All of `values`, or with `few` every other one, the last included.
template <typename T> std::vector<T> some(bool few, std::vector<T> values) {
  std::vector<T> result;
  for (size_t i = 0; i < values.size(); ++i)
    if (!few || (values.size() - 1 - i) % 2 == 0)
      result.push_back(values[i]);
  return result;
}

/// A rank spins only where it has a core: those cases stay small.
std::vector<MeshCase> meshCases(const Implementation &implementation) {
  bool few = implementation.few;
  std::vector<MeshCase> cases;
  for (int64_t n = few ? 2 : 1; n <= (implementation.spin ? 2 : 8);
       n += few ? 3 : 1)
    cases.push_back({Mesh{{{"tp", n}}}, {}, {0}});
  std::erase_if(cases, [&](const MeshCase &c) {
    return c.mesh.ranks() > implementation.mostRanks;
  });
  if (implementation.spin)
    return cases;
  if (implementation.mostRanks < 8) {
    if (implementation.mostRanks < 4)
      return cases;
    Mesh square{{{"dp", 2}, {"tp", 2}}};
    cases.push_back({square, {0}, {1}});
    cases.push_back({square, {1}, {0}});
    cases.push_back({square, {}, {1, 0}});
    return cases;
  }
  Mesh two{{{"dp", 2}, {"tp", 3}}};
  cases.push_back({two, {}, {1}});
  cases.push_back({two, {0}, {1}});
  cases.push_back({two, {1}, {0}});
  cases.push_back({two, {}, {0, 1}});
  cases.push_back({two, {}, {1, 0}});
  cases.push_back({Mesh{{{"a", 2}, {"b", 2}, {"c", 2}}}, {1}, {2, 0}});
  return cases;
}

std::vector<int> joined(std::vector<int> a, const std::vector<int> &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_P(CommunicatorTest, AllReduceSumsInRankOrderInEveryType) {
  for (const MeshCase &c : meshCases(GetParam()))
    for (DType type :
         some<DType>(few(), {DType::F32, DType::F64, DType::BF16, DType::F16,
                             DType::I32, DType::I64, DType::I8}))
      for (int64_t elements : some<int64_t>(few(), {0, 1, 5, 1023, 20011}))
        for (bool inPlace : {false, true}) {
          CollectiveSite site = siteOf(Kind::AllReduce, c.axes, type);
          site.inShape = site.outShape = {elements};
          Error error = run(c.mesh, {site}, [&](Communicator &comm) {
            Tensor in(type, {elements}), out(type, {elements});
            for (int64_t i = 0; i < elements; ++i)
              in.values[i] = valueAt(comm.rank(), i);
            AlignedBuffer source = in.pack(), target = out.pack();
            char *result = inPlace ? source.data() : target.data();
            comm.start(0, source.data(), result);
            comm.done(0);
            out.unpack(inPlace ? source : target);
            auto members = groupOf(c.mesh, c.axes, comm.rank());
            for (int64_t i = 0; i < elements; ++i) {
              float sum = 0;
              for (int64_t member : members)
                sum += valueAt(member, i);
              ASSERT_EQ(out.values[i], sum) << name(type) << " " << i;
            }
          });
          ASSERT_FALSE(error) << error.message;
        }
}

TEST_P(CommunicatorTest, SumsHaveTheSameBitsOnAllRanks) {
  const int64_t ranks = std::min(5, GetParam().mostRanks);
  Mesh mesh{{{"tp", ranks}}};
  for (int64_t elements : {100, 30000}) {
    CollectiveSite site = siteOf(Kind::AllReduce, {0}, DType::F32);
    site.inShape = site.outShape = {elements};
    auto value = [](int64_t rank, int64_t i) {
      return std::sin(static_cast<float>(rank * 31 + i)) *
             std::pow(10.0f, static_cast<float>(rank * 2 - 4));
    };
    Error error = run(mesh, {site}, [&](Communicator &comm) {
      std::vector<float> in(elements), out(elements);
      for (int64_t i = 0; i < elements; ++i)
        in[i] = value(comm.rank(), i);
      comm.start(0, reinterpret_cast<char *>(in.data()),
                 reinterpret_cast<char *>(out.data()));
      comm.done(0);
      for (int64_t i = 0; i < elements; ++i) {
        float sum = value(0, i);
        for (int64_t r = 1; r < ranks; ++r)
          sum += value(r, i);
        ASSERT_EQ(out[i], sum);
      }
    });
    ASSERT_FALSE(error) << error.message;
  }
}

TEST_P(CommunicatorTest, MaximumAndMinimumPassNaNOn) {
  NEEDS_RANKS(3);
  Mesh mesh{{{"tp", 3}}};
  for (DType type : {DType::F32, DType::F64, DType::BF16, DType::F16})
    for (Reduction reduction : {Reduction::Max, Reduction::Min})
      for (int nanRank = 0; nanRank < 3; ++nanRank) {
        CollectiveSite site = siteOf(Kind::AllReduce, {0}, type);
        site.reduction = reduction;
        site.inShape = site.outShape = {3};
        Error error = run(mesh, {site}, [&](Communicator &comm) {
          Tensor in(type, {3}), out(type, {3});
          float r = static_cast<float>(comm.rank());
          in.values = {comm.rank() == nanRank ? NAN : r, -r, r - 1};
          AlignedBuffer source = in.pack(), target = out.pack();
          comm.start(0, source.data(), target.data());
          comm.done(0);
          out.unpack(target);
          bool max = reduction == Reduction::Max;
          EXPECT_TRUE(std::isnan(out.values[0]));
          EXPECT_EQ(out.values[1], max ? 0 : -2);
          EXPECT_EQ(out.values[2], max ? 1 : -1);
        });
        ASSERT_FALSE(error) << error.message;
      }
}

void CommunicatorTest::expectMoved(const Mesh &mesh, const CollectiveSite &site,
                                   const std::vector<int64_t> &shape,
                                   const std::vector<DimSharding> &before,
                                   const std::vector<DimSharding> &after) {
  Error error = run(mesh, {site}, [&](Communicator &comm) {
    float fill = isFloat(site.type) ? NAN : -1; // of padding, too
    Tensor in(site.type, site.inShape, fill),
        out(site.type, site.outShape, fill);
    forEachValid(shape, before, mesh, comm.rank(),
                 [&](int64_t local, int64_t global) {
                   in.values[local] = static_cast<float>(global);
                 });
    AlignedBuffer source = in.pack(), target = out.pack();
    comm.start(0, source.data(), target.data());
    comm.done(0);
    out.unpack(target);
    forEachValid(shape, after, mesh, comm.rank(),
                 [&](int64_t local, int64_t global) {
                   ASSERT_EQ(out.values[local], static_cast<float>(global));
                 });
  });
  ASSERT_FALSE(error) << error.message;
}

TEST_P(CommunicatorTest, AllGatherStripsPadding) {
  for (const MeshCase &c : meshCases(GetParam()))
    for (int64_t extent : some<int64_t>(few(), {1, 3, 4, 6, 11, 13}))
      for (int64_t unit : {1, 2})
        for (int64_t inner : some<int64_t>(few(), {1, 3, 700})) {
          std::vector<int64_t> shape{2, extent, inner};
          std::vector<DimSharding> before(3), after(3);
          before[1] = {joined(c.outer, c.axes), unit};
          after[1] = {c.outer, unit};
          CollectiveSite site = siteOf(Kind::AllGather, c.axes, DType::F32);
          site.inShape = localShape(shape, before, c.mesh);
          site.outShape = localShape(shape, after, c.mesh);
          site.dim = 1;
          site.extent = extent;
          site.sharding = before[1];
          expectMoved(c.mesh, site, shape, before, after);
          if (HasFatalFailure())
            return;
        }
}

TEST_P(CommunicatorTest, ReduceScatterInsertsPadding) {
  for (const MeshCase &c : meshCases(GetParam()))
    for (int64_t extent : some<int64_t>(few(), {1, 4, 6, 11}))
      for (int64_t unit : {1, 2})
        for (int64_t inner : some<int64_t>(few(), {3, 900})) {
          std::vector<int64_t> shape{2, extent, inner};
          std::vector<DimSharding> before(3), after(3);
          before[1] = {c.outer, unit};
          after[1] = {joined(c.outer, c.axes), unit};
          CollectiveSite site = siteOf(Kind::ReduceScatter, c.axes, DType::F32);
          site.inShape = localShape(shape, before, c.mesh);
          site.outShape = localShape(shape, after, c.mesh);
          site.dim = 1;
          site.extent = extent;
          site.sharding = after[1];
          Error error = run(c.mesh, {site}, [&](Communicator &comm) {
            Tensor in(DType::F32, site.inShape), out(DType::F32, site.outShape);
            forEachValid(shape, before, c.mesh, comm.rank(),
                         [&](int64_t local, int64_t global) {
                           in.values[local] = valueAt(comm.rank(), global);
                         });
            AlignedBuffer source = in.pack(), target = out.pack();
            comm.start(0, source.data(), target.data());
            comm.done(0);
            out.unpack(target);
            auto members = groupOf(c.mesh, c.axes, comm.rank());
            forEachValid(shape, after, c.mesh, comm.rank(),
                         [&](int64_t local, int64_t global) {
                           float sum = 0;
                           for (int64_t member : members)
                             sum += valueAt(member, global);
                           ASSERT_EQ(out.values[local], sum);
                         });
          });
          ASSERT_FALSE(error) << error.message;
        }
}

TEST_P(CommunicatorTest, AllToAllMovesTheCut) {
  for (const MeshCase &c : meshCases(GetParam()))
    for (auto [dim, splitDim] :
         {std::pair(0, 1), std::pair(1, 0), std::pair(2, 0)})
      for (int64_t extent : some<int64_t>(few(), {3, 5, 8}))
        for (int64_t other : some<int64_t>(few(), {2, 7, 40})) {
          std::vector<int64_t> shape(3, 4);
          shape[dim] = extent;
          shape[splitDim] = other;
          std::vector<DimSharding> before(3), after(3);
          before[dim] = {joined(c.outer, c.axes), 1};
          after[dim] = {c.outer, 1};
          after[splitDim] = {c.axes, 1};
          CollectiveSite site = siteOf(Kind::AllToAll, c.axes, DType::I64);
          site.inShape = localShape(shape, before, c.mesh);
          site.outShape = localShape(shape, after, c.mesh);
          site.dim = dim;
          site.splitDim = splitDim;
          site.extent = extent;
          site.splitExtent = other;
          site.sharding = before[dim];
          site.splitSharding = after[splitDim];
          expectMoved(c.mesh, site, shape, before, after);
          if (HasFatalFailure())
            return;
        }
}

TEST_P(CommunicatorTest, PermuteReceivesFromItsSource) {
  NEEDS_RANKS(4);
  for (int64_t elements : {10, 9000}) {
    Mesh mesh{{{"tp", 4}}};
    CollectiveSite site = siteOf(Kind::Permute, {0}, DType::F32);
    site.inShape = site.outShape = {elements};
    site.sourceOf = {2, 0, 3, 1};
    Error error = run(mesh, {site}, [&](Communicator &comm) {
      std::vector<float> in(elements, static_cast<float>(comm.rank())),
          out(elements);
      comm.start(0, reinterpret_cast<char *>(in.data()),
                 reinterpret_cast<char *>(out.data()));
      comm.done(0);
      for (float value : out)
        ASSERT_EQ(value, static_cast<float>(site.sourceOf[comm.rank()]));
    });
    ASSERT_FALSE(error) << error.message;
  }
}

TEST_P(CommunicatorTest, ManyInARowAndOverlapped) {
  NEEDS_RANKS(4);
  Mesh mesh{{{"dp", 2}, {"tp", 2}}};
  const int rounds = GetParam().spin || few() ? 40 : 200;
  std::vector<CollectiveSite> sites;
  for (int i = 0; i < 6; ++i) {
    sites.push_back(siteOf(Kind::AllReduce,
                           i % 2 ? std::vector<int>{0} : std::vector<int>{1},
                           DType::I32));
    sites[i].inShape = sites[i].outShape = {i < 3 ? 16 : 8000};
  }
  Error error = run(mesh, sites, [&](Communicator &comm) {
    std::vector<std::vector<int32_t>> in(6), out(6);
    for (int i = 0; i < 6; ++i) {
      in[i].resize(sites[i].inShape[0]);
      out[i].resize(sites[i].inShape[0]);
    }
    for (int32_t round = 0; round < rounds; ++round) {
      for (int i = 0; i < 6; ++i) {
        std::fill(in[i].begin(), in[i].end(), round * 10 + comm.rank() + i);
        comm.start(i, reinterpret_cast<char *>(in[i].data()),
                   reinterpret_cast<char *>(out[i].data()));
      }
      for (int i : {1, 0, 5, 4, 2, 3})
        comm.done(i);
      for (int i = 0; i < 6; ++i) {
        auto members = groupOf(mesh, sites[i].axes, comm.rank());
        int32_t sum = 0;
        for (int64_t member : members)
          sum += round * 10 + static_cast<int32_t>(member) + i;
        ASSERT_EQ(out[i].front(), sum);
        ASSERT_EQ(out[i].back(), sum);
      }
    }
    EXPECT_EQ(comm.counters()[0].count, rounds);
    EXPECT_EQ(comm.counters()[0].bytes, rounds * 64);
    EXPECT_EQ(comm.counters()[5].wireBytes, rounds * 32000);
  });
  ASSERT_FALSE(error) << error.message;
}

TEST_P(CommunicatorTest, ARankThatDoesNotComeEndsAllWithinTwiceTheDeadline) {
  NEEDS_RANKS(3);
  Mesh mesh{{{"tp", 3}}};
  for (int64_t elements : {4, 50000}) {
    CollectiveSite site = siteOf(Kind::AllReduce, {0}, DType::F32);
    site.inShape = site.outShape = {elements};
    site.node = "h.0.mlp";
    auto begin = std::chrono::steady_clock::now();
    Error error = run(
        mesh, {site},
        [&](Communicator &comm) {
          std::vector<float> in(elements), out(elements);
          if (comm.rank() == 1)
            return;
          comm.start(0, reinterpret_cast<char *>(in.data()),
                     reinterpret_cast<char *>(out.data()));
          comm.done(0);
        },
        0.3);
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    EXPECT_GE(took.count(), 0.3);
    // Connecting is in it.
    EXPECT_LT(took.count(), 0.6 + (few() ? 10 : 0.2));
    EXPECT_EQ(error.exitCode, 4);
    EXPECT_NE(error.message.find("all_reduce of 'h.0.mlp'"), std::string::npos);
    EXPECT_NE(error.message.find("arrived: rank 0, rank 2"), std::string::npos)
        << error.message;
    EXPECT_NE(error.message.find("missing: rank 1 (last in"),
              std::string::npos);
  }
}

TEST_P(CommunicatorTest, DifferentCollectivesAreAMismatch) {
  Mesh mesh{{{"tp", 2}}};
  std::vector<CollectiveSite> sites(2,
                                    siteOf(Kind::AllReduce, {0}, DType::F32));
  sites[0].inShape = sites[0].outShape = {4};
  sites[1].inShape = sites[1].outShape = {5};
  sites[1].node = "other";
  Error error = run(mesh, sites, [&](Communicator &comm) {
    float in[5] = {}, out[5];
    comm.start(comm.rank(), reinterpret_cast<char *>(in),
               reinterpret_cast<char *>(out));
    comm.done(comm.rank());
    FAIL() << "the mismatch was not seen";
  });
  EXPECT_EQ(error.exitCode, 4);
  EXPECT_NE(error.message.find("disagree"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("'other'"), std::string::npos);
}

TEST_P(CommunicatorTest, AFailureElsewhereEndsWaitingRanks) {
  Mesh mesh{{{"tp", 2}}};
  CollectiveSite site = siteOf(Kind::AllReduce, {0}, DType::F32);
  site.inShape = site.outShape = {4};
  auto crew = std::make_shared<Crew>(2, 60.0, GetParam().spin);
  std::vector<CollectiveSite> sites{site};
  auto ranks = GetParam().make(crew, mesh, sites);
  if (ranks.empty() || ranks[0]->rank() != 0)
    return; // another process
  bool stopped = false;
  auto begin = std::chrono::steady_clock::now();
  std::thread waiting([&] {
    float in[4] = {}, out[4];
    try {
      ranks[0]->start(0, reinterpret_cast<char *>(in),
                      reinterpret_cast<char *>(out));
      ranks[0]->done(0);
    } catch (const RankStopped &) {
      stopped = true;
    }
  });
  crew->report({1, "input", "first", {}});
  crew->report({1, "input", "second", {}});
  waiting.join();
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(stopped);
  EXPECT_LT(took.count(), 5);
  EXPECT_EQ(crew->firstError().message, "first");
}

INSTANTIATE_TEST_SUITE_P(All, CommunicatorTest,
                         testing::ValuesIn(mtp::test::communicators()),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
