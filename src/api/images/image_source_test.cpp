#include "api/images/image_source.h"

#include <gmock/gmock.h>

#include "api/images/image_settings.h"
#include "api/testing/refusals.h"

namespace octavo::api {
namespace {

using testing::HasSubstr;

std::string refusal_of_url(const Json& url) {
  return refusal_of([&] { image_at_url(url, "url"); });
}

TEST(ImageSource, ADataUrlIsDecoded) {
  for (const char* url : {"data:image/png;base64,aGk=", "DATA:IMAGE/PNG;BASE64,aGk=",
                          "data:;base64,aGk=", "data:image/svg+xml;charset=utf-8;base64,aGk="}) {
    const ImageSource image = image_at_url(url, "url");
    ASSERT_NE(image.file, nullptr) << url;
    EXPECT_EQ(*image.file, "hi");
    EXPECT_EQ(image.url, "");
    EXPECT_EQ(image.field, "url");
  }
}

TEST(ImageSource, AUrlIsKept) {
  const ImageSource image = image_at_url("https://host/a.png", "url");
  EXPECT_EQ(image.file, nullptr);
  EXPECT_EQ(image.url, "https://host/a.png");
}

TEST(ImageSource, OtherUrlsAreRefused) {
  for (const char* url :
       {"file:///etc/passwd", "/etc/passwd", "ftp://a/b", "https", "javascript:1"})
    EXPECT_THAT(refusal_of_url(url), HasSubstr("400 url: must be a data: URL")) << url;
  EXPECT_THAT(refusal_of_url("data:image/png,aGk="), HasSubstr("data:image/png;base64,..."));
  EXPECT_THAT(refusal_of_url("data:image/png;base64"), HasSubstr("data:image/png;base64,..."));
  EXPECT_THAT(refusal_of_url("data:text/html;base64,aGk="), HasSubstr("is not an image"));
  EXPECT_THAT(refusal_of_url("data:image/png;base64,"), HasSubstr("is empty"));
  EXPECT_THAT(refusal_of_url(""), HasSubstr("is empty"));
  EXPECT_THAT(refusal_of_url(7), HasSubstr("must be a string"));
  EXPECT_THAT(refusal_of_url("https://host/" + std::string(9000, 'a')), HasSubstr("at most"));
  for (const char* base64 : {"aGk", "aGk=\n", "aG k=", "aG-_", "a===", "=aGk"})
    EXPECT_THAT(refusal_of_url("data:image/png;base64," + std::string(base64)), HasSubstr("base64"))
        << base64;
}

TEST(ImageSource, MoreImagesThanAnyServerAllowsAreRefused) {
  std::vector<ImageSource> images(static_cast<size_t>(kMostImages) - 1);
  add_image(images, {.field = "one"});
  EXPECT_EQ(refused_field([&] { add_image(images, {.field = "another"}); }), "400 another");
}

TEST(ImageSource, DetailMayBeLow) {
  EXPECT_TRUE(is_low_detail("low", "detail"));
  for (const Json& detail : {Json(), Json("auto"), Json("high"), Json("original")})
    EXPECT_FALSE(is_low_detail(detail, "detail"));
  for (const Json& detail : {Json("medium"), Json(1), Json::object()})
    EXPECT_EQ(refused_field([&] { is_low_detail(detail, "detail"); }), "400 detail");
}

}  // namespace
}  // namespace octavo::api
