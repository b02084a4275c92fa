// /v1/embeddings without HTTP: parsing requests and writing responses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/openai/chat_request.h"
#include "api/openai/completion_request.h"
#include "api/openai/embedding_format.h"
#include "api/testing/refusals.h"
#include "api/testing/test_model.h"
#include "base/base64.h"
#include "base/error.h"

namespace octavo::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Vectors of 4 numbers, from a tokenizer of bytes.
class EmbeddingTest : public testing::Test {
 protected:
  EmbeddingTest() {
    model_->pooling = PoolingPlan{};
    model_->hidden = 4;
  }
  EmbeddingJob prepare(const char* body) { return prepare_embedding(Json::parse(body), *model_); }
  std::string refusal(const char* body) {
    return refusal_of([&] { prepare(body); });
  }
  std::vector<std::vector<TokenId>> tokens(const char* body) {
    std::vector<std::vector<TokenId>> all;
    for (const PreparedPrompt& prompt : prepare(body).prompts) all.push_back(prompt.tokens);
    return all;
  }
  Json whole(const EmbeddingJob& job, std::vector<std::vector<float>> vectors) {
    std::vector<OutputEvent> answers;
    for (auto& vector : vectors)
      answers.push_back(
          {.index = static_cast<int>(answers.size()), .embedding = std::move(vector)});
    return Json::parse(EmbeddingFormat(*model_, job).whole(answers, {.prompt_tokens = 7}));
  }

  TestModel model_;
};

TEST_F(EmbeddingTest, TheInputMayBeTextsOrTokens) {
  EXPECT_THAT(tokens(R"({"input": "ab"})"), ElementsAre(ElementsAre('a', 'b')));
  EXPECT_THAT(tokens(R"({"input": ["ab", "c"]})"),
              ElementsAre(ElementsAre('a', 'b'), ElementsAre('c')));
  EXPECT_THAT(tokens(R"({"input": [5, 6]})"), ElementsAre(ElementsAre(5, 6)));
  EXPECT_THAT(tokens(R"({"input": [[5], [6, 7]]})"),
              ElementsAre(ElementsAre(5), ElementsAre(6, 7)));
}

TEST_F(EmbeddingTest, RequestsPoolingFromTheEngine) {
  model_->pooling->kind = Pooling::kMean;
  const EmbeddingJob job =
      prepare(R"({"input": "ab", "priority": 3, "cache_salt": "s", "request_id": "mine",
                  "user": "me"})");
  EXPECT_EQ(job.engine.pooling, Pooling::kMean);
  EXPECT_EQ(job.engine.priority, 3);
  EXPECT_EQ(job.engine.cache_salt, "s");
  EXPECT_EQ(job.id, "mine");
  EXPECT_THAT(job.ignored, ElementsAre("user"));
  EXPECT_TRUE(job.form.normalize);
  EXPECT_EQ(job.form.dimensions, 0);
}

TEST_F(EmbeddingTest, TheContextMayBeFilledButNotExceeded) {
  model_->max_model_len = 3;
  EXPECT_EQ(refusal(R"({"input": "abc"})"), "accepted");
  EXPECT_EQ(refusal(R"({"input": "abcd"})"), "400 input: has 4 tokens; at most 3 fit the context");
  EXPECT_THAT(refusal(R"({"input": ""})"), HasSubstr("400 input: is empty"));
  EXPECT_THAT(refusal(R"({"input": []})"), HasSubstr("400 input: is an empty list"));
  EXPECT_THAT(refusal(R"({"input": [260]})"), HasSubstr("400 input: token id 260"));
  EXPECT_THAT(refusal(R"({"input": [-1]})"), HasSubstr("400 input"));
  EXPECT_THAT(refusal(R"({"input": {"text": "a"}})"), HasSubstr("400 input"));
  EXPECT_THAT(refusal(R"({"model": "tiny"})"), HasSubstr("400 input: is missing"));
}

TEST_F(EmbeddingTest, LongTextsAreTruncatedOnRequest) {
  model_->max_model_len = 3;
  EXPECT_THAT(tokens(R"({"input": "abcd", "truncate_prompt_tokens": -1})"),
              ElementsAre(ElementsAre('a', 'b', 'c')));
  EXPECT_THAT(tokens(R"({"input": "abcd", "truncate_prompt_tokens": 2,
                         "truncation_side": "left"})"),
              ElementsAre(ElementsAre('c', 'd')));
  EXPECT_THAT(tokens(R"({"input": [[1, 2, 3, 4]], "truncate_prompt_tokens": 2})"),
              ElementsAre(ElementsAre(1, 2)));
  EXPECT_THAT(tokens(R"({"input": [1, 2, 3, 4], "truncate_prompt_tokens": 3,
                         "truncation_side": "left"})"),
              ElementsAre(ElementsAre(2, 3, 4)));
  EXPECT_THAT(refusal(R"({"input": "a", "truncate_prompt_tokens": 0})"),
              HasSubstr("400 truncate_prompt_tokens"));
}

// Qwen3-Embedding's tokenizer ends texts with a token whose row is the vector.
TEST_F(EmbeddingTest, ATruncatedTextKeepsItsSpecialTokens) {
  GgufVocab vocab = byte_level_vocab();
  vocab.add_eos = true;
  model_->text.tokenizer = tokenizer_of(vocab);
  EXPECT_THAT(tokens(R"({"input": "abcd"})"), ElementsAre(ElementsAre('a', 'b', 'c', 'd', 258)));
  EXPECT_THAT(tokens(R"({"input": "abcd", "truncate_prompt_tokens": 3})"),
              ElementsAre(ElementsAre('a', 'b', 258)));
  EXPECT_THAT(tokens(R"({"input": "abcd", "truncate_prompt_tokens": 3,
                         "truncation_side": "left"})"),
              ElementsAre(ElementsAre('c', 'd', 258)));
  EXPECT_THAT(tokens(R"({"input": "ab", "add_special_tokens": false})"),
              ElementsAre(ElementsAre('a', 'b')));
  EXPECT_THAT(refusal(R"({"input": "ab", "truncate_prompt_tokens": 1})"),
              HasSubstr("no tokens for the text"));
}

TEST_F(EmbeddingTest, FewerDimensionsNeedAMatryoshkaModel) {
  EXPECT_THAT(refusal(R"({"input": "a", "dimensions": 2})"), HasSubstr("is_matryoshka"));
  EXPECT_EQ(refusal(R"({"input": "a", "dimensions": 4})"), "accepted");  // changes nothing
  EXPECT_THAT(refusal(R"({"input": "a", "dimensions": 5})"), HasSubstr("vectors have 4"));
  model_->pooling->matryoshka = true;
  EXPECT_EQ(prepare(R"({"input": "a", "dimensions": 2})").form.dimensions, 2);
  model_->pooling->matryoshka_dimensions = {1, 3};
  EXPECT_EQ(prepare(R"({"input": "a", "dimensions": 3})").form.dimensions, 3);
  EXPECT_THAT(refusal(R"({"input": "a", "dimensions": 2})"), HasSubstr("supports 1, 3"));
  model_->pooling->dimensions = 3;
  EXPECT_EQ(prepare(R"({"input": "a"})").form.dimensions, 3);
  EXPECT_EQ(prepare(R"({"input": "a", "dimensions": 4})").form.dimensions, 4);
  EXPECT_THAT(refusal(R"({"input": "a", "dimensions": 0})"), HasSubstr("400 dimensions"));
}

TEST_F(EmbeddingTest, FieldsThatWouldChangeTheOutputAreRefused) {
  EXPECT_THAT(refusal(R"({"input": "a", "encoding_format": "int8"})"),
              HasSubstr("400 encoding_format: must be \"float\" or \"base64\""));
  EXPECT_THAT(refusal(R"({"input": "a", "embed_dtype": "float16"})"), HasSubstr("400 embed_dtype"));
  EXPECT_THAT(refusal(R"({"input": "a", "normalize": true})"), HasSubstr("use_activation"));
  EXPECT_THAT(refusal(R"({"input": "a", "temperature": 1})"), HasSubstr("400 temperature"));
  EXPECT_THAT(refusal(R"({"input": "a", "model": "other"})"), HasSubstr("404 model"));
}

TEST_F(EmbeddingTest, AServerEitherEmbedsOrGenerates) {
  const auto message = [](const auto& work) -> std::string {
    try {
      work();
    } catch (const RequestError& error) {
      EXPECT_EQ(error.status(), 400);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message([&] { prepare_completion(Json::parse(R"({"prompt": "a"})"), *model_); }),
              HasSubstr("--runner generate"));
  EXPECT_THAT(message([&] {
                prepare_chat(Json::parse(R"({"messages": [{"role": "user", "content": "a"}]})"),
                             *model_);
              }),
              HasSubstr("/v1/embeddings"));
  model_->pooling.reset();
  EXPECT_THAT(refusal(R"({"input": "a"})"), HasSubstr("--runner pooling"));
}

TEST_F(EmbeddingTest, TheResponseHasOpenAisFormat) {
  EmbeddingJob job = prepare(R"({"input": ["a", "b"], "request_id": "9"})");
  const Json answer = whole(job, {{3, 4, 0, 0}, {0, 0, -2, 0}});
  EXPECT_EQ(answer["id"], "embd-9");
  EXPECT_EQ(answer["object"], "list");
  EXPECT_EQ(answer["model"], "tiny");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 7);
  EXPECT_EQ(answer["usage"]["total_tokens"], 7);
  EXPECT_EQ(answer["data"][0].dump(),
            R"({"object":"embedding","index":0,"embedding":[0.6,0.8,0.0,0.0]})");
  EXPECT_EQ(answer["data"][1]["index"], 1);
  EXPECT_EQ(answer["data"][1]["embedding"], Json::array({0.0, 0.0, -1.0, 0.0}));
  job.form = {.dimensions = 1, .normalize = false};
  EXPECT_EQ(whole(job, {{3, 4, 0, 0}})["data"][0]["embedding"], Json::array({3.0}));
}

TEST_F(EmbeddingTest, Base64HoldsLittleEndianFloats) {
  const EmbeddingJob job =
      prepare(R"({"input": "a", "encoding_format": "base64", "use_activation": false})");
  // 1.0 is 00 00 80 3f, -2.0 is 00 00 00 c0.
  EXPECT_EQ(whole(job, {{1, -2}})["data"][0]["embedding"], "AACAPwAAAMA=");
}

TEST(Base64, PadsTheLastGroup) {
  const auto encoded = [](std::string_view text) {
    std::string out;
    append_base64(out, std::as_bytes(std::span(text)));
    return out;
  };
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encoded("\xff\xfe\xfd"), "//79");
}

}  // namespace
}  // namespace octavo::api
