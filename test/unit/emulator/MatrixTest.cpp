// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MatrixTest.cpp - mma.sync and ldmatrix against plain products ------===//
//
// The layouts of registers are written down here once more, element by element
// as the PTX ISA has them ("Matrix fragments for mma.m16n8k8", ...).
//
//===----------------------------------------------------------------------===//
#include "test/unit/emulator/DeviceText.h"

#include "llvm/ADT/APFloat.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace mtp;
using namespace mtp::test;

namespace {

struct Shape {
  std::string type; ///< "f16"
  int64_t depth;
  bool isTf32() const { return type == "tf32"; }
  int64_t elementsA() const { return depth / 2; } ///< of a lane
  int64_t elementsB() const { return depth / 4; }
  int64_t perRegister() const { return isTf32() ? 1 : 2; }
  std::string name() const {
    return "mma_" + type + "_" + std::to_string(depth);
  }
};

const Shape shapes[] = {{"f16", 8},   {"f16", 16}, {"bf16", 8},
                        {"bf16", 16}, {"tf32", 4}, {"tf32", 8}};

struct Place {
  int64_t row, column;
};

/// Element a<i> of a lane.
Place placeOfA(const Shape &shape, int64_t lane, int64_t i) {
  int64_t group = lane >> 2, inGroup = lane % 4;
  if (shape.isTf32()) // a0, a2: group; a1, a3: group + 8
    return {i % 2 == 0 ? group : group + 8, i < 2 ? inGroup : inGroup + 4};
  if (shape.depth == 8) // a0, a1: group
    return {i < 2 ? group : group + 8, inGroup * 2 + (i & 1)};
  bool isUpper = (i >= 0 && i < 2) || (i >= 4 && i < 6);
  return {isUpper ? group : group + 8,
          inGroup * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}

Place placeOfB(const Shape &shape, int64_t lane, int64_t i) {
  int64_t group = lane >> 2, inGroup = lane % 4;
  if (shape.isTf32())
    return {i == 0 ? inGroup : inGroup + 4, group};
  return {inGroup * 2 + (i & 1) + (i >= 2 ? 8 : 0), group};
}

Place placeOfC(int64_t lane, int64_t i) {
  return {i < 2 ? lane >> 2 : (lane >> 2) + 8, (lane % 4) * 2 + (i & 1)};
}

uint32_t bitsOf(const llvm::fltSemantics &semantics, float value) {
  llvm::APFloat number(value);
  bool loses = false;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &loses);
  return static_cast<uint32_t>(number.bitcastToAPInt().getZExtValue());
}

/// The number as a register has it; tf32: all bits of the f32.
uint32_t encode(const Shape &shape, float value) {
  if (shape.isTf32())
    return std::bit_cast<uint32_t>(value);
  return bitsOf(shape.type == "f16" ? llvm::APFloat::IEEEhalf()
                                    : llvm::APFloat::BFloat(),
                value);
}

/// What the hardware sees of it.
double decode(const Shape &shape, uint32_t bits) {
  if (shape.isTf32())
    return std::bit_cast<float>(bits >> 13 << 13);
  llvm::APFloat number(shape.type == "f16" ? llvm::APFloat::IEEEhalf()
                                           : llvm::APFloat::BFloat(),
                       llvm::APInt(16, bits));
  bool loses = false;
  number.convert(llvm::APFloat::IEEEdouble(),
                 llvm::APFloat::rmNearestTiesToEven, &loses);
  return number.convertToDouble();
}

/// A kernel of a warp that gives each lane its registers as they lie in memory.
std::string kernelOf(const Shape &shape) {
  int64_t countA = shape.elementsA() / shape.perRegister(), countB = countA / 2;
  std::string type = shape.type == "f16" ? "vector<2xf16>" : "i32";
  std::string text, lists[3];
  auto load = [&](int operand, int64_t count, const std::string &what) {
    for (int64_t i = 0; i < count; ++i) {
      std::string own = std::to_string(operand) + "_" + std::to_string(i);
      text += "%at" + own + " = arith.constant " + std::to_string(i) +
              " : i64\n%size" + own + " = arith.constant " +
              std::to_string(count) + " : i64\n%first" + own +
              " = arith.muli %lane, %size" + own + " : i64\n%place" + own +
              " = arith.addi %first" + own + ", %at" + own + " : i64\n%p" +
              own + " = llvm.getelementptr %arg" + std::to_string(operand) +
              "[%place" + own + "] : (!llvm.ptr, i64) -> !llvm.ptr, i32\n%v" +
              own + " = llvm.load %p" + own + " : !llvm.ptr -> " + what + "\n";
      lists[operand] += (i ? ", %v" : "%v") + own;
    }
  };
  load(0, countA, type);
  load(1, countB, type);
  load(2, 4, "f32");
  text += "%d = nvvm.mma.sync A[" + lists[0] + "] B[" + lists[1] + "] C[" +
          lists[2] +
          "] {layoutA = #nvvm.mma_layout<row>, layoutB = "
          "#nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<" +
          shape.type + ">, multiplicandBPtxType = #nvvm.mma_type<" +
          shape.type + ">, shape = #nvvm.shape<m = 16, n = 8, k = " +
          std::to_string(shape.depth) + ">} : (" + type + ", " + type +
          ", f32) -> !llvm.struct<(f32, f32, f32, f32)>\n";
  for (int64_t i = 0; i < 4; ++i) {
    std::string n = std::to_string(i);
    text += "%d" + n + " = llvm.extractvalue %d[" + n +
            "] : !llvm.struct<(f32, f32, f32, f32)>\n%q" + n +
            " = llvm.getelementptr %arg3[%place2_" + n +
            "] : (!llvm.ptr, i64) -> !llvm.ptr, f32\nllvm.store %d" + n +
            ", %q" + n + " : f32, !llvm.ptr\n";
  }
  return "gpu.func @" + shape.name() +
         "(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr, %arg3: "
         "!llvm.ptr) kernel attributes {mtp.bytes = array<i64: " +
         std::to_string(128 * countA) + ", " + std::to_string(128 * countB) +
         ", 512, 512>} {\n%id = gpu.thread_id x\n%lane = arith.index_cast %id "
         ": index to i64\n" +
         text + "gpu.return\n}\n";
}

DeviceText &products() {
  static DeviceText text([] {
    std::string all;
    for (const Shape &shape : shapes)
      all += kernelOf(shape);
    return all;
  }());
  return text;
}

/// Matrices, and what the warp makes of them.
struct Problem {
  explicit Problem(const Shape &shape)
      : shape(shape), a(16, std::vector<uint32_t>(shape.depth)),
        b(shape.depth, std::vector<uint32_t>(8)), c(16, std::vector<float>(8)),
        d(c) {}

  /// `swapped`: registers 1 and 2 of A change places.
  std::string run(bool swapped = false) {
    int64_t per = shape.perRegister(), countA = shape.elementsA() / per,
            countB = shape.elementsB() / per;
    std::vector<uint32_t> registersA(32 * countA), registersB(32 * countB);
    std::vector<float> sums(128), results(128);
    for (int64_t lane = 0; lane < 32; ++lane) {
      for (int64_t i = 0; i < shape.elementsA(); ++i) {
        Place place = placeOfA(shape, lane, i);
        registersA[lane * countA + i / per] |= a[place.row][place.column]
                                               << 16 * (i % per);
      }
      for (int64_t i = 0; i < shape.elementsB(); ++i) {
        Place place = placeOfB(shape, lane, i);
        registersB[lane * countB + i / per] |= b[place.row][place.column]
                                               << 16 * (i % per);
      }
      for (int64_t i = 0; i < 4; ++i)
        sums[lane * 4 + i] = c[placeOfC(lane, i).row][placeOfC(lane, i).column];
      if (swapped)
        std::swap(registersA[lane * countA],
                  registersA[lane * countA + countA - 1]);
    }
    std::string said =
        products().launch(shape.name(), 32,
                          {reinterpret_cast<char *>(registersA.data()),
                           reinterpret_cast<char *>(registersB.data()),
                           reinterpret_cast<char *>(sums.data()),
                           reinterpret_cast<char *>(results.data())});
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t i = 0; i < 4; ++i)
        d[placeOfC(lane, i).row][placeOfC(lane, i).column] =
            results[lane * 4 + i];
    return said;
  }

  /// The number of elements that are not those of the plain product.
  int count() const {
    int wrong = 0;
    for (int64_t i = 0; i < 16; ++i)
      for (int64_t j = 0; j < 8; ++j) {
        double sum = c[i][j], size = std::abs(c[i][j]);
        for (int64_t k = 0; k < shape.depth; ++k) {
          double product = decode(shape, a[i][k]) * decode(shape, b[k][j]);
          sum += product;
          size += std::abs(product);
        }
        auto expected = static_cast<float>(sum);
        bool same = std::isnan(expected)   ? std::isnan(d[i][j])
                    : std::isinf(expected) ? d[i][j] == expected
                                           : std::abs(d[i][j] - expected) <=
                                                 1e-6 * size + 0x1p-149;
        wrong += !same;
      }
    return wrong;
  }

  Shape shape;
  std::vector<std::vector<uint32_t>> a, b; ///< as registers have them
  std::vector<std::vector<float>> c, d;
};

class MatrixProducts : public testing::TestWithParam<Shape> {};

} // namespace

TEST_P(MatrixProducts, AreThoseOfTheRoundedOperands) {
  std::mt19937_64 random(11);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 20; ++round) {
    Problem p(GetParam());
    for (auto *matrix : {&p.a, &p.b})
      for (auto &row : *matrix)
        for (uint32_t &bits : row)
          bits = encode(p.shape, normal(random));
    for (auto &row : p.c)
      for (float &x : row)
        x = normal(random);
    ASSERT_EQ(p.run(), "");
    EXPECT_EQ(p.count(), 0);
    ASSERT_EQ(p.run(/*swapped=*/true), "");
    EXPECT_GT(p.count(), 64) << "a wrong layout is noticed";
  }
}

TEST_P(MatrixProducts, KeepNanInfinityAndSubnormalNumbers) {
  const Shape &shape = GetParam();
  float tiny = shape.type == "f16" ? 0x1p-24f : 0x1p-133f;
  float large = shape.type == "f16" ? 65504 : 0x1.8p127f;
  float infinity = std::numeric_limits<float>::infinity();
  float special[] = {0,        -0.0f,     infinity, -infinity, std::nanf(""),
                     tiny,     -3 * tiny, large,    -large,    1,
                     0x1p-14f, -2.5f};
  std::mt19937_64 random(5);
  for (int round = 0; round < 40; ++round) {
    Problem p(shape);
    // Few of the matrices' elements, or all results would be NaN.
    auto fill = [&](auto &matrix, auto make) {
      for (auto &row : matrix)
        for (auto &x : row)
          x = make(random() % 8 ? float(random() % 5) - 2
                                : special[random() % std::size(special)]);
    };
    fill(p.a, [&](float x) { return encode(shape, x); });
    fill(p.b, [&](float x) { return encode(shape, x); });
    fill(p.c, [](float x) { return x; });
    ASSERT_EQ(p.run(), "");
    EXPECT_EQ(p.count(), 0);
    for (auto &row : p.d)
      for (float x : row)
        if (std::isnan(x))
          EXPECT_EQ(std::bit_cast<uint32_t>(x), 0x7fffffffu);
  }
  // Exact where every partial sum is: the smallest number times one.
  Problem p(shape);
  p.a[9][3] = encode(shape, tiny);
  p.b[3][6] = encode(shape, 1);
  ASSERT_EQ(p.run(), "");
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t j = 0; j < 8; ++j)
      EXPECT_EQ(p.d[i][j], i == 9 && j == 6 ? tiny : 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, MatrixProducts, testing::ValuesIn(shapes),
                         [](const auto &info) { return info.param.name(); });

TEST(MatrixOperands, OfTf32HaveTenBitsOfFraction) {
  Problem p({"tf32", 8});
  p.a[2][1] = 0x3f801fff; // 1 and bits that are not looked at
  p.b[1][4] = 0x3f800000;
  p.a[3][5] = 0x7f800001; // what stays of this NaN is infinity
  p.b[5][4] = 0x3f800000;
  ASSERT_EQ(p.run(), "");
  EXPECT_EQ(p.d[2][4], 1);
  EXPECT_EQ(p.d[3][4], std::numeric_limits<float>::infinity());
}

TEST(MatrixOperands, AreRoundedToTf32AwayFromZero) {
  DeviceText text(R"(
    gpu.func @round(%x: !llvm.ptr, %y: !llvm.ptr) kernel attributes {mtp.bytes = array<i64: 128, 128>} {
      %id = gpu.thread_id x
      %lane = arith.index_cast %id : index to i64
      %p = llvm.getelementptr %x[%lane] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %q = llvm.getelementptr %y[%lane] : (!llvm.ptr, i64) -> !llvm.ptr, i32
      %a = llvm.load %p : !llvm.ptr -> f32
      %b = nvvm.convert.float.to.tf32 %a {rnd = #nvvm.fp_rnd_mode<rna>}
      llvm.store %b, %q : i32, !llvm.ptr
      gpu.return
    })");
  std::pair<uint32_t, uint32_t> cases[] = {
      {0x00000000, 0x00000000}, {0x80000000, 0x80000000},
      {0x3f800000, 0x3f800000}, {0x3f800fff, 0x3f800000},
      {0x3f801000, 0x3f802000}, // a tie
      {0xbf803000, 0xbf804000}, {0x3fffffff, 0x40000000},
      {0x7f7fffff, 0x7f800000}, // to infinity
      {0x7f800000, 0x7f800000}, {0xff800000, 0xff800000},
      {0x7f800001, 0x7fffffff}, {0xffc00000, 0x7fffffff},
      {0x00000fff, 0x00000000}, {0x00001000, 0x00002000}};
  std::vector<uint32_t> in(32), out(32, 1);
  for (size_t i = 0; i < std::size(cases); ++i)
    in[i] = cases[i].first;
  ASSERT_EQ(text.launch("round", 32,
                        {reinterpret_cast<char *>(in.data()),
                         reinterpret_cast<char *>(out.data())}),
            "");
  for (size_t i = 0; i < std::size(cases); ++i)
    EXPECT_EQ(out[i], cases[i].second) << std::hex << cases[i].first;
}

//===----------------------------------------------------------------------===//
// Warps that are not whole
//===----------------------------------------------------------------------===//

namespace {

/// A kernel whose threads below %limit multiply, others at another place or
/// nowhere.
std::string dividedKernel(const std::string &name, const std::string &other) {
  std::string product =
      "nvvm.mma.sync A[%i, %i] B[%i] C[%z, %z, %z, %z] {layoutA = "
      "#nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, "
      "multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = "
      "#nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 8>} : "
      "(i32, "
      "i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>\n";
  return "gpu.func @" + name +
         "() kernel {\n%i = arith.constant 0 : i32\n%z = arith.constant 0.0 : "
         "f32\n%limit = arith.constant 39 : index\n%id = gpu.thread_id x\n%in "
         "= arith.cmpi ne, %id, %limit : index\nscf.if %in {\n%d = " +
         product + "} else {\n" + (other.empty() ? "" : "%e = " + product) +
         "}\ngpu.barrier\ngpu.return\n}\n";
}

} // namespace

TEST(MatrixWarps, MustBeWhole) {
  DeviceText text(dividedKernel("alone", "") +
                  dividedKernel("elsewhere", "too"));
  EXPECT_EQ(text.launch("alone", 64, {}),
            "kernel alone, block (0, 0, 0), thread 39, at nvvm.mma.sync in "
            "line 9: the thread is at gpu.barrier in line 12 while thread 32 "
            "waits for its whole warp");
  EXPECT_EQ(
      text.launch("elsewhere", 64, {}),
      "kernel elsewhere, block (0, 0, 0), thread 39, at nvvm.mma.sync in "
      "line 22: the thread is at nvvm.mma.sync in line 24 while thread 32 "
      "waits for its whole warp");
  EXPECT_NE(text.launch("alone", 48, {}), "") << "half a warp";
}

TEST(MatrixWarps, RefuseWhatIsNotEmulated) {
  auto error = [](const std::string &body) {
    try {
      DeviceText text("gpu.func @k() kernel {\n%i = arith.constant 0 : i32\n" +
                      body + "gpu.return\n}\n");
    } catch (const std::exception &error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(error(R"(%d = nvvm.mma.sync A[%i, %i] B[%i] C[%i, %i, %i, %i]
      {intOverflowBehavior = #nvvm.mma_int_overflow<wrapped>,
       layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
       multiplicandAPtxType = #nvvm.mma_type<s8>, multiplicandBPtxType = #nvvm.mma_type<s8>,
       shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (i32, i32, i32) -> !llvm.struct<(i32, i32, i32, i32)>
      )"),
            "kernel k has an operation that is not emulated: nvvm.mma.sync in "
            "line 4");
}

//===----------------------------------------------------------------------===//
// Matrices from shared memory
//===----------------------------------------------------------------------===//

namespace {

/// Lane l puts 16 numbers, 16 l and on, into shared memory; the warp loads
/// matrices from rows whose addresses lane by lane are those of %rows.
std::string loadKernel(const std::string &name, int count,
                       const std::string &layout, bool waits = true) {
  std::string result = count == 1   ? "i32"
                       : count == 2 ? "!llvm.struct<(i32, i32)>"
                                    : "!llvm.struct<(i32, i32, i32, i32)>";
  std::string text =
      "gpu.func @" + name +
      "(%rows: !llvm.ptr, %out: !llvm.ptr) kernel attributes {mtp.bytes = "
      "array<i64: 256, 512>} {\n%id = gpu.thread_id x\n%lane = "
      "arith.index_cast %id : index to i64\n%c16 = arith.constant 16 : "
      "i64\n%shared = llvm.mlir.addressof @tile : !llvm.ptr<3>\n%first = "
      "arith.muli %lane, %c16 : i64\n";
  for (int i = 0; i < 16; ++i) {
    std::string n = std::to_string(i);
    text += "%n" + n + " = arith.constant " + n + " : i64\n%at" + n +
            " = arith.addi %first, %n" + n + " : i64\n%t" + n +
            " = llvm.getelementptr %shared[%at" + n +
            "] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i16\n%x" + n +
            " = arith.trunci %at" + n + " : i64 to i16\nllvm.store %x" + n +
            ", %t" + n + " : i16, !llvm.ptr<3>\n";
  }
  if (waits)
    text += "gpu.barrier\n";
  text += "%rp = llvm.getelementptr %rows[%lane] : (!llvm.ptr, i64) -> "
          "!llvm.ptr, i64\n%row = llvm.load %rp : !llvm.ptr -> i64\n%from = "
          "llvm.getelementptr %shared[%row] : (!llvm.ptr<3>, i64) -> "
          "!llvm.ptr<3>, i16\n%m = nvvm.ldmatrix %from {num = " +
          std::to_string(count) + " : i32, layout = #nvvm.mma_layout<" +
          layout +
          ">, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = "
          "#nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> " +
          result + "\n";
  for (int i = 0; i < count; ++i) {
    std::string n = std::to_string(i);
    if (count > 1)
      text +=
          "%r" + n + " = llvm.extractvalue %m[" + n + "] : " + result + "\n";
    text += "%c" + n + " = arith.constant " + std::to_string(32 * i) +
            " : i64\n%o" + n + " = arith.addi %lane, %c" + n + " : i64\n%q" +
            n + " = llvm.getelementptr %out[%o" + n +
            "] : (!llvm.ptr, i64) -> !llvm.ptr, i32\nllvm.store " +
            (count > 1 ? "%r" + n : "%m") + ", %q" + n + " : i32, !llvm.ptr\n";
  }
  return text + "gpu.return\n}\n";
}

DeviceText &loads() {
  static DeviceText text(
      "llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 16 "
      ": i64} : !llvm.array<512 x i16>\n" +
      loadKernel("load1_row", 1, "row") + loadKernel("load2_row", 2, "row") +
      loadKernel("load4_row", 4, "row") + loadKernel("load1_col", 1, "col") +
      loadKernel("load2_col", 2, "col") + loadKernel("load4_col", 4, "col") +
      loadKernel("races", 4, "row", /*waits=*/false));
  return text;
}

} // namespace

TEST(MatrixLoads, GiveEachLaneItsElements) {
  std::vector<int64_t> rows(32);
  for (int64_t i = 0; i < 32; ++i)
    rows[i] = 8 * (i * 11 % 64); // any rows, none twice
  for (int count : {1, 2, 4})
    for (bool transposed : {false, true}) {
      std::vector<uint32_t> out(128, 0);
      std::string name = "load" + std::to_string(count);
      ASSERT_EQ(loads().launch(name + (transposed ? "_col" : "_row"), 32,
                               {reinterpret_cast<char *>(rows.data()),
                                reinterpret_cast<char *>(out.data())}),
                "");
      for (int64_t matrix = 0; matrix < count; ++matrix)
        for (int64_t lane = 0; lane < 32; ++lane)
          for (int64_t half = 0; half < 2; ++half) {
            int64_t r = lane / 4, c = lane % 4 * 2 + half;
            if (transposed)
              std::swap(r, c);
            EXPECT_EQ(out[32 * matrix + lane] >> 16 * half & 0xffff,
                      rows[8 * matrix + r] + c)
                << name << " lane " << lane;
          }
    }
}

TEST(MatrixLoads, AreWatched) {
  std::vector<int64_t> rows(32);
  std::vector<uint32_t> out(128);
  auto launch = [&](const char *name) {
    std::string said = loads().launch(name, 32,
                                      {reinterpret_cast<char *>(rows.data()),
                                       reinterpret_cast<char *>(out.data())});
    size_t at = said.find(": ");
    return at == std::string::npos ? said : said.substr(at + 2);
  };
  rows[9] = 505;
  EXPECT_EQ(launch("load1_row"), "") << "only the first eight are looked at";
  EXPECT_EQ(launch("load2_row"),
            "the address of 16 bytes is not a multiple of that");
  rows[9] = 512;
  EXPECT_EQ(launch("load2_row"), "4 bytes at offset 1024 of shared array 0 are "
                                 "outside of its 1024 bytes");
  rows[9] = 0;
  EXPECT_EQ(launch("races"),
            "4 bytes at offset 4 of shared array 0 are read, "
            "and thread 0 wrote there with no barrier between");
}
