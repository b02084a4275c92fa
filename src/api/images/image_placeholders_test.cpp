#include "api/images/image_placeholders.h"

#include <gtest/gtest.h>

#include "api/testing/image_model.h"
#include "api/testing/refusals.h"

namespace octavo::api {
namespace {

using Tokens = std::vector<TokenId>;

constexpr TokenId kRow = kImageToken;

std::vector<PromptImage> images_of(ImageFamily family, std::vector<std::pair<int, int>> grids) {
  std::vector<PromptImage> images;
  for (const auto& [h, w] : grids)
    images.push_back({.identifier = "",
                      .grid_h = h,
                      .grid_w = w,
                      .row_breaks = family == ImageFamily::kPixtral});
  return images;
}

Tokens expanded(ImageFamily family, const Tokens& tokens, std::vector<PromptImage> images) {
  return expand_placeholders(tokens, images, image_settings(family), "messages");
}

TEST(ImagePlaceholders, BecomeTheRowsOfTheirImage) {
  const auto images = images_of(ImageFamily::kQwen, {{1, 2}, {2, 2}});
  EXPECT_EQ(expanded(ImageFamily::kQwen, {1, kRow, 2, kRow}, images),
            (Tokens{1, kRow, kRow, 2, kRow, kRow, kRow, kRow}));
  EXPECT_EQ(expanded(ImageFamily::kGemma3, {1, kRow, 2, kRow}, images),
            (Tokens{1, kRow, kRow, 2, kRow, kRow, kRow, kRow}));
}

TEST(ImagePlaceholders, OfGemma4AreEnclosed) {
  EXPECT_EQ(expanded(ImageFamily::kGemma4, {1, kRow, 2}, images_of(ImageFamily::kGemma4, {{1, 2}})),
            (Tokens{1, kBeginToken, kRow, kRow, kEndToken, 2}));
}

TEST(ImagePlaceholders, OfPixtralHaveABreakAfterEachLine) {
  EXPECT_EQ(expanded(ImageFamily::kPixtral, {kRow, 2}, images_of(ImageFamily::kPixtral, {{2, 3}})),
            (Tokens{kRow, kRow, kRow, kBreakToken, kRow, kRow, kRow, kEndToken, 2}));
}

TEST(ImagePlaceholders, HaveToBeAsManyAsTheImages) {
  const auto refused = [](const Tokens& tokens) {
    return refused_field(
        [&] { expanded(ImageFamily::kQwen, tokens, images_of(ImageFamily::kQwen, {{1, 2}})); });
  };
  EXPECT_EQ(refused({1, kRow}), "accepted");
  EXPECT_EQ(refused({1}), "400 messages");
  EXPECT_EQ(refused({kRow, 1, kRow}), "400 messages");
}

TEST(ImagePlaceholders, AreSurroundedInTheTextOfGemma3) {
  const auto tokenizer = tokenizer_of(image_vocab());
  const auto surrounded = [&](ImageFamily family, std::string text) {
    surround_placeholders(text, image_settings(family), *tokenizer);
    return text;
  };
  EXPECT_EQ(surrounded(ImageFamily::kGemma3, "a<begin>b<begin>"),
            "a\n\n<begin><image><end>\n\nb\n\n<begin><image><end>\n\n");
  EXPECT_EQ(surrounded(ImageFamily::kGemma4, "a<image>b"), "a<image>b");
  EXPECT_EQ(image_placeholder(image_settings(ImageFamily::kGemma3), *tokenizer), "<begin>");
  EXPECT_EQ(image_placeholder(image_settings(ImageFamily::kQwen), *tokenizer), "<image>");
  EXPECT_EQ(count_placeholders("<image><image>", "<image>"), 2u);
}

TEST(ImagePlaceholders, GiveTheImagesTheirOffsets) {
  auto images = images_of(ImageFamily::kQwen, {{1, 2}, {1, 2}});
  place_images({1, kRow, kRow, 2, kRow, kRow}, images, image_settings(ImageFamily::kQwen),
               "prompt");
  EXPECT_EQ(images[0].offset, 1);
  EXPECT_EQ(images[1].offset, 4);
  place_images({kRow, kRow, kRow, kRow}, images, image_settings(ImageFamily::kQwen), "prompt");
  EXPECT_EQ(images[1].offset, 2);

  auto lines = images_of(ImageFamily::kPixtral, {{2, 1}});
  const ImageSettings pixtral = image_settings(ImageFamily::kPixtral);
  place_images({7, kRow, kBreakToken, kRow, kEndToken}, lines, pixtral, "prompt");
  EXPECT_EQ(lines[0].offset, 1);
  EXPECT_EQ(lines[0].end(), 5);
}

TEST(ImagePlaceholders, OfAPromptAreThoseOfItsImages) {
  const auto refused = [](const Tokens& tokens, std::vector<std::pair<int, int>> grids) {
    auto images = images_of(ImageFamily::kQwen, std::move(grids));
    return refused_field(
        [&] { place_images(tokens, images, image_settings(ImageFamily::kQwen), "prompt"); });
  };
  EXPECT_EQ(refused({1, 2}, {}), "accepted");
  EXPECT_EQ(refused({1, kRow}, {}), "400 prompt");
  EXPECT_EQ(refused({1, kRow}, {{1, 2}}), "400 prompt");
  EXPECT_EQ(refused({1, 2}, {{1, 2}}), "400 prompt");
  EXPECT_EQ(refused({kRow, kRow, kRow}, {{1, 2}}), "400 prompt");
  EXPECT_EQ(refused({kRow, 1, kRow}, {{1, 2}}), "400 prompt");
}

}  // namespace
}  // namespace octavo::api
