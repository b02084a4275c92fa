#include "api/fields/body_fields.h"

#include <gtest/gtest.h>

#include "api/fields/field_kinds.h"
#include "api/testing/refusals.h"

namespace octavo::api {
namespace {

struct Target {
  int count = 0;
};

FieldTable<Target> table() {
  return {used<Target>("count", integer_schema(0, 9), "How many",
                       [](const Json& v, Target& t) { t.count = to_int(v, "count", 0, 9); }),
          {.name = "needed",
           .use = FieldUse::kUsed,
           .schema = boolean_schema(),
           .about = "",
           .read = [](const Json&, Target&) {},
           .required = true},
          {.name = "user", .use = FieldUse::kHint, .schema = Json::object(), .about = "Unused"},
          refused<Target>("tools", "not yet"),
          refused<Target>("beam", "never", asks_false)};
}

std::string refused_by(const char* body) {
  Target target;
  return refused_field([&] { read_fields(Json::parse(body), table(), target); });
}

TEST(BodyFields, AreReadIntoTheTarget) {
  Target target;
  EXPECT_EQ(read_fields(Json::parse(R"({"needed": true, "count": 3})"), table(), target),
            IgnoredFields{});
  EXPECT_EQ(target.count, 3);
}

TEST(BodyFields, UnknownAndMissingFieldsAreRefused) {
  EXPECT_EQ(refused_by(R"({"needed": true, "cuont": 3})"), "400 cuont");
  EXPECT_EQ(refused_by(R"({"count": 3})"), "400 needed");
  EXPECT_EQ(refused_by(R"({"needed": null})"), "400 needed");
  EXPECT_EQ(refused_by(R"({"needed": true, "count": null})"), "accepted");
}

TEST(BodyFields, HintsAreListed) {
  Target target;
  EXPECT_EQ(
      read_fields(Json::parse(R"({"needed": 1, "user": "me", "count": null})"), table(), target),
      IgnoredFields{"user"});
}

// The list goes into a header, which must not repeat names chosen by the client.
TEST(BodyFields, UnknownNullsAreNeitherRefusedNorListed) {
  Target target;
  const Json body = {{"needed", 1}, {"a\r\nX-Evil: 1", nullptr}, {"later", nullptr}};
  EXPECT_EQ(read_fields(body, table(), target), IgnoredFields{});
}

TEST(BodyFields, RefusedFieldsAcceptValuesWithoutEffect) {
  for (const char* value : {"null", "[]", "{}"})
    EXPECT_EQ(refused_by((R"({"needed": 1, "tools": )" + std::string(value) + "}").c_str()),
              "accepted")
        << value;
  EXPECT_EQ(refused_by(R"({"needed": 1, "tools": [1]})"), "400 tools");
  EXPECT_EQ(refused_by(R"({"needed": 1, "beam": false})"), "accepted");
  EXPECT_EQ(refused_by(R"({"needed": 1, "beam": true})"), "400 beam");
}

TEST(BodyFields, TheSchemaOmitsRefusedFields) {
  const Json schema = schema_of(table());
  EXPECT_TRUE(schema["properties"].contains("count"));
  EXPECT_TRUE(schema["properties"].contains("user"));
  EXPECT_FALSE(schema["properties"].contains("tools"));
  EXPECT_EQ(schema["required"], Json::array({"needed"}));
  // An unknown field may only be null.
  EXPECT_EQ(schema["additionalProperties"], (Json{{"type", "null"}}));
}

}  // namespace
}  // namespace octavo::api
