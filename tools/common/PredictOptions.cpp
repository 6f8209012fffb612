// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/PredictOptions.h"

#include "compiler/cost/TrainingJob.h"

#include <CLI/CLI.hpp>

#include <algorithm>

using namespace mtp;

static std::string jobHelp() {
  std::string text = "Model and step to simulate, a .json file or KEY=N,...: ";
  bool first = true;
  for (const auto &[key, help] : plan::jobKeys()) {
    text += (first ? "" : "; ") + key + " " + help;
    first = false;
  }
  return text;
}

void mtp::addPredictOptions(CLI::App &app, PredictOptions &options) {
  const char *group = "Predict";
  app.add_flag("--simulate", options.simulate,
               "Predict the step time and memory of a training run on a "
               "cluster; needs --cluster and --job, takes --mesh with the axes "
               "pp, dp, tp; sizes of a MODEL that is given are read from it")
      ->group(group);
  app.add_option("--cluster", options.cluster,
                 "Cluster file, or the name of one that ships: a100-hdr8, "
                 "a100-hdr4, h100, dgx2h")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--job", options.job, jobHelp())
      ->type_name("JOB")
      ->group(group);
  app.add_flag("--calibrate", options.calibrateTo,
               "Measure this machine for the planner: --calibrate[=FILE] "
               "(default: the user's configuration folder)")
      ->group(group);
}

std::string mtp::finishPredictOptions(const CLI::App &app,
                                      PredictOptions &options) {
  options.calibrate = app.count("--calibrate") > 0;
  options.meshGiven = app.count("--mesh") > 0;
  if (options.calibrateTo == "true") // the flag without a value
    options.calibrateTo.clear();
  if (!options.wanted()) {
    for (const char *name : {"--cluster", "--job"})
      if (app.count(name))
        return std::string(name) + " is an option of --simulate";
    return "";
  }
  std::string what = options.simulate ? "--simulate" : "--calibrate";
  if (options.simulate && options.calibrate)
    return "--simulate and --calibrate are two runs";
  if (app.count("MODEL") && !options.simulate)
    return "--calibrate runs no model";
  std::vector<std::string> allowed = {what, "--json", "--quiet", "--verbose"};
  if (options.simulate)
    allowed.insert(allowed.end(),
                   {"MODEL", "--dim", "--cluster", "--job", "--mesh"});
  for (const CLI::Option *option : app.get_options())
    if (option->count() && std::find(allowed.begin(), allowed.end(),
                                     option->get_name()) == allowed.end())
      return option->get_name() + " has no meaning with " + what;
  if (options.simulate)
    for (const char *name : {"--cluster", "--job"})
      if (!app.count(name))
        return std::string("--simulate needs ") + name;
  if (app.count("--dim") && !app.count("MODEL"))
    return "--dim has no meaning without a model";
  return "";
}
