#include "kernels/metal/rotation_tables.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/runtime/primitive.h"

namespace octavo::metal {
namespace {

TEST(RotationTables, LayersWithTheSameFrequenciesShareATable) {
  const mx::array positions({0, 3, 1000});
  const mx::array fast({1.0f, 0.1f}), slow({0.5f, 0.01f}), again({1.0f, 0.1f});
  Encoder encoder(kernel_stream());
  RotationTables tables;
  const mx::array& first = tables.find({positions, fast}, 1, encoder);
  const mx::array& other = tables.find({positions, slow}, 1, encoder);
  EXPECT_NE(&first, &other);
  EXPECT_EQ(&tables.find({positions, again}, 1, encoder), &first);
  EXPECT_NE(&tables.find({positions, fast}, 2, encoder), &first);
  ASSERT_EQ(first.shape(), (mx::Shape{3, 2, 2}));
  const float* values = first.data<float>();
  for (int row = 0; row < 3; ++row) {
    for (int pair = 0; pair < 2; ++pair) {
      const double angle = static_cast<double>(static_cast<float>(positions.data<int32_t>()[row]) *
                                               fast.data<float>()[pair]);
      EXPECT_EQ(values[row * 4 + pair], static_cast<float>(std::cos(angle)));
      EXPECT_EQ(values[row * 4 + 2 + pair], static_cast<float>(std::sin(angle)));
    }
  }
}

TEST(RotationTables, PositionsAndAxesHaveTablesOfTheirOwn) {
  const mx::array positions({0, 3, 1000});
  const mx::array planes = mx::array({0, 3, 4, 7, 8, 9}, mx::Shape{2, 3});
  const mx::array frequencies({1.0f, 0.1f}), axes({1, 0}), same({1, 0}), first({0, 0});
  Encoder encoder(kernel_stream());
  RotationTables tables;
  const mx::array& text = tables.find({positions, frequencies}, 1, encoder);
  const mx::array& image = tables.find({planes, frequencies, axes}, 1, encoder);
  const mx::array& rows = tables.find({planes, frequencies}, 1, encoder);
  EXPECT_NE(&image, &text);
  EXPECT_NE(&rows, &text);
  EXPECT_NE(&rows, &image);
  EXPECT_EQ(&tables.find({positions, frequencies}, 1, encoder), &text);
  EXPECT_EQ(&tables.find({planes, frequencies, same}, 1, encoder), &image);
  EXPECT_NE(&tables.find({planes, frequencies, first}, 1, encoder), &image);
  for (int row = 0; row < 3; ++row) {
    for (int pair = 0; pair < 2; ++pair) {
      const auto turn = [&](int axis) {
        const auto position = static_cast<float>(planes.data<int32_t>()[axis * 3 + row]);
        return static_cast<float>(
            std::cos(static_cast<double>(position * frequencies.data<float>()[pair])));
      };
      EXPECT_EQ(image.data<float>()[row * 4 + pair], turn(1 - pair));
      EXPECT_EQ(rows.data<float>()[row * 4 + pair], turn(0));
    }
  }
}

}  // namespace
}  // namespace octavo::metal
