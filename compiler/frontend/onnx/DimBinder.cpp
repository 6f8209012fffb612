// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/onnx/DimBinder.h"

#include "compiler/frontend/onnx/OnnxError.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>

namespace mtp::onnx {

namespace {
/// Recursive descent; depth is bounded by the length of a name.
class Expression {
public:
  Expression(const std::string &text,
             const std::map<std::string, int64_t> &values,
             std::vector<std::string> &missing)
      : text(text), values(values), missing(missing) {}

  std::optional<int64_t> evaluate() {
    int64_t result = sum(0);
    skip();
    if (bad || at != text.size() || !missing.empty())
      return std::nullopt;
    return result;
  }

private:
  void skip() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }
  bool take(char c) {
    skip();
    if (at < text.size() && text[at] == c) {
      ++at;
      return true;
    }
    return false;
  }
  int64_t checked(bool overflow, int64_t value) {
    bad |= overflow;
    return overflow ? 0 : value;
  }
  int64_t sum(int depth) {
    int64_t left = product(depth);
    while (!bad) {
      int64_t result = 0;
      if (take('+')) {
        int64_t right = product(depth);
        left = checked(__builtin_add_overflow(left, right, &result), result);
      } else if (take('-')) {
        int64_t right = product(depth);
        left = checked(__builtin_sub_overflow(left, right, &result), result);
      } else {
        break;
      }
    }
    return left;
  }
  int64_t product(int depth) {
    int64_t left = atom(depth);
    while (!bad) {
      int64_t result = 0;
      if (take('*')) {
        int64_t right = atom(depth);
        left = checked(__builtin_mul_overflow(left, right, &result), result);
      } else if (take('/')) {
        take('/');
        int64_t right = atom(depth);
        if (right <= 0 || left < 0) {
          bad |= missing.empty();
          left = 0;
        } else {
          left /= right;
        }
      } else {
        break;
      }
    }
    return left;
  }
  int64_t atom(int depth) {
    if (depth > 100) {
      bad = true;
      return 0;
    }
    if (take('(')) {
      int64_t value = sum(depth + 1);
      bad |= !take(')');
      return value;
    }
    skip();
    size_t start = at;
    while (at < text.size() && !std::strchr("+-*/() ", text[at]))
      ++at;
    if (start == at) {
      bad = true;
      return 0;
    }
    std::string word = text.substr(start, at - start);
    int64_t value = 0;
    auto [end, code] =
        std::from_chars(word.data(), word.data() + word.size(), value);
    if (code == std::errc() && end == word.data() + word.size())
      return value;
    auto known = values.find(word);
    if (known != values.end())
      return known->second;
    if (std::find(missing.begin(), missing.end(), word) == missing.end())
      missing.push_back(word);
    return 1;
  }

  const std::string &text;
  const std::map<std::string, int64_t> &values;
  std::vector<std::string> &missing;
  size_t at = 0;
  bool bad = false;
};
} // namespace

std::optional<int64_t> evaluateDim(const std::string &expression,
                                   const std::map<std::string, int64_t> &values,
                                   std::vector<std::string> &missing) {
  auto known = values.find(expression); // a name may have any characters
  if (known != values.end())
    return known->second;
  return Expression(expression, values, missing).evaluate();
}

std::string DimBinder::Site::describe() const {
  return "dimension " + std::to_string(axis) + " ('" + symbol +
         "') of input '" + input->name + "'";
}

void DimBinder::set(const std::string &name, int64_t value,
                    const std::string &who) {
  auto [at, added] = values.emplace(name, value);
  if (added)
    setBy[name] = who;
  else if (at->second != value)
    failInput("'" + name + "' is " + std::to_string(at->second) + " by " +
              setBy[name] + ", but " + std::to_string(value) + " by " + who);
}

/// Uses a given size of an expression to find its only missing name. True if a
/// name got its value.
bool DimBinder::solve(const Site &site) {
  std::vector<std::string> missing;
  std::optional<int64_t> value = evaluateDim(site.symbol, values, missing);
  if (value || missing.size() != 1 || !site.value)
    return false;
  // Linear with slope 1 in every form that exporters write: evaluate at 0
  // and 1.
  std::vector<std::string> none;
  auto trial = values;
  trial[missing[0]] = 0;
  auto atZero = evaluateDim(site.symbol, trial, none);
  trial[missing[0]] = 1;
  auto atOne = evaluateDim(site.symbol, trial, none);
  if (!atZero || !atOne || *atOne == *atZero)
    return false;
  int64_t difference = *site.value - *atZero, slope = *atOne - *atZero;
  if (difference % slope != 0)
    return false;
  trial[missing[0]] = difference / slope;
  auto check = evaluateDim(site.symbol, trial, none);
  if (!check || *check != *site.value)
    return false;
  set(missing[0], difference / slope, site.describe());
  return true;
}

/// "total" is "past" + "seq" where the names of a cache are that plain.
static std::string cacheSum(const std::string &name,
                            const std::set<std::string> &names) {
  auto has = [](const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
  };
  if (!has(name, "total"))
    return "";
  std::vector<std::string> past, now;
  for (const std::string &other : names)
    if (has(other, "past"))
      past.push_back(other);
    else if (has(other, "seq") && !has(other, "total"))
      now.push_back(other);
  return past.size() == 1 && now.size() == 1 ? past[0] + " + " + now[0] : "";
}

void DimBinder::applyDefaults(const std::vector<Site> &sites) {
  std::set<std::string> names;
  for (const Site &site : sites)
    names.insert(site.symbol);
  std::vector<std::pair<std::string, std::string>> sums;
  for (const Site &site : sites)
    if (std::string sum = cacheSum(site.symbol, names);
        !sum.empty() && !values.count(site.symbol))
      sums.push_back({site.symbol, sum});
  for (const Site &site : sites) {
    std::vector<std::string> missing;
    if (evaluateDim(site.symbol, values, missing))
      continue;
    if (missing.empty())
      missing = {site.symbol};
    for (const std::string &name : missing) {
      if (std::any_of(sums.begin(), sums.end(),
                      [&](auto &sum) { return sum.first == name; }))
        continue;
      std::string lower = name;
      std::transform(lower.begin(), lower.end(), lower.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      bool batch = lower.find("batch") != std::string::npos ||
                   (site.axis == 0 && lower == "n");
      int64_t value = batch ? 1 : 16;
      set(name, value, "default");
      warnings.push_back("dimension '" + name + "' of input '" +
                         site.input->name + "' is set to " +
                         std::to_string(value) + "; give --dim " + name +
                         "=N for another size");
    }
  }
  for (const auto &[name, sum] : sums) {
    std::vector<std::string> missing;
    std::optional<int64_t> value = evaluateDim(sum, values, missing);
    if (!value || values.count(name))
      continue;
    set(name, *value, "default");
    warnings.push_back("dimension '" + name + "' is set to " + sum + " = " +
                       std::to_string(*value) + "; give --dim " + name +
                       "=N for another size");
  }
}

std::optional<Shape> DimBinder::givenShape(const ValueInfo &input) const {
  auto given = options.inputs.find(input.name);
  if (given == options.inputs.end())
    return std::nullopt;
  Shape shape = given->second.shape;
  if (options.microBatches == 1 || shape.empty() || shape[0] != options.batch)
    return shape;
  std::optional<int64_t> rows;
  if (input.hasShape && !input.dims.empty())
    rows = input.dims[0].value;
  if (rows == shape[0])
    return shape;
  std::string many = std::to_string(options.microBatches);
  bool even = shape[0] % options.microBatches == 0;
  shape[0] /= options.microBatches;
  if (rows && (!even || rows != shape[0]))
    failInput("input '" + input.name + "' has " + std::to_string(*rows) +
              " rows; " + many +
              " micro-batches (--accumulate) need as many each, or these " +
              std::to_string(*rows) + " for all; the given array has shape " +
              text(given->second.shape));
  if (!even)
    failInput("the array given for input '" + input.name + "' has shape " +
              text(given->second.shape) + ", which is not " + many +
              " micro-batches (--accumulate) of equal size");
  return shape;
}

std::vector<Shape> DimBinder::bind(const std::vector<ValueInfo> &inputs) {
  for (const auto &[name, value] : options.dims) {
    if (value < 0)
      failUsage("--dim " + name + "=" + std::to_string(value) + " is negative");
    set(name, value, "--dim");
  }
  std::vector<Site> sites;
  for (const ValueInfo &input : inputs) {
    std::optional<Shape> shape = givenShape(input);
    if (!input.hasShape)
      continue;
    if (shape && shape->size() != input.dims.size())
      failInput("input '" + input.name + "' has " +
                std::to_string(input.dims.size()) +
                " dimensions, the given array has shape " + text(*shape));
    for (size_t axis = 0; axis < input.dims.size(); ++axis) {
      const Dim &dim = input.dims[axis];
      if (dim.value) {
        if (shape && (*shape)[axis] != *dim.value)
          failInput("dimension " + std::to_string(axis) + " of input '" +
                    input.name + "' is " + std::to_string(*dim.value) +
                    ", the given array has shape " + text(*shape));
        continue;
      }
      Site site{&input, axis, dim.symbol, {}};
      if (site.symbol.empty())
        site.symbol = input.name + "[" + std::to_string(axis) + "]";
      if (shape)
        site.value = (*shape)[axis];
      sites.push_back(site);
    }
  }
  for (const auto &[name, value] : options.dims) {
    bool used = false;
    for (const Site &site : sites) {
      std::vector<std::string> names;
      evaluateDim(site.symbol, {}, names);
      used |= site.symbol == name ||
              std::find(names.begin(), names.end(), name) != names.end();
    }
    if (!used)
      failUsage("--dim " + name + ": no input has a dimension of that name");
  }
  // Plain names first, then expressions until nothing new is learnt.
  for (const Site &site : sites) {
    std::vector<std::string> names;
    evaluateDim(site.symbol, {}, names);
    bool plain =
        names.empty() || (names.size() == 1 && names[0] == site.symbol);
    if (plain && site.value)
      set(site.symbol, *site.value,
          "the array given for input '" + site.input->name + "'");
  }
  auto learn = [&] {
    bool learnt = true;
    while (learnt) {
      learnt = false;
      for (const Site &site : sites)
        learnt |= solve(site);
    }
  };
  learn();
  if (options.defaultDims)
    applyDefaults(sites);

  std::map<std::pair<const ValueInfo *, size_t>, int64_t> bound;
  for (const Site &site : sites) {
    std::vector<std::string> missing;
    std::optional<int64_t> value = evaluateDim(site.symbol, values, missing);
    if (!value && site.value)
      value = site.value; // an expression beyond the grammar
    if (!value) {
      std::string name = missing.empty() ? site.symbol : missing.front();
      failInput(site.describe() + " has no value; give --dim " + name +
                "=N, or the input itself");
    }
    if (site.value && *site.value != *value)
      failInput(site.describe() + " is " + std::to_string(*value) +
                ", but the given array has " + std::to_string(*site.value));
    if (*value < 0)
      failInput(site.describe() + " is negative: " + std::to_string(*value));
    bound[{site.input, site.axis}] = *value;
  }
  std::vector<Shape> shapes;
  for (const ValueInfo &input : inputs) {
    Shape shape;
    if (!input.hasShape) {
      std::optional<Shape> given = givenShape(input);
      if (!given)
        failInput("input '" + input.name +
                  "' declares no shape; give the input itself");
      shape = *given;
    }
    for (size_t axis = 0; axis < input.dims.size(); ++axis)
      shape.push_back(input.dims[axis].value ? *input.dims[axis].value
                                             : bound[{&input, axis}]);
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

} // namespace mtp::onnx
