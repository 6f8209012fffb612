// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/io/Npz.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Zip.h"

#include <cerrno>
#include <cstring>
#include <functional>
#include <new>
#include <sys/stat.h>

using namespace mtp;

namespace {

/// Enough of a member for its .npy header: version 1 headers are at most this
/// long, and NumPy writes others only for enormous shapes.
constexpr uint64_t kHeaderBytes = 10 + 65535;

bool endsWith(const std::string &text, const char *ending) {
  size_t length = strlen(ending);
  return text.size() >= length &&
         text.compare(text.size() - length, length, ending) == 0;
}

/// Runs `body` and turns what it throws into `error`.
bool guarded(Error &error, const std::string &path,
             const std::function<void()> &body) {
  try {
    body();
    return true;
  } catch (const RuntimeError &e) {
    error = e.error;
  } catch (const std::bad_alloc &) {
    error = {exits::BadInput,
             "memory",
             "not enough memory to read '" + path + "'",
             {}};
  } catch (const std::length_error &) {
    error = {exits::BadInput,
             "memory",
             "not enough memory to read '" + path + "'",
             {}};
  }
  return false;
}

std::string keyOf(const ZipMember &member, const std::string &path) {
  if (!endsWith(member.name, ".npy"))
    failInput("'" + path + "' has the member '" + member.name +
              "', which is not a .npy file");
  return member.name.substr(0, member.name.size() - 4);
}

std::string arrayName(const std::string &key, const std::string &path) {
  return "array '" + key + "' of '" + path + "'";
}

} // namespace

bool mtp::readNpz(const std::string &path, TensorMap &tensors, Error &error) {
  std::string bytes;
  if (!readFile(path, bytes, error))
    return false;
  return guarded(error, path, [&] {
    TensorMap result;
    for (const ZipMember &member :
         zipDirectory(bytes.data(), bytes.size(), path)) {
      std::string key = keyOf(member, path);
      std::string npy = zipRead(bytes.data(), member, member.size, path);
      if (!result
               .emplace(key,
                        parseNpy(npy.data(), npy.size(), arrayName(key, path)))
               .second)
        failInput("'" + path + "' has the array '" + key + "' twice");
    }
    tensors = std::move(result);
  });
}

bool mtp::readNpzHeaders(const std::string &path,
                         std::map<std::string, TensorHeader> &headers,
                         Error &error) {
  std::string bytes;
  if (!readFile(path, bytes, error))
    return false;
  return guarded(error, path, [&] {
    std::map<std::string, TensorHeader> result;
    for (const ZipMember &member :
         zipDirectory(bytes.data(), bytes.size(), path)) {
      std::string key = keyOf(member, path);
      std::string npy = zipRead(bytes.data(), member, kHeaderBytes, path);
      result[key] =
          parseNpyHeader(npy.data(), npy.size(), arrayName(key, path)).tensor;
    }
    headers = std::move(result);
  });
}

bool mtp::readTensorFile(const std::string &path, HostTensor &tensor,
                         Error &error) {
  std::string bytes;
  if (!readFile(path, bytes, error))
    return false;
  return guarded(error, path, [&] {
    std::string what = "'" + path + "'";
    if (endsWith(path, ".npy"))
      tensor = parseNpy(bytes.data(), bytes.size(), what);
    else if (endsWith(path, ".pb"))
      tensor = parseTensorProto(bytes.data(), bytes.size(), what);
    else
      failInput(what + " is neither a .npy nor a .pb file");
  });
}

bool mtp::writeNpz(const std::string &path, const TensorMap &tensors,
                   Error &error) {
  std::string bytes;
  ZipWriter zip(bytes);
  for (const auto &[key, tensor] : tensors) {
    if (key.size() + 4 > 65535) {
      error = {exits::BadInput,
               "file",
               "cannot write '" + path + "': a name has " +
                   std::to_string(key.size()) + " bytes",
               {}};
      return false;
    }
    zip.add(key + ".npy", npyHeaderText(tensor), tensor.bytes.data(),
            tensor.bytes.size());
  }
  zip.finish();
  return writeFileAtomically(path, bytes, error);
}

bool mtp::writeNpy(const std::string &path, const HostTensor &tensor,
                   Error &error) {
  std::string bytes = npyHeaderText(tensor);
  if (!tensor.bytes.empty())
    bytes.append(tensor.bytes.data(), tensor.bytes.size());
  return writeFileAtomically(path, bytes, error);
}

bool mtp::writeOutputDirectory(const std::string &directory,
                               const TensorMap &tensors, Error &error) {
  if (mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
    error = {exits::BadInput,
             "file",
             "cannot make the directory '" + directory +
                 "': " + strerror(errno),
             {}};
    return false;
  }
  nlohmann::json index = nlohmann::json::object();
  for (const auto &[key, tensor] : tensors) {
    std::string file;
    for (char c : key)
      file += c == '/' ? "%2F" : c == '%' ? "%25" : std::string(1, c);
    file += ".npy";
    if (!writeNpy(directory + "/" + file, tensor, error))
      return false;
    index[key] = {
        {"file", file}, {"dtype", name(tensor.type)}, {"shape", tensor.shape}};
  }
  return writeFileAtomically(
      directory + "/index.json",
      index.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
          "\n",
      error);
}
