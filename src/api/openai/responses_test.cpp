#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/openai/responses_format.h"
#include "api/openai/responses_input.h"
#include "api/openai/responses_request.h"
#include "api/testing/named_events_of.h"
#include "api/testing/refusals.h"
#include "api/testing/test_model.h"

namespace octavo::api {
namespace {

Json chat_of(const char* items, Json instructions = nullptr) {
  ChatTranslation translation;
  return conversation_of(instructions, Json::array(), items_of(Json::parse(items)), translation);
}

TEST(ResponsesInput, AStringIsAUserMessage) {
  EXPECT_EQ(chat_of(R"("hi")"),
            Json::parse(R"([{"role": "user", "content": [{"type": "text", "text": "hi"}]}])"));
}

TEST(ResponsesInput, ConsecutiveAssistantItemsAreOneMessage) {
  const std::string packed = packed_reasoning("and on");
  const std::string items = fmt::format(R"([
    {{"role": "user", "content": "look"}},
    {{"type": "reasoning", "id": "r", "summary": [], "content": [{{"type": "reasoning_text", "text": "hm"}}]}},
    {{"type": "message", "role": "assistant", "content": [{{"type": "output_text", "text": "I do"}}]}},
    {{"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{{}}"}},
    {{"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "+a"}},
    {{"type": "function_call_output", "call_id": "c1", "output": "one"}},
    {{"type": "custom_tool_call_output", "call_id": "c2", "output": [{{"type": "input_text", "text": "two"}}]}},
    {{"type": "reasoning", "summary": [], "encrypted_content": "{}"}},
    {{"type": "message", "role": "assistant", "content": "done"}},
    {{"type": "message", "role": "assistant", "content": "really"}}])",
                                        packed);
  EXPECT_EQ(chat_of(items.c_str()), Json::parse(R"([
    {"role": "user", "content": [{"type": "text", "text": "look"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "I do"}], "reasoning": "hm",
     "tool_calls": [
       {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}},
       {"id": "c2", "type": "function", "function": {"name": "patch", "arguments": "{\"input\":\"+a\"}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "one"}]},
    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "two"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "done"}], "reasoning": "and on"},
    {"role": "assistant", "content": [{"type": "text", "text": "really"}]}])"));
}

TEST(ResponsesInput, ImagesAreThoseOfTheChat) {
  ChatTranslation translation;
  const Json items = Json::parse(R"([
    {"role": "user", "content": [
      {"type": "input_text", "text": "look"},
      {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "low"}]},
    {"type": "function_call", "call_id": "c1", "name": "shot", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": [
      {"type": "input_image", "image_url": "https://host/a.png"}]}])");
  const Json chat = conversation_of(nullptr, Json::array(), items, translation);
  EXPECT_EQ(chat[0]["content"][1], translated_image(0));
  EXPECT_EQ(chat[2]["content"][0], translated_image(1));
  ASSERT_EQ(translation.images.size(), 2u);
  EXPECT_EQ(translation.images[0].field, "input[0].content[1].image_url");
  EXPECT_TRUE(translation.images[0].low_detail);
  EXPECT_EQ(translation.images[1].field, "input[2].output[0].image_url");
  EXPECT_EQ(translation.images[1].url, "https://host/a.png");
}

TEST(ResponsesInput, LeadingSystemMessagesAreJoined) {
  EXPECT_EQ(chat_of(R"([{"role": "developer", "content": "b"}, {"role": "user", "content": "c"},
                           {"role": "developer", "content": "d"}])",
                    "a"),
            Json::parse(R"([
    {"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "user", "content": [{"type": "text", "text": "c"}]},
    {"role": "system", "content": [{"type": "text", "text": "d"}]}])"));
}

TEST(ResponsesInput, UnsupportedContentIsRefusedByName) {
  const auto refused = [](const char* items) { return refused_field([&] { chat_of(items); }); };
  EXPECT_EQ(refused(R"([{"role": "user", "content": [{"type": "input_image"}]}])"),
            "400 input[0].content[0].image_url");
  EXPECT_EQ(refused(R"([{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}])"),
            "400 input[0].content[0].file_id");
  EXPECT_EQ(refused(R"([{"role": "assistant", "content": [
                        {"type": "input_image", "image_url": "https://a/b"}]}])"),
            "400 input[0].content[0]");
  EXPECT_EQ(refused(R"([{"role": "user", "content": [{"type": "input_file"}]}])"),
            "400 input[0].content[0]");
  EXPECT_EQ(refused(R"([{"role": "user", "content": "a"}, {"type": "item_reference", "id": "x"}])"),
            "400 input[1]");
  EXPECT_EQ(refused(R"([{"role": "king", "content": "a"}])"), "400 input[0].role");
  EXPECT_EQ(refused(R"([{"type": "function_call", "name": "f", "arguments": "{}"}])"),
            "400 input[0].call_id");
  EXPECT_EQ(refused("[]"), "400 input");
  EXPECT_EQ(refused("7"), "400 input");
}

TEST(ResponsesInput, OnlyOurOwnPackedReasoningIsDecoded) {
  for (const std::string text : {"", "a", "ab", "abc", "ä\n\"x\""})
    EXPECT_EQ(unpacked_reasoning(packed_reasoning(text)), text);
  for (const char* other : {"", "gAAAAA==", "octavo.***=", "octavo./w=="})
    EXPECT_EQ(unpacked_reasoning(other), std::nullopt) << other;
}

TEST(ResponsesInput, OnlyAllowedToolsAreOffered) {
  ChatTranslation translation;
  read_response_tools(Json::parse(R"([
    {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": false},
    {"type": "function", "name": "g"}, {"type": "web_search"}, {"type": "custom", "name": "h"}])"),
                      translation);
  EXPECT_EQ(translation.chat["tools"].size(), 2u);
  EXPECT_EQ(translation.ignored, (IgnoredFields{"tools.web_search", "tools.custom"}));
  read_response_tool_choice(
      Json::parse(
          R"({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "g"}]})"),
      translation);
  EXPECT_EQ(translation.chat["tools"].dump(), R"([{"type":"function","function":{"name":"g"}}])");
  EXPECT_EQ(translation.chat["tool_choice"], "required");
}

class ResponsesTest : public testing::Test {
 protected:
  ResponsesJob prepare(const std::string& body) {
    ResponsesJob job = prepare_responses(Json::parse(body), *model_, shelf_);
    job.id = "7";
    return job;
  }
  std::string refused(const std::string& body) {
    return refused_field([&] { prepare(body); });
  }
  std::string prompt_of(const ResponsesJob& job) {
    return model_->text.tokenizer->decode(job.prompts.at(0).tokens, false);
  }
  void keep(const ResponsesJob& job, const std::string& id, const std::string& said) {
    ResponsesFormat format(*model_, job, [&](const Json& response) {
      return store_.put(shelf_.owner, id,
                        {.previous = job.previous, .object = dump(response), .input = job.input});
    });
    OutputEvent answer{.parts = {{.text = said}}, .tokens = {1}, .finish = FinishReason::kStop};
    format.whole({answer}, usage_);
  }

  TestModel model_;
  ResponseStore store_{{}};
  ResponseShelf shelf_{.store = store_, .owner = "me"};
  const Usage usage_{.prompt_tokens = 5, .completion_tokens = 3, .cached_tokens = 2};
};

TEST_F(ResponsesTest, FieldsAreTranslatedToTheChats) {
  const ResponsesJob job = prepare(R"({"input": "ab", "instructions": "s", "max_output_tokens": 9,
    "temperature": 0.5, "store": false, "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k", "reasoning": {"effort": "low", "summary": "auto"},
    "metadata": {"a": "b"}, "text": {"format": {"type": "text"}}})");
  EXPECT_EQ(prompt_of(job), "[system]s[user]ab>");
  EXPECT_EQ(job.engine.max_tokens, 9);
  EXPECT_FALSE(job.store);
  EXPECT_TRUE(job.encrypted_reasoning);
  EXPECT_EQ(job.ignored, (IgnoredFields{"prompt_cache_key", "reasoning.summary"}));
  EXPECT_EQ(job.head["instructions"], "s");
  EXPECT_EQ(job.head["max_output_tokens"], 9);
  EXPECT_EQ(job.head["metadata"]["a"], "b");
  EXPECT_EQ(job.head["reasoning"].dump(), R"({"effort":"low","summary":null})");
  EXPECT_EQ(job.head["temperature"], 0.5);
}

TEST_F(ResponsesTest, RefusalsNameItsOwnFields) {
  EXPECT_EQ(refused(R"({"input": "a"})"), "accepted");
  EXPECT_EQ(refused("{}"), "400 input");
  EXPECT_EQ(refused(R"({"input": "a", "background": true})"), "400 background");
  EXPECT_EQ(refused(R"({"input": "a", "background": false})"), "accepted");
  EXPECT_EQ(refused(R"({"input": "a", "max_output_tokens": 0})"), "400 max_output_tokens");
  EXPECT_EQ(refused(R"({"input": "a", "text": {"format": {"type": "xml"}}})"), "400 text.format");
  EXPECT_EQ(refused(R"({"input": "a", "text": {"verbosity": "low"}})"), "400 text.verbosity");
  EXPECT_EQ(refused(R"({"input": "a", "include": ["message.output_text.logprobs"]})"),
            "400 include");
  EXPECT_EQ(refused(R"({"input": "a", "truncation": "some"})"), "400 truncation");
  EXPECT_EQ(refused(R"({"input": "a", "metadata": {"a": 1}})"), "400 metadata");
  EXPECT_EQ(refused(R"({"input": "a", "conversation": "c"})"), "400 conversation");
  EXPECT_EQ(refused(R"({"input": "a", "messages": []})"), "400 messages");
  EXPECT_EQ(refused(fmt::format(R"({{"input": "{}"}})", std::string(200, 'x'))), "400 input");
  EXPECT_EQ(
      refused(fmt::format(R"({{"input": "{}", "truncation": "auto"}})", std::string(200, 'x'))),
      "accepted");
}

TEST_F(ResponsesTest, AConversationContinuesFromAStoredResponse) {
  keep(prepare(R"({"input": "a", "instructions": "s"})"), "resp_1", "b");
  const ResponsesJob second = prepare(R"({"input": "c", "previous_response_id": "resp_1"})");
  EXPECT_EQ(prompt_of(second), "[user]a[assistant]b[user]c>");
  keep(second, "resp_2", "d");
  const ResponsesJob third = prepare(R"({"input": "e", "previous_response_id": "resp_2"})");
  EXPECT_EQ(prompt_of(third), "[user]a[assistant]b[user]c[assistant]d[user]e>");
  EXPECT_EQ(third.head["previous_response_id"], "resp_2");
  EXPECT_EQ(Json::parse(third.input).size(), 1u);
  // Another owner may not continue it, and no owner may once a part of it is gone.
  const ResponseShelf other{.store = store_, .owner = "you"};
  EXPECT_EQ(refused_field([&] {
              prepare_responses(Json::parse(R"({"input": "c", "previous_response_id": "resp_1"})"),
                                *model_, other);
            }),
            "404 previous_response_id");
  store_.erase("me", "resp_1");
  EXPECT_EQ(refused(R"({"input": "e", "previous_response_id": "resp_2"})"),
            "404 previous_response_id");
}

TEST_F(ResponsesTest, AConversationDoesNotContinueFromAnotherResponseOfTheSameId) {
  keep(prepare(R"({"input": "a"})"), "resp_1", "b");
  // The first response is deleted during a later preparation, and its id used again.
  const ResponsesJob second = prepare(R"({"input": "c", "previous_response_id": "resp_1"})");
  store_.erase("me", "resp_1");
  keep(second, "resp_1", "d");
  EXPECT_EQ(refused(R"({"input": "e", "previous_response_id": "resp_1"})"),
            "404 previous_response_id");
  store_.erase("me", "resp_1");
  keep(prepare(R"({"input": "x"})"), "resp_1", "y");
  keep(second, "resp_2", "d");
  EXPECT_EQ(refused(R"({"input": "e", "previous_response_id": "resp_2"})"),
            "404 previous_response_id");
}

TEST_F(ResponsesTest, AnInputThatIsTooLongIsNotStored) {
  ResponseStore small({.response_bytes = 200});
  const ResponseShelf shelf{.store = small};
  const auto job_of = [&](size_t letters) {
    const Json body = {{"input", std::string(letters, 'x')}, {"truncation", "auto"}};
    return prepare_responses(body, *model_, shelf);
  };
  EXPECT_TRUE(job_of(20).store);
  EXPECT_FALSE(job_of(20).input.empty());
  EXPECT_FALSE(job_of(300).store);
  EXPECT_TRUE(job_of(300).input.empty());
}

TEST_F(ResponsesTest, AStoppedPreparationEnds) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(refused_field([&] {
              prepare_responses({{"input", "a"}}, *model_, shelf_, {.stop = stop.get_token()});
            }),
            "503 ");
}

const std::vector<OutputPart> kToolOutput = {
    {.kind = PartKind::kReasoning, .text = "thi"},
    {.kind = PartKind::kReasoning, .text = "nk"},
    {.kind = PartKind::kContent, .text = "I look\n"},
    {.kind = PartKind::kToolCall, .call = 0, .id = "c0", .name = "read"},
    {.kind = PartKind::kToolArguments, .text = R"({"path":)", .call = 0},
    {.kind = PartKind::kToolArguments, .text = R"("a"})", .call = 0},
    {.kind = PartKind::kToolCall, .call = 1, .id = "c1", .name = "list"},
    {.kind = PartKind::kToolArguments, .text = "{}", .call = 1}};

TEST_F(ResponsesTest, AWholeResponseHasItsItems) {
  const ResponsesJob job = prepare(R"({"input": "a", "include": ["reasoning.encrypted_content"]})");
  const OutputEvent answer{.parts = kToolOutput, .tokens = {1}, .finish = FinishReason::kStop};
  const Json response = Json::parse(ResponsesFormat(*model_, job, nullptr).whole({answer}, usage_));
  EXPECT_EQ(response["id"], "resp_7");
  EXPECT_EQ(response["status"], "completed");
  EXPECT_EQ(response["output"], Json::parse(R"([
    {"id": "rs_7_0", "type": "reasoning", "status": "completed", "summary": [],
     "content": [{"type": "reasoning_text", "text": "think"}], "encrypted_content": "octavo.dGhpbms="},
    {"id": "msg_7_1", "type": "message", "status": "completed", "role": "assistant",
     "content": [{"type": "output_text", "text": "I look\n", "annotations": [], "logprobs": []}]},
    {"id": "fc_7_2", "type": "function_call", "status": "completed", "call_id": "c0", "name": "read",
     "arguments": "{\"path\":\"a\"}"},
    {"id": "fc_7_3", "type": "function_call", "status": "completed", "call_id": "c1", "name": "list",
     "arguments": "{}"}])"));
  EXPECT_EQ(response["usage"]["total_tokens"], 8);
  EXPECT_EQ(response["usage"]["input_tokens_details"]["cached_tokens"], 2);
}

TEST_F(ResponsesTest, AStreamAddsUpToTheWhole) {
  const ResponsesJob job = prepare(R"({"input": "a", "stream": true})");
  Json kept;
  ResponsesFormat format(*model_, job, [&](const Json& response) {
    kept = response;
    return true;
  });
  std::string out;
  format.append_event(out, {}, usage_);
  EXPECT_EQ(out, "");
  for (const OutputPart& part : kToolOutput)
    format.append_event(out, {.parts = {part}, .tokens = {1}}, usage_);
  format.append_event(out, {.finish = FinishReason::kStop}, usage_);
  format.append_end(out, usage_);
  const auto events = named_events_of(out);
  Json items = Json::array();
  std::string names;
  for (size_t i = 0; i < events.size(); ++i) {
    const auto& [name, data] = events[i];
    EXPECT_EQ(data["type"], name);
    EXPECT_EQ(data["sequence_number"], i);
    if (name == "response.output_item.done") items.push_back(data["item"]);
    names += name.substr(name.find('.') + 1) + " ";
  }
  EXPECT_EQ(names,
            "created in_progress "
            "output_item.added content_part.added reasoning_text.delta reasoning_text.delta "
            "reasoning_text.done content_part.done output_item.done "
            "output_item.added content_part.added output_text.delta output_text.done "
            "content_part.done output_item.done "
            "output_item.added function_call_arguments.delta function_call_arguments.delta "
            "function_call_arguments.done output_item.done "
            "output_item.added function_call_arguments.delta function_call_arguments.done "
            "output_item.done completed ");
  const Json& response = events.back().data["response"];
  EXPECT_EQ(response["output"], items);
  EXPECT_EQ(kept, response);
  const OutputEvent answer{.parts = kToolOutput, .tokens = {1}, .finish = FinishReason::kStop};
  Json whole = Json::parse(ResponsesFormat(*model_, job, nullptr).whole({answer}, usage_));
  EXPECT_EQ(whole, response);
}

TEST_F(ResponsesTest, AResponseThatCannotBeKeptSaysSo) {
  const ResponsesJob job = prepare(R"({"input": "a"})");
  const OutputEvent answer{.parts = {{.text = "b"}}, .tokens = {1}, .finish = FinishReason::kStop};
  for (const bool kept : {true, false}) {
    ResponsesFormat format(*model_, job, [&](const Json&) { return kept; });
    EXPECT_EQ(Json::parse(format.whole({answer}, usage_))["store"], kept);
  }
}

TEST_F(ResponsesTest, ATruncatedResponseIsIncomplete) {
  const ResponsesJob job = prepare(R"({"input": "a", "store": false})");
  bool kept = false;
  ResponsesFormat format(*model_, job, [&](const Json&) { return kept = true; });
  std::string out;
  format.append_event(
      out, {.parts = {{.text = "b"}}, .tokens = {1}, .finish = FinishReason::kLength}, usage_);
  format.append_end(out, usage_);
  const NamedEvent last = named_events_of(out).back();
  EXPECT_EQ(last.name, "response.incomplete");
  EXPECT_EQ(last.data["response"]["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(last.data["response"]["output"][0]["status"], "incomplete");
  EXPECT_FALSE(kept) << "store is false";
}

TEST_F(ResponsesTest, AnErrorEndsTheStream) {
  const ResponsesJob job = prepare(R"({"input": "a"})");
  ResponsesFormat format(*model_, job, nullptr);
  std::string out;
  format.append_event(out, {.parts = {{.text = "b"}}, .tokens = {1}}, usage_);
  format.append_error(out, RequestError(503, "", "going"));
  const auto events = named_events_of(out);
  EXPECT_EQ(events[events.size() - 2].name, "error");
  EXPECT_EQ(events.back().name, "response.failed");
  EXPECT_EQ(events.back().data["response"]["error"]["message"], "going");
}

}  // namespace
}  // namespace octavo::api
