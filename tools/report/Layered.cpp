// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/report/Layered.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace mtp::report;

namespace {

constexpr double kBoxGap = 22, kPointGap = 14, kRankGap = 30, kMargin = 14;

/// A box or a point of a long edge.
struct Node {
  int box = -1;
  int rank = 0;
  double width = 0, height = 0, x = 0;
  std::vector<int> above, below;
};

class Placer {
public:
  Placer(std::vector<LayeredBox> &boxes, const std::vector<Net> &nets)
      : boxes(boxes), nets(nets) {}

  Placement run() {
    rankBoxes();
    addPoints();
    order();
    placeX();
    return finish();
  }

private:
  void rankBoxes() {
    std::vector<int> rank(boxes.size(), 0);
    for (size_t at = 0; at < boxes.size(); ++at)
      for (const Net &net : nets)
        if (net.from == int(at))
          for (int to : net.to)
            rank[size_t(to)] = std::max(rank[size_t(to)], rank[at] + 1);
    int last = boxes.empty() ? 0 : *std::max_element(rank.begin(), rank.end());
    // What nothing feeds stands right above its first reader.
    std::vector<bool> fed(boxes.size(), false);
    for (const Net &net : nets)
      for (int to : net.to)
        fed[size_t(to)] = true;
    for (size_t at = boxes.size(); at-- > 0;) {
      if (boxes[at].atBottom)
        rank[at] = last;
      if (fed[at])
        continue;
      int first = last + 1;
      for (const Net &net : nets)
        if (net.from == int(at))
          for (int to : net.to)
            first = std::min(first, rank[size_t(to)]);
      rank[at] = first <= last ? std::max(first - 1, 0) : rank[at];
    }
    for (size_t at = 0; at < boxes.size(); ++at)
      nodes.push_back(
          {int(at), rank[at], boxes[at].width, boxes[at].height, 0, {}, {}});
    ranks.resize(size_t(last) + 1);
    for (size_t at = 0; at < boxes.size(); ++at)
      ranks[size_t(rank[at])].push_back(int(at));
  }

  void link(int above, int below) {
    nodes[size_t(above)].below.push_back(below);
    nodes[size_t(below)].above.push_back(above);
  }

  void addPoints() {
    ways.resize(nets.size());
    for (size_t n = 0; n < nets.size(); ++n) {
      const Net &net = nets[n];
      int from = nodes[size_t(net.from)].rank;
      std::map<int, int> pointAt; // by rank
      auto pointOn = [&](int rank) {
        if (rank == from)
          return net.from;
        return pointAt.at(rank);
      };
      std::vector<int> targets = net.to;
      std::stable_sort(targets.begin(), targets.end(), [&](int a, int b) {
        return nodes[size_t(a)].rank < nodes[size_t(b)].rank;
      });
      for (int to : targets) {
        int end = nodes[size_t(to)].rank;
        for (int rank = from + 1; rank < end; ++rank)
          if (!pointAt.count(rank)) {
            int before = pointOn(rank - 1);
            pointAt[rank] = int(nodes.size());
            nodes.push_back({-1, rank, 6, 0, 0, {}, {}});
            ranks[size_t(rank)].push_back(int(nodes.size()) - 1);
            link(before, int(nodes.size()) - 1);
          }
        link(pointOn(end - 1), to);
        std::vector<int> way;
        for (int rank = from + 1; rank < end; ++rank)
          way.push_back(pointAt.at(rank));
        ways[n].push_back({to, std::move(way)});
      }
    }
  }

  std::vector<int> positions() const {
    std::vector<int> position(nodes.size(), 0);
    for (const auto &rank : ranks)
      for (size_t i = 0; i < rank.size(); ++i)
        position[size_t(rank[i])] = int(i);
    return position;
  }

  int64_t crossings() const {
    std::vector<int> position = positions();
    int64_t count = 0;
    for (const auto &rank : ranks) {
      std::vector<std::pair<int, int>> edges;
      for (int node : rank)
        for (int below : nodes[size_t(node)].below)
          edges.push_back({position[size_t(node)], position[size_t(below)]});
      for (size_t i = 0; i < edges.size(); ++i)
        for (size_t k = i + 1; k < edges.size(); ++k)
          count += (edges[i].first < edges[k].first &&
                    edges[i].second > edges[k].second) ||
                   (edges[i].first > edges[k].first &&
                    edges[i].second < edges[k].second);
    }
    return count;
  }

  void sortBy(std::vector<int> &rank, bool down) {
    std::vector<int> position = positions();
    auto centre = [&](int node) {
      const auto &next =
          down ? nodes[size_t(node)].above : nodes[size_t(node)].below;
      if (next.empty())
        return double(position[size_t(node)]);
      double sum = 0;
      for (int other : next)
        sum += position[size_t(other)];
      return sum / double(next.size());
    };
    std::vector<std::pair<double, int>> keys;
    for (int node : rank)
      keys.push_back({centre(node), node});
    std::stable_sort(
        keys.begin(), keys.end(),
        [](const auto &a, const auto &b) { return a.first < b.first; });
    for (size_t i = 0; i < keys.size(); ++i)
      rank[i] = keys[i].second;
  }

  void order() {
    auto best = ranks;
    int64_t fewest = crossings();
    for (int sweep = 0; sweep < 12 && fewest > 0; ++sweep) {
      bool down = sweep % 2 == 0;
      for (size_t i = 0; i < ranks.size(); ++i)
        sortBy(ranks[down ? i : ranks.size() - 1 - i], down);
      int64_t now = crossings();
      if (now < fewest) {
        fewest = now;
        best = ranks;
      }
    }
    ranks = best;
  }

  double gap(int a, int b) const {
    const Node &left = nodes[size_t(a)], &right = nodes[size_t(b)];
    return (left.width + right.width) / 2 +
           (left.box < 0 || right.box < 0 ? kPointGap : kBoxGap);
  }

  /// Moves the nodes of a rank as near to `wish` as order and gaps allow: least
  /// squares, by pooling neighbours that want to pass each other.
  void settle(const std::vector<int> &rank, const std::vector<double> &wish) {
    struct Pool {
      double sum, weight;
      size_t count;
      double mean() const { return sum / weight; }
    };
    std::vector<Pool> pools;
    double offset = 0;
    std::vector<double> offsets;
    for (size_t i = 0; i < rank.size(); ++i) {
      if (i)
        offset += gap(rank[i - 1], rank[i]);
      offsets.push_back(offset);
      double weight = nodes[size_t(rank[i])].box < 0 ? 4 : 1;
      pools.push_back({(wish[i] - offset) * weight, weight, 1});
      while (pools.size() > 1 &&
             pools[pools.size() - 2].mean() > pools.back().mean()) {
        Pool last = pools.back();
        pools.pop_back();
        pools.back() = {pools.back().sum + last.sum,
                        pools.back().weight + last.weight,
                        pools.back().count + last.count};
      }
    }
    size_t i = 0;
    for (const Pool &pool : pools)
      for (size_t k = 0; k < pool.count; ++k, ++i)
        nodes[size_t(rank[i])].x = pool.mean() + offsets[i];
  }

  void placeX() {
    for (const auto &rank : ranks) {
      double x = 0;
      for (size_t i = 0; i < rank.size(); ++i) {
        x += i ? gap(rank[i - 1], rank[i]) : 0;
        nodes[size_t(rank[i])].x = x;
      }
      for (int node : rank)
        nodes[size_t(node)].x -= x / 2;
    }
    for (int round = 0; round < 24; ++round) {
      bool down = round % 2 == 0;
      for (size_t i = 0; i < ranks.size(); ++i) {
        const auto &rank = ranks[down ? i : ranks.size() - 1 - i];
        std::vector<double> wish;
        for (int node : rank) {
          const Node &mine = nodes[size_t(node)];
          double sum = 0;
          size_t count = 0;
          for (const auto *list : {&mine.above, &mine.below}) {
            // The side that was placed last pulls harder.
            double pull = (list == &mine.above) == down ? 3 : 1;
            for (int other : *list) {
              sum += pull * nodes[size_t(other)].x;
              count += size_t(pull);
            }
          }
          wish.push_back(count ? sum / double(count) : mine.x);
        }
        settle(rank, wish);
      }
    }
  }

  Placement finish() {
    double left = 1e30, right = -1e30;
    for (const Node &node : nodes) {
      left = std::min(left, node.x - node.width / 2);
      right = std::max(right, node.x + node.width / 2);
    }
    std::vector<double> top;
    double y = kMargin;
    for (const auto &rank : ranks) {
      double height = 0;
      for (int node : rank)
        height = std::max(height, nodes[size_t(node)].height);
      top.push_back(y);
      for (int node : rank)
        if (nodes[size_t(node)].box < 0)
          nodes[size_t(node)].height = height;
      y += height + kRankGap;
    }
    auto round = [](double value) { return std::round(value * 10) / 10; };
    for (Node &node : nodes) {
      node.x = round(node.x - left + kMargin);
      if (node.box >= 0) {
        boxes[size_t(node.box)].x = node.x;
        boxes[size_t(node.box)].y = round(top[size_t(node.rank)]);
      }
    }
    Placement result;
    result.width = nodes.empty() ? 0 : round(right - left + 2 * kMargin);
    result.height = round(y - kRankGap + kMargin);
    for (size_t n = 0; n < nets.size(); ++n)
      for (const auto &[to, way] : ways[n]) {
        Route route{int(n), to, {}};
        const LayeredBox &from = boxes[size_t(nets[n].from)],
                         &end = boxes[size_t(to)];
        route.points.push_back({from.x, from.y + from.height});
        for (int point : way) {
          const Node &node = nodes[size_t(point)];
          double y0 = round(top[size_t(node.rank)]);
          route.points.push_back({node.x, y0});
          route.points.push_back({node.x, y0 + node.height});
        }
        route.points.push_back({end.x, end.y});
        result.routes.push_back(std::move(route));
      }
    return result;
  }

  std::vector<LayeredBox> &boxes;
  const std::vector<Net> &nets;
  std::vector<Node> nodes;
  std::vector<std::vector<int>> ranks;
  std::vector<std::vector<std::pair<int, std::vector<int>>>>
      ways; ///< by net: target, points
};

} // namespace

Placement mtp::report::place(std::vector<LayeredBox> &boxes,
                             const std::vector<Net> &nets) {
  return Placer(boxes, nets).run();
}
