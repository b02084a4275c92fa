#include "llm/image_limits.h"

#include <gtest/gtest.h>

#include "api/images/image_settings.h"
#include "base/error.h"

namespace octavo {
namespace {

TEST(ImageLimits, AreVllmsJson) {
  EXPECT_EQ(parse_image_limit(R"({"image": 3})"), 3);
  EXPECT_EQ(parse_image_limit(R"({"image": 0, "video": 0})"), 0);
  EXPECT_EQ(parse_image_limit(R"({"image": {"count": 5, "width": 512}})"), 5);
  EXPECT_EQ(parse_image_limit("{}"), api::kMaxImages);
}

TEST(ImageLimits, OthersAreRefused) {
  for (const char* json : {"", "3", "image=3", "[1]", R"({"image": -1})", R"({"image": 1.5})",
                           R"({"image": "3"})", R"({"image": 100000})", R"({"video": 1})",
                           R"({"audio": {"count": 2}})", R"({"images": 1})", R"({"image": {}})"})
    EXPECT_THROW(parse_image_limit(json), SetupError) << json;
}

TEST(ImageLimits, ProcessorSettingsAreAnObject) {
  EXPECT_EQ(checked_processor_kwargs(""), "");
  EXPECT_EQ(checked_processor_kwargs("{}"), "");
  EXPECT_EQ(checked_processor_kwargs(R"({"max_pixels": 1})"), R"({"max_pixels": 1})");
  EXPECT_THROW(checked_processor_kwargs("[]"), SetupError);
  EXPECT_THROW(checked_processor_kwargs("{"), SetupError);
}

}  // namespace
}  // namespace octavo
