// Attention of rows that see further than themselves: to the end of a block, or of the sequence.
#include "base/compute_pool.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/visible_blocks.h"

namespace octavo {
namespace {

using namespace visible_blocks;

struct Numbers {
  DType dtype;
  KvFormat format;
  float tolerance;  // as in paged_attention_test.cpp
};
const std::vector<Numbers> kNumbers = {{DType::kFloat32, KvFormat::kPlain, 1e-5f},
                                       {DType::kFloat16, KvFormat::kPlain, 2e-3f},
                                       {DType::kBFloat16, KvFormat::kPlain, 1.6e-2f},
                                       {DType::kFloat32, KvFormat::kInt8, 1e-5f},
                                       {DType::kBFloat16, KvFormat::kInt8, 1.6e-2f}};

void expect_near(const std::vector<float>& expected, const std::vector<float>& actual,
                 float tolerance) {
  ASSERT_EQ(expected.size(), actual.size());
  float largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const float error = std::abs(actual[i] - expected[i]) / std::max(1.0f, std::abs(expected[i]));
    if (!(error <= largest)) largest = error;  // NaN counts as the largest
  }
  EXPECT_LT(largest, tolerance);
}

std::vector<Variant> variants_of(const Numbers& numbers, int dim) {
  std::vector<Variant> all = variants(numbers.dtype, numbers.format, dim);
  if (numbers.format == KvFormat::kPlain && dim == 64) {
    for (Variant& latent : latent_variant(numbers.dtype)) all.push_back(std::move(latent));
  }
  return all;
}

TEST(LastVisible, BlocksEqualTheReference) {
  auto before = launch_counts();
  int64_t runs = 0;
  for (const Numbers& numbers : kNumbers) {
    for (const int dim : {64, 72}) {
      for (const Variant& variant : variants_of(numbers, dim)) {
        const auto expected = attend(variant.subject, whole(), KernelPath::kReference);
        for (const cpu::Isa isa : cpu::available_isas()) {
          SCOPED_TRACE(variant.name + " " + std::string(cpu::name_of(isa)));
          const IsaScope scope(isa);
          expect_near(expected, attend(variant.subject, whole()), numbers.tolerance);
          ++runs;
        }
      }
    }
  }
  EXPECT_EQ(launch_counts()["paged_attention.cpu"], before["paged_attention.cpu"] + runs);
}

TEST(LastVisible, RowsInAnyOrderEqualTheReference) {
  for (const Numbers& numbers : kNumbers) {
    for (Variant& variant : variants_of(numbers, 64)) {
      variant.subject.last = scattered();
      const auto expected = attend(variant.subject, whole(), KernelPath::kReference);
      for (const cpu::Isa isa : cpu::available_isas()) {
        SCOPED_TRACE(variant.name + " " + std::string(cpu::name_of(isa)));
        const IsaScope scope(isa);
        expect_near(expected, attend(variant.subject, whole()), numbers.tolerance);
      }
    }
  }
}

// An encoder's rows see the whole sequence, whose length is not a multiple of anything.
TEST(LastVisible, WholeSequencesEqualTheReference) {
  for (const Numbers& numbers : kNumbers) {
    for (const int dim : {64, 72, 80, 96, 128}) {
      const float scale = 1 / std::sqrt(static_cast<float>(dim));
      Subject subject =
          make_subject(geometry_of(numbers.dtype, numbers.format, dim), 2, {.scale = scale});
      subject.last.assign(kTokens, kTokens - 1);
      const auto expected = attend(subject, whole(), KernelPath::kReference);
      for (const cpu::Isa isa : cpu::available_isas()) {
        SCOPED_TRACE(testing::Message()
                     << name_of(numbers.dtype) << " " << dim << " " << cpu::name_of(isa));
        const IsaScope scope(isa);
        expect_near(expected, attend(subject, whole()), numbers.tolerance);
      }
    }
  }
}

TEST(LastVisible, ARowsOwnPositionChangesNoBit) {
  for (const Numbers& numbers : kNumbers) {
    for (Variant& variant : variants_of(numbers, 64)) {
      for (const cpu::Isa isa : cpu::available_isas()) {
        SCOPED_TRACE(variant.name + " " + std::string(cpu::name_of(isa)));
        const IsaScope scope(isa);
        variant.subject.last.clear();
        const auto causal = attend(variant.subject, whole());
        variant.subject.last = own_positions();
        EXPECT_TRUE(same_bits(attend(variant.subject, whole()), causal));
        variant.subject.last = ends_of_blocks();
        expect_blocks_only(variant.subject, attend(variant.subject, whole()), causal);
      }
    }
  }
}

TEST(LastVisible, ARowHasTheSameBitsInEveryBatchAndOnEverySet) {
  for (const Numbers& numbers : kNumbers) {
    for (const Variant& variant :
         variants_of(numbers, numbers.format == KvFormat::kInt8 ? 64 : 72)) {
      const auto expected = attend(variant.subject, whole());
      for (const cpu::Isa isa : cpu::available_isas()) {
        const IsaScope scope(isa);
        for (const int threads : {1, 2}) {
          compute_pool().limit_threads(threads);
          std::vector<Way> ways = other_ways();
          ways.push_back(whole());
          for (const Way& way : ways) {
            EXPECT_TRUE(same_bits(attend(variant.subject, way), expected))
                << variant.name << " " << cpu::name_of(isa) << " " << threads << " threads, "
                << way.name;
          }
        }
        compute_pool().limit_threads(1 << 20);
      }
    }
  }
}

}  // namespace
}  // namespace octavo
