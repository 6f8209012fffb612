// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- WeightFiles.h - mapped files and embedded constants ----------------===//
#ifndef MTP_RUNTIME_LOADER_WEIGHTFILES_H
#define MTP_RUNTIME_LOADER_WEIGHTFILES_H

#include "runtime/artifact/Artifact.h"
#include "runtime/support/AlignedBuffer.h"
#include "runtime/support/Error.h"

#include <map>
#include <memory>
#include <string>

namespace mtp {

/// A file mapped read-only, as a whole.
class MappedFile {
public:
  /// Throws RuntimeError that names `purpose` and the path.
  MappedFile(const std::string &path, const std::string &purpose);
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  const char *data() const { return bytes; }
  uint64_t size() const { return length; }
  const std::string &path() const { return name; }
  int descriptor() const { return file; }

private:
  std::string name;
  int file = -1;
  const char *bytes = nullptr;
  uint64_t length = 0;
};

/// The sources of all parameters of an artifact. Opens each file once; reading
/// is safe from all ranks.
class WeightFiles {
public:
  /// Takes the data section out of `artifact` and opens every file. With a
  /// `weightsDir` files are looked for there by base name. Throws RuntimeError
  /// if a file is missing or too short.
  WeightFiles(Artifact &artifact, const std::string &weightsDir);

  /// The stored bytes of parameter `index`; null if it is zero at first.
  const char *bytes(size_t index) const { return pointers[index]; }

  /// Parameters whose sources cover all sources that have a hash: those that
  /// share their bytes stand once.
  const std::vector<size_t> &hashed() const { return distinct; }
  /// Throws RuntimeError if the bytes of parameter `index` don't have the hash
  /// of the artifact. Reads the file, leaves the mapping untouched.
  void checkHash(size_t index) const;

  /// The bytes of parameter `index` have been copied: their pages may leave the
  /// resident set. They can still be read.
  void release(size_t index) const;

private:
  const std::vector<Parameter> &parameters;
  AlignedBuffer embedded;
  std::map<std::string, std::unique_ptr<MappedFile>> files;
  std::vector<const char *> pointers;
  std::vector<const MappedFile *> fileOf; ///< null if embedded
  std::vector<size_t> distinct;
};

/// Fills the empty hashes of sources in files, so that whoever loads the
/// artifacts later notices a changed file. Each range of bytes is read once.
bool hashSources(std::vector<Artifact> &artifacts, Error &error);

} // namespace mtp

#endif // MTP_RUNTIME_LOADER_WEIGHTFILES_H
