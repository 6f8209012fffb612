// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/emulator/Description.h"
#include "runtime/support/Error.h"

#include <map>
#include <nlohmann/json.hpp>

using namespace mtp;
using namespace mtp::emulator;
using nlohmann::json;

namespace {

Site parseSite(const json &from) {
  using Kind = Site::Kind;
  static const std::map<std::string, Kind> kinds = {
      {"load", Kind::Load},     {"store", Kind::Store},
      {"atomic", Kind::Atomic}, {"barrier", Kind::Barrier},
      {"copy", Kind::Copy},     {"commit", Kind::Commit},
      {"wait", Kind::Wait}};
  Site site;
  auto kind = from.at("kind").get<std::string>();
  auto it = kinds.find(kind);
  site.kind = it == kinds.end() ? Kind::Warp : it->second;
  if (site.kind == Kind::Warp)
    site.operation =
        parseWarpOperation(kind, from.at("mode").get<std::string>());
  auto memory = from.at("memory").get<std::string>();
  site.memory = memory == "parameter" ? Site::Memory::Parameter
                : memory == "array"   ? Site::Memory::Array
                                      : Site::Memory::Any;
  from.at("index").get_to(site.index);
  from.at("bytes").get_to(site.bytes);
  from.at("where").get_to(site.where);
  return site;
}

/// Throws json::exception or a text.
KernelDescription parseKernel(const json &from) {
  KernelDescription kernel;
  from.at("symbol").get_to(kernel.symbol);
  from.at("shared").get_to(kernel.sharedBytes);
  for (const json &item : from.at("parameters")) {
    KernelParameter parameter;
    item.at("bytes").get_to(parameter.bytes);
    item.at("written").get_to(parameter.written);
    item.at("granule").get_to(parameter.granule);
    item.at("align").get_to(parameter.align);
    if (parameter.bytes < -1 || parameter.granule < 1 || parameter.align < 1)
      throw std::invalid_argument("a parameter of " + kernel.symbol);
    kernel.parameters.push_back(parameter);
  }
  for (const json &item : from.at("arrays")) {
    SharedArray array;
    item.at("begin").get_to(array.begin);
    item.at("bytes").get_to(array.bytes);
    item.at("granule").get_to(array.granule);
    if (array.begin < 0 || array.bytes < 0 || array.granule < 1 ||
        array.begin + array.bytes > kernel.sharedBytes)
      throw std::invalid_argument("an array of " + kernel.symbol);
    kernel.arrays.push_back(array);
  }
  for (const json &item : from.at("sites")) {
    Site site = parseSite(item);
    size_t bound = site.memory == Site::Memory::Parameter
                       ? kernel.parameters.size()
                       : kernel.arrays.size();
    if (site.bytes < 0 ||
        (site.memory != Site::Memory::Any &&
         (site.index < 0 || static_cast<size_t>(site.index) >= bound)))
      throw std::invalid_argument("a site of " + kernel.symbol);
    kernel.meets |= site.kind != Site::Kind::Load &&
                    site.kind != Site::Kind::Store &&
                    site.kind != Site::Kind::Atomic;
    kernel.sites.push_back(std::move(site));
  }
  return kernel;
}

} // namespace

std::vector<KernelDescription> emulator::parseDescription(const char *text) {
  std::vector<KernelDescription> kernels;
  try {
    json root = json::parse(text);
    for (const json &kernel : root.at("kernels"))
      kernels.push_back(parseKernel(kernel));
  } catch (const std::exception &error) {
    fail(
        exits::BadInput, "artifact",
        std::string("the description of the emulated kernels can't be read: ") +
            error.what());
  }
  return kernels;
}
