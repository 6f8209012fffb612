// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/report/MemoryChart.h"

#include "runtime/artifact/Footprint.h"
#include "runtime/artifact/VerifyProgram.h"
#include "tools/common/Text.h"
#include "tools/report/Html.h"

#include <algorithm>

namespace mtp::report {
namespace {

using Kind = Instruction::Kind;

/// A value in the arena.
struct Span {
  int64_t offset, bytes;
  int first, last;
};

/// How many of the instruction's last buffers it writes.
int64_t writesOf(const Artifact &artifact, const Instruction &step) {
  return step.kind == Kind::Start ? int64_t(step.buffers.size()) / 2
                                  : verify::resultsOf(artifact, step);
}

class Lives {
public:
  Lives(const Artifact &artifact, const Entry &entry)
      : artifact(artifact), entry(entry) {}

  std::vector<Span> find() {
    for (size_t i = 0; i < entry.program.size(); ++i) {
      const Instruction &step = entry.program[i];
      if (step.kind == Kind::Done)
        finish(int(i), step);
      size_t reads = step.buffers.size() - size_t(writesOf(artifact, step));
      for (size_t k = 0; k < reads; ++k)
        read(step.buffers[k], int(i));
      for (size_t k = reads; k < step.buffers.size(); ++k)
        write(step.buffers[k], int(i));
    }
    return spans;
  }

private:
  void read(const BufferRef &buffer, int at) {
    if (buffer.space != BufferRef::Space::Arena)
      return;
    for (size_t index : current)
      if (overlap(spans[index], buffer))
        spans[index].last = at;
  }
  void write(const BufferRef &buffer, int at) {
    if (buffer.space != BufferRef::Space::Arena || buffer.bytes <= 0)
      return;
    // What is written over is gone; a part that is written later is not.
    current.erase(std::remove_if(current.begin(), current.end(),
                                 [&](size_t index) {
                                   return overlap(spans[index], buffer) &&
                                          spans[index].first < at;
                                 }),
                  current.end());
    current.push_back(spans.size());
    spans.push_back({buffer.offset, buffer.bytes, at, at});
  }
  /// The operands of a collective are held from its start to its end.
  void finish(int at, const Instruction &done) {
    for (int i = at; i-- > 0;) {
      const Instruction &start = entry.program[size_t(i)];
      if (start.kind != Kind::Start || start.index != done.index)
        continue;
      for (const BufferRef &buffer : start.buffers)
        read(buffer, at);
      return;
    }
  }
  static bool overlap(const Span &span, const BufferRef &buffer) {
    return span.offset < buffer.offset + buffer.bytes &&
           buffer.offset < span.offset + span.bytes;
  }

  const Artifact &artifact;
  const Entry &entry;
  std::vector<Span> spans;
  std::vector<size_t> current; ///< what the arena holds now
};

constexpr double kWidth = 1120, kHeight = 230, kLeft = 84, kBottom = 26,
                 kTop = 12, kRight = 12;

/// One stacked chart: constant bytes below, the arena above.
class Chart {
public:
  Chart(const Artifact &artifact, const Entry &entry,
        const std::vector<std::pair<std::string, int64_t>> &constant)
      : entry(entry), constant(constant), live(liveBytes(artifact, entry)) {
    for (const auto &[name, bytes] : constant)
      base += bytes;
    top = double(std::max<int64_t>(base + entry.arenaBytes, 1));
  }

  std::string svg() const {
    std::string text = "<div class=\"picture\"><svg "
                       "xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
                       number(kWidth) + " " + number(kHeight) + "\" width=\"" +
                       number(kWidth) + "\" height=\"" + number(kHeight) +
                       "\" role=\"img\">\n";
    for (int i = 0; i <= 4; ++i) {
      double bytes = top * i / 4;
      text += "<line class=\"grid\" x1=\"" + number(kLeft) + "\" x2=\"" +
              number(kWidth - kRight) + "\" y1=\"" + number(y(bytes)) +
              "\" y2=\"" + number(y(bytes)) + "\"/><text class=\"s\" x=\"" +
              number(kLeft - 8) + "\" y=\"" + number(y(bytes) + 3.5) +
              "\" text-anchor=\"end\">" + bytesText(int64_t(bytes)) +
              "</text>\n";
    }
    double below = 0;
    for (size_t i = 0; i < constant.size(); ++i) {
      double bytes = double(constant[i].second);
      text += band(i, below, below + bytes, constant[i].first);
      below += bytes;
    }
    text += area() + line() + hovers();
    return text + "<text class=\"s\" x=\"" + number(kLeft) + "\" y=\"" +
           number(kHeight - 6) + "\">first instruction</text>" +
           "<text class=\"s\" x=\"" + number(kWidth - kRight) + "\" y=\"" +
           number(kHeight - 6) + "\" text-anchor=\"end\">last of " +
           std::to_string(live.size()) + "</text>\n</svg></div>\n";
  }

private:
  double y(double bytes) const {
    return kHeight - kBottom - bytes / top * (kHeight - kBottom - kTop);
  }
  double x(double step) const {
    return kLeft + step / double(std::max<size_t>(live.size(), 1)) *
                       (kWidth - kLeft - kRight);
  }
  std::string band(size_t index, double from, double to,
                   const std::string &name) const {
    static const char *const classes[] = {"fs0", "fs4", "fs2", "fi"};
    return std::string("<rect class=\"") + classes[index % 4] +
           "\" fill-opacity=\"0.8\" x=\"" + number(kLeft) + "\" y=\"" +
           number(y(to)) + "\" width=\"" + number(kWidth - kLeft - kRight) +
           "\" height=\"" + number(y(from) - y(to)) + "\"><title>" +
           escaped(name) + ": " + bytesText(int64_t(to - from)) +
           "</title></rect>\n";
  }
  std::string area() const {
    std::string path = "M" + number(x(0)) + " " + number(y(double(base)));
    for (size_t i = 0; i < live.size(); ++i)
      path += "V" + number(y(double(base + live[i]))) + "H" +
              number(x(double(i) + 1));
    return "<path class=\"fs1\" fill-opacity=\"0.85\" d=\"" + path + "V" +
           number(y(double(base))) + "Z\"/>\n";
  }
  std::string line() const {
    double at = y(double(base + entry.arenaBytes));
    return "<line stroke=\"#d55e00\" stroke-dasharray=\"6 4\" x1=\"" +
           number(kLeft) + "\" x2=\"" + number(kWidth - kRight) + "\" y1=\"" +
           number(at) + "\" y2=\"" + number(at) +
           "\"><title>allocated: " + bytesText(base + entry.arenaBytes) +
           "</title></line>\n";
  }
  /// What runs and what it holds, for the pointer; at most 400 columns.
  std::string hovers() const {
    std::string text;
    size_t columns = std::min<size_t>(live.size(), 400);
    for (size_t c = 0; c < columns; ++c) {
      size_t first = c * live.size() / columns,
             last = (c + 1) * live.size() / columns;
      size_t most = first;
      for (size_t i = first; i < last; ++i)
        if (live[i] > live[most])
          most = i;
      text += "<rect class=\"hover\" x=\"" + number(x(double(first))) +
              "\" y=\"" + number(kTop) + "\" width=\"" +
              number(x(double(last)) - x(double(first))) + "\" height=\"" +
              number(kHeight - kBottom - kTop) + "\"><title>" +
              std::to_string(most) + ": " + escaped(entry.program[most].name) +
              "\n" + bytesText(live[most]) +
              " of the arena in use</title></rect>\n";
    }
    return text;
  }

  const Entry &entry;
  const std::vector<std::pair<std::string, int64_t>> &constant;
  std::vector<int64_t> live;
  int64_t base = 0;
  double top = 1;
};

} // namespace

std::vector<int64_t> liveBytes(const Artifact &artifact, const Entry &entry) {
  std::vector<Span> spans = Lives(artifact, entry).find();
  std::sort(spans.begin(), spans.end(),
            [](const Span &a, const Span &b) { return a.offset < b.offset; });
  std::vector<int64_t> live(entry.program.size(), 0);
  for (size_t i = 0; i < live.size(); ++i) {
    int64_t end = 0; // parts of one value may overlap
    for (const Span &span : spans) {
      if (int(i) < span.first || int(i) > span.last)
        continue;
      int64_t from = std::max(span.offset, end);
      end = std::max(end, span.offset + span.bytes);
      live[i] += std::max<int64_t>(end - from, 0);
    }
  }
  return live;
}

std::string memorySection(const Artifact &artifact) {
  Footprint footprint = footprintOf(artifact);
  std::vector<std::pair<std::string, int64_t>> constant = {
      {"parameters and constants", footprint.parameters},
      {"optimizer", footprint.optimizer},
      {"gradients in blocks of their own", footprint.gradientBlocks},
      {"inputs and outputs", footprint.workspace}};
  constant.erase(std::remove_if(constant.begin(), constant.end(),
                                [](const auto &part) { return !part.second; }),
                 constant.end());
  std::string text = "<div class=\"legend\">";
  static const char *const classes[] = {"bs0", "bs4", "bs2", "bi"};
  for (size_t i = 0; i < constant.size(); ++i)
    text += std::string("<span class=\"key\"><span class=\"swatch ") +
            classes[i % 4] + "\"></span>" + escaped(constant[i].first) + ": " +
            bytesText(constant[i].second) + "</span>";
  text += "<span class=\"key\"><span class=\"swatch bs1\"></span>arena in "
          "use</span><span class=\"key\"><span class=\"swatch bp\" "
          "style=\"height:3px\"></span>allocated: " +
          bytesText(footprint.total) + "</span></div>\n";
  for (const Entry &entry : artifact.entries) {
    std::vector<int64_t> live = liveBytes(artifact, entry);
    size_t peak =
        size_t(std::max_element(live.begin(), live.end()) - live.begin());
    text += "<div class=\"card\"><h3>" + escaped(entry.name) + ": arena of " +
            bytesText(entry.arenaBytes);
    if (!live.empty())
      text += ", fullest (" + bytesText(live[peak]) + ") at instruction " +
              std::to_string(peak) + ", " + escaped(entry.program[peak].name);
    text += "</h3>" + Chart(artifact, entry, constant).svg() + "</div>\n";
  }
  auto row = [&](const char *name, int64_t bytes, const char *what) {
    return std::string("<tr><td>") + name + "</td><td class=\"n\">" +
           bytesText(bytes) + "</td><td class=\"soft\">" + what +
           "</td></tr>\n";
  };
  return text +
         "<div class=\"card scroll\"><table><tr><th>for</th><th "
         "class=\"n\">on each rank</th><th></th></tr>\n" +
         row("parameters", footprint.parameters,
             "blocks of weights and constants") +
         row("gradients", footprint.gradients,
             "accumulators, blocks that are kept, and what they have of the "
             "arena when their norm is taken") +
         row("optimizer", footprint.optimizer, "its states") +
         row("activations", footprint.activations, "the rest of the arena") +
         row("workspace", footprint.workspace, "blocks of inputs and outputs") +
         row("<b>in all</b>", footprint.total, "") + "</table></div>\n";
}

} // namespace mtp::report
