// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Zip.h - the container of .npz --------------------------------------===//
#ifndef MTP_RUNTIME_IO_ZIP_H
#define MTP_RUNTIME_IO_ZIP_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mtp {

struct ZipMember {
  std::string name;
  uint64_t offset = 0; ///< of the stored bytes in the file
  uint64_t packed = 0; ///< bytes in the file
  uint64_t size = 0;   ///< bytes after inflating
  uint32_t crc = 0;
  bool deflated = false;
};

/// The directory of a zip file of `size` bytes, plain or zip64, stored or
/// deflated members. Every offset is checked. Throws RuntimeError that names
/// `path`.
std::vector<ZipMember> zipDirectory(const char *bytes, uint64_t size,
                                    const std::string &path);

/// The first `limit` bytes of a member. The checksum is compared if that is all
/// of it.
std::string zipRead(const char *bytes, const ZipMember &member, uint64_t limit,
                    const std::string &path);

/// Writes the header and directory of a zip file with stored members and a
/// fixed time; the same members give the same bytes.
class ZipWriter {
public:
  explicit ZipWriter(std::string &out) : out(out) {}
  void add(const std::string &name, const std::string &header, const char *data,
           uint64_t size);
  void finish();

private:
  std::string &out;
  struct Written {
    std::string name;
    uint64_t offset, size;
    uint32_t crc;
  };
  std::vector<Written> members;
};

} // namespace mtp

#endif // MTP_RUNTIME_IO_ZIP_H
