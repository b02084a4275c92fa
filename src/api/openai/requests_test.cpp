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
  std::vector<ImageSource> images;
  return refused_field([&] { read_messages(Json::parse(text), images); });
}

Json messages_of(const char* text) {
  std::vector<ImageSource> images;
  return read_messages(Json::parse(text), images);
}

TEST(ChatInput, PartsOfTextAreJoinedOnLines) {
  const Json read = messages_of(
      R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])");
  EXPECT_EQ(read[0]["content"], "a\nb");
}

TEST(ChatInput, DeveloperMessagesBecomeSystemMessages) {
  const Json read =
      messages_of(R"([{"role": "developer", "content": "x"}, {"role": "user", "content": "y"}])");
  EXPECT_EQ(read[0]["role"], "system");
  EXPECT_EQ(read[1]["role"], "user");
}

TEST(ChatInput, ImagesAreTakenOutOfTheirMessages) {
  std::vector<ImageSource> images;
  const Json read = read_messages(Json::parse(R"([
      {"role": "user", "content": [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}},
        {"type": "text", "text": "b"},
        {"type": "image_url", "image_url": "HTTPS://host/a.png"}]},
      {"role": "tool", "tool_call_id": "1", "content": [
        {"type": "image_url", "image_url": {"url": "data:;base64,aGk="}}]},
      {"role": "user", "content": [{"type": "text", "text": "c"}]}])"),
                                  images);
  EXPECT_EQ(read, Json::parse(R"([
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"},
                                   {"type": "text", "text": "b"}, {"type": "image"}]},
      {"role": "tool", "tool_call_id": "1", "content": [{"type": "image"}]},
      {"role": "user", "content": "c"}])"));
  ASSERT_EQ(images.size(), 3u);
  EXPECT_EQ(images[0].field, "messages[0].content[1].image_url.url");
  EXPECT_EQ(*images[0].file, "hi");
  EXPECT_TRUE(images[0].low_detail);
  EXPECT_EQ(images[1].url, "HTTPS://host/a.png");
  EXPECT_FALSE(images[1].low_detail);
  EXPECT_EQ(images[2].field, "messages[1].content[0].image_url.url");
}

TEST(ChatInput, OnlyATranslationMayReferToItsImages) {
  const char* const text =
      R"([{"role": "user", "content": [{"type": "octavo_image", "index": 0}]}])";
  EXPECT_EQ(refused_messages(text), "400 messages[0].content");
  std::vector<ImageSource> images = {{.field = "source", .url = "https://host/a.png"}};
  EXPECT_EQ(read_messages(Json::parse(text), images)[0]["content"][0]["type"], "image");
  ASSERT_EQ(images.size(), 1u);
  EXPECT_EQ(images[0].field, "source");
}

TEST(ChatInput, UnsupportedContentIsRefusedByName) {
  const auto refused_image = [](const std::string& image) {
    return refused_messages(
        (R"([{"role": "user", "content": [{"type": "image_url", "image_url": )" + image + "}]}]")
            .c_str());
  };
  EXPECT_EQ(refused_image("{}"), "400 messages[0].content[0].image_url.url");
  EXPECT_EQ(refused_image("7"), "400 messages[0].content[0].image_url");
  EXPECT_EQ(refused_image(R"("file:///etc/passwd")"), "400 messages[0].content[0].image_url");
  EXPECT_EQ(refused_image(R"("data:image/png;base64,a-b_")"),
            "400 messages[0].content[0].image_url");
  EXPECT_EQ(refused_image(R"({"url": "data:text/plain;base64,aGk="})"),
            "400 messages[0].content[0].image_url.url");
  EXPECT_EQ(refused_image(R"({"url": "https://a/b", "detail": "medium"})"),
            "400 messages[0].content[0].image_url.detail");
  EXPECT_EQ(refused_messages(R"([{"role": "system", "content": [
                {"type": "image_url", "image_url": "https://host/a.png"}]}])"),
            "400 messages[0].content[0]");
  EXPECT_EQ(refused_messages(R"([{"role": "user", "content": [{"type": "input_audio"}]}])"),
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
