// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/loader/CpuFeatures.h"

#include <fstream>
#include <map>
#include <set>
#include <sstream>

using namespace mtp;

namespace {

/// LLVM's names that the kernel spells differently. Others are equal, but for
/// '.', '-' and '_'.
const std::map<std::string, std::string> &kernelNames() {
  static const std::map<std::string, std::string> names = {
      // x86-64
      {"64bit", "lm"},
      {"x87", "fpu"},
      {"sse3", "pni"},
      {"lzcnt", "abm"},
      {"crc32", "sse4_2"},
      {"sahf", "lahf_lm"},
      {"rdrnd", "rdrand"},
      {"prfchw", "3dnowprefetch"},
      {"bmi", "bmi1"},
      {"pclmul", "pclmulqdq"},
      {"sha", "sha_ni"},
      {"avxvnni", "avx_vnni"},
      {"avx512bf16", "avx512_bf16"},
      {"avx512fp16", "avx512_fp16"},
      {"avx512vnni", "avx512_vnni"},
      {"avx512vbmi2", "avx512_vbmi2"},
      {"avx512bitalg", "avx512_bitalg"},
      {"avx512vpopcntdq", "avx512_vpopcntdq"},
      {"evex512", "avx512f"},
      {"avxifma", "avx_ifma"},
      {"avxvnniint8", "avx_vnni_int8"},
      {"avxneconvert", "avx_ne_convert"},
      // arm64
      {"neon", "asimd"},
      {"fp-armv8", "fp"},
      {"lse", "atomics"},
      {"fullfp16", "asimdhp"},
      {"dotprod", "asimddp"},
      {"rdm", "asimdrdm"},
      {"rcpc", "lrcpc"},
      {"crypto", "aes"},
      {"crc", "crc32"},
      {"fp16fml", "asimdfhm"},
      {"jsconv", "jscvt"},
      {"complxnum", "fcma"},
      {"ccpp", "dcpop"},
      {"sve2-aes", "sveaes"}};
  return names;
}

std::string plain(const std::string &name) {
  std::string result;
  for (char c : name)
    if (c != '.' && c != '-' && c != '_')
      result += c;
  return result;
}

struct Machine {
  std::set<std::string> flags; ///< plain names
  std::string name;
};

const Machine &machine() {
  static const Machine result = [] {
    Machine m;
    std::ifstream file("/proc/cpuinfo");
    std::string line;
    while (std::getline(file, line)) {
      size_t colon = line.find(':');
      if (colon == std::string::npos)
        continue;
      std::string key =
          line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
      std::istringstream words(line.substr(colon + 1));
      if ((key == "flags" || key == "Features") && m.flags.empty()) {
        std::string flag;
        while (words >> flag)
          m.flags.insert(plain(flag));
      } else if (key == "model name" && m.name.empty()) {
        std::getline(words >> std::ws, m.name);
      }
    }
    return m;
  }();
  return result;
}

} // namespace

std::vector<std::string>
mtp::missingCpuFeatures(const std::vector<std::string> &features) {
  std::vector<std::string> missing;
  for (std::string feature : features) {
    if (feature.empty() || feature[0] == '-')
      continue;
    if (feature[0] == '+')
      feature.erase(0, 1);
    auto it = kernelNames().find(feature);
    const std::string &flag = it == kernelNames().end() ? feature : it->second;
    if (!machine().flags.count(plain(flag)))
      missing.push_back(feature);
  }
  return missing;
}

std::string mtp::cpuName() {
#if defined(__x86_64__)
  std::string architecture = "x86-64";
#elif defined(__aarch64__)
  std::string architecture = "arm64";
#else
  std::string architecture = "unknown";
#endif
  return machine().name.empty() ? architecture
                                : architecture + " (" + machine().name + ")";
}
