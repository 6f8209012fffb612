// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Picture.h - a scene as inline SVG ----------------------------------===//
#ifndef MTP_TOOLS_REPORT_PICTURE_H
#define MTP_TOOLS_REPORT_PICTURE_H

#include "tools/report/Scene.h"

namespace mtp::report {

/// Section with the boxes of a scene, top down: repeated layers folded, one
/// <details> each. Edges have one strand a mesh axis, coloured by the state of
/// the value on it.
std::string scenePicture(const Scene &scene);

} // namespace mtp::report

#endif // MTP_TOOLS_REPORT_PICTURE_H
