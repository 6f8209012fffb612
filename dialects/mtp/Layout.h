// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Layout.h - how a tensor lies on a mesh -----------------------------===//
//
// The plain data behind `#mtp.layout`, which algorithms work on. One state per
// (tensor, mesh axis):
//
//   state        meaning                                         cotangent
//   I            whole, the same on all ranks, used alike         I
//   R            the same bytes, feeds work that differs          P(sum)
//   S(d)         rank i holds block i of dimension d              S(d)
//   P(sum)       the true value is the sum over ranks             R
//   P(max|min)   likewise                                         none
//
//===----------------------------------------------------------------------===//
#ifndef MTP_DIALECT_LAYOUT_H
#define MTP_DIALECT_LAYOUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mtp {

enum class Kind : uint8_t { I, R, S, PSum, PMax, PMin };

inline bool isPartial(Kind kind) { return kind >= Kind::PSum; }
/// The state of the gradient. Partial max and min have none; I is returned.
inline Kind dual(Kind kind) {
  return kind == Kind::R      ? Kind::PSum
         : kind == Kind::PSum ? Kind::R
         : isPartial(kind)    ? Kind::I
                              : kind;
}

/// State on one mesh axis; `dim` counts only for S.
struct AxisState {
  Kind kind = Kind::I;
  int dim = -1;
  bool operator==(const AxisState &other) const {
    return kind == other.kind && (kind != Kind::S || dim == other.dim);
  }
};

/// A mesh in its finest axes, slowest first. `parent` is the name the user
/// gave, `part` the factor of a refined axis or -1.
struct MeshShape {
  struct Axis {
    std::string parent;
    int part = -1;
    int64_t size = 1;
    /// "tp", or "tp.1" for a factor of a refined axis.
    std::string name() const {
      return part < 0 ? parent : parent + "." + std::to_string(part);
    }
  };
  std::string symbol = "mesh";
  llvm::SmallVector<Axis, 4> axes;

  int size() const { return static_cast<int>(axes.size()); }
  int64_t ranks() const;
  /// Finest axes of `name`: one for "dp" or "tp.1", all factors for a refined
  /// "tp"; empty if there is none.
  llvm::SmallVector<int, 2> find(llvm::StringRef name) const;
  /// "tp" if `axes` are all factors of tp in order (or tp is not refined),
  /// "dp,tp" for several; names for messages, attributes and JSON.
  llvm::SmallVector<std::string, 2> names(llvm::ArrayRef<int> axes) const;
};

/// How one dimension is cut: by `axes`, major to minor, in units.
struct DimCut {
  llvm::SmallVector<int, 2> axes;
  int64_t unit = 1;
  bool operator==(const DimCut &other) const {
    return axes == other.axes && unit == other.unit;
  }
};

/// One block of a dimension; see mtp::blockOf in runtime/artifact/Artifact.h,
/// which computes the same for the runtime (a test compares them).
struct BlockExtent {
  int64_t offset = 0, capacity = 0, valid = 0;
};

/// A layout. Invariants: states.size() == mesh axes; dims.size() == rank;
/// axis a stands in exactly one dims[d].axes iff states[a] is S(d).
struct Layout {
  llvm::SmallVector<AxisState, 4> states;
  llvm::SmallVector<DimCut, 4> dims;

  Layout() = default;
  /// All invariant.
  Layout(int meshAxes, int rank) : states(meshAxes), dims(rank) {}

  bool operator==(const Layout &other) const {
    return states == other.states && dims == other.dims;
  }
  bool operator!=(const Layout &other) const { return !(*this == other); }

  bool isInvariant() const;
  /// Cuts `dim` by `axis`, minor-most.
  void shard(int axis, int dim);
  /// Removes `axis` from its dimension and gives it `kind`.
  void unshard(int axis, Kind kind);
  void setKind(int axis, Kind kind);

  /// Units are 1 where they make no difference to any block.
  void canonicalize(llvm::ArrayRef<int64_t> shape, const MeshShape &mesh);
  /// Stored extents of the block, padding included.
  llvm::SmallVector<int64_t> localShape(llvm::ArrayRef<int64_t> shape,
                                        const MeshShape &mesh) const;
  /// True if some rank has padding in `dim`.
  bool isPadded(int dim, int64_t extent, const MeshShape &mesh) const;
  /// The block of `dim` that the rank with `coordinates` (one per axis) holds.
  BlockExtent block(int dim, int64_t extent, const MeshShape &mesh,
                    llvm::ArrayRef<int64_t> coordinates) const;
  /// "tp = S(1), dp = R"; "" if invariant. Parses back.
  std::string text(const MeshShape &mesh) const;
};

llvm::hash_code hash_value(const Layout &layout);

/// Capacity of a block of `extent` elements after the cut.
int64_t blockCapacity(int64_t extent, const DimCut &cut, const MeshShape &mesh);

/// Parses the text of a layout without `<@mesh`: "tp = S(1), dp = P(sum)".
/// Returns nothing and sets `error` if it is malformed, names an axis that the
/// mesh lacks, or a dimension that `shape` lacks.
std::optional<Layout> parseLayout(llvm::StringRef text,
                                  llvm::ArrayRef<int64_t> shape,
                                  const MeshShape &mesh, std::string &error);

} // namespace mtp

#endif // MTP_DIALECT_LAYOUT_H
