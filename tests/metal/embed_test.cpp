#include "kernels/linear.h"
#include "metal/linear_support.h"

namespace octavo::metal_linear {
namespace {

// All devices decode with the same arithmetic, so the results are equal, not just close.
void expect_equal_rows(const Weight& table, const mx::array& tokens, mx::Dtype dtype, float scale) {
  const auto made = [&] { return embed(table, tokens, dtype, KernelPath::kNative, scale); };
  const mx::array expected = launching("embed.reference", [&] {
    return embed(table, tokens, dtype, KernelPath::kReference, scale);
  });
  EXPECT_EQ(largest_difference(expected, launching("embed.cpu", made)), 0);
  EXPECT_EQ(largest_difference(expected, on_metal({{"embed_rows", 1}}, made)), 0);
}

TEST(MetalEmbed, RowsOfEveryFormatEqualTheReference) {
  std::mt19937 random(1);
  const mx::array tokens({3, 0, 36, 3, 15, 16});
  for (const Weight& table : every_format(random, 37, 256)) {
    for (const mx::Dtype dtype : {mx::float32, mx::float16, mx::bfloat16}) {
      SCOPED_TRACE(table.describe());
      expect_equal_rows(table, tokens, dtype, 1);
    }
    expect_equal_rows(table, tokens, mx::bfloat16, std::sqrt(1152.0f));  // 33.941: 34 in bfloat16
  }
}

TEST(MetalEmbed, RowsThatFillNoUnitEqualTheReference) {
  std::mt19937 random(2);
  const mx::array tokens({19, 7});
  for (const Weight& table : {random_dense(random, 20, 75, DType::kBFloat16),
                              random_dense(random, 20, 33, DType::kFloat32),
                              random_affine(random, 20, 96, 6, 32, DType::kBFloat16),
                              random_affine(random, 20, 4160, 4, 64, DType::kFloat16),
                              random_mxfp4(random, 20, 160),  // the last block has one unit
                              random_gguf(random, 20, 512, WeightFormat::kQ5_K)}) {
    SCOPED_TRACE(table.describe());
    expect_equal_rows(table, tokens, mx::float16, 1);
  }
}

}  // namespace
}  // namespace octavo::metal_linear
