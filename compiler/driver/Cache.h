// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Cache.h - compiled artifacts on disk -------------------------------===//
//
// A private folder (mode 0700, owned by the user) of one file a compile, named
// by its key. A file is trusted like a program: it is code that will run.
//
//   magic "MTPC", u32 format, u64 bytes of the record, u64 bytes of the
//   artifact record (JSON: files with their hashes, the result beside the
//   artifact) artifact (as an .mtp file) SHA-256 of everything before it
//
// Files are written beside and renamed. What can't be read, is damaged or
// belongs to someone else is ignored with a warning.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_DRIVER_CACHE_H
#define MTP_COMPILER_DRIVER_CACHE_H

#include "compiler/driver/CompilerApi.h"

#include <optional>

namespace mtp {

/// A file that a compile read, and the SHA-256 of its content.
struct ReadFile {
  std::string path, sha256;
};

/// SHA-256 (hex) of a file's content, read in pieces; nullopt if it can't be
/// read.
std::optional<std::string> hashFile(const std::string &path);

class Cache {
public:
  /// The cache of `request`; unusable (with a warning) if its folder is not
  /// private. `mostBytes`: the oldest entries are removed beyond that size.
  Cache(const CompileRequest &request, std::vector<std::string> &warnings,
        uint64_t mostBytes = uint64_t(4) << 30);

  bool usable() const { return !directory.empty(); }
  /// What a compile of `request` depends on besides the files it reads itself:
  /// the options, the content of the model file and of a plan file, compiler
  /// and processor. nullopt if a file can't be read.
  static std::optional<std::string>
  key(const CompileRequest &request, const std::string &modelHash,
      const std::vector<std::string> &cpuFeatures);
  /// Fills `result` from the entry of `key`; false if there is none whose files
  /// are unchanged.
  bool load(const std::string &key, CompileResult &result,
            std::vector<std::string> &warnings) const;
  /// Writes an entry; a failure is only a warning.
  void store(const std::string &key, const std::vector<ReadFile> &files,
             const CompileResult &result,
             std::vector<std::string> &warnings) const;

private:
  std::string pathOf(const std::string &key) const;
  void removeOldest() const;
  std::string directory;
  uint64_t mostBytes;
};

} // namespace mtp

#endif // MTP_COMPILER_DRIVER_CACHE_H
