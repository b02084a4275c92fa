#include "kernels/weights/packed_weight.h"

#include <cstring>
#include <numeric>

#include "kernels/reference/decode_row.h"
#include "kernels/testing/weight_source.h"

namespace octavo {
namespace {

void expect_same_rows(const WeightSource& source, std::span<const int> order) {
  const PackedLayout layout = packed_layout(source.view);
  std::vector<std::byte> packed(static_cast<size_t>(layout.bytes()));
  pack_weight(source.view, layout, order, packed.data());
  const PackedView view{layout, packed.data()};
  std::vector<float> expected(static_cast<size_t>(layout.cols)), actual(expected.size());
  for (int64_t row = 0; row < layout.rows; ++row) {
    reference::decode_row(source.view, order.empty() ? row : order[static_cast<size_t>(row)],
                          expected.data());
    unpack_row(view, row, actual.data());
    ASSERT_TRUE(same_bits(expected, actual)) << row;
  }
}

TEST(PackedWeight, RowsComeBackBitForBitFromEveryFormat) {
  std::mt19937 random(3);
  std::vector<int> order(37);
  for (int i = 0; i < 37; ++i) order[static_cast<size_t>(i)] = (i * 5 + 2) % 37;
  const auto check = [&](WeightFormat format, int cols, int bits, int group, DType dtype) {
    SCOPED_TRACE(testing::Message() << name_of(format) << " " << bits << "/" << group);
    const WeightSource source = random_source(random, {.format = format,
                                                       .rows = 37,
                                                       .cols = cols,
                                                       .dtype = dtype,
                                                       .bits = bits,
                                                       .group_size = group});
    expect_same_rows(source, {});
    expect_same_rows(source, order);
  };
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    check(WeightFormat::kDense, 100, 0, 0, dtype);
    for (int bits : {2, 3, 4, 5, 6, 8})
      for (int group : {32, 64, 128}) check(WeightFormat::kAffine, group * 3, bits, group, dtype);
  }
  check(WeightFormat::kMxfp4, 96, 4, 32, DType::kFloat32);
  for (auto format : {WeightFormat::kQ4_0, WeightFormat::kQ4_1, WeightFormat::kQ5_0,
                      WeightFormat::kQ5_1, WeightFormat::kQ8_0})
    check(format, 96, 0, 0, DType::kFloat32);
  for (auto format : {WeightFormat::kQ4_K, WeightFormat::kQ5_K, WeightFormat::kQ6_K})
    check(format, 512, 0, 0, DType::kFloat32);
}

TEST(PackedWeight, TakesNoMoreThanTheSourceAndItsPadding) {
  std::mt19937 random(4);
  for (int bits : {2, 3, 4, 5, 6, 8}) {
    const WeightSource s = random_source(random, {.format = WeightFormat::kAffine,
                                                  .rows = 64,
                                                  .cols = 256,
                                                  .dtype = DType::kBFloat16,
                                                  .bits = bits,
                                                  .group_size = 64});
    EXPECT_EQ(static_cast<size_t>(packed_layout(s.view).bytes()),
              s.data.size() + s.scales.size() + s.biases.size());
  }
}

}  // namespace
}  // namespace octavo
