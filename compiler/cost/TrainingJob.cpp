// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/cost/TrainingJob.h"

#include <algorithm>
#include <charconv>

using nlohmann::json;

namespace mtp::plan {
namespace {

struct Number {
  const char *key;
  int64_t TrainingJob::*value;
  bool needed;
  const char *help;
};
const Number numbers[] = {
    {"layers", &TrainingJob::layers, true, "transformer layers"},
    {"hidden", &TrainingJob::hidden, true, "width of a token"},
    {"heads", &TrainingJob::heads, true, "attention heads"},
    {"sequence", &TrainingJob::sequence, true, "tokens of a sequence"},
    {"vocabulary", &TrainingJob::vocabulary, true, "rows of the embedding"},
    {"batch", &TrainingJob::batch, true, "sequences of a step, all ranks"},
    {"micro-batch", &TrainingJob::microBatch, false,
     "sequences of a micro-batch (default 1)"},
    {"key-value-heads", &TrainingJob::keyValueHeads, false,
     "heads of keys and values (default heads)"},
    {"feed-forward", &TrainingJob::feedForward, false,
     "width of the network behind attention (default 4 hidden)"},
    {"interleave", &TrainingJob::interleave, false,
     "parts of the model on each pipeline stage (default 1)"}};

struct Flag {
  const char *key;
  bool TrainingJob::*value;
  const char *help;
};
const Flag flags[] = {
    {"gated", &TrainingJob::gated,
     "the network has a third matrix, for a gate"},
    {"untied", &TrainingJob::untied,
     "the output projection is not the embedding table"},
    {"sequence-parallel", &TrainingJob::sequenceParallel,
     "norms and dropout split over tp"},
    {"overlap-gradients", &TrainingJob::overlapGradients,
     "gradients are reduced over dp beside the backward pass"},
    {"fused-gradients", &TrainingJob::fusedGradients,
     "products add to the gradients of earlier micro-batches themselves"},
    {"fused-attention", &TrainingJob::fusedAttention,
     "one kernel that never stores the scores"},
    {"distributed-optimizer", &TrainingJob::distributedOptimizer,
     "optimizer state split over dp"}};

/// No size is larger; products of three fit in int64.
constexpr int64_t kLargest = 1 << 20;

bool readRecompute(const std::string &text, TrainingJob &job) {
  using Recompute = TrainingJob::Recompute;
  for (auto [name, value] : {std::pair{"none", Recompute::None},
                             std::pair{"selective", Recompute::Selective},
                             std::pair{"full", Recompute::Full}})
    if (text == name) {
      job.recompute = value;
      return true;
    }
  return false;
}

bool readInteger(const std::string &text, int64_t &value) {
  auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size();
}

} // namespace

std::vector<std::pair<std::string, std::string>> jobKeys() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Number &number : numbers)
    all.push_back({number.key + std::string("=N"), number.help});
  all.push_back({"recompute=none|selective|full",
                 "what the backward pass computes again: nothing, attention's "
                 "scores, whole layers (default none)"});
  for (const Flag &flag : flags)
    all.push_back({flag.key, flag.help});
  return all;
}

int64_t TrainingJob::axis(const std::string &name) const {
  for (const auto &[axis, size] : mesh)
    if (axis == name)
      return size;
  return 1;
}

int64_t TrainingJob::ranks() const {
  return axis("pp") * axis("dp") * axis("tp");
}

int64_t TrainingJob::microBatches() const {
  return batch / (axis("dp") * microBatch);
}

double TrainingJob::parameters() const {
  double h = double(hidden), l = double(layers);
  return l * matrixElements() + 13 * l * h +
         double((untied ? 2 : 1) * vocabulary + sequence) * h;
}

int64_t TrainingJob::keyValueColumns() const {
  return keyValueHeads ? 2 * (hidden / heads) * keyValueHeads : 2 * hidden;
}

double TrainingJob::matrixElements() const {
  double h = double(hidden);
  return h * (2 * h + double(keyValueColumns()) +
              double((gated ? 3 : 2) * network()));
}

/// `passes` operations for each element of a layer's matrices and token.
static double stepFlops(const TrainingJob &job, double passes) {
  double h = double(job.hidden), l = double(job.layers),
         s = double(job.sequence);
  return double(job.batch) * s *
         (passes * l * (job.matrixElements() + 2 * s * h) +
          6 * double(job.vocabulary) * h);
}

double TrainingJob::flops() const { return stepFlops(*this, 6); }

double TrainingJob::flopsWithRecompute() const { return stepFlops(*this, 8); }

bool setMesh(TrainingJob &job, const std::string &text, std::string &error) {
  job.mesh.clear();
  for (size_t start = 0; start <= text.size();) {
    size_t comma = std::min(text.find(',', start), text.size());
    std::string entry = text.substr(start, comma - start);
    start = comma + 1;
    size_t equals = entry.find('=');
    std::string name = entry.substr(0, equals);
    int64_t size = 0;
    if (name != "pp" && name != "dp" && name != "tp") {
      error = "mesh axis '" + entry +
              "': a simulated mesh has the axes pp, dp and tp";
      return false;
    }
    if (equals == std::string::npos ||
        !readInteger(entry.substr(equals + 1), size) || size < 1 ||
        size > kLargest) {
      error = "mesh axis '" + entry + "' is not NAME=SIZE";
      return false;
    }
    for (const auto &axis : job.mesh)
      if (axis.first == name) {
        error = "mesh axis '" + name + "' is given twice";
        return false;
      }
    job.mesh.push_back({name, size});
  }
  return true;
}

std::optional<TrainingJob> parseJob(const json &object, std::string &error) {
  TrainingJob job;
  if (!object.is_object()) {
    error = "a job is a JSON object";
    return std::nullopt;
  }
  for (const auto &[key, value] : object.items()) {
    const std::string &name = key;
    auto number = std::find_if(std::begin(numbers), std::end(numbers),
                               [&](const Number &n) { return name == n.key; });
    auto flag = std::find_if(std::begin(flags), std::end(flags),
                             [&](const Flag &f) { return name == f.key; });
    bool ok = true;
    std::string wanted;
    if (number != std::end(numbers)) {
      wanted = "a whole number from 1 to " + std::to_string(kLargest);
      ok = value.is_number_integer() && value.get<int64_t>() >= 1 &&
           value.get<int64_t>() <= kLargest;
      if (ok)
        job.*(number->value) = value.get<int64_t>();
    } else if (flag != std::end(flags)) {
      wanted = "true or false";
      ok = value.is_boolean();
      if (ok)
        job.*(flag->value) = value.get<bool>();
    } else if (name == "recompute") {
      wanted = "none, selective or full";
      ok = value.is_string() && readRecompute(value.get<std::string>(), job);
    } else if (name == "mesh") {
      wanted = "a mesh such as \"pp=8,dp=24,tp=8\"";
      ok = value.is_string();
      if (ok && !setMesh(job, value.get<std::string>(), error))
        return std::nullopt;
    } else {
      error = "'" + name + "' is no key of a job; there are:";
      for (const auto &[key, help] : jobKeys())
        error += " " + key.substr(0, key.find('='));
      return std::nullopt;
    }
    if (!ok) {
      error = name + ": " + wanted + " is needed";
      return std::nullopt;
    }
  }
  for (const Number &number : numbers)
    if (number.needed && !(job.*(number.value))) {
      error = std::string(number.key) + " is missing";
      return std::nullopt;
    }
  return job;
}

std::optional<TrainingJob> parseJob(const std::string &text,
                                    std::string &error) {
  auto object = jobObject(text, error);
  return object ? parseJob(*object, error) : std::nullopt;
}

std::optional<json> jobObject(const std::string &text, std::string &error) {
  json object = json::object();
  for (size_t start = 0; start <= text.size();) {
    size_t comma = std::min(text.find(',', start), text.size());
    std::string entry = text.substr(start, comma - start);
    start = comma + 1;
    size_t equals = entry.find('=');
    std::string key = entry.substr(0, equals);
    if (object.contains(key)) {
      error = key + " is given twice";
      return std::nullopt;
    }
    if (equals == std::string::npos) {
      object[key] = true;
      continue;
    }
    std::string value = entry.substr(equals + 1);
    int64_t integer;
    if (readInteger(value, integer))
      object[key] = integer;
    else if (value == "true" || value == "false")
      object[key] = value == "true";
    else
      object[key] = value;
  }
  return object;
}

bool TrainingJob::check(std::string &error) const {
  auto divides = [&](int64_t whole, const char *what, int64_t parts,
                     const std::string &over) {
    if (whole % parts == 0)
      return true;
    error = std::to_string(whole) + " " + what + " do not divide over " + over;
    return false;
  };
  auto text = [](const char *name, int64_t size) {
    return std::string(name) + " = " + std::to_string(size);
  };
  int64_t tp = axis("tp"), pp = axis("pp"), dp = axis("dp");
  if (pp > kLargest / dp || pp * dp > kLargest / tp) {
    error = "the mesh has more than " + std::to_string(kLargest) + " ranks";
    return false;
  }
  if (interleave > 1 && pp == 1) {
    error = "interleave = " + std::to_string(interleave) +
            " needs a pipeline (pp > 1)";
    return false;
  }
  if (sequenceParallel && !divides(sequence, "tokens", tp, text("tp", tp)))
    return false;
  std::string stages = text("pp", pp);
  if (interleave > 1)
    stages += " x interleave = " + std::to_string(interleave);
  if (interleave > 1 && microBatches() % pp != 0) {
    error =
        "an interleaved schedule needs micro-batches that divide over pp: " +
        std::to_string(microBatches()) + " over " + stages;
    return false;
  }
  if (keyValueHeads > heads) {
    error = std::to_string(keyValueHeads) + " key-value heads for " +
            std::to_string(heads) + " heads";
    return false;
  }
  return divides(hidden, "hidden features", heads, text("heads", heads)) &&
         divides(heads, "heads", keyValueHeads ? keyValueHeads : 1,
                 text("key-value-heads", keyValueHeads)) &&
         divides(heads, "heads", tp, text("tp", tp)) &&
         divides(layers, "layers", pp * interleave, stages) &&
         divides(batch, "sequences of a step", dp * microBatch,
                 text("dp", dp) +
                     " x micro-batch = " + std::to_string(microBatch));
}

} // namespace mtp::plan
