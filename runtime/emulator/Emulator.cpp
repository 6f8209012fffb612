// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/emulator/Emulator.h"
#include "runtime/emulator/Machine.h"
#include "runtime/support/Error.h"

using namespace mtp;
using namespace mtp::emulator;

Kernels::Kernels(const std::string &bytes,
                 const std::vector<std::string> &cpuFeatures)
    : object(bytes, cpuFeatures) {
  if (object.count() == 0)
    fail(exits::BadInput, "artifact", "an emulated object has no description");
  const char *text = nullptr;
  char *parameters[] = {reinterpret_cast<char *>(&text)};
  object.kernel(object.count() - 1)(nullptr, parameters, 0, 0);
  descriptions = parseDescription(text);
  if (static_cast<int64_t>(descriptions.size()) + 1 != object.count())
    fail(exits::BadInput, "artifact",
         "an emulated object has " + std::to_string(object.count()) +
             " functions and describes " + std::to_string(descriptions.size()));
  for (size_t i = 0; i < descriptions.size(); ++i)
    bySymbol[descriptions[i].symbol] = static_cast<int>(i);
}

int Kernels::find(const std::string &symbol) const {
  auto it = bySymbol.find(symbol);
  return it == bySymbol.end() ? -1 : it->second;
}

void Kernels::launch(int kernel, const Launch &launch,
                     const std::vector<char *> &parameters) const {
  static thread_local std::unique_ptr<Machine> machine;
  if (!machine)
    machine = std::make_unique<Machine>();
  machine->run(description(kernel), object.kernel(kernel), launch, parameters);
}
