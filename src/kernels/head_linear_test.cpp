#include "kernels/head_linear.h"

#include "base/compute_pool.h"
#include "kernels/linear.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/weights.h"

namespace octavo {
namespace {

constexpr int kHeads = 5;
constexpr int kOutputs = 48;
constexpr int kCols = 256;

// Relative to the largest output: one rounding to the type, and in bfloat16 that of decoded
// weights, which partly cancels in a sum of 256 products.
float tolerance_of(DType dtype) {
  return dtype == DType::kFloat32 ? 1e-5f : dtype == DType::kFloat16 ? 1e-3f : 8e-3f;
}

mx::array head_of(const mx::array& x, int head) {
  return mx::contiguous(mx::reshape(mx::slice(x, {0, head, 0}, {x.shape(0), head + 1, x.shape(2)}),
                                    {x.shape(0), x.shape(2)}));
}

TEST(HeadLinear, EveryWeightFormatEqualsTheReference) {
  std::mt19937 random(3);
  auto before = launch_counts();
  int64_t runs = 0;
  for (const Weight& weight : every_format(random, kHeads * kOutputs, kCols)) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (int rows : {1, 3, 40}) {
        const mx::array x = random_array(random, {rows, kHeads, kCols}, mlx_dtype(dtype));
        const mx::array expected = head_linear(x, weight, KernelPath::kReference);
        const float scale = mx::max(mx::abs(mx::astype(expected, mx::float32))).item<float>();
        for (const cpu::Isa isa : cpu::available_isas()) {
          const IsaScope scope(isa);
          SCOPED_TRACE(testing::Message() << weight.describe() << " " << name_of(dtype) << " "
                                          << rows << " " << cpu::name_of(isa));
          EXPECT_LT(largest_difference(expected, head_linear(x, weight)),
                    scale * tolerance_of(dtype));
          ++runs;
        }
      }
    }
  }
  EXPECT_EQ(launch_counts()["head_linear.cpu"], before["head_linear.cpu"] + runs);
}

// A head's rows have the bits of linear(), for any number of rows.
TEST(HeadLinear, HasTheBitsOfOneLinearPerHead) {
  std::mt19937 random(4);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const mx::array matrices = random_array(random, {kHeads * kOutputs, kCols}, mlx_dtype(dtype));
    const Weight all = make_dense_weight(kHeads * kOutputs, kCols, dtype, bytes_of(matrices));
    const mx::array x = random_array(random, {70, kHeads, kCols}, mlx_dtype(dtype));
    for (const cpu::Isa isa : cpu::available_isas()) {
      const IsaScope scope(isa);
      const mx::array whole = head_linear(x, all);
      for (int head = 0; head < kHeads; ++head) {
        SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << cpu::name_of(isa));
        mx::array own = mx::contiguous(
            mx::slice(matrices, {head * kOutputs, 0}, {(head + 1) * kOutputs, kCols}));
        own.eval();
        const Weight weight = make_dense_weight(kOutputs, kCols, dtype, bytes_of(own));
        EXPECT_TRUE(same_bits(floats_of(linear(head_of(x, head), weight)),
                              floats_of(head_of(whole, head))));
      }
    }
  }
}

TEST(HeadLinear, RowsKeepTheirBitsInAnyBatchAndThreadCount) {
  std::mt19937 random(5);
  std::vector<Weight> weights = {
      random_dense(random, kHeads * kOutputs, kCols, DType::kFloat32),
      random_dense(random, kHeads * kOutputs, kCols, DType::kBFloat16),
      random_affine(random, kHeads * kOutputs, kCols, 4, 64, DType::kBFloat16)};
  for (const Weight& weight : weights) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      const mx::array x = random_array(random, {129, kHeads, kCols}, mlx_dtype(dtype));
      for (const cpu::Isa isa : cpu::available_isas()) {
        const IsaScope scope(isa);
        compute_pool().limit_threads(1);
        const mx::array alone = head_linear(rows_of(x, 7, 8), weight);
        const auto expected = floats_of(alone);
        for (int threads : {1, 2}) {
          compute_pool().limit_threads(threads);
          for (int rows : {8, 15, 16, 17, 31, 32, 33, 64, 129}) {
            for (int first : {0, 7}) {
              if (first + rows > 129) continue;
              const mx::array batch = head_linear(rows_of(x, first, first + rows), weight);
              SCOPED_TRACE(testing::Message() << weight.describe() << " " << name_of(dtype) << " "
                                              << cpu::name_of(isa) << " " << rows);
              EXPECT_TRUE(same_bits(expected, floats_of(rows_of(batch, 7 - first, 8 - first))));
            }
          }
        }
        compute_pool().limit_threads(1 << 20);
      }
    }
  }
}

TEST(HeadLinear, TransposedHeadsTransposesEachMatrix) {
  std::mt19937 random(6);
  const Weight weight = random_affine(random, 3 * 24, 64, 8, 32, DType::kFloat32);
  const Weight turned = transposed_heads(weight, 3, DType::kFloat32);
  EXPECT_EQ(turned.rows, 3 * 64);
  EXPECT_EQ(turned.cols, 24);
  const auto from = floats_of(dequantize(weight));
  const auto to = floats_of(dequantize(turned));
  for (size_t head = 0; head < 3; ++head) {
    for (size_t row = 0; row < 24; ++row) {
      for (size_t col = 0; col < 64; ++col)
        ASSERT_EQ(from[(head * 24 + row) * 64 + col], to[(head * 64 + col) * 24 + row]);
    }
  }
}

}  // namespace
}  // namespace octavo
