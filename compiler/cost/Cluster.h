// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Cluster.h - machines that costs are computed for -------------------===//
//
// A cluster is hosts of equal size: ranks of one host talk over `inner`, hosts
// over `outer`. machineFor() lays a mesh over it, rank 0 first, and gives the
// cost functions (compiler/plan/Cost.h) the links of every axis:
//
//   nodes 2, ranks 4 each     mesh dp=2,tp=4: tp inside, dp between hosts
//                             mesh dp=4,tp=2: tp inside, dp 2 inside x 2 hosts
//                             mesh tp=8:      4 inside x 2 hosts
//                             mesh dp=2,tp=3: a tp group lies on two hosts, so
//                                             all are priced between hosts
//
// Datasheet numbers (what the machine could do) and achieved shares (what it
// does) are kept apart: the shares are measured, or fitted (bench/simulator).
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_COST_CLUSTER_H
#define MTP_COMPILER_COST_CLUSTER_H

#include "compiler/plan/Cost.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace mtp::plan {

/// Shares of the datasheet that are reached, and costs that no datasheet has.
/// The defaults are fitted by `bench/simulator --fit` on single-node runs of
/// A100s (docs/simulator.md); network numbers are assumed, as one node has no
/// network.
struct Achieved {
  double products = 0.781;   ///< of flopsPerSecond, large products
  double depth = 100;        ///< ProductShape::depth
  double area = 4.329e+05;   ///< ProductShape::area
  double unaligned = 2.277;  ///< products with an odd extent take this longer
  double memory = 0.624;     ///< of memoryBytesPerSecond
  double inner = 0.707;      ///< of innerBytesPerSecond, in collectives
  double outer = 0.85;       ///< of outerBytesPerSecond
  double launchUs = 107.4;   ///< a collective, waiting for each other included
  double innerStepUs = 2;    ///< a step of a ring inside a host
  double outerStepUs = 10;   ///< a step between hosts
  double sendUs = 16.6;      ///< a send between pipeline stages
  double layerUs = 936.5;    ///< least time of a layer's forward pass: launches
  double headUs = 394;       ///< added to the loss of a micro-batch
  double logitBytes = 97.7;  ///< memory moved by the loss, per logit
  double updateBytes = 45.6; ///< memory moved by the optimizer, per parameter
  double updateLayerUs = 23; ///< added to the update of a layer
  double updateUs = 184.8;   ///< added to a step
};

struct Cluster {
  std::string name;
  std::string source; ///< where the numbers come from, for people
  int64_t nodes = 0;  ///< 0: as many as are needed
  int64_t ranksPerNode = 1;
  int64_t memoryBytes = 0;   ///< of a rank; 0: not known
  double flopsPerSecond = 0; ///< of a rank, in half precision
  double memoryBytesPerSecond = 0;
  double innerBytesPerSecond = 0; ///< of a rank, one direction
  double outerBytesPerSecond = 0;
  Achieved achieved;
};

/// The cost functions' view of `cluster` under a mesh (slowest axis first).
Machine machineFor(const Cluster &cluster,
                   const std::vector<std::pair<std::string, int64_t>> &axes);

/// Gives the axes of `machine`, in mesh order, their place on hosts of
/// `ranksPerNode` ranks, as above.
void placeAxes(Machine &machine, int64_t ranksPerNode, Link inner, Link outer);

/// "nodes:2,ranks:4[,KEY:VALUE...]", the machine that a CPU plan is made for:
///
///   nodes, ranks        hosts and ranks of each (required)
///   inner, outer        bytes per second of a link: 5G, 12.5G, 800M
///   inner-step, outer-step, launch   microseconds: 1, 20us
///
/// What is not named is that of Machine::cpuThreads inside a host, and 1 GB/s
/// and 20 us between hosts.
struct Topology {
  int64_t nodes = 1, ranksPerNode = 1;
  Link inner, outer;
  Time launch = 0;
};
std::optional<Topology> parseTopology(const std::string &text,
                                      std::string &error);
/// The text of --topology: as it is, or, if it ends with .json, from a JSON
/// object with the same keys, whose values are numbers or texts.
bool readTopology(std::string &text, std::string &error);
/// `machine` with the links of `topology`; false and `error` if the mesh has
/// more ranks than it.
bool applyTopology(Machine &machine, const Topology &topology,
                   std::string &error);

/// Reads a cluster file (docs/simulator.md). `error` names file and key.
std::optional<Cluster> parseCluster(const nlohmann::json &file,
                                    std::string &error);
std::optional<Cluster> readCluster(const std::string &path, std::string &error);
nlohmann::json toJson(const Cluster &cluster);

/// Picoseconds per KiB at `bytesPerSecond`; at least 1.
int64_t psPerKiB(double bytesPerSecond);
/// Picoseconds, never negative.
Time fromMicroseconds(double us);

/// Every number of Achieved with its name in files, for files and fits.
struct AchievedField {
  const char *name;
  double Achieved::*value;
  double least = 0, most = 1e9; ///< in a file
};
const std::vector<AchievedField> &achievedFields();

} // namespace mtp::plan

#endif // MTP_COMPILER_COST_CLUSTER_H
