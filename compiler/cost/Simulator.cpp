// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/cost/Simulator.h"

#include <algorithm>
#include <cmath>

namespace mtp::plan {
namespace {

// Bytes that the ops around the products of a layer read and write, in half
// precision, for each ...
// ... element of [sequence, batch, hidden], forward: two norms (read, write),
// two additions of bias, dropout and residual (read both, write sum and mask).
constexpr double kTokenForward = 2 * 4 + 2 * 7;
// Backward: norms read operand, gradient and statistics twice.
constexpr double kTokenBackward = 2 * 8 + 2 * 7;
// ... element of a slice over tp: bias and GELU on 4 h (16), transposes of q,
// k, v and of the context (16). A network of another width moves in proportion.
constexpr double kNetworkForward = 16, kNetworkBackward = 24, kTransposes = 16;
// ... score: scale, mask and softmax (4), dropout with its mask (5).
constexpr double kScoreForward = 4 + 5, kScoreBackward = 6 + 5;
// ... element of the embedding's result: table, positions, dropout, and back.
constexpr double kEmbedding = 20;
// ... parameter: a micro-batch's gradient is added to the sum.
constexpr double kAddGradient = 6;
constexpr double kHalf = 2; ///< bytes of an activation, parameter, gradient
// Bytes of a parameter: half precision, gradient in f32, master copy and two
// moments in f32.
constexpr double kGradientBytes = 4, kOptimizerBytes = 12;

int64_t whole(double bytes) {
  return int64_t(std::llround(std::clamp(bytes, 0.0, 4e18)));
}

Time total(std::initializer_list<Time> times) {
  Time sum = 0;
  for (Time time : times)
    sum = add(sum, time);
  return sum;
}

Time times(int64_t count, Time time) {
  Time product;
  if (count <= 0)
    return 0;
  if (__builtin_mul_overflow(count, time, &product))
    return kIllegal;
  return std::min(product, kIllegal);
}

/// What one pass takes: on the rank itself, and in collectives over tp.
struct Pass {
  Time own = 0, tensor = 0;
  Time both() const { return add(own, tensor); }
};

class Simulator {
public:
  Simulator(const Cluster &cluster, const TrainingJob &job)
      : job(job), achieved(cluster.achieved), machine(machineOf(cluster, job)),
        tp(job.axis("tp")), pp(job.axis("pp")), dp(job.axis("dp")),
        tokens(job.sequence * job.microBatch),
        activation(double(tokens) * double(job.hidden)) {}

  Simulation run() const;

private:
  static Machine machineOf(const Cluster &cluster, const TrainingJob &job) {
    auto axes = job.mesh;
    for (const char *name : {"pp", "dp", "tp"})
      if (std::none_of(axes.begin(), axes.end(),
                       [&](const auto &axis) { return axis.first == name; }))
        axes.insert(axes.begin(), {name, 1});
    return machineFor(cluster, axes);
  }
  int axisOf(const char *name) const {
    for (size_t i = 0; i < machine.axes.size(); ++i)
      if (machine.axes[i].name == name)
        return int(i);
    return -1; // machineOf() made all three
  }
  Time us(double microseconds) const { return fromMicroseconds(microseconds); }
  Time move(double bytes) const { return memory(machine, whole(bytes)); }
  Time matrix(int64_t batch, int64_t m, int64_t n, int64_t k) const {
    return product(machine, batch, m, n, k, FlopKind::Half);
  }
  Time reduceOverTp(double bytes) const {
    return allReduce(machine, {axisOf("tp")}, whole(bytes));
  }

  /// Bytes for each element of [tokens, h], of which `network` are moved by a
  /// network four times as wide.
  double slice(double network) const {
    double width = double(job.network()) / (4 * double(job.hidden));
    return network * width * (job.gated ? 1.5 : 1) + kTransposes;
  }
  Time attentionProducts() const;
  Time products() const;
  Time scores(double bytes) const;
  Time layerCollectives() const;
  Pass forward() const;
  Pass backward() const;
  Pass loss() const;
  Pass embedding() const;
  Time send() const;
  double layerParameters() const;
  double embeddingParameters() const;
  Time gradients(Time window) const;
  Time update() const;
  SimulatedMemory memoryOfRank() const;

  const TrainingJob &job;
  const Achieved &achieved;
  Machine machine;
  int64_t tp, pp, dp;
  int64_t tokens;
  double activation; ///< elements of [sequence, micro-batch, hidden]
};

Time Simulator::attentionProducts() const {
  int64_t batch = job.microBatch * job.heads / tp, s = job.sequence,
          d = job.hidden / job.heads;
  return add(matrix(batch, s, s, d), matrix(batch, s, d, s));
}

Time Simulator::products() const {
  int64_t h = job.hidden;
  int64_t f = job.network();
  // A key head that ranks share is computed by each of them.
  int64_t kv = job.keyValueHeads ? job.keyValueHeads : job.heads;
  int64_t keyValues = 2 * ((kv + tp - 1) / tp) * (h / job.heads);
  return total({matrix(1, tokens, h / tp + keyValues, h), attentionProducts(),
                matrix(1, tokens, h, h / tp),
                matrix(1, tokens, (job.gated ? 2 : 1) * f / tp, h),
                matrix(1, tokens, h, f / tp)});
}

/// Ops on the scores that move `bytes` for each.
Time Simulator::scores(double bytes) const {
  if (job.fusedAttention)
    return 0;
  double count = double(job.microBatch) * double(job.heads) / double(tp) *
                 double(job.sequence) * double(job.sequence);
  return move(bytes * count);
}

/// Of one direction: the conjugate operators of attention and of the network
/// behind it, or the two pairs that sequence parallelism has in their place.
Time Simulator::layerCollectives() const {
  int64_t bytes = whole(kHalf * activation);
  std::vector<int> axes = {axisOf("tp")};
  if (!job.sequenceParallel)
    return times(2, allReduce(machine, axes, bytes));
  return times(2, add(reduceScatter(machine, axes, bytes),
                      allGather(machine, axes, bytes)));
}

Pass Simulator::forward() const {
  double split = job.sequenceParallel ? double(tp) : 1;
  Time gpu = total({products(), scores(kScoreForward),
                    move(kTokenForward * activation / split),
                    move(slice(kNetworkForward) * activation / double(tp))});
  return {std::max(gpu, us(achieved.layerUs)), layerCollectives()};
}

Pass Simulator::backward() const {
  double split = job.sequenceParallel ? double(tp) : 1;
  Time gpu = total({times(2, products()), scores(kScoreBackward),
                    move(kTokenBackward * activation / split),
                    move(slice(kNetworkBackward) * activation / double(tp))});
  if (job.fusedAttention) // makes the scores again
    gpu = add(gpu, attentionProducts() / 2);
  if (!job.fusedGradients)
    gpu = add(gpu, move(kAddGradient * job.matrixElements() / double(tp)));
  if (job.recompute == TrainingJob::Recompute::Selective)
    gpu = total({gpu, attentionProducts(), scores(kScoreForward)});
  bool full = job.recompute == TrainingJob::Recompute::Full;
  if (full)
    gpu = total({gpu, products(), scores(kScoreForward),
                 move(kTokenForward * activation / split),
                 move(slice(kNetworkForward) * activation / double(tp))});
  return {std::max(gpu, us((full ? 3 : 2) * achieved.layerUs)),
          times(full ? 2 : 1, layerCollectives())};
}

/// Output projection and cross entropy, forward and backward.
Pass Simulator::loss() const {
  int64_t columns = (job.vocabulary + tp - 1) / tp;
  Time own =
      total({times(3, matrix(1, tokens, columns, job.hidden)),
             move(achieved.logitBytes * double(tokens) * double(columns)),
             move(8 * activation), us(achieved.headUs)});
  if (!job.fusedGradients)
    own = add(own, move(kAddGradient * double(columns) * double(job.hidden)));
  // The gradient of the projection's operand; maximum, sum and label.
  return {own, add(reduceOverTp(kHalf * activation),
                   times(3, reduceOverTp(4 * double(tokens))))};
}

Pass Simulator::embedding() const {
  double table = double(job.vocabulary) / double(tp) * double(job.hidden);
  return {add(move(kEmbedding * activation), move(kAddGradient * table)),
          reduceOverTp(kHalf * activation)};
}

/// A micro-batch to the next stage and its gradient back: whole, or each rank
/// of tp sends its part and the receivers gather, whichever is faster.
Time Simulator::send() const {
  if (pp == 1)
    return 0;
  const AxisLinks &axis = machine.axes[axisOf("pp")];
  const Link &link = axis.ranksPerHost < axis.size ? axis.outer : axis.inner;
  auto message = [&](double bytes) {
    return total({us(achieved.sendUs), link.alpha,
                  Time(std::min(bytes / 1024 * double(link.psPerKiB),
                                double(kLargestCost)))});
  };
  double bytes = kHalf * activation;
  Time direct = message(bytes);
  Time scattered = add(message(bytes / double(tp)),
                       allGather(machine, {axisOf("tp")}, whole(bytes)));
  return times(2, std::min(direct, scattered));
}

double Simulator::layerParameters() const {
  double h = double(job.hidden);
  return double(job.layers / pp) * (job.matrixElements() / double(tp) + 13 * h);
}

double Simulator::embeddingParameters() const {
  double h = double(job.hidden);
  double tables = job.untied && pp == 1 ? 2 : 1; // ends have one each
  return tables * double((job.vocabulary + tp - 1) / tp) * h +
         double(job.sequence) * h;
}

/// Reduction over dp, `window` of it hidden behind the last backward pass if
/// asked for; the embedding's comes last and is never hidden. Then the first
/// and the last stage add theirs.
Time Simulator::gradients(Time window) const {
  std::vector<int> axes = {axisOf("dp")};
  auto reduce = [&](double parameters) {
    int64_t bytes = whole(kHalf * parameters);
    return job.distributedOptimizer ? add(reduceScatter(machine, axes, bytes),
                                          allGather(machine, axes, bytes))
                                    : allReduce(machine, axes, bytes);
  };
  Time time = reduce(layerParameters() + embeddingParameters());
  if (job.overlapGradients)
    time =
        std::min(time, std::max(time - window, reduce(embeddingParameters())));
  if (pp > 1 && !job.untied) {
    Machine pair = machine;
    AxisLinks &ends = pair.axes[axisOf("pp")];
    ends.ranksPerHost = ends.ranksPerHost < ends.size ? 1 : 2;
    ends.size = 2;
    double table = double(job.vocabulary) / double(tp) * double(job.hidden);
    time = add(time, allReduce(pair, {axisOf("pp")}, whole(kHalf * table)));
  }
  return time;
}

Time Simulator::update() const {
  double shards = job.distributedOptimizer ? double(dp) : 1;
  return total({move(achieved.updateBytes *
                     (layerParameters() + embeddingParameters()) / shards),
                us(achieved.updateUs),
                us(achieved.updateLayerUs * double(job.layers / pp))});
}

SimulatedMemory Simulator::memoryOfRank() const {
  double parameters = layerParameters() + embeddingParameters();
  SimulatedMemory memory;
  memory.parameters = whole(kHalf * parameters);
  memory.gradients = whole(kGradientBytes * parameters);
  memory.optimizer = whole(kOptimizerBytes * parameters /
                           (job.distributedOptimizer ? double(dp) : 1));
  // The first stage keeps most micro-batches: one for each stage behind it, and
  // with several parts of the model (p - 1) / p v more.
  double inFlight = double(std::min(pp, job.microBatches()));
  if (job.interleave > 1)
    inFlight *= 1 + double(pp - 1) / double(pp * job.interleave);
  double layers = double(job.layers / pp);
  double kept = layers * inFlight * activationBytes(job);
  if (job.recompute == TrainingJob::Recompute::Full) {
    TrainingJob one = job; // the layer that is being computed again
    one.recompute = TrainingJob::Recompute::None;
    kept += activationBytes(one);
  }
  if (pp == 1) // logits and their gradient, f32
    kept += 4 * double(tokens) * double(job.vocabulary) / double(tp);
  memory.activations = whole(kept);
  return memory;
}

Simulation Simulator::run() const {
  Pass there = forward(), back = backward(), head = loss(), table = embedding();
  int64_t layers = job.layers / pp, m = job.microBatches();
  Pass stage{times(layers, add(there.own, back.own)),
             times(layers, add(there.tensor, back.tensor))};
  Simulation result;
  result.compute = times(m, stage.own);
  result.tensor = times(m, stage.tensor);
  if (pp == 1) {
    result.compute = add(result.compute, times(m, add(head.own, table.own)));
    result.tensor =
        add(result.tensor, times(m, add(head.tensor, table.tensor)));
  } else {
    // In the steady state every stage takes as long as the slowest: the last
    // with the loss, the first with the embedding, or one between with sends to
    // both sides.
    // A micro-batch passes a stage once for each part that it has.
    Time one = send(), hop = times(job.interleave, one);
    Time first = add(table.both(), hop), last = add(head.both(), hop),
         middle = pp > 2 ? times(2, hop) : 0;
    Time extra = std::max({first, last, middle});
    Time hops = extra == middle ? times(2, hop) : hop;
    result.sends = add(times(m - 1, hops), times(pp - 1, one));
    result.imbalance =
        total({times(m - 1, extra - hops), head.both(), table.both()});
    result.bubble = times(pp - 1, stage.both()) / job.interleave;
  }
  result.gradients = gradients(times(layers, back.both()));
  result.update = update();
  result.step =
      total({result.compute, result.tensor, result.bubble, result.imbalance,
             result.sends, result.gradients, result.update});
  result.memory = memoryOfRank();
  double seconds = double(result.step) * 1e-12, ranks = double(job.ranks());
  result.flopsPerRank = job.flops() / (seconds * ranks);
  double hardware = job.flops();
  if (job.recompute == TrainingJob::Recompute::Full)
    hardware = job.flopsWithRecompute();
  if (job.recompute == TrainingJob::Recompute::Selective)
    hardware += 4 * double(job.batch) * double(job.layers) *
                double(job.hidden) * double(job.sequence) *
                double(job.sequence);
  result.hardwareFlopsPerRank = hardware / (seconds * ranks);
  return result;
}

} // namespace

double activationBytes(const TrainingJob &job) {
  double t = double(job.axis("tp")), h = double(job.hidden);
  double sbh = double(job.sequence) * double(job.microBatch) * h;
  double scores =
      job.fusedAttention ? 0 : 5 * double(job.heads) * double(job.sequence) / h;
  double tokens = job.sequenceParallel ? 10 / t : 10;
  // Of the network: its activations before and behind the non-linearity, and of
  // a gate one more; 16 if it is four times as wide. Of q, k, v, context: 8.
  double slices = (job.gated ? 6 : 4) * double(job.network()) / h + 4 +
                  2 * double(job.keyValueColumns()) / h;
  switch (job.recompute) {
  case TrainingJob::Recompute::None:
    return sbh * (tokens + slices / t + scores / t);
  case TrainingJob::Recompute::Selective:
    return sbh * (tokens + slices / t);
  case TrainingJob::Recompute::Full:
    return 2 * sbh;
  }
  return 0;
}

Simulation simulate(const Cluster &cluster, const TrainingJob &job) {
  Simulation result = Simulator(cluster, job).run();
  TrainingJob alone = job;
  alone.mesh.clear();
  alone.interleave = 1;
  alone.sequenceParallel = false;
  alone.batch = job.microBatch * job.microBatches();
  Time time = Simulator(cluster, alone).run().step;
  result.efficiency =
      double(time) /
      (double(result.step) * double(job.axis("tp")) * double(job.axis("pp")));
  return result;
}

} // namespace mtp::plan
