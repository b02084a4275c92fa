#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/openai/chat_format.h"
#include "api/openai/chat_request.h"
#include "api/openai/tool_prompt.h"
#include "api/testing/refusals.h"
#include "api/testing/test_model.h"
#include "base/error.h"
#include "text/dialects/call_id.h"

namespace octavo::api {
namespace {

const char* const kTool = R"({"type": "function", "function": {"name": "f", "description": "d",
  "parameters": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}}}})";

class ToolsTest : public testing::Test {
 protected:
  ToolsTest() {
    model_->max_model_len = 4000;
    model_->dialect = choose_chat_dialect(model_->text, {258}, {});
  }

  GenerationJob prepare(const std::string& more, const char* messages = nullptr) {
    Json body = Json::parse("{" + more + "}");
    body["messages"] =
        Json::parse(messages == nullptr ? R"([{"role": "user", "content": "a"}])" : messages);
    return prepare_chat(body, *model_);
  }
  std::string prompt_of(const GenerationJob& job) {
    return model_->text.tokenizer->decode(job.prompts.at(0).tokens, false);
  }
  std::string refused(const std::string& more, const char* messages = nullptr) {
    return refused_field([&] { prepare(more, messages); });
  }
  void use_template(const char* source) {
    model_->text.chat_template = ChatTemplate::from_source({.source = source});
    model_->dialect = choose_chat_dialect(model_->text, {258}, {});
  }

  TestModel model_;
};

TEST_F(ToolsTest, ATemplateWithoutToolsHasThemInASystemMessage) {
  const GenerationJob job = prepare(fmt::format(R"("tools": [{}])", kTool));
  const std::string prompt = prompt_of(job);
  EXPECT_TRUE(prompt.starts_with("[system]You can call functions.")) << prompt;
  EXPECT_NE(prompt.find(R"("name":"f")"), std::string::npos);
  EXPECT_NE(prompt.find("<tool_call>\n{\"name\": \"function_name\""), std::string::npos) << prompt;
  EXPECT_TRUE(prompt.ends_with("[user]a>"));
  ASSERT_NE(job.text.chat, nullptr);
  EXPECT_EQ(job.text.chat->parser.tools.size(), 1u);
  EXPECT_EQ(job.engine.constraint, nullptr);
}

TEST_F(ToolsTest, EarlierCallsAndResultsAreShownAsText) {
  const GenerationJob job = prepare("", R"([
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": \"b\"}"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "r"},
    {"role": "user", "content": "go on"}])");
  EXPECT_EQ(prompt_of(job),
            "[user]q[assistant]<tool_call>\n{\"name\": \"f\", \"arguments\": "
            "{\"a\":\"b\"}}\n</tool_call>[user]<tool_response>\nr\n</tool_response>\ngo on>");
}

TEST_F(ToolsTest, ATemplateWithToolsGetsThem) {
  use_template(
      "{% for t in tools or [] %}{{ t.function.name }};{% endfor %}{% for m in messages %}"
      "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.arguments.a }}{% endfor %}"
      "{{ m.content }}{% endfor %}");
  EXPECT_EQ(model_->dialect.dialect.tools, &kHermes);
  EXPECT_TRUE(model_->dialect.template_has_tools);
  EXPECT_EQ(prompt_of(prepare(fmt::format(R"("tools": [{}])", kTool), R"([{"role": "assistant",
    "content": "c", "tool_calls": [{"function": {"name": "f", "arguments": "{\"a\": \"b\"}"}}]}])")),
            "f;<tool_call>bc");
  EXPECT_EQ(prompt_of(prepare(fmt::format(R"("tools": [{}], "tool_choice": "none")", kTool))), "a");
}

TEST_F(ToolsTest, FieldsAreChecked) {
  const std::string tools = fmt::format(R"("tools": [{}])", kTool);
  EXPECT_EQ(refused(tools), "accepted");
  EXPECT_EQ(refused(R"("tools": [])"), "accepted");
  EXPECT_EQ(refused(R"("tools": {})"), "400 tools");
  EXPECT_EQ(refused(R"("tools": [{"type": "function"}])"), "400 tools[0].function");
  EXPECT_EQ(refused(R"("tools": [{"type": "function", "function": {"name": "a b"}}])"),
            "400 tools[0].function.name");
  EXPECT_EQ(
      refused(R"("tools": [{"type": "function", "function": {"name": "a", "parameters": 1}}])"),
      "400 tools[0].function.parameters");
  EXPECT_EQ(refused(fmt::format(R"("tools": [{0}, {0}])", kTool)), "400 tools[1].function.name");
  EXPECT_EQ(refused(tools + R"(, "tool_choice": "any")"), "400 tool_choice");
  EXPECT_EQ(refused(tools + R"(, "tool_choice": {"type": "function", "function": {"name": "g"}})"),
            "400 tool_choice");
  EXPECT_EQ(refused(R"("tool_choice": "required")"), "400 tool_choice");
  EXPECT_EQ(refused(R"("tool_choice": "auto")"), "accepted");
  EXPECT_EQ(refused(R"("functions": [{}])"), "400 functions");
  EXPECT_EQ(refused(R"("thinking_token_budget": -1)"), "400 thinking_token_budget");
  EXPECT_EQ(refused("", R"([{"role": "assistant", "tool_calls": [1]}])"),
            "400 messages[0].tool_calls[0]");
}

TEST_F(ToolsTest, UnsupportedKindsOfToolAreIgnored) {
  const GenerationJob job =
      prepare(fmt::format(R"("tools": [{{"type": "web_search_20250305"}}, {}])", kTool));
  EXPECT_EQ(job.ignored, IgnoredFields{"tools.web_search_20250305"});
  EXPECT_EQ(job.text.chat->parser.tools.size(), 1u);
}

TEST_F(ToolsTest, ForcedCallsAreEnforcedByAGrammar) {
  const std::string tools = fmt::format(R"("tools": [{}], "tool_choice": )", kTool);
  for (const char* choice :
       {R"("required")", R"({"type": "function", "function": {"name": "f"}})"}) {
    const GenerationJob job = prepare(tools + choice);
    ASSERT_NE(job.engine.constraint, nullptr);
    const auto state = job.engine.constraint->begin();
    for (const char c : std::string_view("<tool_call>\n{\"name\": \"f\", \"arguments\": {"))
      ASSERT_TRUE(state->accept(c)) << c;
    EXPECT_FALSE(state->accept('x'));
  }
  EXPECT_EQ(
      prepare(tools + "\"required\", \"parallel_tool_calls\": false").text.chat->parser.max_calls,
      1);
}

TEST_F(ToolsTest, StructuredOutputAllowsToolCalls) {
  const std::string tools = fmt::format(R"("tools": [{}], )", kTool);
  const GenerationJob job = prepare(tools + R"("response_format": {"type": "json_object"})");
  for (const char* text : {"<tool_call>\n{\"name\": \"f\"", "{\"a\""}) {
    const auto state = job.engine.constraint->begin();
    for (const char c : std::string_view(text)) ASSERT_TRUE(state->accept(c)) << text << c;
  }
  EXPECT_EQ(refused(tools + R"("structured_outputs": {"regex": "a"})"),
            "400 structured_outputs.regex");
}

TEST_F(ToolsTest, AGrammarStartsAfterTheReasoning) {
  use_template("{% for m in messages %}{{ m.content }}{% endfor %}<think>\n{#</think>#}");
  const GenerationJob job =
      prepare(fmt::format(R"("tools": [{}], "tool_choice": "required")", kTool));
  EXPECT_TRUE(job.text.chat->parser.starts_in_reasoning);
  const auto state = job.engine.constraint->begin();
  for (const char c : std::string_view("hm</think><tool_call>")) ASSERT_TRUE(state->accept(c));
  EXPECT_FALSE(state->accept('x'));
  EXPECT_NE(prepare(R"("thinking_token_budget": 4)").engine.constraint, nullptr);
  EXPECT_EQ(prepare("").engine.constraint, nullptr);
}

TEST_F(ToolsTest, ThinkingDefaultsToTheServers) {
  use_template(
      "{% for m in messages %}{{ m.content }}{% endfor %} {{ enable_thinking }}{#</think>#}");
  model_->dialect.thinking = false;
  EXPECT_EQ(prompt_of(prepare("")), "a False");
  EXPECT_EQ(prompt_of(prepare(R"("chat_template_kwargs": {"enable_thinking": true})")), "a True");
  EXPECT_EQ(prompt_of(prepare(R"("reasoning_effort": "low")")), "a ");
  model_->dialect.thinking = true;
  EXPECT_EQ(prompt_of(prepare(R"("reasoning_effort": "none")")), "a False");
}

TEST_F(ToolsTest, MistralsIdsHaveNineLetters) {
  Json messages = Json::parse(R"([{"role": "assistant", "tool_calls": [
    {"id": "call_abcDEF123456", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "call_abcDEF123456", "content": "r"}])");
  prepare_tool_calls(messages, &kMistral);
  EXPECT_EQ(messages[0]["tool_calls"][0]["id"], "DEF123456");
  EXPECT_EQ(messages[1]["tool_call_id"], "DEF123456");
}

TEST(CallId, IsTheSameForTheSameCall) {
  EXPECT_EQ(call_id("r", 0, 1), call_id("r", 0, 1));
  EXPECT_NE(call_id("r", 0, 1), call_id("r", 1, 0));
  EXPECT_EQ(call_id("r", 0, 1).size(), 29u);
  EXPECT_EQ(call_id("r", 0, 1, 9).size(), 9u);
}

class ToolFormatTest : public testing::Test {
 protected:
  ToolFormatTest() {
    job_.prompts.push_back({.tokens = {'a'}});
    job_.id = "7";
  }
  TestModel model_;
  GenerationJob job_;
  const std::vector<OutputPart> parts_ = {
      {.kind = PartKind::kReasoning, .text = "hm"},
      {.kind = PartKind::kToolCall, .call = 0, .id = "call_1", .name = "f"},
      {.kind = PartKind::kToolArguments, .text = "{\"a\":", .call = 0},
      {.kind = PartKind::kToolArguments, .text = "1}", .call = 0}};
  const OutputEvent event_{.parts = parts_, .tokens = {'x'}, .finish = FinishReason::kStop};
};

TEST_F(ToolFormatTest, AWholeAnswerHasReasoningAndCalls) {
  const Json whole = Json::parse(ChatFormat(*model_, job_).whole({event_}, {}));
  const Json& choice = whole["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(
      choice["message"].dump(),
      R"({"role":"assistant","content":null,"refusal":null,"reasoning":"hm","tool_calls":)"
      R"([{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]})");
}

TEST_F(ToolFormatTest, AStreamHasAChunkForEachPart) {
  job_.stream = true;
  ChatFormat format(*model_, job_);
  std::string out;
  format.append_event(out, event_, {});
  std::vector<Json> deltas;
  Json last;
  for (size_t at = 0; at < out.size();) {
    const size_t end = out.find("\n\n", at);
    const Json chunk = Json::parse(out.substr(at + 6, end - at - 6));
    last = chunk["choices"][0];
    deltas.push_back(last["delta"]);
    at = end + 2;
  }
  ASSERT_EQ(deltas.size(), 5u);
  EXPECT_EQ(deltas[1].dump(), R"({"reasoning":"hm"})");
  EXPECT_EQ(
      deltas[2].dump(),
      R"({"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]})");
  EXPECT_EQ(deltas[3].dump(), R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]})");
  EXPECT_EQ(last["finish_reason"], "tool_calls");
}

}  // namespace
}  // namespace octavo::api
