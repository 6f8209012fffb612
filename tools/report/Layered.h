// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Layered.h - places for the boxes of a graph ------------------------===//
//
// Sugiyama's method: ranks by longest path, long edges through points on every
// rank between, order within ranks by barycentres with the fewest crossings
// seen, x by least squares under the order (pool adjacent violators). One value
// that several boxes read shares the points of its way.
//
// Invariants: sources of an edge lie above its targets; boxes of a rank do not
// overlap; the same graph gets the same places.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TOOLS_REPORT_LAYERED_H
#define MTP_TOOLS_REPORT_LAYERED_H

#include <vector>

namespace mtp::report {

struct LayeredBox {
  double width = 0, height = 0;
  bool atBottom = false; ///< on the last rank
  double x = 0, y = 0;   ///< centre, top; found
};

/// One value from a box to those that read it.
struct Net {
  int from = 0, value = 0;
  std::vector<int> to;
};

/// The way of a net to one target: points from the source's bottom to the
/// target's top.
struct Route {
  int net = 0, target = 0;
  std::vector<std::pair<double, double>> points;
};

struct Placement {
  double width = 0, height = 0;
  std::vector<Route> routes;
};

/// Places `boxes`. Nets run from boxes to later ones in the list.
Placement place(std::vector<LayeredBox> &boxes, const std::vector<Net> &nets);

} // namespace mtp::report

#endif // MTP_TOOLS_REPORT_LAYERED_H
