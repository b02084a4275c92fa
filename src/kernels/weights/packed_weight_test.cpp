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
  for (const WeightFormat format : gguf_formats())
    check(format, gguf_block(format).elements == 32 ? 96 : 512, 0, 0, DType::kFloat32);
}

// Grids of IQ2 and IQ3 are unpacked to codes of 3 and 4 bits.
TEST(PackedWeight, GgufBlocksGrowByAFewPerCent) {
  for (const WeightFormat format : gguf_formats()) {
    const WeightView view{.format = format, .rows = 64, .cols = 1024};
    const double growth = static_cast<double>(packed_layout(view).bytes()) /
                          static_cast<double>(view.rows * view.row_bytes());
    const bool has_grid = packed_layout(view).table > CodeTable::kIQ4;
    EXPECT_GE(growth, 1.0) << name_of(format);
    EXPECT_LE(growth, has_grid ? 1.65 : 1.06) << name_of(format) << " " << growth;
  }
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
