// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/ObjectEmitter.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace mtp;

namespace {
/// A private directory that goes with its contents.
class ScratchDirectory {
public:
  std::error_code create() {
    return llvm::sys::fs::createUniqueDirectory("mtp-link", path);
  }
  ~ScratchDirectory() {
    if (!path.empty())
      llvm::sys::fs::remove_directories(path);
  }
  std::string file(const llvm::Twine &name) const {
    return (path + "/" + name).str();
  }

private:
  llvm::SmallString<128> path;
};
} // namespace

static std::string findLinker(const std::string &given) {
  if (!given.empty())
    return given;
  for (const char *name : {"ld.lld-22", "ld.lld"})
    if (auto found = llvm::sys::findProgramByName(name))
      return *found;
  return llvm::sys::fs::can_execute(MTP_LLD) ? MTP_LLD : "";
}

static std::error_code writeFile(const std::string &path,
                                 llvm::StringRef bytes) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (code)
    return code;
  stream << bytes;
  stream.close();
  return stream.error();
}

mlir::FailureOr<std::string>
mtp::linkShared(const std::vector<std::string> &objects,
                const std::string &linker, std::string &error) {
  std::string program = findLinker(linker);
  if (program.empty()) {
    error = "the linker ld.lld was not found; install lld or add it to PATH";
    return mlir::failure();
  }
  ScratchDirectory directory;
  if (std::error_code code = directory.create()) {
    error = "cannot make a directory for the linker: " + code.message();
    return mlir::failure();
  }
  std::vector<std::string> arguments = {program,
                                        "-shared",
                                        "-Bsymbolic",
                                        "--hash-style=gnu",
                                        "-z",
                                        "now",
                                        "-z",
                                        "relro",
                                        "-z",
                                        "noexecstack",
                                        "-z",
                                        "text",
                                        "-z",
                                        "defs",
                                        "--build-id=none",
                                        "--gc-sections",
                                        "-s",
                                        "-o",
                                        directory.file("kernels.so")};
  for (size_t i = 0; i < objects.size(); ++i) {
    std::string path = directory.file("kernels" + llvm::Twine(i) + ".o");
    if (std::error_code code = writeFile(path, objects[i])) {
      error = "cannot write '" + path + "': " + code.message();
      return mlir::failure();
    }
    arguments.push_back(path);
  }
  std::string log = directory.file("log"), message;
  llvm::SmallVector<llvm::StringRef> view(arguments.begin(), arguments.end());
  std::optional<llvm::StringRef> redirects[] = {
      llvm::StringRef(""), llvm::StringRef(log), llvm::StringRef(log)};
  int code = llvm::sys::ExecuteAndWait(program, view, std::nullopt, redirects,
                                       0, 0, &message);
  if (code != 0) {
    if (auto text = llvm::MemoryBuffer::getFile(log))
      message += (*text)->getBuffer().str();
    error = "linking the kernels failed: " + message;
    return mlir::failure();
  }
  auto linked = llvm::MemoryBuffer::getFile(directory.file("kernels.so"));
  if (!linked) {
    error = "cannot read the linked kernels: " + linked.getError().message();
    return mlir::failure();
  }
  return (*linked)->getBuffer().str();
}
