// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LibraryKernel.cpp - registry of kinds, packed constants, scratch ---===//
#include "runtime/kernels/LibraryKernel.h"
#include "runtime/kernels/KernelSupport.h"
#include <cstdlib>
#include <new>

namespace mtp {

void AlignedBytes::Free::operator()(char *pointer) const { std::free(pointer); }

AlignedBytes::AlignedBytes(size_t bytes) : bytes(bytes) {
  memory.reset(
      static_cast<char *>(std::aligned_alloc(64, alignUp(bytes ? bytes : 1))));
  if (!memory)
    throw std::bad_alloc();
}

std::shared_ptr<AlignedBytes>
PackCache::get(const Key &key, size_t bytes,
               const std::function<void(char *)> &pack) {
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<AlignedBytes> &copy = copies[key];
  if (!copy) {
    auto fresh = std::make_shared<AlignedBytes>(bytes);
    pack(fresh->data());
    copy = std::move(fresh);
  }
  return copy;
}

int64_t PackCache::bytes() const {
  std::lock_guard<std::mutex> lock(mutex);
  int64_t total = 0;
  for (const auto &[key, copy] : copies)
    total += copy ? int64_t(copy->size()) : 0;
  return total;
}

char *Scratch::data() {
  if (memory.size() < needed)
    memory = AlignedBytes(needed);
  return memory.data();
}

using Prepare = std::unique_ptr<LibraryKernel> (*)(SiteReader &);
static const std::map<std::string, Prepare> &kinds() {
  static const std::map<std::string, Prepare> table = {
      {"matmul", prepareMatmul},
      {"attention", prepareAttention},
      {"attention_gradient", prepareAttentionGradient},
      {"topk", prepareTopK},
      {"argmax", prepareArgMax},
      {"argmin", prepareArgMax},
      {"cumsum", prepareCumSum},
      {"gather_nd", prepareGatherNd},
      {"scatter_elements", prepareScatterElements},
      {"scatter_nd", prepareScatterNd},
      {"gather_gradient", prepareGatherGradient},
      {"convolution", prepareConvolution},
      {"convolution_input_gradient", prepareConvolutionInputGradient},
      {"convolution_filter_gradient", prepareConvolutionFilterGradient},
  };
  return table;
}

std::vector<std::string> libraryKernelKinds() {
  std::vector<std::string> result;
  for (const auto &[kind, prepare] : kinds())
    result.push_back(kind);
  return result;
}

std::unique_ptr<LibraryKernel>
prepareLibraryKernel(const LibrarySite &site, const PrepareContext &context,
                     std::string &error) {
  auto it = kinds().find(site.kind);
  if (it == kinds().end()) {
    error = "library kernel '" + site.kind + "' is unknown";
    return nullptr;
  }
  try {
    SiteReader reader(site, context);
    return it->second(reader);
  } catch (const std::bad_alloc &) {
    error = site.kind + ": out of memory";
  } catch (const std::exception &exception) {
    error = exception.what();
  }
  return nullptr;
}

} // namespace mtp
