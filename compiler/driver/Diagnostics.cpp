// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Diagnostics.h"

#include "compiler/codegen/ArtifactTypes.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

/// A module is named after its file, which is no node.
static bool isFile(llvm::StringRef name) { return name.ends_with(".onnx"); }

std::string mtp::placeText(Location location) {
  if (std::string node = nodeName(location); !node.empty())
    return isFile(node) ? node : "node '" + node + "'";
  std::string place;
  location->walk([&](Location part) {
    auto file = dyn_cast<FileLineColLoc>(part);
    if (!file)
      return WalkResult::advance();
    place = file.getFilename().str() + ":" + std::to_string(file.getLine()) +
            ":" + std::to_string(file.getColumn());
    return WalkResult::interrupt();
  });
  return place;
}

mtp::DiagnosticCollector::DiagnosticCollector(MLIRContext *context)
    : context(context) {
  handler = context->getDiagEngine().registerHandler(
      [this](Diagnostic &diagnostic) { take(diagnostic); });
}
mtp::DiagnosticCollector::~DiagnosticCollector() {
  context->getDiagEngine().eraseHandler(handler);
}

void mtp::DiagnosticCollector::take(Diagnostic &diagnostic) {
  std::string place = placeText(diagnostic.getLocation());
  std::string text =
      place.empty() ? diagnostic.str() : place + ": " + diagnostic.str();
  for (Diagnostic &note : diagnostic.getNotes())
    text += "\n  " + note.str();
  if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
    warnings.push_back(text);
  if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
    return;
  errors.push_back(text);
  std::string node = nodeName(diagnostic.getLocation());
  if (!node.empty() && !isFile(node) && !llvm::is_contained(nodes, node))
    nodes.push_back(node);
}

std::string mtp::DiagnosticCollector::takeErrors() {
  constexpr size_t most = 20;
  std::string text;
  for (const std::string &error : llvm::ArrayRef(errors).take_front(most))
    text += (text.empty() ? "" : "\n") + error;
  if (errors.size() > most)
    text += "\nand " + std::to_string(errors.size() - most) + " more";
  errors.clear();
  return text;
}
