#include "kernels/linear.h"

#include "kernels/runtime/fault.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/support.h"
#include "kernels/testing/weights.h"

namespace octavo {
namespace {

LinearOptions options(const mx::array& bias, KernelPath path) {
  LinearOptions result;
  result.bias = bias;
  result.path = path;
  return result;
}

// At least one.
float largest_of(const mx::array& numbers) {
  float largest = 1;
  for (float value : floats_of(numbers)) largest = std::max(largest, std::abs(value));
  return largest;
}

TEST(Linear, EveryFormatEqualsTheReference) {
  std::mt19937 random(1);
  for (const Weight& weight : every_format(random, 37, 256)) {
    SCOPED_TRACE(weight.describe());
    const mx::array x = random_array(random, {5, 256});
    const mx::array bias = random_array(random, {37});
    auto before = launch_counts();
    const mx::array expected = linear(x, weight, options(bias, KernelPath::kReference));
    const mx::array actual = linear(x, weight, options(bias, KernelPath::kNative));
    EXPECT_LT(largest_difference(expected, actual), 1e-5f * largest_of(expected));
    auto after = launch_counts();
    EXPECT_EQ(after["linear.cpu"], before["linear.cpu"] + 1);
    EXPECT_EQ(after["linear.reference"], before["linear.reference"] + 1);
  }
}

TEST(Linear, ScaleResidualAndSoftCapEqualTheReferenceOnEverySet) {
  std::mt19937 random(6);
  for (const Weight& weight : every_format(random, 37, 256)) {
    for (const mx::Dtype dtype : {mx::float32, mx::bfloat16}) {
      const mx::array x = random_array(random, {19, 256}, dtype);
      const mx::array residual = random_array(random, {19, 37}, dtype);
      LinearOptions scaled = options(random_array(random, {37}), KernelPath::kReference);
      scaled.scale = 0.0625f;
      LinearOptions added = scaled;
      added.residual = residual;
      LinearOptions capped = scaled;
      capped.soft_cap = 3;
      capped.out_dtype = mx::float32;
      // Relative to the largest number: bfloat16 results are rounded to eight bits.
      const float tolerance =
          (dtype == mx::float32 ? 1e-5f : 2e-2f) * largest_of(linear(x, weight, scaled));
      for (LinearOptions choice : {scaled, added, capped}) {
        choice.path = KernelPath::kReference;
        const mx::array expected = linear(x, weight, choice);
        choice.path = KernelPath::kNative;
        for (const cpu::Isa isa : cpu::available_isas()) {
          const IsaScope scope(isa);
          SCOPED_TRACE(weight.describe() + " " + std::string(cpu::name_of(isa)));
          EXPECT_LT(largest_difference(expected, linear(x, weight, choice)), tolerance);
        }
      }
      for (float value : floats_of(linear(x, weight, capped))) EXPECT_LE(std::abs(value), 3);
    }
  }
}

TEST(Linear, ARowHasTheSameBitsInEveryBatch) {
  std::mt19937 random(2);
  for (const Weight& weight : every_format(random, 50, 384 - 128)) {
    SCOPED_TRACE(weight.describe());
    const mx::array x = random_array(random, {33, weight.cols}, mx::bfloat16);
    const auto whole = floats_of(linear(x, weight));
    for (int rows : {1, 2, 3, 4, 5, 8, 17}) {
      const mx::array part = mx::contiguous(mx::slice(x, {33 - rows, 0}, {33, weight.cols}));
      const auto alone = floats_of(linear(part, weight));
      const std::vector<float> tail(whole.end() - static_cast<std::ptrdiff_t>(alone.size()),
                                    whole.end());
      EXPECT_TRUE(same_bits(alone, tail)) << rows;
    }
  }
}

TEST(Linear, AffineDecodingEqualsMlx) {
  std::mt19937 random(3);
  for (int bits : {2, 3, 4, 5, 6, 8}) {
    const mx::array values = random_array(random, {16, 128});
    std::vector<mx::array> parts = mx::quantize(values, 64, bits);
    mx::eval(parts);
    const Weight weight = make_affine_weight(16, 128,
                                             {.bits = bits,
                                              .group_size = 64,
                                              .scale_dtype = DType::kFloat32,
                                              .packed = bytes_of(parts[0]),
                                              .scales = bytes_of(parts[1]),
                                              .biases = bytes_of(parts[2])});
    EXPECT_LT(largest_difference(dequantize(weight),
                                 mx::dequantize(parts[0], parts[1], parts[2], 64, bits)),
              1e-6f)
        << bits;
  }
}

TEST(Linear, Mxfp4DecodingEqualsMlx) {
  std::mt19937 random(4);
  const mx::array values = random_array(random, {16, 128});
  std::vector<mx::array> parts = mx::quantize(values, 32, 4, "mxfp4");
  mx::eval(parts);
  const Weight weight = make_mxfp4_weight(16, 128, bytes_of(parts[0]), bytes_of(parts[1]));
  const mx::array expected =
      mx::dequantize(parts[0], parts[1], std::nullopt, 32, 4, "mxfp4", std::nullopt, mx::float32);
  EXPECT_EQ(largest_difference(dequantize(weight), expected), 0);
}

// The step after one whose draw failed gets such tokens, and must fail without ending the process.
TEST(Embed, TokensOutsideTheVocabularyAreAnErrorOfTheStep) {
  std::mt19937 random(6);
  const Weight table = every_format(random, 37, 256).front();
  for (const int token : {-1, 37, 1 << 30}) {
    const mx::array rows = embed(table, mx::array({3, token}), mx::bfloat16);
    EXPECT_THROW(
        {
          mx::eval(rows);
          check_kernels();
        },
        std::exception);
    wait_for_kernels();
  }
}

TEST(Embed, RowsOfEveryFormatEqualTheReference) {
  std::mt19937 random(5);
  const mx::array tokens({3, 0, 36, 3});
  for (const Weight& table : every_format(random, 37, 256)) {
    SCOPED_TRACE(table.describe());
    EXPECT_EQ(largest_difference(embed(table, tokens, mx::bfloat16),
                                 embed(table, tokens, mx::bfloat16, KernelPath::kReference)),
              0);
    for (const mx::Dtype dtype : {mx::float32, mx::bfloat16}) {
      const float scale = std::sqrt(1152.0f);  // 33.941: 34 in bfloat16
      const mx::array scaled = embed(table, tokens, dtype, KernelPath::kNative, scale);
      EXPECT_EQ(
          largest_difference(scaled, embed(table, tokens, dtype, KernelPath::kReference, scale)),
          0);
      const float factor = dtype == mx::bfloat16 ? 34 : scale;
      EXPECT_EQ(floats_of(mx::astype(
                    mx::multiply(embed(table, tokens, mx::float32), mx::array(factor)), dtype)),
                floats_of(scaled));
    }
  }
}

}  // namespace
}  // namespace octavo
