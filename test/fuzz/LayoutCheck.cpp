// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LayoutCheck.cpp - the verifier against the design's table ----------===//

#include "test/fuzz/LayoutMaker.h"
#include "test/fuzz/RuleTables.h"
#include "test/fuzz/TypedPrograms.h"

#include "mlir/IR/IRMapping.h"

#include <set>

using namespace mlir;
using namespace mtp;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

namespace {
constexpr int64_t kRanks = 2;

/// One state of one tensor; `dim` and `unit` of S.
struct State {
  char kind = 'I'; ///< I, R, S, P (sum), M (max), m (min)
  int dim = -1;
  int64_t unit = 1;
  bool operator<(const State &other) const {
    return std::tie(kind, dim, unit) <
           std::tie(other.kind, other.dim, other.unit);
  }
  std::string text() const {
    std::string text(1, kind);
    if (kind == 'S')
      text +=
          std::to_string(dim) + (unit > 1 ? "u" + std::to_string(unit) : "");
    return text;
  }
};
using States = std::vector<State>;

/// A dimension as written: letters, major first; empty if it is 1.
using Dim = std::string;

/// A line of layouts.txt with the sizes of a seed.
class Expected {
public:
  Expected(const std::string &line, Operation *op) : op(op) {
    auto [shapes, flags] = StringRef(line).split(';');
    auto [operandText, resultText] = shapes.trim().split("->");
    parse(operandText, operands);
    parse(resultText, results);
    source = flags.contains("source");
    passes = {flags.contains("max"), flags.contains("min")};
    for (StringRef set : llvm::split(
             flags.trim().take_until([](char c) { return c == ' '; }), '|')) {
      std::set<unsigned> members;
      for (StringRef member : llvm::split(set, '&')) {
        unsigned index;
        if (!member.getAsInteger(10, index))
          members.insert(index);
      }
      if (!members.empty())
        linear.push_back(members);
    }
    if (op->getNumOperands() == 0)
      operands.clear();
    sizeLetters();
  }

  /// True if the line has the tensors and dimensions of the op.
  bool fits() const {
    auto ranksFit = [](ValueRange values,
                       const std::vector<std::vector<Dim>> &dims) {
      if (values.size() != dims.size())
        return false;
      for (auto [value, tensor] : llvm::zip_equal(values, dims))
        if (typeOf(value).getRank() != static_cast<int64_t>(tensor.size()))
          return false;
      return true;
    };
    return ranksFit(op->getOperands(), operands) &&
           ranksFit(op->getResults(), results);
  }

  /// All accepted combinations, operands first.
  std::set<States> accepted() {
    if (source)
      return sourceStates();
    addRow(State{'I'}, State{'I'});
    addRow(State{'R'}, State{'R'});
    for (const std::set<unsigned> &members : linear) {
      States states;
      for (unsigned index = 0; index < operands.size(); ++index)
        states.push_back(State{members.count(index) ? 'P' : 'R'});
      states.resize(operands.size() + results.size(), State{'P'});
      addFree(states, 0);
    }
    if (passes[0])
      addRow(State{'M'}, State{'M'});
    if (passes[1])
      addRow(State{'m'}, State{'m'});
    for (auto &[letter, size] : sizes)
      if (letter >= 'a' && letter <= 'z')
        addSharded(letter);
    return std::move(rows);
  }

  /// Every state that a tensor may be written in.
  std::vector<State> candidates(unsigned tensor, bool extrema) {
    const std::vector<Dim> &dims = dimsOf(tensor);
    std::vector<State> states{State{'I'}, State{'R'}, State{'P'}};
    if (extrema)
      states.insert(states.end(), {State{'M'}, State{'m'}});
    for (int dim = 0, rank = dims.size(); dim < rank; ++dim) {
      states.push_back({'S', dim, 1});
      int64_t unit = unitBehind(dims[dim], 0);
      if (canonicalUnit(tensor, dim, unit) != 1)
        states.push_back({'S', dim, unit});
    }
    return states;
  }

private:
  static void parse(StringRef text, std::vector<std::vector<Dim>> &tensors) {
    for (StringRef tensor : llvm::split(text, ',')) {
      std::vector<Dim> &dims = tensors.emplace_back();
      bool inside = false;
      for (char c : tensor.trim()) {
        if (c == '(' || c == ')') {
          inside = c == '(';
          if (inside)
            dims.emplace_back();
        } else if (inside) {
          dims.back() += c;
        } else {
          dims.push_back(c == '1' ? "" : std::string(1, c));
        }
      }
    }
  }

  const std::vector<Dim> &dimsOf(unsigned tensor) {
    return tensor < operands.size() ? operands[tensor]
                                    : results[tensor - operands.size()];
  }
  Value valueOf(unsigned tensor) {
    return tensor < operands.size() ? op->getOperand(tensor)
                                    : op->getResult(tensor - operands.size());
  }

  /// Sizes of letters that stand alone, then of those that are left in groups.
  void sizeLetters() {
    for (int pass = 0; pass < 2; ++pass)
      for (unsigned tensor = 0; tensor < operands.size() + results.size();
           ++tensor)
        for (auto [dim, letters] : llvm::enumerate(dimsOf(tensor))) {
          int64_t rest = typeOf(valueOf(tensor)).getDimSize(dim);
          char unknown = 0;
          for (char letter : letters) {
            if (sizes.count(letter))
              rest /= sizes[letter];
            else
              unknown = letter;
          }
          if (unknown && (letters.size() == 1 || pass))
            sizes[unknown] = rest;
        }
  }

  int64_t unitBehind(const Dim &letters, size_t position) {
    int64_t unit = 1;
    for (size_t i = position + 1; i < letters.size(); ++i)
      unit *= sizes[letters[i]];
    return unit;
  }

  /// A unit that changes no block is 1.
  int64_t canonicalUnit(unsigned tensor, int dim, int64_t unit) {
    int64_t extent = typeOf(valueOf(tensor)).getDimSize(dim);
    auto capacity = [&](int64_t u) {
      return llvm::divideCeil(llvm::divideCeil(extent, u), kRanks) * u;
    };
    return capacity(unit) == capacity(1) ? 1 : unit;
  }

  /// The state of a tensor that has the letter, nothing if it has not.
  std::optional<State> shardedState(unsigned tensor, char letter) {
    for (auto [dim, letters] : llvm::enumerate(dimsOf(tensor)))
      if (size_t at = letters.find(letter); at != std::string::npos)
        return State{'S', static_cast<int>(dim),
                     canonicalUnit(tensor, dim, unitBehind(letters, at))};
    return std::nullopt;
  }

  void addSharded(char letter) {
    States states;
    bool inResults = false;
    for (unsigned index = 0; index < results.size(); ++index)
      inResults |= shardedState(operands.size() + index, letter).has_value();
    char lacking = inResults ? 'R' : passes[0] ? 'M' : passes[1] ? 'm' : 'P';
    for (unsigned tensor = 0; tensor < operands.size() + results.size();
         ++tensor)
      states.push_back(
          shardedState(tensor, letter)
              .value_or(State{tensor < operands.size() ? 'R' : lacking}));
    addFree(states, 0);
  }

  void addRow(State operand, State result) {
    States states(operands.size(), operand);
    states.resize(operands.size() + results.size(), result);
    addFree(states, 0);
  }

  /// Integers, booleans, constants may be I where R is required.
  void addFree(States &states, unsigned from) {
    rows.insert(states);
    for (unsigned index = from; index < operands.size(); ++index) {
      Value value = op->getOperand(index);
      Operation *source = value.getDefiningOp();
      bool free = !isa<FloatType>(typeOf(value).getElementType()) ||
                  isa_and_nonnull<ConstantOp, IotaOp>(source);
      if (!free || states[index].kind != 'R')
        continue;
      states[index].kind = 'I';
      addFree(states, index + 1);
      states[index].kind = 'R';
    }
  }

  std::set<States> sourceStates() {
    rows = {{State{'I'}}, {State{'R'}}};
    for (auto [dim, letters] : llvm::enumerate(results[0]))
      if (!letters.empty() && letters[0] >= 'a')
        rows.insert({State{'S', static_cast<int>(dim), 1}});
    return std::move(rows);
  }

  Operation *op;
  std::vector<std::vector<Dim>> operands, results;
  std::vector<std::set<unsigned>> linear;
  std::array<bool, 2> passes{};
  bool source = false;
  std::map<char, int64_t> sizes;
  std::set<States> rows;
};

/// Tries all combinations on a copy of the op.
class LayoutChecker {
public:
  LayoutChecker(func::FuncOp seed, Expected &expected,
                fuzz::LayoutCounts &counts)
      : seed(seed), expected(expected), counts(counts) {
    mesh.axes.push_back({"tp", -1, kRanks});
  }

  std::string run() {
    fuzz::Program program(seed, &mesh);
    IRMapping mapping;
    mapping.map(seed.getArguments(), program.main.getArguments());
    Operation *copy = nullptr;
    for (Operation &op : seed.getBody().front().without_terminator()) {
      Operation *cloned = program.builder.clone(op, mapping);
      if (&op == fuzz::mainOp(seed))
        copy = cloned;
    }
    for (Value value : copy->getOperands())
      values.push_back(value);
    for (Value value : copy->getResults())
      values.push_back(value);
    accepted = expected.accepted();
    int64_t combinations = 1;
    for (unsigned tensor = 0; tensor < values.size(); ++tensor)
      combinations *= expected.candidates(tensor, true).size();
    for (unsigned tensor = 0; tensor < values.size(); ++tensor) {
      auto &all = types.emplace_back();
      for (State state : expected.candidates(tensor, combinations < 40000))
        all.push_back({state, typed(values[tensor], state)});
    }
    ScopedDiagnosticHandler handler(seed.getContext(),
                                    [&](Diagnostic &diagnostic) {
                                      message = diagnostic.str();
                                      return success();
                                    });
    States states;
    std::string error = tryAll(copy, states);
    program.finish();
    return error;
  }

private:
  RankedTensorType typed(Value value, State state) {
    auto type = typeOf(value);
    Layout layout(1, type.getRank());
    switch (state.kind) {
    case 'R':
      layout.states[0] = {Kind::R, -1};
      break;
    case 'P':
      layout.states[0] = {Kind::PSum, -1};
      break;
    case 'M':
      layout.states[0] = {Kind::PMax, -1};
      break;
    case 'm':
      layout.states[0] = {Kind::PMin, -1};
      break;
    case 'S':
      layout.shard(0, state.dim);
      layout.dims[state.dim].unit = state.unit;
      break;
    default:
      break;
    }
    auto plain = RankedTensorType::get(type.getShape(), type.getElementType());
    return withLayout(plain, toAttr(seed.getContext(), layout, mesh));
  }

  std::string tryAll(Operation *op, States &states) {
    if (states.size() == values.size())
      return tryOne(op, states);
    for (auto &[state, type] : types[states.size()]) {
      // One value may stand in two operands' places; the last one sets its
      // type.
      values[states.size()].setType(type);
      states.push_back(state);
      std::string error = tryAll(op, states);
      states.pop_back();
      if (!error.empty())
        return error;
    }
    return "";
  }

  std::string tryOne(Operation *op, const States &states) {
    message.clear();
    bool got = succeeded(op->getName().verifyInvariants(op)),
         want = accepted.count(states);
    (got ? counts.accepted : counts.refused)++;
    std::string text;
    for (auto [index, state] : llvm::enumerate(states))
      text += (index == op->getNumOperands() ? " -> "
               : index                       ? ", "
                                             : "") +
              state.text();
    if (got != want)
      return text + (got ? " is accepted" : " is refused: " + message);
    if (got)
      return "";
    StringRef reason = message;
    bool named = reason.contains("axis tp: ") ||
                 (reason.contains("the layouts do not fit together: ") &&
                  reason.contains("tp = "));
    if (!named)
      return text + " is refused without axis and rule: " + message;
    reason = reason.contains("axis tp: ") ? reason.split("axis tp: ").second
                                          : "the layouts do not fit together";
    std::string general;
    for (char c : reason)
      general += llvm::isDigit(c) ? 'N' : c;
    counts.reasons[general]++;
    return "";
  }

  func::FuncOp seed;
  Expected &expected;
  fuzz::LayoutCounts &counts;
  MeshShape mesh;
  SmallVector<Value> values;
  std::set<States> accepted;
  std::vector<std::vector<std::pair<State, RankedTensorType>>> types;
  std::string message;
};
} // namespace

std::string fuzz::checkLayouts(func::FuncOp seed, const std::string &line,
                               LayoutCounts &counts) {
  Expected expected(line, mainOp(seed));
  if (!expected.fits())
    return "the line in layouts.txt has other tensors than the op";
  return LayoutChecker(seed, expected, counts).run();
}
