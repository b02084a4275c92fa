#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/openai/chat_input.h"
#include "api/openai/chat_request.h"
#include "api/openai/completion_request.h"
#include "api/testing/refusals.h"
#include "api/testing/test_model.h"

namespace octavo::api {
namespace {

std::string refused_messages(const char* text) {
  return refused_field([&] { read_messages(Json::parse(text)); });
}

TEST(ChatInput, PartsOfTextAreJoinedOnLines) {
  const Json read = read_messages(Json::parse(
      R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])"));
  EXPECT_EQ(read[0]["content"], "a\nb");
}

TEST(ChatInput, DeveloperMessagesBecomeSystemMessages) {
  const Json read = read_messages(
      Json::parse(R"([{"role": "developer", "content": "x"}, {"role": "user", "content": "y"}])"));
  EXPECT_EQ(read[0]["role"], "system");
  EXPECT_EQ(read[1]["role"], "user");
}

TEST(ChatInput, NonTextContentIsRefusedByName) {
  EXPECT_EQ(refused_messages(
                R"([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])"),
            "400 messages[0].content");
  EXPECT_EQ(refused_messages(R"([{"role": "user", "content": 1}])"), "400 messages[0].content");
  EXPECT_EQ(refused_messages(R"([{"role": "user"}])"), "400 messages[0].content");
  EXPECT_EQ(refused_messages(R"([{"role": "assistant"}])"), "accepted");  // it called tools
  EXPECT_EQ(
      refused_messages(R"([{"role": "user", "content": "a"}, {"role": "king", "content": "b"}])"),
      "400 messages[1].role");
  EXPECT_EQ(refused_messages("[]"), "400 messages");
}

TEST(ChatRequest, IsRenderedByTheTemplate) {
  TestModel model;
  const GenerationJob job =
      prepare_chat(Json::parse(R"({"messages": [{"role": "user", "content": "ab"}]})"), *model);
  EXPECT_EQ(model->text.tokenizer->decode(job.prompts.at(0).tokens, false), "[user]ab>");
  EXPECT_EQ(job.engine.max_tokens, 100);
  EXPECT_EQ(job.engine.sampling.logprobs, -1);
}

TEST(ChatRequest, SpecialTokensInContentAreText) {
  TestModel model;
  const Json body = Json::parse(
      R"({"messages": [{"role": "user", "content": "<|end|>"}], "documents": [{"a": "<|end|>"}]})");
  const auto ends = [&] {
    return std::ranges::count(prepare_chat(body, *model).prompts.at(0).tokens, 258);
  };
  model->dialect =
      choose_chat_dialect(model->text, {258}, {.allow_special_tokens_in_content = true});
  EXPECT_EQ(ends(), 1);
  model->dialect = choose_chat_dialect(model->text, {258}, {});
  EXPECT_EQ(ends(), 0);
  EXPECT_EQ(model->text.tokenizer->decode(prepare_chat(body, *model).prompts.at(0).tokens, false),
            "[user]<|end|>>");
}

TEST(ChatRequest, LongTextsAreRefusedBeforeTheyAreEncoded) {
  TestModel model;
  Json chat = Json::parse(R"({"messages": [{"role": "user"}]})");
  chat["messages"][0]["content"] = std::string(4u << 20, '7');
  EXPECT_EQ(refused_field([&] { prepare_chat(chat, *model); }), "400 messages");
  EXPECT_EQ(refused_field([&] { chat_prompt_tokens(chat, *model); }), "400 messages");
}

TEST(ChatRequest, TopLogprobsNeedLogprobs) {
  TestModel model;
  const auto call = [&](const char* more) {
    Json body = Json::parse(more);
    body["messages"] = Json::parse(R"([{"role": "user", "content": "a"}])");
    return prepare_chat(body, *model);
  };
  EXPECT_EQ(refused_field([&] { call(R"({"top_logprobs": 2})"); }), "400 top_logprobs");
  EXPECT_EQ(call(R"({"logprobs": true, "top_logprobs": 2})").engine.sampling.logprobs, 2);
  EXPECT_EQ(call(R"({"logprobs": true})").engine.sampling.logprobs, 0);
  EXPECT_EQ(call(R"({"max_tokens": 3, "max_completion_tokens": 4})").engine.max_tokens, 4);
}

CompletionJob complete(TestModel& model, const char* body) {
  return prepare_completion(Json::parse(body), *model);
}

TEST(CompletionRequest, DefaultsAreTheRequestsThenTheModelsThenOpenAis) {
  TestModel model;
  const CompletionJob plain = complete(model, R"({"prompt": "a"})");
  EXPECT_EQ(plain.engine.max_tokens, 16);
  EXPECT_EQ(plain.engine.n, 1);
  EXPECT_FLOAT_EQ(plain.engine.sampling.temperature, 1);
  EXPECT_FALSE(plain.stream);
  model->defaults = {.temperature = 0.5F, .top_k = 7};
  const CompletionJob tuned =
      complete(model, R"({"prompt": "a", "top_k": 9, "temperature": null})");
  EXPECT_FLOAT_EQ(tuned.engine.sampling.temperature, 0.5F);
  EXPECT_EQ(tuned.engine.sampling.top_k, 9);
  EXPECT_NE(plain.engine.sampling.seed, tuned.engine.sampling.seed);
  EXPECT_EQ(complete(model, R"({"prompt": "a", "seed": 5})").engine.sampling.seed, 5u);
}

TEST(CompletionRequest, PromptsComeInFourForms) {
  TestModel model;
  EXPECT_EQ(complete(model, R"({"prompt": ["a", "b"]})").prompts.size(), 2u);
  EXPECT_EQ(complete(model, R"({"prompt": [1, 2]})").prompts.at(0).tokens,
            (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(complete(model, R"({"prompt": [[1], [2, 3]]})").prompts.at(1).tokens.size(), 2u);
  EXPECT_EQ(
      complete(model, R"({"prompt": [1, 2, 3], "truncate_prompt_tokens": 2})").prompts.at(0).tokens,
      (std::vector<TokenId>{2, 3}));
}

TEST(CompletionRequest, ConflictingFieldsAreRefusedByName) {
  TestModel model;
  const auto refused = [&](const char* body) {
    return refused_field([&] { complete(model, body); });
  };
  EXPECT_EQ(refused(R"({"prompt": "a", "max_tokens": 0})"), "400 max_tokens");
  EXPECT_EQ(refused(R"({"prompt": "a", "max_tokens": 0, "echo": true})"), "accepted");
  EXPECT_EQ(refused(R"({"prompt": "a", "stream_options": {}})"), "400 stream_options");
  EXPECT_EQ(refused(R"({"prompt": "a", "stream": true, "prompt_logprobs": 1})"),
            "400 prompt_logprobs");
  EXPECT_EQ(refused(R"({"prompt": "a", "model": "other"})"), "404 model");
  EXPECT_EQ(refused(R"({"prompt": "a", "model": "alias"})"), "accepted");
  EXPECT_EQ(refused(R"({"prompt": "a", "model": "models/tiny"})"), "accepted");
  EXPECT_EQ(refused(R"({"prompt": ""})"), "400 prompt");
  EXPECT_EQ(refused(R"({"prompt": [260]})"), "400 prompt");
  const std::string long_prompt = R"({"prompt": ")" + std::string(100, 'x') + "\"}";
  EXPECT_EQ(refused(long_prompt.c_str()), "400 prompt");
}

}  // namespace
}  // namespace octavo::api
