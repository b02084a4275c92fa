// Attention of rows that see further than themselves on Metal: compared with plain MLX and the CPU, and
// in several batches.
#include "base/testing/slow_tests.h"
#include "kernels/metal/paged_attention.h"
#include "kernels/testing/visible_blocks.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

using metal_sim::SimulatedMetal;
using namespace visible_blocks;

struct Numbers {
  DType dtype;
  KvFormat format;
  int dim;
  float tolerance;  // as in attention_test.cpp
};
const std::vector<Numbers> kNumbers = {{DType::kFloat32, KvFormat::kPlain, 64, 2e-5f},
                                       {DType::kFloat16, KvFormat::kPlain, 72, 2e-3f},
                                       {DType::kBFloat16, KvFormat::kPlain, 72, 1.6e-2f},
                                       {DType::kBFloat16, KvFormat::kInt8, 72, 1.6e-2f}};

// The simulator is slow: the first type of numbers with all options, the others with the last.
std::vector<Variant> variants_of(const Numbers& numbers) {
  std::vector<Variant> all = variants(numbers.dtype, numbers.format, numbers.dim);
  if (!slow_tests() && numbers.dtype != kNumbers[0].dtype) all.erase(all.begin(), all.end() - 1);
  return all;
}

float largest_error_of(const std::vector<float>& expected, const std::vector<float>& actual) {
  EXPECT_EQ(expected.size(), actual.size());
  float largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const float error = std::abs(actual[i] - expected[i]) / std::max(1.0f, std::abs(expected[i]));
    if (!(error <= largest)) largest = error;  // NaN counts as the largest
  }
  return largest;
}

TEST(MetalLastVisible, BlocksEqualTheReferenceAndTheCpu) {
  for (const Numbers& numbers : kNumbers) {
    for (const Variant& variant : variants_of(numbers)) {
      SCOPED_TRACE(variant.name);
      const auto expected = attend(variant.subject, whole(), KernelPath::kReference);
      const auto on_cpu = attend(variant.subject, whole());
      SimulatedMetal metal;
      const auto on_metal = attend(variant.subject, whole());
      EXPECT_GT(metal.counts()["paged_attention"].launches, 0u);
      EXPECT_LT(largest_error_of(expected, on_metal), numbers.tolerance);
      EXPECT_LT(largest_error_of(on_cpu, on_metal), numbers.tolerance);
    }
  }
}

TEST(MetalLastVisible, RowsInAnyOrderEqualTheReference) {
  const Numbers& numbers = kNumbers[0];
  for (Variant& variant : variants(numbers.dtype, numbers.format, numbers.dim)) {
    SCOPED_TRACE(variant.name);
    variant.subject.last = scattered();
    const auto expected = attend(variant.subject, whole(), KernelPath::kReference);
    SimulatedMetal metal;
    EXPECT_LT(largest_error_of(expected, attend(variant.subject, whole())), numbers.tolerance);
  }
}

TEST(MetalLastVisible, ARowsOwnPositionChangesNoBit) {
  SimulatedMetal metal;
  for (const Numbers& numbers : kNumbers) {
    std::vector<Variant> all = variants_of(numbers);
    for (Variant& variant : all) {
      SCOPED_TRACE(variant.name);
      variant.subject.last.clear();
      const auto causal = attend(variant.subject, whole());
      variant.subject.last = own_positions();
      EXPECT_TRUE(same_bits(attend(variant.subject, whole()), causal));
      variant.subject.last = ends_of_blocks();
      expect_blocks_only(variant.subject, attend(variant.subject, whole()), causal);
    }
  }
}

TEST(MetalLastVisible, ARowHasTheSameBitsInEveryBatch) {
  SimulatedMetal metal;
  for (const Numbers& numbers : kNumbers) {
    std::vector<Variant> all = variants_of(numbers);
    if (all.size() > 1) all.erase(all.begin());  // the last one has what the first one has
    for (const Variant& variant : all) {
      const auto expected = attend(variant.subject, whole());
      metal.reset();
      for (const Way& way : other_ways())
        EXPECT_TRUE(same_bits(attend(variant.subject, way), expected))
            << variant.name << ", " << way.name;
      // Blocks of few rows are attended by the kernel of decode.
      EXPECT_GT(metal.counts()["decode_attention"].launches, 0u);
      EXPECT_GT(metal.counts()["paged_attention"].launches, 0u);
    }
  }
}

}  // namespace
}  // namespace octavo
