// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/TrainOptions.h"

#include "tools/common/Text.h"

#include <CLI/CLI.hpp>

#include <cmath>

using namespace mtp;

double mtp::learningRate(const TrainOptions &options, int64_t step,
                         int64_t steps) {
  if (step < options.warmup)
    return options.rate * double(step + 1) / double(options.warmup);
  int64_t span = steps - options.warmup;
  double part = span > 0 ? double(step - options.warmup) / double(span) : 0;
  part = std::min(part, 1.0);
  if (options.schedule == "linear")
    return options.rate * (1 - part);
  if (options.schedule == "cosine")
    return options.rate * (1 + std::cos(M_PI * part)) / 2;
  return options.rate;
}

struct TrainFlags::Raw {
  bool train = false, sequenceParallel = false;
  std::string recompute, lossScale;
  std::string loss, optimizer = "adamw", dropout = "model",
                    schedule = "constant", data;
  std::string rate, momentum, decay, beta1, beta2, eps, clip, warmup, steps,
      accumulate, zero;
  std::vector<std::string> freeze, trainOnly, ties;
  std::string dumpGrads, dumpParams, dumpInputGrads;
};

TrainFlags::TrainFlags() : raw(std::make_unique<Raw>()) {}
TrainFlags::~TrainFlags() = default;

/// Of the program; of the run.
static const char *const programGroup = "Train", *const runGroup = "Train, run";

static void addProgramFlags(CLI::App &app, auto &raw) {
  auto option = [&](const char *name, auto &value, const char *type,
                    const char *help) {
    return app.add_option(name, value, help)
        ->type_name(type)
        ->group(programGroup);
  };
  auto many = [&](const char *name, auto &value, const char *type,
                  const char *help) {
    option(name, value, type, help)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  app.add_flag("--train", raw.train, "Train the model")->group(programGroup);
  option(
      "--loss", raw.loss, "SPEC",
      "cross_entropy:logits=NAME,labels=NAME[,ignore_index=N]"
      "[,label_smoothing=X], mse:prediction=NAME,target=NAME, output:NAME or "
      "@FILE.json");
  option("--optimizer", raw.optimizer, "sgd|adamw", "Default adamw")
      ->check(CLI::IsMember({"sgd", "adamw"}).description(""));
  option("--momentum", raw.momentum, "X", "Of sgd (default 0)");
  option("--weight-decay", raw.decay, "X",
         "Of all trained parameters (default adamw 0.01, sgd 0)");
  option("--beta1", raw.beta1, "X", "Of adamw (default 0.9)");
  option("--beta2", raw.beta2, "X", "Of adamw (default 0.999)");
  option("--eps", raw.eps, "X", "Of adamw (default 1e-8)");
  option("--clip-norm", raw.clip, "X",
         "Scale gradients down to this norm (default: none)");
  option("--accumulate", raw.accumulate, "K",
         "Cut the batch of a step into K micro-batches (default 1)");
  option("--zero", raw.zero, "1|2|3",
         "Split optimizer states, gradients, parameters over dp");
  option("--dropout", raw.dropout, "model|on|off",
         "As the model has it, all or none (default model)")
      ->check(CLI::IsMember({"model", "on", "off"}).description(""));
  app.add_flag("--sequence-parallel", raw.sequenceParallel,
               "Split norms, dropout and residuals by tokens, too")
      ->group(programGroup);
  option("--recompute", raw.recompute, "none|layers|auto",
         "layers: compute activations again instead of keeping them; auto: "
         "of as few layers as --memory-budget, else this machine, asks for "
         "(default none; auto with a budget)")
      ->check(CLI::IsMember({"none", "layers", "auto"}).description(""));
  option("--loss-scale", raw.lossScale, "dynamic|X",
         "Differentiate the loss times X, for f16; dynamic: 65536, halved when "
         "a gradient overflows, doubled after 2000 steps");
  many("--freeze", raw.freeze, "GLOB",
       "Parameters that are not trained (repeatable)");
  many("--train-only", raw.trainOnly, "GLOB",
       "The only parameters that are trained (repeatable)");
  many("--tie", raw.ties, "A,B[:transposed]",
       "One parameter under two names (repeatable)");
}

static void addRunFlags(CLI::App &app, auto &raw) {
  auto option = [&](const char *name, std::string &value, const char *type,
                    const char *help) {
    return app.add_option(name, value, help)->type_name(type)->group(runGroup);
  };
  option("--lr", raw.rate, "X", "Learning rate (default 1e-3)");
  option("--lr-schedule", raw.schedule, "constant|linear|cosine",
         "After warm-up, over the rest of --steps, down to 0 (default "
         "constant)")
      ->check(CLI::IsMember({"constant", "linear", "cosine"}).description(""));
  option("--warmup", raw.warmup, "N",
         "Steps over which the learning rate rises (default 0)");
  option("--data", raw.data, "GLOB",
         ".npz files, one a step, in order, again from the start");
  option("--steps", raw.steps, "N", "Default 1");
  option("--dump-grads", raw.dumpGrads, "FILE.npz",
         "Gradients of the first step, before clipping, by initializer");
  option("--dump-params", raw.dumpParams, "FILE.npz",
         "Trained parameters after the last step, by initializer");
  option("--dump-input-grads", raw.dumpInputGrads, "FILE.npz",
         "Gradients of the float inputs in the first step");
}

void TrainFlags::add(CLI::App &app, bool run) {
  addProgramFlags(app, *raw);
  if (run)
    addRunFlags(app, *raw);
}

static double number(const char *flag, const std::string &text,
                     double otherwise, double below = HUGE_VAL) {
  if (text.empty())
    return otherwise;
  std::optional<double> value = parseNumber(text);
  if (value && *value >= 0 && *value < below)
    return *value;
  throw TrainFlags::UsageError{
      std::string(flag) + " '" + text + "': a number not below 0" +
      (std::isfinite(below) ? " and below " + numberText(below) : "") +
      " is needed"};
}

static int64_t integer(const char *flag, const std::string &text,
                       int64_t otherwise, int64_t least, int64_t most) {
  if (text.empty())
    return otherwise;
  std::optional<int64_t> value = parseInteger(text);
  if (value && *value >= least && *value <= most)
    return *value;
  throw TrainFlags::UsageError{
      std::string(flag) + " '" + text + "': a whole number from " +
      std::to_string(least) + " to " + std::to_string(most) + " is needed"};
}

/// The first option of a group that was given, but --train.
static std::string given(const CLI::App &app, const std::string &group) {
  for (const CLI::Option *option : app.get_options())
    if (option->count() && option->get_group() == group &&
        option->get_name() != "--train")
      return option->get_name();
  return {};
}

void TrainFlags::finish(const CLI::App &app, bool isArtifact,
                        TrainOptions &options,
                        std::optional<TrainRequest> &request) const {
  std::string program = given(app, programGroup), run = given(app, runGroup);
  if (!raw->train && !(program + run).empty())
    throw UsageError{(program.empty() ? run : program) + " needs --train"};
  if (!raw->train)
    return;
  constexpr int64_t most = int64_t(1) << 40;
  options.train = true;
  options.rate = number("--lr", raw->rate, 1e-3);
  options.schedule = raw->schedule;
  options.warmup = integer("--warmup", raw->warmup, 0, 0, most);
  options.steps = integer("--steps", raw->steps, 1, 1, most);
  options.data = raw->data;
  options.dumpGrads = raw->dumpGrads;
  options.dumpParams = raw->dumpParams;
  options.dumpInputGrads = raw->dumpInputGrads;
  if (isArtifact) {
    if (!program.empty())
      throw UsageError{program + " is a compile option; the model is compiled "
                                 "already"};
    return;
  }
  TrainRequest &made = request.emplace();
  std::string error;
  if (raw->loss.empty())
    throw UsageError{"--train needs --loss"};
  if (!parseLoss(raw->loss, made.loss, error))
    throw UsageError{"--loss: " + error};
  bool adamw = raw->optimizer == "adamw";
  made.optimizer = raw->optimizer;
  made.momentum = number("--momentum", raw->momentum, 0);
  made.weightDecay = number("--weight-decay", raw->decay, adamw ? 0.01 : 0);
  made.beta1 = number("--beta1", raw->beta1, 0.9, 1);
  made.beta2 = number("--beta2", raw->beta2, 0.999, 1);
  made.eps = number("--eps", raw->eps, 1e-8);
  made.clipNorm = number("--clip-norm", raw->clip, 0);
  for (auto [flag, text] : {std::pair{"--beta1", &raw->beta1},
                            {"--beta2", &raw->beta2},
                            {"--eps", &raw->eps}})
    if (!adamw && !text->empty())
      throw UsageError{std::string(flag) + " is of adamw"};
  if (adamw && !raw->momentum.empty())
    throw UsageError{"--momentum is of sgd; adamw has --beta1"};
  made.accumulate = integer("--accumulate", raw->accumulate, 1, 1, 1 << 20);
  made.zero = int(integer("--zero", raw->zero, 0, 1, 3));
  made.dropout = raw->dropout;
  made.sequenceParallel = raw->sequenceParallel;
  made.recompute = raw->recompute;
  made.lossScale = !raw->lossScale.empty();
  options.dynamicScale = raw->lossScale == "dynamic";
  options.lossScale =
      options.dynamicScale ? 65536 : number("--loss-scale", raw->lossScale, 1);
  if (options.lossScale == 0)
    throw UsageError{
        "--loss-scale '0': a number above 0, or dynamic, is needed"};
  made.freeze = raw->freeze;
  made.trainOnly = raw->trainOnly;
  made.ties = raw->ties;
  made.keepGradients = !options.dumpGrads.empty();
  made.inputGradients = !options.dumpInputGrads.empty();
}
