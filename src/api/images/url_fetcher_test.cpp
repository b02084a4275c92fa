#include "api/images/url_fetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace octavo::api {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string url_refusal(const std::string& url) {
  const UrlFetcher fetcher({.hosts = {"Images.Example", "localhost"}});
  try {
    fetcher.fetch(url, {});
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 400);
    return error.what();
  }
  return "was fetched";
}

// The rules have their tests in rust/src/media/tests.rs.
TEST(UrlFetcher, RefusesOtherHostsAndSchemes) {
  EXPECT_THAT(url_refusal("https://other.example/a.png"), HasSubstr("--allowed-media-domains"));
  EXPECT_THAT(url_refusal("http://images.example/a.png"), HasSubstr("https://"));
  EXPECT_THAT(url_refusal("https://[::1]/a.png"), HasSubstr("by its name"));
  EXPECT_THAT(url_refusal("https://me@images.example/a.png"), HasSubstr("user name"));
}

TEST(UrlFetcher, RefusesAnAllowedNameWithALocalAddress) {
  EXPECT_THAT(url_refusal("https://localhost/a.png"), HasSubstr("public internet"));
}

TEST(UrlFetcher, DoesNotRepeatSignaturesOfUrls) {
  EXPECT_THAT(url_refusal("https://other.example/a.png?signature=secret"),
              Not(HasSubstr("secret")));
}

TEST(UrlFetcher, NamesAHostThatCannotBeAllowed) {
  for (const char* host : {"127.0.0.1", "*.example.com", "https://example.com", "a:443", ""}) {
    try {
      UrlFetcher({.hosts = {host}});
      ADD_FAILURE() << host;
    } catch (const SetupError& error) {
      EXPECT_THAT(error.what(), HasSubstr("--allowed-media-domains"));
    }
  }
}

TEST(UrlFetcher, ARequestThatWasStoppedIsNotAnswered) {
  const UrlFetcher fetcher({.hosts = {"localhost"}});
  std::stop_source source;
  source.request_stop();
  EXPECT_THROW(fetcher.fetch("https://localhost/a.png", {.stop = source.get_token()}),
               RequestError);
}

}  // namespace
}  // namespace octavo::api
