#include "metal_sim/costs.h"

#include <gtest/gtest.h>

#include "metal_sim/text_kernel.h"

namespace octavo::metal_sim {
namespace {

constexpr MachineOptions kCosts{.costs = true};

KernelCounts costs_of(const std::string& body) {
  const std::vector<float> in(32 * 64, 1.0f);
  std::vector<float> out(64);
  return TextKernel(fmt::format(R"(
    kernel void k(const device float* in [[buffer(0)]], device float* out [[buffer(1)]],
                  uint i [[thread_index_in_simdgroup]]) {{
      threadgroup float tile[32 * 33];
      {}
    }})",
                                body))
      .input("in", in)
      .output("out", out)
      .grid({1, 1, 1}, {32, 1, 1})
      .run(kCosts);
}

uint64_t per_lane(const KernelCounts& counts, Operation kind) {
  return counts.operations.of(kind) / 32;
}

TEST(Costs, OperationsAreCountedByKind) {
  const KernelCounts counts = costs_of(R"(
    float sum = 0.0f;
    for (int j = 0; j < int(in[0]) + 49; ++j) sum = fma(in[j * 32 + i], 2.0f, sum);
    const uint code = as_type<uint>(in[i]) >> 7 & 15;
    out[i] = sum * float(code) + precise::exp(sum) / in[1];)");
  EXPECT_EQ(per_lane(counts, Operation::kMultiplyAdd), 50u);
  EXPECT_EQ(per_lane(counts, Operation::kFloat), 2u);    // product and sum
  EXPECT_EQ(per_lane(counts, Operation::kSpecial), 2u);  // exponential and quotient
  EXPECT_EQ(per_lane(counts, Operation::kConversion), 2u);
  EXPECT_EQ(per_lane(counts, Operation::kMatrix), 0u);
  EXPECT_GE(counts.operations.block_carried, 1u);  // the sum
}

TEST(Costs, MatrixProductsAndShufflesAreNotTheirSimulation) {
  const KernelCounts counts = costs_of(R"(
    simdgroup_matrix<float, 8, 8> a, sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    simdgroup_load(a, in, 8);
    simdgroup_multiply_accumulate(sum, a, a, sum);
    simdgroup_store(sum, out, 8);
    simdgroup_barrier(mem_flags::mem_device);
    out[i] = simd_sum(in[i]) + simd_shuffle_xor(in[i], 1);)");
  EXPECT_EQ(counts.operations.of(Operation::kMatrix), 512u);
  EXPECT_EQ(counts.multiply_adds, 512u);
  EXPECT_EQ(per_lane(counts, Operation::kLane), 2u);
  EXPECT_EQ(per_lane(counts, Operation::kFloat), 1u);
}

TEST(Costs, LinesOfALoadAreCounted) {
  const KernelCounts counts = costs_of(R"(
    float sum = in[i];
    simdgroup_barrier(mem_flags::mem_device);
    sum += in[i * 32];
    simdgroup_barrier(mem_flags::mem_device);
    out[i] = sum + in[5];)");
  const MemoryCosts& loads = counts.arguments.at("in").load_costs;
  EXPECT_EQ(loads.requests, 3u);
  EXPECT_EQ(loads.lines, 1u + 32u + 1u);
  EXPECT_EQ(loads.bytes, 128u + 128u + 4u);
}

TEST(Costs, AdjacentLoadsOfALaneAreOne) {
  const KernelCounts counts =
      costs_of("out[i] = in[4 * i] + in[4 * i + 1] + in[4 * i + 3] + in[4 * i + 2];");
  const MemoryCosts& loads = counts.arguments.at("in").load_costs;
  EXPECT_EQ(loads.lane_bytes / loads.lanes, 16u);
  EXPECT_EQ(loads.requests, 1u);
}

TEST(Costs, BankConflictsAreCounted) {
  const KernelCounts counts = costs_of(R"(
    tile[i] = in[i];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    tile[i * 33] = in[i];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    tile[i * 32] = in[i];)");
  EXPECT_EQ(counts.threadgroup_stores.requests, 3u);
  EXPECT_EQ(counts.threadgroup_stores.passes, 1u + 1u + 32u);
  EXPECT_EQ(counts.threadgroup_stores.least_passes, 3u);
}

TEST(Costs, ResultsAreThoseOfTheCheckedKernel) {
  std::vector<float> in(64), plain(64), counted(64);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i) * 0.25f - 3;
  const auto run = [&](std::vector<float>& out, MachineOptions options) {
    TextKernel(R"(
      constant int kTimes [[function_constant(3)]];
      kernel void k(const device float* in [[buffer(0)]], device float* out [[buffer(1)]]) {
        simdgroup_matrix<float, 8, 8> a, b, sum = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
        simdgroup_load(a, in, 8);
        simdgroup_load(b, in, 8, ulong2(0, 0), true);
        for (int i = 0; i < kTimes; ++i) simdgroup_multiply_accumulate(sum, a, b, sum);
        simdgroup_store(sum, out, 8);
      })")
        .input("in", in)
        .output("out", out)
        .constant(3, 2)
        .grid({1, 1, 1}, {32, 1, 1})
        .run(options);
  };
  run(plain, {});
  run(counted, kCosts);
  EXPECT_EQ(plain, counted);
  EXPECT_NE(plain[9], 1.0f);
}

}  // namespace
}  // namespace octavo::metal_sim
