// Operations between lanes, simdgroup matrices, barriers, atomics, threadgroup memory, templates
// and constants.
#include <cmath>
#include <numeric>
#include <random>

#include "metal_sim/text_kernel.h"

namespace octavo::metal_sim {
namespace {

const std::vector<ThreadOrder> kOrders = {ThreadOrder::kForward, ThreadOrder::kBackward,
                                          ThreadOrder::kShuffled};

// The result in each of 32 lanes of an expression in lane and v = lane * lane.
std::vector<int> lanes_of(const std::string& expression, ThreadOrder order) {
  std::vector<int> out(32);
  TextKernel(
      "[[kernel]] void k(device int* out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) "
      "{\n"
      "  const int v = lane * lane; out[lane] = " +
      expression + ";\n}")
      .output("out", out)
      .grid({1}, {32})
      .run({.order = order});
  return out;
}

template <typename Function>
std::vector<int> expected_lanes(Function function) {
  std::vector<int> out(32);
  for (int lane = 0; lane < 32; ++lane) out[static_cast<size_t>(lane)] = function(lane);
  return out;
}

TEST(MetalLanes, Shuffles) {
  for (ThreadOrder order : kOrders) {
    EXPECT_EQ(lanes_of("simd_shuffle_xor(v, 5)", order),
              expected_lanes([](int lane) { return (lane ^ 5) * (lane ^ 5); }));
    EXPECT_EQ(lanes_of("simd_shuffle(v, (lane + 3) % 32)", order),
              expected_lanes([](int lane) { return (lane + 3) % 32 * ((lane + 3) % 32); }));
    EXPECT_EQ(lanes_of("simd_shuffle_down(v, 4)", order), expected_lanes([](int lane) {
                return lane < 28 ? (lane + 4) * (lane + 4) : lane * lane;
              }));
    EXPECT_EQ(lanes_of("simd_shuffle_up(v, 4)", order), expected_lanes([](int lane) {
                return lane >= 4 ? (lane - 4) * (lane - 4) : lane * lane;
              }));
    EXPECT_EQ(lanes_of("simd_broadcast(v, 9)", order), expected_lanes([](int) { return 81; }));
    EXPECT_EQ(lanes_of("simd_broadcast_first(v + 1)", order),
              expected_lanes([](int) { return 1; }));
  }
}

TEST(MetalLanes, SumsAndScans) {
  for (ThreadOrder order : kOrders) {
    EXPECT_EQ(lanes_of("simd_sum(v)", order), expected_lanes([](int) { return 31 * 32 * 63 / 6; }));
    EXPECT_EQ(lanes_of("simd_max(31 - v)", order), expected_lanes([](int) { return 31; }));
    EXPECT_EQ(lanes_of("simd_prefix_inclusive_sum(v)", order),
              expected_lanes([](int lane) { return lane * (lane + 1) * (2 * lane + 1) / 6; }));
    EXPECT_EQ(lanes_of("simd_prefix_exclusive_sum(v)", order),
              expected_lanes([](int lane) { return lane * (lane - 1) * (2 * lane - 1) / 6; }));
    EXPECT_EQ(lanes_of("simd_any(lane == 7) + 2 * simd_all(lane == 7)", order),
              expected_lanes([](int) { return 1; }));
  }
}

TEST(MetalLanes, FinishedLanesDoNotTakePart) {
  std::vector<int> out(40);
  TextKernel(
      "[[kernel]] void k(device int* out [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {\n"
      "  if (t % 4 == 1) return;\n  out[t] = simd_sum(1);\n}")
      .output("out", out)
      .grid({1}, {40})
      .run();
  for (size_t t = 0; t < 40; ++t) EXPECT_EQ(out[t], t % 4 == 1 ? 0 : t < 32 ? 24 : 6) << t;
}

// out = a * b + c, with b read transposed from threadgroup memory, for one type of factors.
void expect_product(const std::string& type, float scale) {
  constexpr int kStride = 12;  // of rows in memory
  std::mt19937 random(4);
  std::vector<float> a(8 * kStride), b(8 * kStride), c(64), out(64);
  // Small multiples of a power of two are exact in every type, and so are their sums.
  for (auto* matrix : {&a, &b, &c})
    for (float& value : *matrix)
      value = static_cast<float>(static_cast<int>(random() % 17) - 8) * scale;
  const KernelCounts counts =
      TextKernel(
          "[[kernel]] void k(const device float* a [[buffer(0)]], const device float* b "
          "[[buffer(1)]],\n"
          "  const device float* c [[buffer(2)]], device float* out [[buffer(3)]], device TYPE* "
          "copy [[buffer(4)]],\n"
          "  uint lane [[thread_index_in_simdgroup]]) {\n"
          "  threadgroup TYPE tile[8 * 12];\n"
          "  for (uint i = lane; i < 96; i += 32) { copy[i] = TYPE(a[i]); tile[i] = TYPE(b[i]); }\n"
          "  simdgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);\n"
          "  simdgroup_matrix<TYPE, 8, 8> x, y; simdgroup_float8x8 sum;\n"
          "  simdgroup_load(x, copy, 12, ulong2(2, 0)); simdgroup_load(y, tile, 12, ulong2(0, 0), "
          "true);\n"
          "  simdgroup_load(sum, c);\n"
          "  simdgroup_multiply_accumulate(sum, x, y, sum);\n"
          "  simdgroup_store(sum, out, 8);\n}")
          .define("TYPE", type)
          .input("a", a)
          .input("b", b)
          .input("c", c)
          .output("out", out)
          .scratch("copy", 96 * sizeof(float))
          .grid({1}, {32})
          .run();
  EXPECT_EQ(counts.multiply_adds, 512u);
  for (size_t i = 0; i < 8; ++i) {
    for (size_t j = 0; j < 8; ++j) {
      float sum = c[i * 8 + j];
      for (size_t inner = 0; inner < 8; ++inner)
        sum += a[i * kStride + inner + 2] * b[j * kStride + inner];
      EXPECT_EQ(out[i * 8 + j], sum) << i << ", " << j;
    }
  }
}

TEST(MetalLanes, MatrixProductOfHalf) { expect_product("half", 0.25f); }
TEST(MetalLanes, MatrixProductOfBfloat) { expect_product("bfloat", 0.25f); }
TEST(MetalLanes, MatrixProductOfFloat) { expect_product("float", 0.25f); }

TEST(MetalLanes, FilledAndTransposedMatrices) {
  std::vector<float> out(64 + 16 * 8);
  TextKernel(
      "[[kernel]] void k(device float* out [[buffer(0)]]) {\n"
      "  simdgroup_float8x8 ones = make_filled_simdgroup_matrix<float, 8, 8>(2.0f), unit(3.0f), "
      "product;\n"
      "  simdgroup_multiply(product, ones, unit); simdgroup_store(product, out);\n"
      "  simdgroup_load(product, out); simdgroup_store(unit, out + 64, 16, ulong2(8, 0), true);\n}")
      .output("out", out)
      .grid({1}, {32})
      .run();
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(out[i], 6) << i;
    EXPECT_EQ(out[64 + i / 8 * 16 + i % 8 + 8], i / 8 == i % 8 ? 3 : 0) << i;
  }
}

// Every element belongs to one lane; stores and products see what a lane has written.
TEST(MetalLanes, ElementsOfAMatrix) {
  std::vector<float> out(64);
  TextKernel(
      "[[kernel]] void k(device float* out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) "
      "{\n"
      "  threadgroup float numbers[64];\n"
      "  numbers[lane] = lane; numbers[lane + 32] = lane + 32;\n"
      "  simdgroup_barrier(mem_flags::mem_threadgroup);\n"
      "  simdgroup_float8x8 matrix;\n"
      "  simdgroup_load(matrix, numbers);\n"
      "  for (int i = 0; i < 2; ++i) matrix.thread_elements()[i] *= 2.0f;\n"
      "  simdgroup_store(matrix, out);\n}")
      .output("out", out)
      .grid({1}, {32})
      .run();
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], 2 * static_cast<float>(i)) << i;
}

TEST(MetalLanes, AMatrixNeedsAllLanes) {
  EXPECT_NE(
      TextKernel(
          "[[kernel]] void k(uint lane [[thread_index_in_simdgroup]]) { simdgroup_float8x8 a = "
          "make_filled_simdgroup_matrix<float, 8, 8>(0.0f);\n"
          "  simdgroup_multiply_accumulate(a, a, a, a); }")
          .grid({1}, {31})
          .fault()
          .find("simdgroup_multiply_accumulate without all 32 lanes"),
      std::string::npos);
}

TEST(MetalLanes, Atomics) {
  std::vector<uint32_t> out(5);
  TextKernel(
      "[[kernel]] void k(device atomic_uint* out [[buffer(0)]], uint t "
      "[[thread_position_in_grid]],\n"
      "  uint local [[thread_index_in_threadgroup]]) {\n"
      "  threadgroup atomic_uint count;\n"
      "  if (local == 0) atomic_store_explicit(&count, 0, memory_order_relaxed);\n"
      "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
      "  atomic_fetch_add_explicit(&count, 2u, memory_order_relaxed);\n"
      "  atomic_fetch_add_explicit(&out[t % 4], t, memory_order_relaxed);\n"
      "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
      "  if (local == 0) atomic_fetch_max_explicit(&out[4], atomic_load_explicit(&count, "
      "memory_order_relaxed), memory_order_relaxed);\n}")
      .output("out", out)
      .grid({3}, {40})
      .run();
  std::vector<uint32_t> expected(5);
  for (uint32_t t = 0; t < 120; ++t) expected[t % 4] += t;
  expected[4] = 80;
  EXPECT_EQ(out, expected);
}

TEST(MetalLanes, PositionsInTheGrid) {
  std::vector<uint32_t> out(2 * 3 * 2 * 4 * 3 * 2);
  TextKernel(
      "[[kernel]] void k(device uint* out [[buffer(0)]], uint3 at [[thread_position_in_grid]], "
      "uint3 size [[threads_per_grid]],\n"
      "  uint3 group [[threadgroup_position_in_grid]], uint3 local "
      "[[thread_position_in_threadgroup]],\n"
      "  uint3 threads [[threads_per_threadgroup]], uint index [[thread_index_in_threadgroup]],\n"
      "  uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane "
      "[[thread_index_in_simdgroup]]) {\n"
      "  const uint3 again = group * threads + local;\n"
      "  const bool same = again.x == at.x && again.y == at.y && again.z == at.z && index == "
      "simdgroup * 32 + lane;\n"
      "  out[(at.z * size.y + at.y) * size.x + at.x] = same ? at.x + 10 * at.y + 100 * at.z : "
      "0xFFFFFFFF;\n}")
      .output("out", out)
      .grid({2, 3, 2}, {4, 3, 2})
      .run();
  for (uint32_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], i % 8 + i / 8 % 9 * 10 + i / 72 * 100) << i;
}

TEST(MetalLanes, ThreadgroupMemoryOfTheHostsSize) {
  std::vector<int> out(64);
  for (ThreadOrder order : kOrders) {
    const KernelCounts counts = TextKernel(
                                    "[[kernel]] void k(device int* out [[buffer(0)]], threadgroup "
                                    "int* parts [[threadgroup(0)]],\n"
                                    "  uint t [[thread_index_in_threadgroup]]) {\n"
                                    "  threadgroup int first[2], last;\n"
                                    "  parts[t] = t; if (t == 0) { first[0] = 5; last = 6; }\n"
                                    "  threadgroup_barrier(mem_flags::mem_threadgroup); out[t] = "
                                    "parts[63 - t] + first[0] + last;\n}")
                                    .output("out", out)
                                    .threadgroup(0, "parts", 64 * sizeof(int))
                                    .grid({1}, {64})
                                    .run({.order = order});
    EXPECT_EQ(counts.threadgroup_bytes, 256u + 16 + 16);
    for (int t = 0; t < 64; ++t) EXPECT_EQ(out[static_cast<size_t>(t)], 63 - t + 11);
  }
}

TEST(MetalLanes, EachSetOfFunctionConstantsHasItsOwnCopy) {
  std::vector<float> out(3);
  TextKernel kernel(
      "constant bool kDoubled [[function_constant(0)]];\nconstant float kStart "
      "[[function_constant(1)]];\n"
      "constant int kSteps [[function_constant(2)]];\nconstant bool kPlain = !kDoubled;\n"
      "template <typename T, int N, bool kNegative> inline T times(T x) { return kNegative ? -x * "
      "N : x * N; }\n"
      "[[kernel]] void k(device float* out [[buffer(0)]]) {\n"
      "  float x = kStart; for (int i = 0; i < kSteps; ++i) x += 1;\n"
      "  out[0] = kPlain ? x : 2 * x; out[1] = times<float, 3, true>(x); out[2] = times<int, 3, "
      "false>(int(x));\n}");
  kernel.output("out", out);
  for (int round = 0; round < 2; ++round) {
    kernel.constant(0, 1).constant(1, 0x3F000000).constant(2, 4).run();
    EXPECT_EQ(out, (std::vector<float>{9, -13.5, 12}));
    kernel.constant(0, 0).constant(1, 0x40000000).constant(2, 0).run();
    EXPECT_EQ(out, (std::vector<float>{2, -6, 6}));
  }
}

}  // namespace
}  // namespace octavo::metal_sim
