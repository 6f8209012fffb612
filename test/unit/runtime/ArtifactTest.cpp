// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/support/Sha256.h"
#include "test/unit/runtime/TestArtifact.h"

#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace mtp;
using namespace mtp::test;

namespace {

/// Recomputes the hash, so that what stands behind it is checked.
std::string rehash(std::string bytes) {
  bytes.resize(bytes.size() - 32);
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  auto digest = hash.digest();
  return bytes.append(reinterpret_cast<const char *>(digest.data()), 32);
}

TEST(Sha256, KnownDigests) {
  EXPECT_EQ(Sha256::hex("", 0),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256::hex("abc", 3),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  std::string million(1000000, 'a');
  Sha256 parts;
  for (size_t at = 0; at < million.size(); at += 977)
    parts.update(million.data() + at,
                 std::min<size_t>(977, million.size() - at));
  EXPECT_EQ(parts.hexDigest(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Artifact, RoundTrips) {
  Artifact a = multiplyAndGather(7, 3), b;
  std::string error;
  ASSERT_TRUE(Artifact::parse(a.serialize(), b, error)) << error;
  EXPECT_EQ(b.serialize(), a.serialize());
  EXPECT_EQ(b.object, a.object);
  EXPECT_EQ(b.entries[0].program[1].buffers[1].space, BufferRef::Space::Output);
}

TEST(Artifact, EveryTruncationIsRefused) {
  std::string bytes = multiplyAndGather(4, 2).serialize();
  Artifact a;
  for (size_t size = 0; size < bytes.size(); size += 1 + size / 64) {
    std::string error;
    EXPECT_FALSE(Artifact::parse(bytes.substr(0, size), a, error));
    EXPECT_FALSE(error.empty());
  }
}

TEST(Artifact, EveryFlippedByteIsRefused) {
  std::string bytes = multiplyAndGather(4, 2).serialize();
  Artifact a;
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    std::string damaged = bytes, error;
    size_t at = i < 64 ? i : random() % bytes.size();
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    EXPECT_FALSE(Artifact::parse(damaged, a, error)) << at;
  }
}

/// The hash is right but the manifest isn't: either it still verifies or there
/// is a message; it never crashes.
TEST(Artifact, DamagedManifestsNeverCrash) {
  std::string bytes = multiplyAndGather(4, 2).serialize();
  size_t manifest =
      static_cast<uint8_t>(bytes[8]) | static_cast<uint8_t>(bytes[9]) << 8;
  std::mt19937 random(2);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = bytes, error;
    for (unsigned k = 0; k <= random() % 3; ++k)
      damaged[32 + random() % manifest] =
          "0123456789-[]{}\",:e~a"[random() % 22];
    Artifact a;
    bool ok = Artifact::parse(rehash(damaged), a, error);
    refused += !ok;
    EXPECT_EQ(ok, error.empty());
  }
  EXPECT_GT(refused, 1000);
}

TEST(Artifact, DamagedHeadersNeverCrash) {
  std::string bytes = multiplyAndGather(4, 2).serialize();
  for (size_t at = 0; at < 32; ++at)
    for (int value : {0, 1, 127, 128, 255}) {
      std::string damaged = bytes, error;
      if (static_cast<uint8_t>(damaged[at]) == value)
        continue;
      damaged[at] = static_cast<char>(value);
      Artifact a;
      EXPECT_FALSE(Artifact::parse(rehash(damaged), a, error)) << at;
    }
}

struct Invalid {
  const char *says;
  std::function<void(Artifact &)> change;
};

TEST(Artifact, VerifierNamesWhatIsWrong) {
  using Kind = Instruction::Kind;
  auto program = [](Artifact &a) -> auto & { return a.entries[0].program; };
  const Invalid cases[] = {
      {"mesh axis", [](Artifact &a) { a.axes.axes[0].size = 0; }},
      {"more than 4096 ranks",
       [](Artifact &a) { a.axes.axes[0].size = 1 << 20; }},
      {"used twice", [](Artifact &a) { a.axes.axes.push_back({"tp", 1}); }},
      {"no program", [](Artifact &a) { a.entries.clear(); }},
      {"its shape needs",
       [](Artifact &a) { a.parameters[0].source.bytes = 3; }},
      {"reaches past the data section",
       [](Artifact &a) { a.parameters[0].source.offset = 8; }},
      {"reaches past any file",
       [](Artifact &a) { a.parameters[0].source.offset = UINT64_MAX - 2; }},
      {"negative extent",
       [](Artifact &a) { a.parameters[0].source.shape = {-4}; }},
      {"larger than any memory",
       [](Artifact &a) { a.parameters[0].layout.shape = {int64_t(1) << 60}; }},
      {"malformed SHA-256",
       [](Artifact &a) { a.parameters[0].source.sha256 = "x"; }},
      {"another shape",
       [](Artifact &a) { a.parameters[0].layout.shape = {3}; }},
      {"slice lies outside",
       [](Artifact &a) {
         a.parameters[0].recipe = {
             {RecipeStep::Kind::Slice, {}, 0, INT64_MAX, 2}};
       }},
      {"not a permutation of the dims",
       [](Artifact &a) {
         a.parameters[0].recipe = {{RecipeStep::Kind::Transpose, {1}}};
       }},
      {"number of elements",
       [](Artifact &a) {
         a.parameters[0].recipe = {{RecipeStep::Kind::Reshape, {2, 3}}};
       }},
      {"mesh axis that does not exist",
       [](Artifact &a) { a.entries[0].inputs[0].layout.dims[0].axes = {5}; }},
      {"unit 0",
       [](Artifact &a) { a.entries[0].inputs[0].layout.dims[0].unit = 0; }},
      {"reaches past its space",
       [&](Artifact &a) { program(a)[0].buffers[2].offset = 4; }},
      {"reaches past its space",
       [&](Artifact &a) { program(a)[0].buffers[0].bytes = INT64_MAX; }},
      {"refers to number 7",
       [&](Artifact &a) { program(a)[0].buffers[1].index = 7; }},
      {"unknown kernel", [&](Artifact &a) { program(a)[0].index = 99; }},
      {"no grain", [&](Artifact &a) { program(a)[0].grain = 0; }},
      {"unknown collective", [&](Artifact &a) { program(a)[1].index = -1; }},
      {"not started here",
       [&](Artifact &a) { program(a).erase(program(a).begin() + 1); }},
      {"under way", [&](Artifact &a) { program(a).pop_back(); }},
      {"before it is done",
       [&](Artifact &a) {
         Instruction touch = program(a)[0];
         touch.buffers = {program(a)[1].buffers[1]};
         program(a).insert(program(a).begin() + 2, touch);
       }},
      {"writes the operand of collective site 0 before it is done",
       [&](Artifact &a) {
         Instruction write = program(a)[0];
         write.buffers = {program(a)[1].buffers[0]};
         write.results = 1;
         program(a).insert(program(a).begin() + 2, write);
       }},
      {"doesn't stand before it",
       [](Artifact &a) { a.collectiveSites[0].partOf = 0; }},
      {"part of another kind of collective",
       [](Artifact &a) {
         a.collectiveSites.push_back(a.collectiveSites[0]);
         a.collectiveSites[1].partOf = 0;
       }},
      {"writes a parameter that is not updated",
       [&](Artifact &a) {
         program(a)[1].buffers[1] = at(BufferRef::Space::Parameter, 0, 0, 8);
         a.collectiveSites[0].kind = CollectiveSite::Kind::AllReduce;
         a.collectiveSites[0].outShape = a.collectiveSites[0].inShape;
       }},
      {"ends no loop",
       [&](Artifact &a) {
         program(a).push_back({Kind::LoopEnd, 0, {}, 1, 1, ""});
       }},
      {"without an end",
       [&](Artifact &a) {
         program(a).push_back({Kind::LoopBegin, 0, {}, 1, 1, ""});
       }},
      {"do not follow from its extent",
       [](Artifact &a) { a.collectiveSites[0].extent = 9; }},
      {"not a permutation of its group",
       [](Artifact &a) {
         CollectiveSite &site = a.collectiveSites[0];
         site.kind = CollectiveSite::Kind::Permute;
         site.outShape = site.inShape;
         site.sourceOf = {0, 0};
       }},
      {"has no mesh axis",
       [](Artifact &a) { a.collectiveSites[0].axes.clear(); }},
      {"stands twice",
       [](Artifact &a) {
         a.entries[0].inputs.push_back(a.entries[0].inputs[0]);
       }},
  };
  for (const Invalid &invalid : cases) {
    Artifact a = multiplyAndGather(4, 2);
    invalid.change(a);
    std::string error;
    EXPECT_FALSE(a.verify(error)) << invalid.says;
    EXPECT_NE(error.find(invalid.says), std::string::npos)
        << error << " should say: " << invalid.says;
  }
}

} // namespace
