// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/cuda/Reductions.h"

#include <algorithm>

using namespace mtp;
using namespace mtp::cuda;

namespace {

constexpr unsigned kBlock = 256;
/// Blocks beyond this add nothing: the kernel goes on by grid strides.
constexpr int64_t kMostBlocks = 4096;

std::string symbolOf(const CollectiveSite &site) {
  static const char *const reductions[] = {"sum", "max", "min"};
  return std::string("mtp_reduce_") +
         reductions[static_cast<size_t>(site.reduction)] + "_" +
         name(site.type);
}

bool reduces(const CollectiveSite &site) {
  return site.kind == CollectiveSite::Kind::AllReduce ||
         site.kind == CollectiveSite::Kind::ReduceScatter;
}

} // namespace

FunctionHandle *mtp::cuda::loadFunction(const Device &device,
                                        const Module &module,
                                        const std::string &symbol,
                                        int64_t sharedBytes) {
  const DriverApi &driver = device.api();
  FunctionHandle *function = nullptr;
  std::string what = "loading kernel '" + symbol + "'";
  check(driver, driver.moduleFunction(&function, module.get(), symbol.c_str()),
        what.c_str());
  // With lazy loading the driver takes the code at the first use only; a
  // captured step must not be that.
  int registers = 0;
  check(driver, driver.functionGet(&registers, driver::NumRegisters, function),
        what.c_str());
  if (sharedBytes > device.maxSharedBytes())
    fail(exits::NotPresent, "device",
         "kernel '" + symbol + "' needs " + std::to_string(sharedBytes) +
             " bytes of shared memory; " + device.name() + " has " +
             std::to_string(device.maxSharedBytes()));
  if (sharedBytes > 0)
    check(driver,
          driver.functionSet(function, driver::MaxDynamicShared,
                             static_cast<int>(sharedBytes)),
          what.c_str());
  return function;
}

Reductions::Reductions(const Device &device, const Module &module,
                       const std::vector<CollectiveSite> &sites)
    : driver(&device.api()) {
  for (const CollectiveSite &site : sites)
    if (reduces(site)) {
      FunctionHandle *&function = functions[symbolOf(site)];
      if (!function)
        function = loadFunction(device, module, symbolOf(site), 0);
    }
}

void Reductions::enqueue(const CollectiveSite &site, Address out, Address in,
                         int64_t elements, StreamHandle *stream) const {
  if (elements == 0)
    return;
  int64_t blocks = std::min((elements + kBlock - 1) / kBlock, kMostBlocks);
  auto bytes = static_cast<uint64_t>(elements * byteSize(site.type));
  void *parameters[] = {&out, &in, &elements};
  if (driver->touches) {
    Touched ranges[] = {
        {out, bytes, false}, {in, bytes, false}, {out, bytes, true}};
    driver->touches(ranges, 3);
  }
  check(*driver,
        driver->launch(functions.at(symbolOf(site)),
                       static_cast<unsigned>(blocks), 1, 1, kBlock, 1, 1, 0,
                       stream, parameters, nullptr),
        "launching a reduction");
}
