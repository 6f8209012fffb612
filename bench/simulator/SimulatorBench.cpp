// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- SimulatorBench.cpp - predicted against measured training steps -----===//
//
// Usage: simulator-bench [--rows] [--fit]
//   --rows  every row of every table, not only of the short ones
//   --fit   fit the achieved shares again and print them
//
//===----------------------------------------------------------------------===//
#include "bench/simulator/Fit.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>

using namespace mtp::bench;
using namespace mtp::plan;

static void printTable(const Reference &reference, const char *table,
                       const char *unit, const char *bound, bool rows,
                       bool points) {
  std::vector<double> errors =
      points ? reference.differences(table) : reference.errors(table);
  double scale = points ? 1 : 100;
  std::vector<double> sorted = errors;
  std::sort(sorted.begin(), sorted.end());
  printf(
      "%-16s %4zu rows, error mean %.1f %s, largest %.1f, median %+.1f%s%s\n",
      table, errors.size(), scale * meanAbsolute(errors),
      points ? "points" : "%", scale * largestAbsolute(errors),
      scale * sorted[sorted.size() / 2], *bound ? "; bound " : "", bound);
  if (!rows)
    return;
  printf("    %-28s %12s %12s %9s\n", unit, "measured", "predicted", "error");
  size_t i = 0;
  for (const ReferenceRow *row : reference.table(table)) {
    printf("    %-28s %12.4g %12.4g %+8.1f%s\n", row->name.c_str(),
           row->measured, reference.predicted(*row), scale * errors[i],
           points ? "" : "%");
    ++i;
  }
}

static void printFit(const char *what, const Achieved &before,
                     const Achieved &after) {
  printf("%s\n    %-18s %12s %12s\n", what, "", "shipped", "fitted");
  for (const AchievedField &field : achievedFields())
    printf("    %-18s %12.5g %12.5g\n", field.name, before.*(field.value),
           after.*(field.value));
}

int main(int argc, char **argv) {
  bool rows = false, fit = false;
  for (int i = 1; i < argc; ++i) {
    rows |= !strcmp(argv[i], "--rows");
    fit |= !strcmp(argv[i], "--fit");
  }
  try {
    Reference reference(MTP_SIMULATOR_DATA, MTP_CLUSTERS);
    if (fit) {
      Achieved a100 = fitSingleNode(reference);
      printFit("A100, on vtrain-single:", Achieved(), a100);
      for (auto &[name, cluster] : reference.clusters)
        if (name != "dgx2h" && name != "h100")
          cluster.achieved = a100;
      Achieved old = reference.clusters.at("dgx2h").achieved;
      Achieved v100 = fitMegatron2019(reference, a100);
      printFit("V100, on megatron-mp and megatron-strong:", old, v100);
      reference.clusters.at("dgx2h").achieved = v100;
      Achieved now = reference.clusters.at("h100").achieved;
      Achieved h100 = fitMegatronCore(reference, a100);
      printFit("H100, on megatron-core:", now, h100);
      reference.clusters.at("h100").achieved = h100;
    }
    printTable(reference, "vtrain-single", "step, s", "(fitted on)", rows,
               false);
    printTable(reference, "vtrain-multi", "step, s", "10 %", rows, false);
    printTable(reference, "narayanan", "step, s", "8 %", true, false);
    printTable(reference, "korthikanti", "step, s", "5 %", true, false);
    printTable(reference, "megatron-mp", "% of one GPU", "5 points (fitted on)",
               true, true);
    printTable(reference, "megatron-mp-dp", "% of one GPU", "5 points", true,
               true);
    printTable(reference, "megatron-strong", "% of one GPU",
               "5 points (fitted on)", true, true);
    printTable(reference, "megatron-core", "TFLOP/s of a GPU", "(fitted on)",
               true, false);
  } catch (const std::exception &failure) {
    fprintf(stderr, "simulator-bench: error: %s\n", failure.what());
    return 1;
  }
  return 0;
}
