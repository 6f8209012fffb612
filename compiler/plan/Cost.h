// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Cost.h - what collectives and products cost ------------------------===//
//
// One set of cost functions for planner, explain and simulator. Times are
// integer picoseconds, so that plans are the same on every machine.
//
// A group of ranks is a list of levels, innermost (fastest links) first: one
// level for every mesh axis of the group, or two where an axis crosses hosts.
// With n ranks on a level, B bytes of the full tensor, latency a per step and b
// per byte, a ring on one level costs
//
//   all_gather, reduce_scatter   c0 +  (n-1) a +  (n-1)/n B b
//   all_reduce                   c0 + 2(n-1) a + 2(n-1)/n B b
//   all_to_all                   c0 +  (n-1) a +  (n-1)/n (B/n) b
//   permute                      c0 +        a +          (B/n) b
//
// (textbook alpha-beta, Thakur et al. 2005). On several levels the reductions
// are hierarchical: reduce-scatter inside, then the outer level works on 1/n of
// the bytes, then all-gather inside. c0 > 0 is the fixed cost of a launch: one
// all_reduce is therefore strictly cheaper than reduce_scatter + all_gather.
//
// Where a collective of a group on one host was measured (`mtp-run
// --calibrate`), its time is interpolated between the sizes measured instead;
// then the last property does not hold, the others do.
//
// Properties (tested): monotone in bytes; reduce_scatter <= all_reduce;
// all_reduce < reduce_scatter + all_gather; all_to_all <= all_gather;
// one collective over two axes <= one after the other.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_COST_H
#define MTP_COMPILER_PLAN_COST_H

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mtp::plan {

/// Picoseconds, never negative. `kIllegal` marks what no plan may do; two of
/// them can be added without overflow, and sums saturate there.
using Time = int64_t;
inline constexpr Time kIllegal = (int64_t(1) << 62) - 1;
/// No single cost is larger than this (about 18 minutes), so that a sum of a
/// few thousand costs is still told apart from `kIllegal`.
inline constexpr Time kLargestCost = int64_t(1) << 50;

/// a + b, saturating at kIllegal.
inline Time add(Time a, Time b) {
  Time sum = a + b;
  return sum < kIllegal ? sum : kIllegal;
}

/// What a link between neighbouring ranks does.
struct Link {
  Time alpha = 0;       ///< per step
  int64_t psPerKiB = 0; ///< per 1024 bytes
};

/// A mesh axis and its links. `ranksPerHost` of its ranks share a host and talk
/// over `inner`; hosts talk over `outer`. Flat: ranksPerHost == size.
struct AxisLinks {
  std::string name;
  int64_t size = 1;
  int64_t ranksPerHost = 1;
  Link inner, outer;
};

/// What the products are computed in.
enum class FlopKind : uint8_t { F32, F64, Other, Half };

/// How the rate of a product depends on its shape: [m, k] x [k, n] takes as
/// long as one with m n + area results and k + depth terms would at the full
/// rate. `depth` is what starting and ending a sum costs, `area` what filling
/// and draining the processor costs.
struct ProductShape {
  int64_t depth = 0, area = 0;
  /// Extents of n and k that are no multiple of `granule` cost this much more.
  int64_t granule = 1, unalignedPermille = 1000;
};

enum class CollectiveKind : uint8_t {
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Permute
};

/// Measured times of one kind of collective over `ranks` ranks of one host.
struct MeasuredCollective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  int64_t ranks = 2;
  /// Bytes (as in the functions below) and time, both increasing.
  std::vector<std::pair<int64_t, Time>> points;
};

/// Everything the cost functions know about the machine.
struct Machine {
  std::vector<AxisLinks> axes; ///< slowest first, as in the mesh
  Time launch = 0;             ///< c0 of every collective
  /// Of a thousand million operations, by FlopKind.
  std::array<int64_t, 4> psPerGigaFlop{};
  ProductShape products;
  int64_t psPerKiBOfMemory = 0; ///< read or written; 0: not charged
  /// Consistent: see makeConsistent().
  std::vector<MeasuredCollective> measured;

  /// Ranks that are threads of one host. The constants are those of one server
  /// core with AVX-512 (about 60 GFLOP/s in f32, half in f64, 6 G operations
  /// elsewhere) and of ranks that read each other's memory (5 GB/s each, 1 us a
  /// step, 2 us a launch). `mtp-run --calibrate` is where other numbers come
  /// from.
  static Machine
  cpuThreads(const std::vector<std::pair<std::string, int64_t>> &axes);
};

/// Collectives. `bytes` is the full tensor of the group, with its padding: n
/// times what one rank holds when sharded over the group. `axes` are indices
/// into Machine::axes. A group of one rank costs nothing.
Time allReduce(const Machine &machine, const std::vector<int> &axes,
               int64_t bytes);
Time allGather(const Machine &machine, const std::vector<int> &axes,
               int64_t bytes);
Time reduceScatter(const Machine &machine, const std::vector<int> &axes,
                   int64_t bytes);
Time allToAll(const Machine &machine, const std::vector<int> &axes,
              int64_t bytes);
Time permute(const Machine &machine, const std::vector<int> &axes,
             int64_t bytes);

/// Lowers measured times until the properties above hold: times
/// grow with bytes, reduce_scatter <= all_reduce < reduce_scatter + all_gather,
/// all_to_all <= all_gather. Entries without points are dropped.
void makeConsistent(std::vector<MeasuredCollective> &measured);

/// `flops` floating-point operations on one rank. Only contractions (products,
/// attention, convolutions) are charged: everything else is fused into its
/// neighbours and reads memory that was just written, and charging it would
/// make the planner pay a collective to split an addition. Count the local,
/// padded sizes: a rank that computes padding takes as long as its neighbours.
Time compute(const Machine &machine, int64_t flops, FlopKind kind);

/// `batch` products [m, k] x [k, n] on one rank, with Machine::products.
Time product(const Machine &machine, int64_t batch, int64_t m, int64_t n,
             int64_t k, FlopKind kind);

/// Reading and writing `bytes` of memory on one rank.
Time memory(const Machine &machine, int64_t bytes);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_COST_H
