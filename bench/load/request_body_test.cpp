#include "bench/load/request_body.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace octavo::bench {
namespace {

using nlohmann::json;

TEST(RequestBody, OfACompletionHasIdsAndRequestsUsage) {
  const LoadRequest request{
      .prompt = std::vector<TokenId>{5, 6}, .prompt_tokens = 2, .max_tokens = 9};
  const auto body =
      json::parse(request_body(request, {.model = "m", .ignore_eos = true, .temperature = 0.5}));
  EXPECT_EQ(body, json::parse(R"({"model": "m", "prompt": [5, 6], "max_tokens": 9,
      "temperature": 0.5, "ignore_eos": true, "stream": true,
      "stream_options": {"include_usage": true}})"));
}

TEST(RequestBody, OfAChatHasOneMessageAndNoExtraFields) {
  const LoadRequest request{.prompt = std::string("hi"), .prompt_tokens = 1, .max_tokens = 3};
  const auto body = json::parse(request_body(request, {.model = "m", .chat = true}));
  EXPECT_EQ(body.at("messages"), json::parse(R"([{"role": "user", "content": "hi"}])"));
  EXPECT_FALSE(body.contains("prompt"));
  EXPECT_FALSE(body.contains("ignore_eos"));
}

TEST(RequestBody, RepairsBrokenUtf8) {
  const LoadRequest request{.prompt = std::string("a\xff"), .prompt_tokens = 1, .max_tokens = 3};
  EXPECT_EQ(json::parse(request_body(request, {})).at("prompt"), "a\xEF\xBF\xBD");
}

}  // namespace
}  // namespace octavo::bench
