#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/anthropic/messages_format.h"
#include "api/anthropic/messages_input.h"
#include "api/anthropic/messages_request.h"
#include "api/testing/named_events_of.h"
#include "api/testing/refusals.h"
#include "api/testing/test_model.h"

namespace octavo::api {
namespace {

// The messages of the translated chat.
Json translated(const char* messages, ChatTranslation& translation) {
  Json out = Json::array();
  read_conversation(Json::parse(messages), translation, out);
  return out;
}
Json translated(const char* messages) {
  ChatTranslation translation;
  return translated(messages, translation);
}

TEST(MessagesInput, ToolsAndTheirResultsBecomeMessagesOfTheChat) {
  ChatTranslation translation;
  const Json messages = translated(R"([
    {"role": "user", "content": "look"},
    {"role": "assistant", "content": [
      {"type": "thinking", "thinking": "hm", "signature": "s"},
      {"type": "redacted_thinking", "data": "x"},
      {"type": "text", "text": "I do"},
      {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
      {"type": "tool_use", "id": "t2", "name": "read", "input": {}}]},
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "t1", "content": "one"},
      {"type": "tool_result", "tool_use_id": "t2", "is_error": true,
       "content": [{"type": "text", "text": "two"}]},
      {"type": "text", "text": "and?", "cache_control": {"type": "ephemeral"}}]}])",
                                   translation);
  EXPECT_EQ(messages, Json::parse(R"([
    {"role": "user", "content": [{"type": "text", "text": "look"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "I do"}], "reasoning": "hm",
     "tool_calls": [
       {"id": "t1", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}},
       {"id": "t2", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "t1", "content": "one"},
    {"role": "tool", "tool_call_id": "t2", "content": "Error: two"},
    {"role": "user", "content": [{"type": "text", "text": "and?"}]}])"));
  EXPECT_EQ(translation.ignored,
            (IgnoredFields{"content.redacted_thinking", "content.cache_control"}));
  EXPECT_FALSE(translation.chat.contains("continue_final_message"));
}

TEST(MessagesInput, ImagesAreThoseOfTheChatAlsoInToolResults) {
  ChatTranslation translation;
  const Json messages = translated(R"([
    {"role": "user", "content": [
      {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
      {"type": "text", "text": "look"}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "shot", "input": {}}]},
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": [
        {"type": "text", "text": "a"},
        {"type": "image", "source": {"type": "url", "url": "https://host/a.png"}}]}]}])",
                                   translation);
  EXPECT_EQ(messages[0]["content"],
            Json::array({translated_image(0), {{"type", "text"}, {"text", "look"}}}));
  EXPECT_EQ(messages[2], (Json{{"role", "tool"},
                               {"tool_call_id", "t1"},
                               {"content", Json::array({{{"type", "text"}, {"text", "Error: "}},
                                                        {{"type", "text"}, {"text", "a"}},
                                                        translated_image(1)})}}));
  ASSERT_EQ(translation.images.size(), 2u);
  EXPECT_EQ(translation.images[0].field, "messages[0].content[0].source.data");
  EXPECT_EQ(*translation.images[0].file, "hi");
  EXPECT_EQ(translation.images[1].field, "messages[2].content[0].content[1].source.url");
  EXPECT_TRUE(translation.ignored.empty());
}

TEST(MessagesInput, AFinalAssistantMessageIsContinued) {
  ChatTranslation translation;
  translated(R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])",
             translation);
  EXPECT_EQ(translation.chat["continue_final_message"], true);
  EXPECT_EQ(translation.chat["add_generation_prompt"], false);
}

TEST(MessagesInput, UnsupportedContentIsRefusedByName) {
  const auto refused = [](const char* messages) {
    return refused_field([&] { translated(messages); });
  };
  EXPECT_EQ(refused(R"([{"role": "user", "content": [{"type": "text", "text": "a"},
                                                     {"type": "image", "source": {}}]}])"),
            "400 messages[0].content[1].source.type");
  EXPECT_EQ(refused(R"([{"role": "user", "content": [
                        {"type": "image", "source": {"type": "file", "file_id": "f"}}]}])"),
            "400 messages[0].content[0].source.type");
  EXPECT_EQ(refused(R"([{"role": "user", "content": [
                        {"type": "image", "source": {"type": "base64", "data": "?"}}]}])"),
            "400 messages[0].content[0].source.data");
  EXPECT_EQ(refused(R"([{"role": "assistant", "content": [
                        {"type": "image", "source": {"type": "url", "url": "https://a/b"}}]}])"),
            "400 messages[0].content[0]");
  EXPECT_EQ(refused(R"([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a",
                         "content": [{"type": "document"}]}]}])"),
            "400 messages[0].content[0].content[0]");
  EXPECT_EQ(refused(R"([{"role": "tool", "content": "a"}])"), "400 messages[0].role");
  EXPECT_EQ(refused(R"([{"role": "user", "content": 1}])"), "400 messages[0].content");
  EXPECT_EQ(refused(R"([{"role": "user", "content": []}])"), "400 messages");
  EXPECT_EQ(refused(R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": [
                        {"type": "tool_use", "id": "1", "name": "f", "input": {}}]}])"),
            "400 messages");
  EXPECT_EQ(refused(R"([{"role": "assistant", "content": [
                        {"type": "tool_use", "id": "1", "name": "f", "input": "{}"}]}])"),
            "400 messages[0].content[0].input");
  EXPECT_EQ(refused("[]"), "400 messages");
}

TEST(MessagesInput, ServerSideToolsAreIgnored) {
  ChatTranslation translation;
  read_tools(Json::parse(R"([
    {"name": "f", "description": "d", "input_schema": {"type": "object"}, "cache_control": {}},
    {"type": "custom", "name": "g", "input_schema": {}, "strict": true},
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
    {"type": "bad\r\nname", "name": "x"}])"),
             translation);
  EXPECT_EQ(translation.chat["tools"], Json::parse(R"([
    {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}},
    {"type": "function", "function": {"name": "g", "parameters": {}, "strict": true}}])"));
  EXPECT_EQ(translation.ignored,
            (IgnoredFields{"tools.cache_control", "tools.web_search_20250305", "tools"}));
}

TEST(MessagesInput, ToolChoiceIsTranslatedToTheChats) {
  const auto choice = [](const char* text) {
    ChatTranslation translation;
    read_tool_choice(Json::parse(text), translation);
    return translation.chat;
  };
  EXPECT_EQ(choice(R"({"type": "auto"})").dump(), R"({"tool_choice":"auto"})");
  EXPECT_EQ(choice(R"({"type": "any", "disable_parallel_tool_use": true})").dump(),
            R"({"tool_choice":"required","parallel_tool_calls":false})");
  EXPECT_EQ(choice(R"({"type": "tool", "name": "f"})").dump(),
            R"({"tool_choice":{"type":"function","function":{"name":"f"}}})");
  EXPECT_EQ(choice(R"({"type": "none"})").dump(), R"({"tool_choice":"none"})");
  EXPECT_EQ(refused_field([&] { choice(R"({"type": "some"})"); }), "400 tool_choice.type");
}

TEST(MessagesRequest, IsRenderedByTheModelsTemplate) {
  TestModel model;
  const GenerationJob job = prepare_messages(
      Json::parse(R"({"model": "tiny", "max_tokens": 7, "system": [{"type": "text", "text": "s"}],
                      "messages": [{"role": "user", "content": "ab"}], "stop_sequences": ["x"],
                      "metadata": {"user_id": "u"}, "top_k": 3, "stream": true})"),
      *model);
  EXPECT_EQ(model->text.tokenizer->decode(job.prompts.at(0).tokens, false), "[system]s[user]ab>");
  EXPECT_EQ(job.engine.max_tokens, 7);
  EXPECT_EQ(job.engine.sampling.top_k, 3);
  EXPECT_EQ(job.text.stop, std::vector<std::string>{"x"});
  EXPECT_TRUE(job.stream);
  EXPECT_EQ(job.ignored, IgnoredFields{"metadata"});
}

TEST(MessagesRequest, RefusalsNameItsOwnFields) {
  TestModel model;
  const auto refused = [&](const char* more) {
    Json body = Json::parse(more);
    if (!body.contains("messages"))
      body["messages"] = Json::parse(R"([{"role": "user", "content": "a"}])");
    return refused_field([&] { prepare_messages(body, *model); });
  };
  EXPECT_EQ(refused("{}"), "accepted");
  EXPECT_EQ(refused(R"({"stop_sequences": [""]})"), "400 stop_sequences");
  EXPECT_EQ(refused(R"({"max_tokens": 0})"), "400 max_tokens");
  EXPECT_EQ(refused(R"({"temperature": -1})"), "400 temperature");
  EXPECT_EQ(refused(R"({"thinking": {"type": "sometimes"}})"), "400 thinking.type");
  EXPECT_EQ(refused(R"({"thinking": {"type": "enabled"}})"), "400 thinking.budget_tokens");
  EXPECT_EQ(refused(R"({"thinking": {"type": "adaptive"}})"), "accepted");
  EXPECT_EQ(refused(R"({"mcp_servers": [{"url": "x"}]})"), "400 mcp_servers");
  EXPECT_EQ(refused(R"({"mcp_servers": []})"), "accepted");
  EXPECT_EQ(refused(R"({"nonsense": 1})"), "400 nonsense");
  EXPECT_EQ(refused(R"({"model": "claude"})"), "404 model");
  EXPECT_EQ(refused(R"({"tool_choice": {"type": "auto"}})"), "accepted");
  EXPECT_EQ(refused(R"({"tool_choice": {"type": "any"}})"), "400 tool_choice");
  const std::string long_text = fmt::format(
      R"({{"messages": [{{"role": "user", "content": "{}"}}]}})", std::string(200, 'x'));
  EXPECT_EQ(refused(long_text.c_str()), "400 messages");
}

TEST(MessagesRequest, TokensAreCountedBeyondTheContext) {
  TestModel model;
  const auto count = [&](size_t letters) {
    const Json body = {{"messages", {{{"role", "user"}, {"content", std::string(letters, 'x')}}}}};
    return count_message_tokens(body, *model)["input_tokens"].get<size_t>();
  };
  EXPECT_EQ(count(1), std::string_view("[user]x>").size());
  EXPECT_EQ(count(1000) - count(1), 999u);
}

class MessagesFormatTest : public testing::Test {
 protected:
  MessagesFormatTest() {
    job_.id = "7";
    job_.prompts.push_back({.tokens = {1, 2}});
  }

  static OutputEvent event(std::vector<OutputPart> parts) {
    return {.parts = std::move(parts), .tokens = {1}};
  }
  static OutputEvent last(std::vector<OutputPart> parts,
                          FinishReason finish = FinishReason::kStop) {
    OutputEvent made = event(std::move(parts));
    made.finish = finish;
    return made;
  }

  std::vector<NamedEvent> streamed(const std::vector<OutputEvent>& events) {
    MessagesFormat format(*model_, job_);
    std::string out;
    for (const OutputEvent& event : events) format.append_event(out, event, usage_);
    format.append_end(out, usage_);
    return named_events_of(out);
  }
  Json whole(const OutputEvent& answer) {
    return Json::parse(MessagesFormat(*model_, job_).whole({answer}, usage_));
  }

  TestModel model_;
  GenerationJob job_;
  const Usage usage_{.prompt_tokens = 5, .completion_tokens = 3, .cached_tokens = 2};
};

const std::vector<OutputPart> kAgentsAnswer = {
    {.kind = PartKind::kReasoning, .text = "think"},
    {.kind = PartKind::kContent, .text = "I look\n"},
    {.kind = PartKind::kToolCall, .call = 0, .id = "c0", .name = "read"},
    {.kind = PartKind::kToolArguments, .text = R"({"path":)", .call = 0},
    {.kind = PartKind::kToolArguments, .text = R"("a"})", .call = 0},
    {.kind = PartKind::kToolCall, .call = 1, .id = "c1", .name = "list"},
    {.kind = PartKind::kToolArguments, .text = "{}", .call = 1}};

TEST_F(MessagesFormatTest, AWholeMessageHasItsBlocks) {
  const Json message = whole(last(kAgentsAnswer));
  EXPECT_EQ(message, Json::parse(R"({
    "id": "msg_7", "type": "message", "role": "assistant", "model": "tiny",
    "content": [
      {"type": "thinking", "thinking": "think", "signature": "octavo"},
      {"type": "text", "text": "I look\n"},
      {"type": "tool_use", "id": "c0", "name": "read", "input": {"path": "a"}},
      {"type": "tool_use", "id": "c1", "name": "list", "input": {}}],
    "stop_reason": "tool_use", "stop_sequence": null,
    "usage": {"input_tokens": 3, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 2,
              "output_tokens": 3}})"));
}

// Accumulates a stream into blocks, as the SDKs do.
Json content_of(const std::vector<NamedEvent>& events) {
  Json content = Json::array();
  std::string arguments;
  for (const auto& [name, data] : events) {
    if (name == "content_block_start") {
      EXPECT_EQ(data["index"], content.size());
      content.push_back(data["content_block"]);
      arguments.clear();
    } else if (name == "content_block_delta") {
      EXPECT_EQ(data["index"], content.size() - 1);
      const Json& delta = data["delta"];
      Json& block = content.back();
      if (delta["type"] == "input_json_delta") {
        arguments += delta["partial_json"];
      } else {
        const std::string field = delta["type"] == "text_delta"       ? "text"
                                  : delta["type"] == "thinking_delta" ? "thinking"
                                                                      : "signature";
        block[field] = block[field].get<std::string>() + delta[field].get<std::string>();
      }
    } else if (name == "content_block_stop" && content.back()["type"] == "tool_use") {
      content.back()["input"] = Json::parse(arguments);
    }
  }
  return content;
}

TEST_F(MessagesFormatTest, AStreamAddsUpToTheWhole) {
  std::vector<OutputEvent> events;
  for (const OutputPart& part : kAgentsAnswer) events.push_back(event({part}));
  events.push_back(event({}));  // a token without text
  events.push_back(last({}));
  const auto sent = streamed(events);
  EXPECT_EQ(content_of(sent), whole(last(kAgentsAnswer))["content"]);
  std::string names;
  for (const auto& [name, data] : sent) {
    EXPECT_EQ(data["type"], name);
    names += name + " ";
  }
  EXPECT_EQ(names,
            "message_start content_block_start ping content_block_delta content_block_delta "
            "content_block_stop "  // thinking and its signature
            "content_block_start content_block_delta content_block_stop "
            "content_block_start content_block_delta content_block_delta content_block_stop "
            "content_block_start content_block_delta content_block_stop "
            "message_delta message_stop ");
  EXPECT_EQ(sent.front().data["message"]["usage"]["input_tokens"], 3);
  EXPECT_TRUE(sent.front().data["message"]["stop_reason"].is_null());
  EXPECT_EQ(sent[sent.size() - 2].data["delta"]["stop_reason"], "tool_use");
  EXPECT_EQ(sent[sent.size() - 2].data["usage"]["output_tokens"], 3);
}

TEST_F(MessagesFormatTest, StopReasonsAreTranslated) {
  const OutputPart text{.text = "a"};
  EXPECT_EQ(whole(last({text}))["stop_reason"], "end_turn");
  EXPECT_EQ(whole(last({text}, FinishReason::kLength))["stop_reason"], "max_tokens");
  OutputEvent stopped = last({text});
  stopped.stop_string = "end";
  EXPECT_EQ(whole(stopped)["stop_reason"], "stop_sequence");
  EXPECT_EQ(whole(stopped)["stop_sequence"], "end");
  const auto events = streamed({stopped});
  EXPECT_EQ(events[events.size() - 2].data["delta"].dump(),
            R"({"stop_reason":"stop_sequence","stop_sequence":"end"})");
}

TEST_F(MessagesFormatTest, ATruncatedToolCallHasNoInput) {
  const std::vector<OutputPart> parts = {kAgentsAnswer[2], kAgentsAnswer[3]};
  const Json message = whole(last(parts, FinishReason::kLength));
  EXPECT_EQ(message["content"][0]["input"], Json::object());
  EXPECT_EQ(message["stop_reason"], "max_tokens");
}

TEST_F(MessagesFormatTest, NothingIsSentBeforeTheFirstToken) {
  MessagesFormat format(*model_, job_);
  std::string out;
  format.append_event(out, {}, usage_);
  EXPECT_EQ(out, "");
  format.append_event(out, event({}), usage_);
  EXPECT_EQ(named_events_of(out).size(), 1u);
}

TEST_F(MessagesFormatTest, AnErrorIsAnEvent) {
  MessagesFormat format(*model_, job_);
  std::string out;
  format.append_error(out, RequestError(503, "", "going"));
  const auto events = named_events_of(out);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].name, "error");
  EXPECT_EQ(events[0].data["error"].dump(), R"({"type":"overloaded_error","message":"going"})");
}

}  // namespace
}  // namespace octavo::api
