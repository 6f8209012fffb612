// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/loader/WeightFiles.h"
#include "runtime/support/Error.h"
#include "runtime/support/Sha256.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

using namespace mtp;

namespace {
constexpr size_t kReadBytes = size_t(1) << 20;

[[noreturn]] void failWeights(const std::string &message) {
  fail(exits::BadInput, "weights", message);
}

std::string weightOf(const Parameter &parameter) {
  return "weight '" + parameter.name + "'";
}

/// SHA-256 of the bytes of `source` in `file`, hex. Doesn't touch the mapping.
std::string hashRange(const MappedFile &file, const Source &source,
                      const std::string &what) {
  Sha256 hash;
  std::vector<char> buffer(std::min<uint64_t>(kReadBytes, source.bytes));
  for (uint64_t at = 0; at < source.bytes;) {
    size_t want = std::min<uint64_t>(buffer.size(), source.bytes - at);
    ssize_t got = pread(file.descriptor(), buffer.data(), want,
                        static_cast<off_t>(source.offset + at));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      failWeights(what + ": cannot read '" + file.path() + "' at byte " +
                  std::to_string(source.offset + at) +
                  (got < 0 ? std::string(": ") + strerror(errno)
                           : ": the file has no more"));
    hash.update(buffer.data(), static_cast<size_t>(got));
    at += static_cast<uint64_t>(got);
  }
  return hash.hexDigest();
}

} // namespace

MappedFile::MappedFile(const std::string &path, const std::string &purpose)
    : name(path) {
  file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    failWeights(purpose + ": cannot open '" + path + "': " + strerror(errno) +
                " (--weights DIR says where weight files have moved)");
  struct stat status{};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    failWeights(purpose + ": '" + path + "' is not a regular file");
  }
  length = static_cast<uint64_t>(status.st_size);
  if (length == 0)
    return;
  void *memory = mmap(nullptr, length, PROT_READ, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    std::string reason = strerror(errno);
    close(file);
    failWeights(purpose + ": cannot map '" + path + "': " + reason);
  }
  bytes = static_cast<const char *>(memory);
}

MappedFile::~MappedFile() {
  if (bytes)
    munmap(const_cast<char *>(bytes), length);
  if (file >= 0)
    close(file);
}

WeightFiles::WeightFiles(Artifact &artifact, const std::string &weightsDir)
    : parameters(artifact.parameters) {
  embedded = AlignedBuffer(artifact.data.size());
  if (!artifact.data.empty())
    std::memcpy(embedded.data(), artifact.data.data(), artifact.data.size());
  std::string().swap(artifact.data);

  for (const Parameter &parameter : parameters) {
    const Source &source = parameter.source;
    if (source.kind == Source::Kind::Zero) {
      pointers.push_back(nullptr);
      fileOf.push_back(nullptr);
      continue;
    }
    if (source.kind == Source::Kind::Embedded) {
      pointers.push_back(embedded.data() + source.offset);
      fileOf.push_back(nullptr);
      continue;
    }
    std::string path = source.file;
    if (!weightsDir.empty()) {
      size_t slash = path.find_last_of('/');
      path = weightsDir + "/" +
             (slash == std::string::npos ? path : path.substr(slash + 1));
    }
    auto &file = files[path];
    if (!file)
      file = std::make_unique<MappedFile>(path, weightOf(parameter));
    uint64_t end = source.offset + source.bytes;
    if (end > file->size())
      failWeights(weightOf(parameter) + " lies at bytes " +
                  std::to_string(source.offset) + " to " + std::to_string(end) +
                  " of '" + path + "', which has " +
                  std::to_string(file->size()) + " bytes");
    pointers.push_back(file->data() + source.offset);
    fileOf.push_back(file.get());
  }
  std::set<std::tuple<const char *, uint64_t, std::string>> seen;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Source &source = parameters[i].source;
    if (!source.sha256.empty() &&
        seen.emplace(pointers[i], source.bytes, source.sha256).second)
      distinct.push_back(i);
  }
}

void WeightFiles::checkHash(size_t index) const {
  const Parameter &parameter = parameters[index];
  const Source &source = parameter.source;
  std::string digest =
      fileOf[index] ? hashRange(*fileOf[index], source, weightOf(parameter))
                    : Sha256::hex(pointers[index], source.bytes);
  if (digest != source.sha256)
    failWeights(weightOf(parameter) +
                " changed since the model was compiled: bytes " +
                std::to_string(source.offset) + " to " +
                std::to_string(source.offset + source.bytes) + " of '" +
                (fileOf[index] ? fileOf[index]->path() : "the artifact") +
                "' have SHA-256 " + digest + ", the artifact was made from " +
                source.sha256);
}

bool mtp::hashSources(std::vector<Artifact> &artifacts, Error &error) {
  std::map<std::string, std::unique_ptr<MappedFile>> files;
  std::map<std::tuple<std::string, uint64_t, uint64_t>, std::string> known;
  try {
    for (Artifact &artifact : artifacts)
      for (Parameter &parameter : artifact.parameters) {
        Source &source = parameter.source;
        if (source.kind != Source::Kind::File || !source.sha256.empty())
          continue;
        std::string &hash = known[{source.file, source.offset, source.bytes}];
        auto &file = files[source.file];
        if (!file)
          file = std::make_unique<MappedFile>(source.file, weightOf(parameter));
        if (hash.empty())
          hash = hashRange(*file, source, weightOf(parameter));
        source.sha256 = hash;
      }
    return true;
  } catch (const RuntimeError &e) {
    error = e.error;
    return false;
  }
}

void WeightFiles::release(size_t index) const {
  if (!fileOf[index])
    return;
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGE_SIZE));
  auto begin = reinterpret_cast<uintptr_t>(pointers[index]);
  uintptr_t end = begin + parameters[index].source.bytes;
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  if (begin < end)
    madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}
