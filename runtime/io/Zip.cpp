// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/io/Zip.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <cstring>
#include <zlib.h>

using namespace mtp;

namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator = 0x07064b50;
/// 1980-01-01 00:00, the first time that a zip file can name.
constexpr uint16_t kDate = 33;
constexpr uint16_t kUtf8 = 1 << 11;

/// Bounds-checked little-endian reads.
struct Bytes {
  const char *data;
  uint64_t size;
  const std::string &path;

  [[noreturn]] void bad(const std::string &what) const {
    failInput("'" + path + "' is not a valid .npz file: " + what);
  }
  void need(uint64_t at, uint64_t count) const {
    if (at > size || count > size - at)
      bad("it is cut short");
  }
  uint64_t get(uint64_t at, int count) const {
    need(at, count);
    uint64_t value = 0;
    for (int i = 0; i < count; ++i)
      value |= uint64_t(uint8_t(data[at + i])) << (8 * i);
    return value;
  }
};

void put(std::string &out, uint64_t value, int count) {
  for (int i = 0; i < count; ++i)
    out += static_cast<char>(value >> (8 * i));
}

struct Directory {
  uint64_t offset, count;
};

Directory findDirectory(const Bytes &file) {
  if (file.size < 22)
    file.bad("it is too short for a zip file");
  uint64_t lowest = file.size > 65557 ? file.size - 65557 : 0;
  for (uint64_t at = file.size - 22;; --at) {
    if (file.get(at, 4) == kEnd) {
      Directory found{file.get(at + 16, 4), file.get(at + 10, 2)};
      if ((found.offset == 0xffffffff || found.count == 0xffff) && at >= 20 &&
          file.get(at - 20, 4) == kLocator) {
        uint64_t end = file.get(at - 20 + 8, 8);
        if (file.get(end, 4) != kEnd64)
          file.bad("its zip64 directory is missing");
        found = {file.get(end + 48, 8), file.get(end + 32, 8)};
      }
      return found;
    }
    if (at == lowest)
      file.bad("it has no zip directory");
  }
}

/// Replaces sizes of 0xffffffff by those of the zip64 extra field.
void readExtra(const Bytes &file, uint64_t at, uint64_t length,
               ZipMember &member, uint64_t &local) {
  file.need(at, length);
  for (uint64_t end = at + length; at + 4 <= end;) {
    uint64_t id = file.get(at, 2), size = file.get(at + 2, 2);
    at += 4;
    if (size > end - at)
      return;
    if (id == 1) {
      uint64_t next = at;
      for (uint64_t *field : {&member.size, &member.packed, &local})
        if (*field == 0xffffffff && next + 8 <= at + size) {
          *field = file.get(next, 8);
          next += 8;
        }
      return;
    }
    at += size;
  }
}

} // namespace

std::vector<ZipMember> mtp::zipDirectory(const char *bytes, uint64_t size,
                                         const std::string &path) {
  Bytes file{bytes, size, path};
  Directory directory = findDirectory(file);
  if (directory.count > size / 46)
    file.bad("its directory is longer than the file");
  std::vector<ZipMember> members;
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (file.get(at, 4) != kCentral)
      file.bad("its directory is damaged");
    uint64_t flags = file.get(at + 8, 2), method = file.get(at + 10, 2);
    ZipMember member;
    member.crc = static_cast<uint32_t>(file.get(at + 16, 4));
    member.packed = file.get(at + 20, 4);
    member.size = file.get(at + 24, 4);
    uint64_t nameLength = file.get(at + 28, 2), extra = file.get(at + 30, 2);
    uint64_t comment = file.get(at + 32, 2), local = file.get(at + 42, 4);
    file.need(at + 46, nameLength);
    member.name.assign(bytes + at + 46, nameLength);
    readExtra(file, at + 46 + nameLength, extra, member, local);
    if (flags & 1)
      file.bad("member '" + member.name + "' is encrypted");
    if (method != 0 && method != 8)
      file.bad("member '" + member.name + "' has compression method " +
               std::to_string(method));
    member.deflated = method == 8;
    if (file.get(local, 4) != kLocal)
      file.bad("member '" + member.name + "' is missing");
    member.offset =
        local + 30 + file.get(local + 26, 2) + file.get(local + 28, 2);
    file.need(member.offset, member.packed);
    if (!member.deflated && member.packed != member.size)
      file.bad("member '" + member.name + "' has two sizes");
    members.push_back(std::move(member));
    at += 46 + nameLength + extra + comment;
  }
  return members;
}

std::string mtp::zipRead(const char *bytes, const ZipMember &member,
                         uint64_t limit, const std::string &path) {
  Bytes file{bytes, member.offset + member.packed, path};
  std::string result;
  if (!member.deflated) {
    result.assign(bytes + member.offset, std::min(limit, member.size));
  } else {
    // Deflate can't shrink below a thousandth: a member that says so is a bomb.
    if (member.size / 1040 > member.packed)
      file.bad("member '" + member.name + "' claims an impossible size");
    result.resize(std::min(limit, member.size));
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
      throw std::bad_alloc();
    uint64_t in = 0, out = 0;
    int status = Z_OK;
    while (out < result.size() && status == Z_OK) {
      stream.next_in = reinterpret_cast<Bytef *>(
          const_cast<char *>(bytes + member.offset + in));
      stream.avail_in =
          static_cast<uInt>(std::min<uint64_t>(member.packed - in, 1 << 30));
      stream.next_out = reinterpret_cast<Bytef *>(result.data() + out);
      stream.avail_out =
          static_cast<uInt>(std::min<uint64_t>(result.size() - out, 1 << 30));
      uInt inBefore = stream.avail_in, outBefore = stream.avail_out;
      status = inflate(&stream, Z_NO_FLUSH);
      in += inBefore - stream.avail_in;
      out += outBefore - stream.avail_out;
    }
    inflateEnd(&stream);
    if (out != result.size())
      file.bad("member '" + member.name + "' is damaged");
  }
  if (result.size() == member.size) {
    uint32_t crc = 0;
    for (size_t at = 0; at < result.size(); at += 1 << 30)
      crc = static_cast<uint32_t>(crc32(
          crc, reinterpret_cast<const Bytef *>(result.data() + at),
          static_cast<uInt>(std::min<size_t>(result.size() - at, 1 << 30))));
    if (crc != member.crc)
      file.bad("member '" + member.name + "' is damaged (checksum)");
  }
  return result;
}

void ZipWriter::add(const std::string &name, const std::string &header,
                    const char *data, uint64_t size) {
  uint32_t crc = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef *>(header.data()),
            static_cast<uInt>(header.size())));
  for (uint64_t at = 0; at < size; at += 1 << 30)
    crc = static_cast<uint32_t>(
        crc32(crc, reinterpret_cast<const Bytef *>(data + at),
              static_cast<uInt>(std::min<uint64_t>(size - at, 1 << 30))));
  uint64_t total = header.size() + size;
  members.push_back({name, out.size(), total, crc});
  put(out, kLocal, 4);
  put(out, 45, 2); // version needed: zip64
  put(out, kUtf8, 2);
  put(out, 0, 2); // stored
  put(out, 0, 2); // time
  put(out, kDate, 2);
  put(out, crc, 4);
  put(out, 0xffffffff, 4);
  put(out, 0xffffffff, 4);
  put(out, name.size(), 2);
  put(out, 20, 2);
  out += name;
  put(out, 1, 2); // zip64 sizes
  put(out, 16, 2);
  put(out, total, 8);
  put(out, total, 8);
  out += header;
  if (size)
    out.append(data, size);
}

void ZipWriter::finish() {
  uint64_t begin = out.size();
  for (const Written &member : members) {
    put(out, kCentral, 4);
    put(out, 45, 2);
    put(out, 45, 2);
    put(out, kUtf8, 2);
    put(out, 0, 2);
    put(out, 0, 2);
    put(out, kDate, 2);
    put(out, member.crc, 4);
    put(out, 0xffffffff, 4);
    put(out, 0xffffffff, 4);
    put(out, member.name.size(), 2);
    put(out, 28, 2);
    put(out, 0, 2); // comment
    put(out, 0, 2); // disk
    put(out, 0, 2);
    put(out, 0, 4);
    put(out, 0xffffffff, 4);
    out += member.name;
    put(out, 1, 2);
    put(out, 24, 2);
    put(out, member.size, 8);
    put(out, member.size, 8);
    put(out, member.offset, 8);
  }
  uint64_t end = out.size();
  put(out, kEnd64, 4);
  put(out, 44, 8);
  put(out, 45, 2);
  put(out, 45, 2);
  put(out, 0, 4);
  put(out, 0, 4);
  put(out, members.size(), 8);
  put(out, members.size(), 8);
  put(out, end - begin, 8);
  put(out, begin, 8);
  put(out, kLocator, 4);
  put(out, 0, 4);
  put(out, end, 8);
  put(out, 1, 4);
  put(out, kEnd, 4);
  put(out, 0, 2);
  put(out, 0, 2);
  put(out, 0xffff, 2);
  put(out, 0xffff, 2);
  put(out, std::min<uint64_t>(end - begin, 0xffffffff), 4);
  put(out, 0xffffffff, 4);
  put(out, 0, 2);
}
