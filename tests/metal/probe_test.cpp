#include "kernels/metal/probe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "bench/machine.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

using metal::kProbeGroupWords;
using metal::kProbeThreads;
using metal_sim::SimulatedMetal;

TEST(MetalProbe, EveryWordIsReadOnce) {
  std::vector<uint32_t> words(2 * kProbeGroupWords);
  uint32_t value = 1;
  for (uint32_t& word : words) word = value = value * 1664525u + 1013904223u;
  const uint32_t expected = std::accumulate(words.begin(), words.end(), 0u);
  const SimulatedMetal metal;
  mx::array sums =
      metal::read_probe(mx::array(words.data(), {static_cast<int>(words.size())}, mx::uint32));
  sums.eval();
  ASSERT_EQ(sums.size(), static_cast<size_t>(2 * kProbeThreads));
  const auto* begin = sums.data<uint32_t>();
  EXPECT_EQ(std::accumulate(begin, begin + sums.size(), 0u), expected);
  auto counts = metal.counts();
  EXPECT_EQ(counts["probe_read"].launches, 1u);
  if (metal_sim::kCountsAccesses) {
    EXPECT_EQ(counts["probe_read"].arguments["words"].load_bytes, words.size() * 4);
  }
}

// The numbers are exact in both types.
TEST(MetalProbe, ChainsMultiplyAndAdd) {
  const metal::FmaProbeParams params{.rounds = 3, .factor = 0.5f, .addend = 1.0f};
  for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
    const SimulatedMetal metal;
    mx::array out = metal::fma_probe(dtype, 2, params);
    out.eval();
    ASSERT_EQ(out.size(), static_cast<size_t>(2 * kProbeThreads));
    for (int thread = 0; thread < 2 * kProbeThreads; ++thread) {
      float expected = 0;
      for (int chain = 0; chain < metal::kProbeChains; ++chain) {
        auto value = static_cast<float>(chain + thread % 4);
        for (int round = 0; round < params.rounds; ++round) value = std::fma(value, 0.5f, 1.0f);
        expected += value;
      }
      ASSERT_EQ(out.data<float>()[thread], expected) << name_of(dtype) << " " << thread;
    }
    EXPECT_EQ(metal.counts()["probe_fma"].launches, 1u);
  }
  EXPECT_EQ(metal::fma_probe_flops(2, params), 2.0 * 256 * 8 * 2 * 3);
}

TEST(MetalProbe, MeasuresTheGpu) {
  const SimulatedMetal metal;
  const bench::GpuLimits limits = bench::measure_gpu(
      {.passes = 1, .progress = {}}, {.read_bytes = 1, .fma_groups = 1, .fma_rounds = 2});
  EXPECT_EQ(limits.read_bytes, size_t{kProbeGroupWords} * 4);
  EXPECT_GT(limits.memory.best, 0);
  ASSERT_EQ(limits.peaks.size(), 2u);
  for (const bench::GpuPeak& peak : limits.peaks) EXPECT_GT(peak.flops.best, 0) << peak.dtype;
  if (metal_sim::kCountsAccesses) {
    EXPECT_EQ(limits.clock, "wall time of synchronised launches");
  }
}

}  // namespace
}  // namespace octavo
