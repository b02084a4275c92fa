#include "scheduler/image_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/testing/fake_images.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

PromptImage image(const std::string& name, int tokens) {
  return {.identifier = name, .grid_h = 1, .grid_w = tokens, .pixels = fake_pixels(name)};
}

ImageOptions keeping(int tokens, int pieces) {
  return {.enabled = true,
          .max_image_tokens = tokens,
          .kept_tokens = tokens,
          .pieces = [pieces](const PromptImage&) { return pieces; }};
}

using Wants = std::vector<ImageStore::Wanted>;

TEST(ImageStore, EncodesOnePieceAStep) {
  ImageStore store(keeping(10, 2));
  const PromptImage a = image("a", 4);
  const ImageWork first = store.plan(Wants{{&a}}, 1);
  EXPECT_EQ(first.pixels, a.pixels);
  EXPECT_EQ(store.find("a"), 0u);
  EXPECT_TRUE(store.has("a"));
  const ImageWork second = store.plan(Wants{{&a}}, 2);
  EXPECT_EQ(second.pixels, nullptr);
  EXPECT_EQ(second.encodes, first.encodes);
  EXPECT_EQ(store.find("a"), first.encodes);
  EXPECT_TRUE(store.plan(Wants{{&a}}, 3).empty());
  EXPECT_EQ(store.encoded(), 1u);
}

TEST(ImageStore, DropsTheLeastRecentlyUsed) {
  ImageStore store(keeping(10, 1));
  const PromptImage a = image("a", 4), b = image("b", 4), c = image("c", 5);
  const ImageId id_a = store.plan(Wants{{&a}}, 1).encodes;
  const ImageId id_b = store.plan(Wants{{&b}}, 2).encodes;
  store.use("a", 3);
  EXPECT_THAT(store.plan(Wants{{&c}}, 4).drops, ElementsAre(id_b));
  EXPECT_EQ(store.find("a"), id_a);
  EXPECT_EQ(store.tokens(), 9);
}

TEST(ImageStore, KeepsWhatAMoreImportantSequenceOrThisStepUses) {
  ImageStore store(keeping(10, 1));
  const PromptImage a = image("a", 6), b = image("b", 6);
  store.plan(Wants{{&a}}, 1);
  EXPECT_TRUE(store.plan(Wants{{&a}, {&b}}, 2).empty());
  store.use("a", 3);
  EXPECT_TRUE(store.plan(Wants{{&b}}, 3).empty());
  EXPECT_NE(store.plan(Wants{{&b}, {&a}}, 4).encodes, 0u);
}

TEST(ImageStore, AnEncodingThatIsNotWantedRestsUntilAnotherIsWanted) {
  ImageStore store(keeping(10, 3));
  const PromptImage a = image("a", 4), b = image("b", 4);
  const ImageId id = store.plan(Wants{{&a}}, 1).encodes;
  EXPECT_TRUE(store.plan({}, 2).empty());
  EXPECT_EQ(store.plan(Wants{{&a}}, 3).encodes, id);
  const ImageWork work = store.plan(Wants{{&b}}, 4);
  EXPECT_THAT(work.drops, ElementsAre(id));
  EXPECT_EQ(work.pixels, b.pixels);
  EXPECT_FALSE(store.has("a"));
}

TEST(ImageStore, ABackgroundImageGivesWay) {
  ImageStore store(keeping(10, 3));
  const PromptImage a = image("a", 4), b = image("b", 4);
  const ImageId id = store.plan(Wants{{&a, true}}, 1).encodes;
  const ImageWork work = store.plan(Wants{{&b}, {&a, true}}, 2);
  EXPECT_THAT(work.drops, ElementsAre(id));
  EXPECT_EQ(work.pixels, b.pixels);
}

TEST(ImageStore, ABackgroundImageGivesWayToAnyOther) {
  ImageStore store(keeping(10, 2));
  const PromptImage a = image("a", 3), b = image("b", 3), c = image("c", 3);
  store.plan(Wants{{&a}}, 1);
  store.plan(Wants{{&a}}, 2);
  const ImageId id = store.plan(Wants{{&c, true}}, 3).encodes;
  const ImageWork work = store.plan(Wants{{&a}, {&b}, {&c, true}}, 4);  // a is encoded
  EXPECT_THAT(work.drops, ElementsAre(id));
  EXPECT_EQ(work.pixels, b.pixels);
}

TEST(ImageStore, ForgetsEverythingAfterAFailure) {
  ImageStore store(keeping(10, 1));
  const PromptImage a = image("a", 4);
  const ImageId id = store.plan(Wants{{&a}}, 1).encodes;
  store.forget();
  EXPECT_EQ(store.find("a"), 0u);
  EXPECT_EQ(store.tokens(), 0);
  const ImageWork work = store.plan(Wants{{&a}}, 2);
  EXPECT_NE(work.encodes, id);
  EXPECT_THAT(work.drops, IsEmpty());
}

}  // namespace
}  // namespace octavo
