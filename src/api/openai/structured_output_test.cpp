#include "api/openai/structured_output.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/openai/chat_request.h"
#include "api/openai/completion_request.h"
#include "api/testing/refusals.h"
#include "api/testing/test_model.h"
#include "base/error.h"

namespace octavo::api {
namespace {

// The job of a completion with these fields.
GenerationJob prepared(TestModel& model, const std::string& fields) {
  return prepare_completion(Json::parse(fmt::format(R"({{"prompt": "a", {}}})", fields)), *model);
}

std::string refusal(const std::string& fields) {
  TestModel model;
  return refused_field([&] { prepared(model, fields); });
}

// Whether an answer may be `text` and end there.
bool fits(const std::string& fields, const std::string& text) {
  TestModel model;
  const auto constraint = prepared(model, fields).engine.constraint;
  const auto state = constraint->begin();
  for (TokenId token : model->text.tokenizer->encode(text, false))
    if (!state->accept(token)) return false;
  return state->accept(258);
}

TEST(StructuredOutput, EachFormatConstrainsTheOutput) {
  const std::string schema =
      R"("response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true,
         "schema": {"type": "object", "properties": {"z": {"type": "boolean"}, "a": {"const": 1}},
                    "required": ["z", "a"], "additionalProperties": false}}})";
  EXPECT_TRUE(fits(schema, R"({"z": true, "a": 1})"));
  EXPECT_FALSE(fits(schema, R"({"a": 1, "z": true})"));  // in the schema's order
  EXPECT_TRUE(fits(R"("response_format": {"type": "json_object"})", R"({"k": [1.5e3]})"));
  EXPECT_FALSE(fits(R"("response_format": {"type": "json_object"})", "[1]"));
  EXPECT_TRUE(fits(R"("structured_outputs": {"regex": "[ab]{2}"})", "ab"));
  EXPECT_FALSE(fits(R"("structured_outputs": {"regex": "[ab]{2}"})", "a"));
  EXPECT_TRUE(fits(R"("structured_outputs": {"choice": ["yes", "no"]})", "no"));
  EXPECT_TRUE(fits(R"("structured_outputs": {"grammar": "start: \"x\" | \"y\" start"})", "yyx"));
  const std::string gbnf = R"("structured_outputs": {"grammar": "root ::= [x-y]{2} \"!\""})";
  EXPECT_TRUE(fits(gbnf, "xy!"));
  EXPECT_FALSE(fits(gbnf, "xz!"));
  EXPECT_TRUE(fits(R"("structured_outputs": {"json_object": true})", "{}"));
  EXPECT_TRUE(fits(R"("structured_outputs": {"json": "{\"type\": \"null\"}"})", "null"));
}

TEST(StructuredOutput, WhitespaceIsAsRequested) {
  const std::string list = R"("structured_outputs": {"json": {"type": "array"}, )";
  const std::string none = list + R"("disable_any_whitespace": true})";
  EXPECT_TRUE(fits(none, "[1,2]"));
  EXPECT_FALSE(fits(none, "[1, 2]"));
  const std::string two = list + R"("whitespace_pattern": "  "})";
  EXPECT_TRUE(fits(two, "[1,  2]"));
  EXPECT_FALSE(fits(two, "[1, 2]"));
}

TEST(StructuredOutput, ValuesWithoutEffectAreAccepted) {
  for (const char* fields : {R"("response_format": {"type": "text"})", R"("response_format": null)",
                             R"("structured_outputs": {"json_object": false})"}) {
    TestModel model;
    EXPECT_EQ(prepared(model, fields).engine.constraint, nullptr) << fields;
  }
}

TEST(StructuredOutput, UnsupportedFormatsAreRefusedByName) {
  const auto schema = [](const char* text) {
    return fmt::format(
        R"("response_format": {{"type": "json_schema", "json_schema": {{"name": "n", "schema": {}}}}})",
        text);
  };
  const std::string field = "400 response_format.json_schema.schema";
  EXPECT_EQ(refusal(schema("1")), field);
  EXPECT_EQ(refusal(schema("false")), field);
  EXPECT_EQ(refusal(schema(R"({"type": "array", "uniqueItems": true})")), field);
  EXPECT_EQ(refusal(schema(R"({"type": "integer", "minimum": 2, "maximum": 1})")), field);
  EXPECT_EQ(refusal(schema(R"({"type": "string", "pattern": "(?=a)b"})")), field);
  EXPECT_EQ(refusal(schema(R"({"type": "string"})")), "accepted");
  EXPECT_EQ(refusal(R"("response_format": {"type": "structural_tag"})"),
            "400 response_format.type");
  EXPECT_EQ(refusal(R"("response_format": {"type": "json_schema"})"),
            "400 response_format.json_schema");
  EXPECT_EQ(refusal(R"("response_format": {"type": "text", "more": 1})"),
            "400 response_format.more");
  EXPECT_EQ(refusal(R"("structured_outputs": {})"), "400 structured_outputs");
  EXPECT_EQ(refusal(R"("structured_outputs": {"regex": "a", "choice": ["a"]})"),
            "400 structured_outputs");
  EXPECT_EQ(refusal(R"("structured_outputs": {"regex": "("})"), "400 structured_outputs.regex");
  EXPECT_EQ(refusal(R"("structured_outputs": {"choice": []})"), "400 structured_outputs.choice");
  EXPECT_EQ(refusal(R"("structured_outputs": {"grammar": "no"})"),
            "400 structured_outputs.grammar");
  EXPECT_EQ(refusal(R"("structured_outputs": {"structural_tag": "x"})"),
            "400 structured_outputs.structural_tag");
  EXPECT_EQ(refusal(R"("structured_outputs": {"regex": "a", "whitespace_pattern": " "})"),
            "400 structured_outputs");
  EXPECT_EQ(refusal(R"("structured_outputs": {"json_object": true,
                       "disable_additional_properties": true})"),
            "400 structured_outputs.disable_additional_properties");
  EXPECT_EQ(refusal(R"("response_format": {"type": "json_object"},
                       "structured_outputs": {"regex": "a"})"),
            "400 structured_outputs");
  EXPECT_EQ(refusal(R"("guided_regex": "a")"), "400 guided_regex");
}

TEST(StructuredOutput, ChatsHaveItToo) {
  TestModel model;
  const GenerationJob job =
      prepare_chat(Json::parse(R"({"messages": [{"role": "user", "content": "a"}],
                      "response_format": {"type": "json_object"}})"),
                   *model);
  EXPECT_NE(job.engine.constraint, nullptr);
}

}  // namespace
}  // namespace octavo::api
