// Products of many rows with dense weights, in tiles of 64 x 64, have the bits of products of fewer rows.
#include "kernels/linear.h"
#include "metal/linear_support.h"

namespace octavo::metal_linear {
namespace {

constexpr int kRows = 261;    // the last tile has five rows
constexpr int kInputs = 300;  // fills no unit and no load

// `make` computes rows [begin, end).
template <typename Make>
void expect_same_bits(Make&& make) {
  const std::vector<float> all = floats_of(
      on_metal({{"dense_matrix", 1}, {"linear_rows", 0}}, [&] { return make(0, kRows); }));
  std::vector<float> parts;
  for (const auto& [begin, end] : {std::pair(0, 120), std::pair(120, 254), std::pair(254, kRows)}) {
    const std::vector<float> part = floats_of(on_metal(
        {{"dense_matrix", 0}, {"linear_rows", 1}}, [&, b = begin, e = end] { return make(b, e); }));
    parts.insert(parts.end(), part.begin(), part.end());
  }
  EXPECT_TRUE(same_bits(all, parts));
}

TEST(MetalDenseMatrix, JoinedLayersHaveTheBitsOfFewerRows) {
  std::mt19937 random(1);
  const std::vector<Projection> layers = {
      {random_dense(random, 1000, kInputs, DType::kBFloat16), random_array(random, {1000})},
      {random_dense(random, 40, kInputs, DType::kBFloat16), std::nullopt}};
  const mx::array x = random_array(random, {kRows, kInputs}, mx::bfloat16);
  const mx::array residual = random_array(random, {kRows, 1040}, mx::bfloat16);
  expect_same_bits([&](int begin, int end) {
    LinearOptions options;
    options.residual = rows_of(residual, begin, end);
    return joined_linear(rows_of(x, begin, end), layers, options);
  });
}

TEST(MetalDenseMatrix, GatedPairsHaveTheBitsOfFewerRows) {
  std::mt19937 random(2);
  const auto layer = [&] {
    return Projection{random_dense(random, 520, kInputs, DType::kFloat16),
                      random_array(random, {520})};
  };
  const Projection gate = layer(), up = layer();
  const mx::array x = random_array(random, {kRows, kInputs}, mx::float16);
  expect_same_bits([&](int begin, int end) {
    return gated_linear(rows_of(x, begin, end), gate, up, Activation::kSilu, {});
  });
}

}  // namespace
}  // namespace octavo::metal_linear
