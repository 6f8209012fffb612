// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "LinearProgram.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

namespace mtp::plan {
namespace {

/// Writes the rows as text; an entry of a sum is "+ 3 n0_1".
class LpWriter {
public:
  LpWriter(const Problem &problem, const MemoryModel &memory,
           std::optional<int64_t> budget)
      : problem(problem), memory(memory), budget(budget) {}

  std::string run() {
    for (size_t v = 0; v < problem.variables.size(); ++v)
      addVariable(int(v));
    for (size_t i = 0; i < problem.pairs.size(); ++i)
      addPair(int(i));
    if (budget)
      rows << bytes.str() << " + t <= " << *budget << "\n";
    return "Minimize\n obj:" + costs.str() + "\nSubject To\n" + rows.str() +
           "Binary\n" + binaries.str() + "End\n";
  }

private:
  static std::string node(int v, size_t x) {
    return "n" + std::to_string(v) + "_" + std::to_string(x);
  }

  void charge(const std::string &name, Time cost, const Footprint *footprint,
              size_t entry) {
    costs << " + " << cost << " " << name << "\n";
    if (!footprint)
      return;
    if (!footprint->bytes.empty() && footprint->bytes[entry])
      bytes << " + " << footprint->bytes[entry] << " " << name << "\n";
    if (!footprint->transient.empty() && footprint->transient[entry])
      rows << " t - " << footprint->transient[entry] << " " << name
           << " >= 0\n";
  }

  void addVariable(int v) {
    const std::vector<Time> &unary = problem.variables[v].unary;
    std::string sum;
    for (size_t x = 0; x < unary.size(); ++x) {
      if (unary[x] >= kIllegal)
        continue;
      sum += " + " + node(v, x);
      binaries << " " << node(v, x) << "\n";
      charge(node(v, x), unary[x],
             memory.variables.empty() ? nullptr : &memory.variables[v], x);
    }
    rows << sum << " = 1\n";
  }

  void addPair(int index) {
    const Pair &pair = problem.pairs[index];
    const std::vector<Time> &a = problem.variables[pair.a].unary,
                            &b = problem.variables[pair.b].unary;
    std::vector<std::string> byRow(a.size()), byColumn(b.size());
    for (size_t x = 0; x < a.size(); ++x)
      for (size_t y = 0; y < b.size(); ++y) {
        size_t entry = x * b.size() + y;
        if (a[x] >= kIllegal || b[y] >= kIllegal ||
            pair.table[entry] >= kIllegal)
          continue;
        std::string name =
            "e" + std::to_string(index) + "_" + std::to_string(entry);
        byRow[x] += " + " + name;
        byColumn[y] += " + " + name;
        charge(name, pair.table[entry],
               memory.pairs.empty() ? nullptr : &memory.pairs[index], entry);
      }
    auto add = [&](int v, const std::vector<Time> &unary,
                   const std::vector<std::string> &sums) {
      for (size_t x = 0; x < unary.size(); ++x)
        if (unary[x] < kIllegal)
          rows << sums[x] << " - " << node(v, x) << " = 0\n";
    };
    add(pair.a, a, byRow);
    add(pair.b, b, byColumn);
  }

  const Problem &problem;
  const MemoryModel &memory;
  std::optional<int64_t> budget;
  std::ostringstream costs, rows, bytes, binaries;
};

std::string contentOf(const std::filesystem::path &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A folder of its own, removed at the end.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "mtp-cbc-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw std::runtime_error("no folder for CBC's files");
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

} // namespace

bool haveCbc() { return std::system("command -v cbc >/dev/null 2>&1") == 0; }

std::optional<std::vector<int>> solveWithCbc(const Problem &problem,
                                             const MemoryModel &memory,
                                             std::optional<int64_t> budget) {
  Folder folder;
  std::ofstream(folder.path / "model.lp")
      << LpWriter(problem, memory, budget).run();
  std::string command = "cd '" + folder.path.string() +
                        "' && cbc model.lp ratioGap 0 allowableGap 0 "
                        "increment 0 solve solution solution.txt >log.txt 2>&1";
  int code = std::system(command.c_str());
  std::ifstream solution(folder.path / "solution.txt");
  std::string line;
  if (code != 0 || !std::getline(solution, line))
    throw std::runtime_error("cbc failed: " +
                             contentOf(folder.path / "log.txt"));
  if (line.find("nfeasible") != std::string::npos)
    return std::nullopt;
  if (line.find("Optimal") != 0)
    throw std::runtime_error("cbc: " + line);
  // Lines are: column number, name, value, reduced cost.
  std::vector<int> assignment(problem.variables.size(), -1);
  while (std::getline(solution, line)) {
    std::istringstream words(line);
    std::string column, name;
    double value = 0;
    int v = 0, x = 0;
    if (words >> column >> name >> value && value > 0.5 &&
        std::sscanf(name.c_str(), "n%d_%d", &v, &x) == 2)
      assignment[v] = x;
  }
  return assignment;
}

} // namespace mtp::plan
