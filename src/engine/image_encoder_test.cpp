#include "engine/image_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "vision/image_pixels.h"

namespace octavo {
namespace {

using testing::SizeIs;

constexpr int kWidth = 8;  // of the rows
constexpr int kRowsAtOnce = 8;

// Of images of 4 x 4 patches, which are four tokens.
VisionPlan small_tower() {
  VisionPlan plan;
  plan.text_hidden = kWidth;
  return plan;
}

// Row r of every image is full of r + 100 times the number of the pass.
class CountingPass : public VisionPass {
 public:
  CountingPass(int number, int& pieces) : number_(number), pieces_(pieces) {}
  std::vector<mx::array> queue_piece() override {
    ++pieces_;
    return {mx::ones({1})};
  }
  mx::array rows() const override {
    const mx::array first = mx::arange(4) + 100 * number_;
    return mx::contiguous(
        mx::repeat(mx::reshape(mx::astype(first, mx::float32), {4, 1}), kWidth, 1));
  }

 private:
  int number_;
  int& pieces_;
};

class CountingTower : public VisionTower {
 public:
  std::unique_ptr<VisionPass> begin(const ImagePatches& patches, int rows_at_once,
                                    KernelPath) const override {
    EXPECT_EQ(patches.grid_h * patches.grid_w, 16);
    EXPECT_EQ(rows_at_once, kRowsAtOnce);
    return std::make_unique<CountingPass>(++passes, pieces);
  }

  mutable int passes = 0;
  mutable int pieces = 0;
};

class ImageEncoderTest : public testing::Test {
 protected:
  ImageWork first_piece(ImageId id) const {
    auto pixels = std::make_shared<ImagePixels>();
    pixels->resized = {64, 64, std::vector<uint8_t>(64 * 64 * 3)};
    pixels->grid_h = pixels->grid_w = 4;
    ImageWork work{.encodes = id};
    work.pixels = std::move(pixels);
    return work;
  }
  // All pieces.
  void encode(ImageId id) {
    encoder_.queue(first_piece(id));
    for (int i = 1; i < pieces(); ++i) encoder_.queue({.encodes = id});
  }
  int pieces() const { return plan_.pieces(4, 4, kRowsAtOnce); }
  // The first number of each row.
  std::vector<float> numbers(const std::vector<PlacedRows>& placed) {
    std::vector<float> found;
    for (const PlacedRows& part : placed) {
      mx::array rows = mx::contiguous(part.rows);
      rows.eval();
      for (int i = 0; i < rows.shape(0); ++i) found.push_back(rows.data<float>()[i * kWidth]);
    }
    return found;
  }

  VisionPlan plan_ = small_tower();
  CountingTower tower_;
  ImageEncoder encoder_{plan_, tower_, kRowsAtOnce};
};

TEST_F(ImageEncoderTest, RowsAreKeptAfterTheLastPiece) {
  ASSERT_GE(pieces(), 2);
  EXPECT_THAT(encoder_.queue(first_piece(7)), SizeIs(1));
  for (int i = 1; i < pieces() - 1; ++i) EXPECT_THAT(encoder_.queue({.encodes = 7}), SizeIs(1));
  EXPECT_EQ(encoder_.images(), 0);
  EXPECT_THAT(encoder_.queue({.encodes = 7}), SizeIs(2)) << "the piece and the rows";
  EXPECT_EQ(encoder_.images(), 1);
  EXPECT_EQ(tower_.pieces, pieces());
  EXPECT_THAT(encoder_.queue({}), SizeIs(0));
}

TEST_F(ImageEncoderTest, StepsTakePartsOfSeveralImages) {
  encode(1);
  encode(2);
  const ImageRows parts[] = {{.row = 3, .image = 2, .first = 1, .count = 2},
                             {.row = 9, .image = 1, .first = 0, .count = 4}};
  const std::vector<PlacedRows> placed = encoder_.rows_of(parts);
  ASSERT_THAT(placed, SizeIs(2));
  EXPECT_EQ(placed[0].first, 3);
  EXPECT_EQ(placed[1].first, 9);
  EXPECT_EQ(numbers(placed), (std::vector<float>{201, 202, 100, 101, 102, 103}));
}

TEST_F(ImageEncoderTest, ADropEndsAnEncoding) {
  encode(1);
  encoder_.queue(first_piece(2));
  ImageWork next = first_piece(3);
  next.drops = {1, 2, 99};
  encoder_.queue(next);
  EXPECT_EQ(encoder_.images(), 0);
  for (int i = 1; i < pieces(); ++i) encoder_.queue({.encodes = 3});
  const ImageRows part[] = {{.row = 0, .image = 3, .first = 0, .count = 1}};
  EXPECT_EQ(numbers(encoder_.rows_of(part)), (std::vector<float>{300}));
}

TEST_F(ImageEncoderTest, ClearDropsEverything) {
  encode(1);
  encoder_.queue(first_piece(2));
  encoder_.clear();
  EXPECT_EQ(encoder_.images(), 0);
  encode(4);
  EXPECT_EQ(encoder_.images(), 1);
}

}  // namespace
}  // namespace octavo
