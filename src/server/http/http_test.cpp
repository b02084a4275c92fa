#include "server/http/http.h"

#include <gtest/gtest.h>

#include "api/api_error.h"
#include "api/fields/json_text.h"
#include "api/request_id.h"
#include "base/error.h"
#include "server/api_keys.h"
#include "server/http/error_response.h"

namespace octavo::server {

using namespace api;

namespace {

HttpRequest with_header(const char* name, const std::string& value) {
  return {.headers = {{name, value}}};
}

TEST(Http, PercentEscapesAreDecodedAndOthersLeftAlone) {
  EXPECT_EQ(percent_decoded("/a%2Fb%20c"), "/a/b c");
  EXPECT_EQ(percent_decoded("%e2%82%ac"), "\xE2\x82\xAC");
  EXPECT_EQ(percent_decoded("a%00b"), std::string("a\0b", 3));
  for (const char* same : {"", "%", "%4", "%zz", "%+1", "%-1", "% 1", "100%"})
    EXPECT_EQ(percent_decoded(same), same);
  EXPECT_EQ(percent_decoded("%2541"), "%41");  // once
}

TEST(Http, HeadersAreFoundInAnyCase) {
  const HttpRequest request{.headers = {{"X-One", "1"}, {"x-one", "2"}}};
  EXPECT_EQ(request.header("x-ONE"), "1");
  EXPECT_EQ(request.header("x-two"), "");
}

TEST(Http, HeadersTellWhetherThereIsABody) {
  EXPECT_FALSE(HttpRequest{}.has_body());
  EXPECT_FALSE(with_header("content-length", "0").has_body());
  EXPECT_FALSE(with_header("Content-Length", "000").has_body());
  EXPECT_TRUE(with_header("Content-Length", "10").has_body());
  EXPECT_TRUE(with_header("transfer-encoding", "chunked").has_body());
}

TEST(ApiKeys, WithoutKeysEveryRequestIsAllowed) { EXPECT_TRUE(ApiKeys({}).allow({})); }

TEST(ApiKeys, OnlyACompleteKeyIsAllowed) {
  const ApiKeys keys({{.key = "one"}, {.key = "two"}});
  for (const char* value : {"Bearer one", "bearer two", "BEARER one"})
    EXPECT_TRUE(keys.allow(with_header("Authorization", value))) << value;
  for (const char* value :
       {"", "one", "Bearer", "Bearer ", "Bearer on", "Bearer one ", "Bearer  one", "Basic one"})
    EXPECT_FALSE(keys.allow(with_header("Authorization", value))) << value;
  EXPECT_TRUE(keys.allow(with_header("x-api-key", "two")));
  EXPECT_FALSE(keys.allow(with_header("x-api-key", "")));
  EXPECT_FALSE(keys.allow({}));
}

TEST(ApiKeys, RefusesABlankKey) {
  for (const char* blank : {"", " ", "\t\r\n"})
    EXPECT_THROW(ApiKeys({{.key = "one"}, {.key = blank}}), SetupError) << '"' << blank << '"';
}

TEST(ApiKeys, KeysThatStayKeepTheirOpenRequests) {
  ApiKeys keys({{.key = "one", .name = "alice"}, {.key = "two"}}, /*max_requests=*/1);
  const HttpRequest one = with_header("x-api-key", "one");
  const auto open = keys.find(one)->requests.try_lend(1);
  ASSERT_TRUE(open);
  EXPECT_THROW(keys.replace({{.key = "new"}, {.key = " "}}), SetupError);
  EXPECT_TRUE(keys.allow(with_header("x-api-key", "two")));
  keys.replace({{.key = "one", .name = "bob"}, {.key = "new"}});
  EXPECT_FALSE(keys.find(one)->requests.try_lend(1));
  EXPECT_EQ(keys.names(), (std::set<std::string>{"", "bob"}));
  EXPECT_FALSE(keys.allow(with_header("x-api-key", "two")));
  EXPECT_TRUE(keys.allow(with_header("x-api-key", "new")));
}

TEST(RequestId, APlainClientIdIsKept) {
  EXPECT_EQ(request_id_of("a-B_1.2:3"), "a-B_1.2:3");
  for (const std::string& odd : {std::string(), std::string("a b"), std::string("a\r\nb"),
                                 std::string(129, 'x'), std::string("\xC3\xA9")})
    EXPECT_EQ(request_id_of(odd).size(), 32u) << odd;
  EXPECT_NE(fresh_request_id(), fresh_request_id());
}

TEST(ApiError, HasOpenAisFormatAndTruncatesLongText) {
  const Json error = Json::parse(error_body(400, "no \"such\" thing", "n"))["error"];
  EXPECT_EQ(error.dump(),
            R"({"message":"no \"such\" thing","type":"BadRequestError","param":"n","code":400})");
  EXPECT_TRUE(Json::parse(error_body(404, "x"))["error"]["param"].is_null());
  EXPECT_LT(error_body(400, std::string(100'000, 'x'), std::string(100'000, 'y')).size(), 2000u);
  EXPECT_EQ(error_response(401, "x").headers.front().first, "WWW-Authenticate");
}

TEST(ApiError, HasTheFormatOfTheRequestedApi) {
  for (const char* path : {"/v1/messages", "/v1/messages/count_tokens", "/v1/messages/nothing"})
    EXPECT_EQ(error_style_of(path), ErrorStyle::kAnthropic) << path;
  for (const char* path : {"/v1/messages_", "/v1/responses", "/", "", "/api"})
    EXPECT_EQ(error_style_of(path), ErrorStyle::kOpenAi) << path;
  for (const char* path : {"/api/chat", "/api/nothing"})
    EXPECT_EQ(error_style_of(path), ErrorStyle::kOllama) << path;
  EXPECT_EQ(error_body(ErrorStyle::kOllama, 400, {.message = "no \"x\"", .param = "x"}),
            R"({"error":"no \"x\""})");
  const auto body = [](int status) {
    return error_body(ErrorStyle::kAnthropic, status, {.message = "no \"x\"", .param = "x"});
  };
  EXPECT_EQ(body(400),
            R"({"type":"error","error":{"type":"invalid_request_error","message":"no \"x\""}})");
  const std::pair<int, const char*> types[] = {{401, "authentication_error"},
                                               {403, "permission_error"},
                                               {404, "not_found_error"},
                                               {405, "invalid_request_error"},
                                               {413, "request_too_large"},
                                               {429, "rate_limit_error"},
                                               {500, "api_error"},
                                               {503, "overloaded_error"},
                                               {504, "timeout_error"}};
  for (const auto& [status, type] : types)
    EXPECT_EQ(Json::parse(body(status))["error"]["type"], type) << status;
}

TEST(Http, QueryValuesAreFoundByName) {
  EXPECT_EQ(query_value("a=1&limit=2%30&after=", "limit"), "20");
  EXPECT_EQ(query_value("a=1&after=", "after"), "");
  EXPECT_EQ(query_value("a&b", "a"), "");
  EXPECT_FALSE(query_value("xa=1&ab=2", "a"));
  EXPECT_FALSE(query_value("", "a"));
}

}  // namespace
}  // namespace octavo::server
