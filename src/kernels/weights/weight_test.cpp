#include "kernels/weights/weight.h"

#include "kernels/testing/weights.h"

namespace octavo {
namespace {

TEST(Weight, ARowOrderMayChooseSomeRows) {
  std::mt19937 random(7);
  const mx::array values = random_array(random, {40, 64});
  const std::vector<int> chosen = {39, 0, 17};
  const Weight some = make_dense_weight(40, 64, DType::kFloat32, bytes_of(values), chosen);
  EXPECT_EQ(some.rows, 3);
  const auto all = floats_of(values);
  const auto got = floats_of(dequantize(some));
  for (size_t i = 0; i < chosen.size(); ++i) {
    for (size_t col = 0; col < 64; ++col)
      ASSERT_EQ(got[i * 64 + col], all[static_cast<size_t>(chosen[i]) * 64 + col]);
  }
}

TEST(Weight, TakenStripsKeepTheirNumbersInEveryFormat) {
  std::mt19937 random(8);
  const std::vector<int> strips = {3, 0, 2};
  for (const Weight& weight : every_format(random, 64, 256)) {
    SCOPED_TRACE(weight.describe());
    const Weight some = take_strips(weight, strips);
    EXPECT_EQ(some.rows, 48);
    EXPECT_EQ(some.describe(), weight.describe());
    const auto all = floats_of(dequantize(weight));
    const auto got = floats_of(dequantize(some));
    constexpr size_t kStrip = 16 * 256;
    for (size_t i = 0; i < strips.size(); ++i) {
      EXPECT_EQ(std::memcmp(&got[i * kStrip], &all[static_cast<size_t>(strips[i]) * kStrip],
                            kStrip * sizeof(float)),
                0);
    }
  }
}

}  // namespace
}  // namespace octavo
