// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-cuda-check.cpp - checks a record that a process has left -------===//
//
//   MTP_CUDA_RECORDER=…/libmtp-cuda-recorder.so MTP_CUDA_RECORD=step.json
//     mtp-run model.mtp --random-inputs --bench=0.1
//   mtp-cuda-check step.json
//
// Prints what it counted, or one line for each thing that is wrong (exit 1).
//
//===----------------------------------------------------------------------===//
#include "test/cuda/Checker.h"

#include <cstdio>
#include <fstream>

using namespace mtp::software;

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: mtp-cuda-check RECORD.json\n");
    return 2;
  }
  Record record;
  try {
    std::ifstream file(argv[1]);
    record = nlohmann::json::parse(file).get<Record>();
  } catch (const nlohmann::json::exception &e) {
    fprintf(stderr, "mtp-cuda-check: %s: %s\n", argv[1], e.what());
    return 2;
  }
  std::vector<std::string> findings = checkRecord(record);
  for (const std::string &finding : findings)
    printf("%s\n", finding.c_str());
  size_t captured = 0, launches = 0;
  for (const Work &work : record.work) {
    captured += work.graph != 0;
    launches += work.launched != 0;
  }
  printf("%zu calls, %zu works (%zu captured), %zu graph launches, %zu "
         "collectives, %zu findings\n",
         record.calls.size(), record.work.size(), captured, launches,
         record.collectives.size(), findings.size());
  return findings.empty() ? 0 : 1;
}
