// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- StepProfile.cpp - where the time of a step goes --------------------===//
//
// Runs the first program of an artifact on random inputs and prints the time of
// each kind of step and of the slowest steps, of rank 0. Usage:
//   step-profile FILE.mtp [STEPS [THREADS]]
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Session.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

using namespace mtp;

namespace {

struct Total {
  double seconds = 0;
  int64_t count = 0;
};

/// What steps of one kind have in common, "matmul 512x768 768x3072".
std::string kindOf(const Artifact &artifact, const Instruction &step) {
  switch (step.kind) {
  case Instruction::Kind::Kernel:
    return "kernel " + artifact.kernelNames[step.index];
  case Instruction::Kind::Library: {
    const LibrarySite &site = artifact.librarySites[step.index];
    std::string text = site.kind;
    for (const TensorDesc &operand : site.operands) {
      text += " ";
      for (size_t i = 0; i < operand.shape.size(); ++i)
        text += (i ? "x" : "") + std::to_string(operand.shape[i]);
    }
    return text;
  }
  case Instruction::Kind::Start:
  case Instruction::Kind::Done:
    return "collective " + artifact.collectiveSites[step.index].op + " " +
           artifact.collectiveSites[step.index].phase;
  default:
    return "loop";
  }
}

void print(const std::vector<std::pair<std::string, Total>> &rows, size_t most,
           int steps) {
  for (size_t i = 0; i < rows.size() && i < most; ++i)
    std::printf("%9.3f ms %5ld  %s\n", rows[i].second.seconds / steps * 1e3,
                long(rows[i].second.count), rows[i].first.c_str());
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2)
    return std::fprintf(stderr,
                        "usage: step-profile FILE.mtp [STEPS [THREADS]]\n"),
           2;
  std::ifstream file(argv[1], std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}}, message;
  Artifact artifact;
  if (!Artifact::parse(bytes, artifact, message))
    return std::fprintf(stderr, "%s\n", message.c_str()), 1;
  int steps = argc > 2 ? std::max(1, std::atoi(argv[2])) : 5;
  SessionOptions options;
  options.profile = true;
  options.checkSources = false;
  options.threadsPerRank = argc > 3 ? std::atoi(argv[3]) : 1;
  Error error;
  auto session = Session::create(std::move(artifact), options, error);
  if (!session)
    return std::fprintf(stderr, "%s\n", error.message.c_str()), 1;
  const Artifact &loaded = session->artifact();
  const Entry &entry = loaded.entries[0];
  TensorMap inputs = randomInputs(loaded, entry, 1), outputs;
  auto run = [&] {
    if (session->run(entry.name, inputs, outputs, error))
      return;
    std::fprintf(stderr, "%s\n", error.message.c_str());
    std::exit(1);
  };
  run();
  std::vector<double> before = session->stepSeconds(0, 0);
  for (int i = 0; i < steps; ++i)
    run();
  std::vector<double> after = session->stepSeconds(0, 0);
  std::map<std::string, Total> kinds, single;
  Total all;
  for (size_t i = 0; i < entry.program.size(); ++i) {
    const Instruction &step = entry.program[i];
    double seconds = after[i] - before[i];
    for (Total *total : {&kinds[kindOf(loaded, step)],
                         &single["step " + std::to_string(i) + " '" +
                                 step.name + "' " + kindOf(loaded, step)],
                         &all}) {
      total->seconds += seconds;
      ++total->count;
    }
  }
  auto sorted = [](const std::map<std::string, Total> &totals) {
    std::vector<std::pair<std::string, Total>> rows(totals.begin(),
                                                    totals.end());
    std::sort(rows.begin(), rows.end(), [](auto &a, auto &b) {
      return a.second.seconds > b.second.seconds;
    });
    return rows;
  };
  print({{"all steps", all}}, 1, steps);
  std::printf("\n");
  print(sorted(kinds), 60, steps);
  std::printf("\n");
  print(sorted(single), 20, steps);
  return 0;
}
