#include "front/routing_fields.h"

#include <gtest/gtest.h>

#include <random>

#include "api/fields/json_text.h"
#include "base/error.h"

namespace octavo::front {
namespace {

using api::Json;

TEST(RoutingFields, FindsTheModelAtTheTopOnly) {
  const std::string body =
      R"( {"messages": [{"model": "no", "t": "} ] \" \\"}], "model" : "yes", "keep_alive": "10m"} )";
  const RoutingFields fields = routing_fields(body);
  EXPECT_EQ(fields.model, "yes");
  EXPECT_EQ(fields.keep_alive->time, std::chrono::minutes(10));
  EXPECT_EQ(body[fields.end], '}');
  EXPECT_EQ(Json::parse(with_model(body, fields, "a\"b"))["model"], "a\"b");
}

TEST(RoutingFields, TheLastOfEqualKeysCounts) {
  const std::string body =
      R"({"model": "a", "mod\u0065l": "b\u00e9", "keep_alive": 3, "keep_alive": -1})";
  EXPECT_EQ(routing_fields(body).model, "b\xC3\xA9");
  EXPECT_EQ(routing_fields(body).keep_alive, KeepAlive{.time = std::nullopt});
  EXPECT_EQ(api::parse_object(body)["model"], "b\xC3\xA9");
}

TEST(RoutingFields, ABodyMayNameNoModel) {
  EXPECT_EQ(routing_fields("{}").model, "");
  EXPECT_FALSE(routing_fields("{}").has_members);
  EXPECT_EQ(routing_fields(R"({"model": null, "keep_alive": null})").model, "");
  EXPECT_EQ(routing_fields("\xEF\xBB\xBF{\"model\":\"m\"}").model, "m");
}

TEST(RoutingFields, RefusesAsManyKeysAsTheChild) {
  const auto body_with = [](int keys) {
    std::string body = R"({"model": "m")";
    for (int i = 1; i < keys; ++i) body += R"(,"\n":1)";
    return body + "}";
  };
  EXPECT_EQ(routing_fields(body_with(api::kJsonKeys)).model, "m");
  EXPECT_THROW(routing_fields(body_with(api::kJsonKeys + 1)), RequestError);
}

TEST(RoutingFields, RefusesWhatIsNoObject) {
  for (const char* body : {"",
                           " ",
                           "[]",
                           "\"model\"",
                           "{",
                           "{\"model\"",
                           "{\"model\":",
                           "{\"model\":\"x\"",
                           "{}x",
                           "{\"model\":\"x\"}{}",
                           "{\"a\":[}",
                           "{\"a\":{]}}",
                           "{\"model\":1}",
                           "{\"a\" 1}",
                           "{\"a\":,}",
                           "{\"model\":\"x\" \"a\":1}",
                           "{\"model\":\"\\ud800\"}",
                           "{,}",
                           "{\"keep_alive\":\"soon\"}",
                           "{\"keep_alive\":[1]}"})
    EXPECT_THROW(routing_fields(body), RequestError) << body;
  EXPECT_THROW(routing_fields("{\"a\":" + std::string(100000, '[')), RequestError);
  EXPECT_THROW(routing_fields("{\"model\":\"" + std::string(100000, 'm') + "\"}"), RequestError);
}

// A random object, as text with random spaces and escapes.
std::string random_value(std::mt19937& random, int depth) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const char* const strings[] = {"\"model\"",         "\"\"",       "\"\\\\\"",
                                 "\"\\\"model\\\"\"", "\"}]{[,:\"", "\"mod\\u0065l\"",
                                 "\"\xC3\xA9\"",      "\"keep\""};
  const std::string space(static_cast<size_t>(pick(2)), ' ');
  if (depth > 3 || (depth > 0 && pick(3) == 0)) {
    const char* const scalars[] = {"1", "-2.5e3", "true", "null", "false", "\"x\""};
    return space + (pick(2) == 0 ? strings[pick(8)] : scalars[pick(6)]) + space;
  }
  const bool object = depth == 0 || pick(2) == 0;
  std::string text = object ? "{" : "[";
  for (int i = pick(5); i > 0; --i) {
    if (text.size() > 1) text += ",";
    if (object) text += space + strings[pick(8)] + space + ":";
    text += depth == 0 && pick(2) == 0 ? std::string("\"top\"") : random_value(random, depth + 1);
  }
  return text + space + (object ? "}" : "]");
}

TEST(RoutingFields, AgreesWithTheParserOnRandomObjects) {
  std::mt19937 random(7);
  int named = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string body = random_value(random, 0);
    const Json parsed = api::parse_object(body);
    const Json model = parsed.value("model", Json());
    if (model.is_null() || model.is_string()) {
      const RoutingFields fields = routing_fields(body);
      EXPECT_EQ(fields.model, model.is_null() ? "" : model.get<std::string>()) << body;
      named += model.is_string();
    } else {
      EXPECT_THROW(routing_fields(body), RequestError) << body;
    }
  }
  EXPECT_GT(named, 200);
}

}  // namespace
}  // namespace octavo::front
