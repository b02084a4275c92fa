#include <gtest/gtest.h>

#include "api/openai/chat_format.h"
#include "api/openai/completion_format.h"
#include "api/testing/test_model.h"

namespace octavo::api {
namespace {

std::vector<TokenId> bytes(std::string_view text) { return {text.begin(), text.end()}; }

std::vector<TokenLogprobs> logprobs(std::string_view text) {
  std::vector<TokenLogprobs> all;
  for (const TokenId token : bytes(text))
    all.push_back(
        {.token = token, .logprob = -1, .rank = 1, .top = {{token, -1.0F}, {'z', -2.0F}}});
  return all;
}

// The data of each event; [DONE] as a string.
std::vector<Json> events_of(const std::string& out) {
  std::vector<Json> events;
  size_t at = 0;
  while (at < out.size()) {
    const size_t end = out.find("\n\n", at);
    EXPECT_EQ(out.substr(at, 6), "data: ");
    const std::string data = out.substr(at + 6, end - at - 6);
    events.push_back(data == "[DONE]" ? Json(data) : Json::parse(data));
    at = end + 2;
  }
  return events;
}

class FormatsTest : public testing::Test {
 protected:
  CompletionJob job(std::string_view prompt, int n = 1) {
    CompletionJob made;
    made.prompts.push_back({.tokens = bytes(prompt), .text = std::string(prompt)});
    made.engine.n = n;
    made.id = "7";
    return made;
  }
  static OutputEvent event(int index, std::string_view text, bool last = false) {
    OutputEvent made{.index = index, .text = std::string(text), .tokens = bytes(text)};
    if (!text.empty()) made.parts.push_back({.text = std::string(text)});
    if (last) made.finish = FinishReason::kLength;
    return made;
  }

  TestModel model_;
  const Usage usage_{.prompt_tokens = 2, .completion_tokens = 3, .cached_tokens = 1};
};

TEST_F(FormatsTest, AWholeCompletion) {
  const CompletionJob asked = job("ab");
  const Json whole =
      Json::parse(CompletionFormat(*model_, asked).whole({event(0, "xyz", true)}, usage_));
  EXPECT_EQ(whole["id"], "cmpl-7");
  EXPECT_EQ(whole["object"], "text_completion");
  EXPECT_EQ(whole["model"], "tiny");
  EXPECT_EQ(
      whole["choices"][0].dump(),
      R"({"index":0,"text":"xyz","logprobs":null,"finish_reason":"length","stop_reason":null})");
  EXPECT_EQ(whole["usage"]["total_tokens"], 5);
  EXPECT_EQ(whole["usage"]["prompt_tokens_details"]["cached_tokens"], 1);
}

// Clients measure the time to the first token by the first chunk.
TEST_F(FormatsTest, TheFirstTokenIsSentEvenWithoutText) {
  CompletionJob asked = job("ab");
  asked.stream = true;
  CompletionFormat completion(*model_, asked);
  ChatFormat chat(*model_, asked);
  for (OutputFormat* format :
       {static_cast<OutputFormat*>(&completion), static_cast<OutputFormat*>(&chat)}) {
    const OutputEvent no_text{.index = 0, .tokens = {200}};
    std::string out;
    format->append_event(out, no_text, usage_);
    EXPECT_EQ(events_of(out).size(), 1u);
    format->append_event(out, no_text, usage_);
    EXPECT_EQ(events_of(out).size(), 1u);
  }
}

TEST_F(FormatsTest, AnEchoComesOnceAndFirst) {
  CompletionJob asked = job("ab", 2);
  asked.echo = asked.stream = true;
  CompletionFormat format(*model_, asked);
  std::string out;
  format.append_event(out, event(0, "x"), usage_);
  format.append_event(out, event(1, "y"), usage_);
  format.append_event(out, event(0, "z", true), usage_);
  const auto events = events_of(out);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["choices"][0]["text"], "abx");
  EXPECT_EQ(events[1]["choices"][0]["text"], "aby");
  EXPECT_EQ(events[1]["choices"][0]["index"], 1);
  EXPECT_EQ(events[2]["choices"][0]["text"], "z");
}

TEST_F(FormatsTest, LogprobsCountCharactersFromTheEchoOn) {
  CompletionJob asked = job("ab");
  asked.echo = true;
  asked.engine.sampling.logprobs = asked.engine.sampling.prompt_logprobs = 2;
  OutputEvent answer = event(0, "xy", true);
  answer.logprobs = logprobs("xy");
  answer.prompt_logprobs = logprobs("b");
  const Json choice =
      Json::parse(CompletionFormat(*model_, asked).whole({answer}, usage_))["choices"][0];
  EXPECT_EQ(choice["text"], "abxy");
  EXPECT_EQ(choice["logprobs"]["tokens"], Json::array({"a", "b", "x", "y"}));
  EXPECT_EQ(choice["logprobs"]["text_offset"], Json::array({0, 1, 2, 3}));
  EXPECT_TRUE(choice["logprobs"]["token_logprobs"][0].is_null());
  EXPECT_EQ(choice["logprobs"]["token_logprobs"][1], -1.0);
  EXPECT_EQ(choice["logprobs"]["top_logprobs"][2].dump(), R"({"x":-1.0,"z":-2.0})");
}

TEST_F(FormatsTest, OffsetsContinueAcrossChunks) {
  CompletionJob asked = job("ab");
  asked.stream = true;
  asked.engine.sampling.logprobs = 0;
  CompletionFormat format(*model_, asked);
  std::string out;
  for (const char* text : {"xy", "z"}) {
    OutputEvent part = event(0, text);
    part.logprobs = logprobs(text);
    format.append_event(out, part, usage_);
  }
  const auto events = events_of(out);
  EXPECT_EQ(events.at(1)["choices"][0]["logprobs"]["text_offset"], Json::array({2}));
}

TEST_F(FormatsTest, APromptOnlyRequestHasNoOutput) {
  CompletionJob asked = job("ab");
  asked.echo = asked.prompt_only = true;
  const Json whole =
      Json::parse(CompletionFormat(*model_, asked).whole({event(0, "x", true)}, usage_));
  EXPECT_EQ(whole["choices"][0]["text"], "ab");
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(whole["usage"]["completion_tokens"], 0);
}

TEST_F(FormatsTest, AStreamedChatBeginsWithTheRoleOfEachChoice) {
  CompletionJob asked = job("ab", 2);
  asked.stream = asked.include_usage = true;
  ChatFormat format(*model_, asked);
  std::string out;
  format.append_event(out, event(1, "x\"\n"), usage_);
  format.append_event(out, event(1, "", true), usage_);
  format.append_event(out, event(0, "y", true), usage_);
  format.append_end(out, usage_);
  const auto events = events_of(out);
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(events[0]["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(events[0]["choices"][0]["index"], 1);
  EXPECT_EQ(events[1]["choices"][0]["delta"]["content"], "x\"\n");
  EXPECT_EQ(events[2]["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(events[3]["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(events[5]["choices"], Json::array());
  EXPECT_EQ(events[5]["usage"]["completion_tokens"], 3);
  EXPECT_EQ(events[6], "[DONE]");
}

TEST_F(FormatsTest, AWholeChatHasMessagesAndLogprobs) {
  CompletionJob asked = job("ab", 2);
  asked.engine.sampling.logprobs = 1;
  OutputEvent first = event(0, "x", true);
  first.logprobs = logprobs("x");
  first.stop_string = "end";
  const Json whole =
      Json::parse(ChatFormat(*model_, asked).whole({first, event(1, "y", true)}, usage_));
  EXPECT_EQ(whole["object"], "chat.completion");
  EXPECT_EQ(whole["choices"][0]["message"]["content"], "x");
  EXPECT_EQ(whole["choices"][0]["stop_reason"], "end");
  EXPECT_EQ(whole["choices"][0]["logprobs"]["content"][0]["bytes"], Json::array({'x'}));
  EXPECT_EQ(whole["choices"][0]["logprobs"]["content"][0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(whole["choices"][1]["index"], 1);
}

TEST_F(FormatsTest, AnErrorEndsTheStream) {
  const CompletionJob asked = job("ab");
  std::string out;
  ChatFormat(*model_, asked).append_error(out, RequestError(503, "", "going"));
  const auto events = events_of(out);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["error"]["code"], 503);
  EXPECT_EQ(events[1], "[DONE]");
}

}  // namespace
}  // namespace octavo::api
