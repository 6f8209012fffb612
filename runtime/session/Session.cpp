// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/session/Session.h"
#include "runtime/artifact/Footprint.h"
#include "runtime/cuda/GpuWorld.h"
#include "runtime/loader/Convert.h"
#include "runtime/program/CpuRank.h"
#include "runtime/session/Assembly.h"
#include "runtime/session/StoredTensors.h"
#include "runtime/support/Checked.h"

#include <algorithm>
#include <chrono>

using namespace mtp;

namespace {

/// Benchmark steps that aren't measured.
constexpr int kWarmUp = 2;
constexpr int kLeastRuns = 3;
/// The first process waits for the last one to have loaded its weights.
constexpr double kLoadSeconds = 600;

int64_t localBytes(const Artifact &artifact, const TensorLayout &layout) {
  return elementCount(layout.localShape(artifact.axes)) * byteSize(layout.type);
}

/// Sizes come from an artifact: their sum stays at the largest number.
void addBytes(int64_t &sum, int64_t bytes) {
  if (!checkedAdd(sum, bytes, sum))
    sum = INT64_MAX;
}

int64_t parameterBytes(const Artifact &artifact) {
  int64_t bytes = 0;
  for (const Parameter &parameter : artifact.parameters)
    addBytes(bytes, localBytes(artifact, parameter.layout));
  return bytes;
}

class ThreadSession : public Session {
public:
  explicit ThreadSession(std::shared_ptr<World> world)
      : world(world), threads(world) {}

  bool load(Error &error) {
    return threads.run([](Rank &rank, int) { rank.load(); }, error) &&
           meet(std::max(kLoadSeconds, world->options.collectiveTimeout),
                "to load their weights", error);
  }

  int selectEntry(const TensorMap &inputs) const override;
  bool check(const TensorMap &inputs, Error &error) const override {
    int entry;
    return checkInputs(artifact(), inputs, entry, error);
  }
  bool run(const TensorMap &inputs, TensorMap &outputs, Error &error) override;
  bool run(const std::string &entry, const TensorMap &inputs,
           TensorMap &outputs, Error &error) override;
  bool readParameters(TensorMap &whole, Error &error) override {
    return stored().read(false, whole, error);
  }
  bool readStates(TensorMap &whole, Error &error) override {
    return stored().read(true, whole, error);
  }
  bool writeParameters(const TensorMap &whole, Error &error) override {
    return stored().write(false, whole, error);
  }
  bool writeStates(const TensorMap &whole, Error &error) override {
    return stored().write(true, whole, error);
  }
  bool bench(const TensorMap &inputs, double seconds, StepTimes &times,
             Error &error) override;
  double lastStepMs() const override { return slowest; }
  std::vector<double> stepSeconds(int entry, int rank) const override {
    for (int i = 0; i < threads.count(); ++i)
      if (world->here[static_cast<size_t>(i)] == rank)
        return threads.rank(i).stepSeconds(entry);
    return {};
  }
  std::vector<SiteCount> counters() const override;
  int64_t arenaBytesPerRank() const override {
    return threads.rank(0).arenaBytes();
  }
  int64_t parameterBytesPerRank() const override {
    return parameterBytes(artifact());
  }
  int64_t libraryBytesPerRank() const override;
  std::vector<std::string> implementations() const override {
    auto names = threads.rank(0).implementations();
    return {names.begin(), names.end()};
  }
  int ranks() const override { return world->crew->ranks(); }
  int threadsPerRank() const override { return world->options.threadsPerRank; }
  const Artifact &artifact() const override { return world->artifact; }

private:
  StoredTensors stored() { return {*world, threads}; }
  bool meet(double seconds, const std::string &what, Error &error) {
    Processes *processes = world->options.processes.get();
    return !processes || processes->meet(seconds, what, error);
  }
  bool setInputs(const TensorMap &inputs, int entry, Error &error);
  bool step(int entry, Error &error);
  bool runEntry(int entry, const TensorMap &inputs, TensorMap &outputs,
                Error &error);

  std::shared_ptr<World> world;
  mutable RankThreads threads;
  std::vector<double> stepMs; ///< of each rank
  double slowest = 0;
};

int ThreadSession::selectEntry(const TensorMap &inputs) const {
  const auto &entries = artifact().entries;
  for (size_t i = 0; i < entries.size(); ++i) {
    bool fits = true;
    for (const Input &input : entries[i].inputs) {
      auto it = inputs.find(input.name);
      fits &= it != inputs.end() && it->second.shape == input.layout.shape;
    }
    if (fits)
      return static_cast<int>(i);
  }
  return -1;
}

/// `inputs` have been checked.
bool ThreadSession::setInputs(const TensorMap &inputs, int entry,
                              Error &error) {
  std::vector<HostTensor> converted;
  std::vector<const HostTensor *> list;
  const auto &wanted = artifact().entries[entry].inputs;
  converted.reserve(wanted.size());
  for (const Input &input : wanted) {
    const HostTensor &given = inputs.at(input.name);
    list.push_back(&given);
    // u16 for bf16 are the bits of the values.
    if (given.type == input.layout.type || given.type == DType::U16)
      continue;
    HostTensor &tensor = converted.emplace_back(input.layout.type, given.shape);
    convertElements(given.type, given.bytes.data(), tensor.type,
                    tensor.bytes.data(), given.elements());
    list.back() = &tensor;
  }
  if (!checkSameInputs(*world, list, error))
    return false;
  return threads.run([&](Rank &rank, int) { rank.setInputs(entry, list); },
                     error);
}

bool ThreadSession::step(int entry, Error &error) {
  stepMs.assign(threads.count(), 0);
  if (!threads.run(
          [&](Rank &rank, int index) { stepMs[index] = rank.step(entry); },
          error))
    return false;
  slowest = *std::max_element(stepMs.begin(), stepMs.end());
  Processes *processes = world->options.processes.get();
  if (!processes)
    return true;
  if (!processes->exchange(slowest, stepMs, world->options.collectiveTimeout,
                           "to end a step", error))
    return false;
  slowest = *std::max_element(stepMs.begin(), stepMs.end());
  return true;
}

bool ThreadSession::run(const TensorMap &inputs, TensorMap &outputs,
                        Error &error) {
  int entry;
  return checkInputs(artifact(), inputs, entry, error) &&
         runEntry(entry, inputs, outputs, error);
}

bool ThreadSession::run(const std::string &name, const TensorMap &inputs,
                        TensorMap &outputs, Error &error) {
  const auto &entries = artifact().entries;
  auto it =
      std::find_if(entries.begin(), entries.end(),
                   [&](const Entry &entry) { return entry.name == name; });
  if (it == entries.end()) {
    error = {exits::Internal,
             "internal",
             "the artifact has no entry '" + name + "'",
             {}};
    return false;
  }
  int entry = static_cast<int>(it - entries.begin());
  return checkEntryInputs(artifact(), entry, inputs, error) &&
         runEntry(entry, inputs, outputs, error);
}

bool ThreadSession::runEntry(int entry, const TensorMap &inputs,
                             TensorMap &outputs, Error &error) {
  if (!setInputs(inputs, entry, error) || !step(entry, error))
    return false;
  outputs.clear();
  std::vector<HostTensor *> list;
  for (const Output &output : artifact().entries[entry].outputs)
    list.push_back(&outputs
                        .emplace(output.name, HostTensor(output.layout.type,
                                                         output.layout.shape))
                        .first->second);
  return threads.run([&](Rank &rank, int) { rank.getOutputs(entry, list); },
                     error) &&
         assembleOutputs(*world, artifact().entries[entry], list, error);
}

bool ThreadSession::bench(const TensorMap &inputs, double seconds,
                          StepTimes &times, Error &error) {
  int entry;
  if (!checkInputs(artifact(), inputs, entry, error) ||
      !setInputs(inputs, entry, error))
    return false;
  for (int i = 0; i < kWarmUp; ++i)
    if (!step(entry, error))
      return false;
  std::vector<double> all;
  auto begin = std::chrono::steady_clock::now();
  auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin)
        .count();
  };
  while (true) {
    bool more =
        static_cast<int>(all.size()) < kLeastRuns || elapsed() < seconds;
    if (!agree(world->options.processes.get(), more,
               world->options.collectiveTimeout, error))
      return false;
    if (!more)
      break;
    if (!step(entry, error))
      return false;
    all.push_back(slowest);
  }
  std::sort(all.begin(), all.end());
  size_t middle = all.size() / 2;
  double median =
      all.size() % 2 ? all[middle] : (all[middle - 1] + all[middle]) / 2;
  times = {all.front(), median, all.back(), static_cast<int64_t>(all.size())};
  return true;
}

std::vector<SiteCount> ThreadSession::counters() const {
  std::vector<SiteCount> result;
  const auto &counters = threads.rank(0).counters();
  for (size_t i = 0; i < counters.size(); ++i)
    if (counters[i].count || counters[i].bytes)
      result.push_back({static_cast<int64_t>(i), counters[i].count,
                        counters[i].bytes, counters[i].wireBytes});
  return result;
}

int64_t ThreadSession::libraryBytesPerRank() const {
  int64_t most = 0;
  for (int i = 0; i < threads.count(); ++i)
    most = std::max(most, threads.rank(i).libraryBytes());
  return most;
}

Error usageError(std::string message) {
  return {exits::Usage, "usage", std::move(message), {}};
}

Error checkProcesses(const Artifact &artifact, const Processes *processes,
                     const std::string &comm) {
  if (!processes && comm == "mpi")
    return {exits::NotPresent,
            "communicator",
            "communicator mpi is of processes, and this one has joined none",
            {}};
  if (processes && (comm == "threads" || comm == "loopback"))
    return usageError("communicator " + comm +
                      " has all ranks in one process, and there are " +
                      std::to_string(processes->size()) +
                      ": start one, or give --comm mpi");
  return processes ? checkWorld(processes->size(), artifact.axes, artifact.mesh)
                   : Error();
}

/// What this build or this device can't do, before anything is opened.
Error checkOptions(const Artifact &artifact, const SessionOptions &options,
                   const std::string &comm) {
  bool gpu = artifact.device == "cuda" || artifact.device == "cuda-emulated";
  if (artifact.device != "cpu" && !gpu)
    return {exits::NotPresent,
            "device",
            "the artifact was compiled for " + artifact.device +
                ", which is not in this build",
            {}};
  bool known = comm == "threads" || comm == "mpi";
  for (const std::string &name : cuda::kCommunicators)
    known |= comm == name;
  if (!known)
    return usageError("unknown communicator '" + comm +
                      "'; there are: threads, mpi, nccl, loopback");
  if (gpu == (comm == "threads" || comm == "mpi"))
    return usageError(
        "communicator " + comm + " is not for device " + artifact.device +
        (gpu ? "; it has nccl and loopback" : "; it has threads and mpi"));
  if (Error wrong = checkProcesses(artifact, options.processes.get(), comm))
    return wrong;
  if (gpu && options.profile)
    return usageError("times of instructions are taken on device cpu only");
  if (!(options.collectiveTimeout > 0) || options.collectiveTimeout > 1e9)
    return {exits::Usage,
            "usage",
            "the collective timeout must be above 0 and at most 1e9 seconds",
            {}};
  if (options.threadsPerRank < 0 || options.threadsPerRank > 1024)
    return {
        exits::Usage,
        "usage",
        "threads per rank must be 1 to 1024 (0: as many as there are cores), "
        "not " +
            std::to_string(options.threadsPerRank),
        {}};
  return {};
}

/// `ranks`: on this host.
Error checkMemory(const Artifact &artifact, int64_t ranks) {
  MemoryNeed need = predictMemory(artifact, ranks);
  if (need.allRanks <= need.available)
    return {};
  return {exits::BadInput,
          "memory",
          "the " + std::to_string(ranks) + " ranks need " +
              std::to_string(need.allRanks) + " bytes (" +
              std::to_string(need.bytesPerRank) + " each), more than the " +
              std::to_string(need.available) +
              " bytes that this machine or its cgroup has",
          {}};
}

} // namespace

MemoryNeed mtp::predictMemory(const Artifact &artifact) {
  return predictMemory(artifact, artifact.axes.ranks());
}

MemoryNeed mtp::predictMemory(const Artifact &artifact, int64_t ranks) {
  MemoryNeed need;
  need.bytesPerRank = footprintOf(artifact).total;
  if (!checkedMul(need.bytesPerRank, ranks, need.allRanks))
    need.allRanks = INT64_MAX;
  need.available = availableMemory();
  return need;
}

bool mtp::agree(Processes *processes, bool &decision, double seconds,
                Error &error) {
  if (!processes)
    return true;
  std::string bytes(1, decision ? 'y' : 'n');
  bool shared =
      processes->share(bytes, seconds, "to go on", error) && bytes.size() == 1;
  decision = bytes == "y";
  return shared;
}

Error mtp::checkWorld(int processes, const Mesh &mesh,
                      const std::string &text) {
  if (processes == mesh.ranks())
    return {};
  return usageError(
      "there " +
      (processes == 1 ? std::string("is 1 process")
                      : "are " + std::to_string(processes) + " processes") +
      ", but the mesh " + text + " has " + std::to_string(mesh.ranks()) +
      " rank" + (mesh.ranks() == 1 ? "" : "s") +
      ": start one process for each");
}

std::vector<std::string> mtp::availableCommunicators() {
  std::vector<std::string> names = {"threads"};
  Error missing;
  if (canJoinProcesses(missing))
    names.push_back("mpi");
  names.insert(names.end(), cuda::kCommunicators.begin(),
               cuda::kCommunicators.end());
  return names;
}

std::string mtp::defaultCommunicator(const std::string &device) {
  return device == "cpu" ? "threads" : "nccl";
}

std::unique_ptr<Session> Session::create(Artifact artifact,
                                         const SessionOptions &options,
                                         Error &error) {
  std::string reason;
  if (!artifact.verify(reason)) {
    error = {exits::BadInput, "artifact", reason, {}};
    return nullptr;
  }
  std::string comm = options.comm.empty() ? defaultCommunicator(artifact.device)
                                          : options.comm;
  if ((error = checkOptions(artifact, options, comm)))
    return nullptr;
  bool gpu = artifact.device != "cpu";
  int ranks = options.processes ? options.processes->onThisHost()
                                : static_cast<int>(artifact.axes.ranks());
  if (artifact.device != "cuda" && options.checkMemory &&
      (error = checkMemory(artifact, ranks)))
    return nullptr;
  int cores = usableCores();
  WorldOptions settings;
  settings.processes = options.processes;
  settings.weightsDir = options.weightsDir;
  settings.collectiveTimeout = options.collectiveTimeout;
  settings.threadsPerRank = options.threadsPerRank ? options.threadsPerRank
                                                   : std::max(1, cores / ranks);
  settings.spin = ranks * settings.threadsPerRank <= cores;
  settings.poison = options.poison;
  settings.checkSources = options.checkSources;
  settings.seed = options.seed;
  settings.profile = options.profile;
  settings.capture = options.capture;
  try {
    std::shared_ptr<World> world;
    if (gpu)
      world = cuda::makeGpuWorld(std::move(artifact), settings, comm,
                                 options.checkMemory);
    else
      world = std::make_shared<CpuWorld>(std::move(artifact), settings);
    auto session = std::make_unique<ThreadSession>(std::move(world));
    return session->load(error) ? std::move(session) : nullptr;
  } catch (const RuntimeError &e) {
    error = e.error;
  } catch (const std::bad_alloc &) {
    error = {exits::BadInput, "memory", "out of memory while loading", {}};
  } catch (const std::exception &e) {
    error = {exits::Internal,
             "internal",
             std::string("cannot start the ranks: ") + e.what(),
             {}};
  }
  return nullptr;
}
