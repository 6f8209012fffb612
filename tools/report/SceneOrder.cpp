// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- SceneOrder.cpp - boxes of equal layers in equal order --------------===//
#include "tools/report/Scene.h"

#include <algorithm>

using namespace mtp::report;

namespace {

class Sorter {
public:
  explicit Sorter(Scene &scene)
      : scene(scene), count(scene.boxes.size()), depth(count, 0),
        lastReader(count, -1), feeders(count), feeds(count, false),
        early(count, false), placed(count, false) {}

  void run() {
    findFeeders();
    for (int root : roots())
      place(root);
    std::vector<Box> sorted;
    std::vector<int> to(count, 0);
    for (int box : sequence) {
      to[size_t(box)] = int(sorted.size());
      sorted.push_back(std::move(scene.boxes[size_t(box)]));
    }
    scene.boxes = std::move(sorted);
    for (int &maker : scene.makerOf)
      if (maker >= 0)
        maker = to[size_t(maker)];
  }

private:
  void findFeeders() {
    for (size_t i = 0; i < count; ++i) {
      const Box &box = scene.boxes[i];
      early[i] = box.timeUs == 0 && box.kind != Box::Kind::Output;
      for (int value : box.inputs) {
        int maker = scene.makerOf[size_t(value)];
        if (std::find(feeders[i].begin(), feeders[i].end(), maker) ==
            feeders[i].end())
          feeders[i].push_back(maker);
        feeds[size_t(maker)] = true;
        early[i] = early[i] && early[size_t(maker)];
        depth[i] = std::max(depth[i], depth[size_t(maker)] + 1);
      }
      std::stable_sort(feeders[i].begin(), feeders[i].end(), [&](int a, int b) {
        return depth[size_t(a)] < depth[size_t(b)];
      });
      for (int feeder : feeders[i])
        if (!early[i])
          lastReader[size_t(feeder)] = int(i);
    }
  }

  /// What needs no product and is read by what does, then what nothing reads.
  std::vector<int> roots() const {
    std::vector<int> all;
    for (size_t i = 0; i < count; ++i)
      if (early[i] && lastReader[i] >= 0)
        all.push_back(int(i));
    std::stable_sort(all.begin(), all.end(), [&](int a, int b) {
      return lastReader[size_t(a)] > lastReader[size_t(b)];
    });
    for (size_t i = 0; i < count; ++i)
      if (!feeds[i])
        all.push_back(int(i));
    return all;
  }

  /// The box behind all that feeds it; without recursion, models are deep.
  void place(int root) {
    if (placed[size_t(root)])
      return;
    std::vector<std::pair<int, size_t>> path{{root, 0}};
    placed[size_t(root)] = true;
    while (!path.empty()) {
      auto &[box, next] = path.back();
      if (next == feeders[size_t(box)].size()) {
        sequence.push_back(box);
        path.pop_back();
        continue;
      }
      int feeder = feeders[size_t(box)][next++];
      if (!placed[size_t(feeder)]) {
        placed[size_t(feeder)] = true;
        path.push_back({feeder, 0});
      }
    }
  }

  Scene &scene;
  size_t count;
  std::vector<int> depth, lastReader; ///< lastReader: of those that need one
  std::vector<std::vector<int>> feeders;
  std::vector<bool> feeds, early, placed; ///< early: needs no product
  std::vector<int> sequence;
};

} // namespace

void mtp::report::orderBoxes(Scene &scene) { Sorter(scene).run(); }
