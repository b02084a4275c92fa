// /v1/rerank and /v1/score without HTTP: parsing requests and writing responses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/openai/chat_request.h"
#include "api/openai/embedding_request.h"
#include "api/openai/score_format.h"
#include "api/testing/refusals.h"
#include "api/testing/test_model.h"

namespace octavo::api {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// A tokenizer of bytes that ends texts with <|end|> (258).
class ScoringTest : public testing::Test {
 protected:
  ScoringTest() {
    GgufVocab vocab = byte_level_vocab();
    vocab.add_eos = true;
    model_->text.tokenizer = tokenizer_of(vocab);
    model_->pooling = PoolingPlan{};
    model_->hidden = 2;
  }
  // The score is the first value less the second one.
  void add_head(int labels = 1) {
    model_->pooling->labels = labels;
    ScoreHead::Matrix out{.rows = labels, .columns = 2};
    for (int i = 0; i < labels; ++i) out.weight.insert(out.weight.end(), {1, -1});
    model_->score_head =
        std::make_shared<const ScoreHead>(ScoreHead::Layers{.out = std::move(out)});
  }
  RerankJob rerank(const std::string& body) { return prepare_rerank(Json::parse(body), *model_); }
  ScoringJob score(const std::string& body) { return prepare_score(Json::parse(body), *model_); }
  std::string rerank_refusal(const std::string& fields) {
    return refusal_of([&] { rerank(R"({"query": "q", "documents": ["a"], )" + fields + "}"); });
  }
  std::string score_refusal(const std::string& body) {
    return refusal_of([&] { score(body); });
  }
  static std::vector<std::vector<TokenId>> tokens(const GenerationJob& job) {
    std::vector<std::vector<TokenId>> all;
    for (const PreparedPrompt& prompt : job.prompts) all.push_back(prompt.tokens);
    return all;
  }
  static std::vector<OutputEvent> answers(std::vector<std::vector<float>> vectors) {
    std::vector<OutputEvent> all;
    for (auto& vector : vectors)
      all.push_back({.index = static_cast<int>(all.size()), .embedding = std::move(vector)});
    return all;
  }
  Json ranked(const RerankJob& job, std::vector<std::vector<float>> vectors) {
    return Json::parse(
        RerankFormat(*model_, job).whole(answers(std::move(vectors)), {.prompt_tokens = 7}));
  }

  TestModel model_;
};

TEST_F(ScoringTest, EachDocumentIsAPairWithTheQuery) {
  add_head();
  model_->pooling->kind = Pooling::kFirst;
  const RerankJob job = rerank(R"({"query": "q", "documents": ["a", {"text": "bc"}],
                                   "priority": 3, "request_id": "mine", "user": "me"})");
  ASSERT_EQ(job.prompts.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Tokenizer::Pair pair = model_->text.tokenizer->encode_pair("q", i == 0 ? "a" : "bc");
    EXPECT_EQ(job.prompts[i].tokens, pair.tokens);
    EXPECT_EQ(job.prompts[i].second_text, pair.second_text);
  }
  EXPECT_EQ(job.engine.pooling, Pooling::kFirst);
  EXPECT_EQ(job.engine.priority, 3);
  EXPECT_EQ(job.id, "mine");
  EXPECT_THAT(job.ignored, ElementsAre("user"));
  EXPECT_THAT(job.documents, ElementsAre("a", "bc"));
  EXPECT_EQ(job.top_n, 2u);
}

TEST_F(ScoringTest, AnEmbeddingModelEmbedsEachTextOnce) {
  const ScoringJob job = score(R"({"text_1": "q", "text_2": ["a", "q", "a"]})");
  EXPECT_THAT(tokens(job),
              ElementsAre(ElementsAre('q', 258), ElementsAre('a', 258), ElementsAre('q', 258)));
  EXPECT_THAT(job.compared, ElementsAre(ElementsAre(0, 1), ElementsAre(0, 2), ElementsAre(0, 1)));
  EXPECT_FALSE(job.form.normalize);
}

TEST_F(ScoringTest, TextsHaveEveryNameThatClientsUse) {
  for (const char* body :
       {R"({"text_1": "q", "text_2": "a"})", R"({"data_1": "q", "data_2": "a"})",
        R"({"queries": "q", "documents": "a"})", R"({"queries": ["q"], "items": ["a"]})"})
    EXPECT_EQ(score(body).prompts.size(), 2u) << body;
  EXPECT_EQ(score_refusal(R"({"text_1": "q", "data_1": "q", "text_2": "a"})"),
            "400 data_1: cannot be combined with text_1");
  EXPECT_EQ(score_refusal(R"({"text_2": "a"})"), "400 text_1: is missing");
  EXPECT_EQ(score_refusal(R"({"text_1": "a"})"), "400 text_2: is missing");
}

TEST_F(ScoringTest, OneQueryOrAsManyAsDocuments) {
  const ScoringJob job = score(R"({"queries": ["q", "r"], "documents": ["a", "b"]})");
  EXPECT_THAT(job.compared, ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
  EXPECT_THAT(score_refusal(R"({"queries": ["q", "r"], "documents": ["a", "b", "c"]})"),
              HasSubstr("400 queries: has 2 texts and documents has 3"));
  EXPECT_THAT(score_refusal(R"({"queries": ["q", "r"], "documents": "a"})"),
              HasSubstr("400 queries"));
}

TEST_F(ScoringTest, LongDocumentsAreNamedOrShortened) {
  model_->max_model_len = 4;
  EXPECT_EQ(refusal_of([&] { rerank(R"({"query": "q", "documents": ["abc", "abcd"]})"); }),
            "400 documents[1]: has 5 tokens; at most 4 fit: set truncate_prompt_tokens to -1 to "
            "shorten it");
  EXPECT_THAT(tokens(rerank(R"({"query": "q", "documents": ["abcdef"],
                                "truncate_prompt_tokens": -1})")),
              ElementsAre(ElementsAre('q', 258), ElementsAre('a', 'b', 'c', 258)));
  EXPECT_THAT(tokens(rerank(R"({"query": "qrs", "documents": ["abcdef"],
                                "max_tokens_per_doc": 2})")),
              ElementsAre(ElementsAre('q', 'r', 's', 258), ElementsAre('a', 'b', 258)));
  EXPECT_THAT(tokens(rerank(R"({"query": "q", "documents": ["abcdef"], "truncation_side": "left",
                                "truncate_prompt_tokens": 3})")),
              ElementsAre(ElementsAre('q', 258), ElementsAre('e', 'f', 258)));
}

TEST_F(ScoringTest, AModelWithAHeadCountsTheQuery) {
  add_head();
  model_->max_model_len =
      static_cast<int>(model_->text.tokenizer->encode_pair("qq", "abc").tokens.size());
  EXPECT_EQ(rerank(R"({"query": "qq", "documents": ["abc"]})").prompts.size(), 1u);
  EXPECT_THAT(refusal_of([&] { rerank(R"({"query": "qq", "documents": ["abcd"]})"); }),
              HasSubstr("400 documents[0]: has "));
  model_->max_whole_prompt = model_->max_model_len - 1;
  EXPECT_THAT(refusal_of([&] { rerank(R"({"query": "qq", "documents": ["abc"]})"); }),
              HasSubstr("tokens with the query; at most"));
}

TEST_F(ScoringTest, ALongQueryIsNotEncodedWithEveryDocument) {
  add_head();
  const auto request = [](size_t documents) {
    return Json{{"query", std::string(40'000, 'q')},
                {"documents", std::vector<std::string>(documents, "a")},
                {"truncate_prompt_tokens", 8}}
        .dump();
  };
  EXPECT_EQ(rerank(request(2)).prompts.size(), 2u);
  EXPECT_THAT(refusal_of([&] { rerank(request(2048)); }),
              AllOf(HasSubstr("400 documents: the texts have"), HasSubstr("at most 64")));
}

TEST_F(ScoringTest, AnInstructionNeedsAModelThatTakesOne) {
  EXPECT_THAT(rerank_refusal(R"("instruction": "x")"), HasSubstr("400 instruction"));
  add_head();
  EXPECT_THAT(rerank_refusal(R"("instruction": "x")"), HasSubstr("400 instruction"));
  model_->pooling->pair_prompt = PairPrompt::kQwen3Reranker;
  model_->max_model_len = 1000;
  const auto prompt_of = [&](const char* fields) {
    const RerankJob job =
        rerank(std::string(R"({"query": "q", "documents": ["a"])") + fields + "}");
    return job.prompts.front().tokens;
  };
  EXPECT_NE(prompt_of(R"(, "instruction": "x")"), prompt_of(""));
  EXPECT_EQ(prompt_of(R"(, "instruction": "")"), prompt_of(""));
  EXPECT_THAT(rerank_refusal(R"("instruction": ")" + std::string(100'000, 'x') + '"'),
              HasSubstr("400 instruction: has more than 1000 tokens"));
}

TEST_F(ScoringTest, FieldsThatWouldChangeTheOutputAreRefused) {
  EXPECT_THAT(rerank_refusal(R"("rank_fields": ["title"])"), HasSubstr("400 rank_fields"));
  EXPECT_EQ(rerank_refusal(R"("rank_fields": ["text"])"), "accepted");
  EXPECT_THAT(rerank_refusal(R"("relevant_spans": {"mode": "enabled"})"),
              HasSubstr("400 relevant_spans"));
  EXPECT_EQ(rerank_refusal(R"("relevant_spans": {"mode": "disabled"})"), "accepted");
  EXPECT_THAT(rerank_refusal(R"("softmax": false)"), HasSubstr("use_activation"));
  EXPECT_THAT(rerank_refusal(R"("top_n": -1)"), HasSubstr("400 top_n"));
  EXPECT_THAT(rerank_refusal(R"("temperature": 1)"), HasSubstr("400 temperature"));
  EXPECT_THAT(rerank_refusal(R"("model": "other")"), HasSubstr("404 model"));
  const auto documents = [&](const char* json) {
    return refusal_of([&] { rerank(fmt::format(R"({{"query": "q", "documents": {}}})", json)); });
  };
  EXPECT_THAT(documents("[]"), HasSubstr("400 documents: is an empty list"));
  EXPECT_THAT(documents("[1]"), HasSubstr("400 documents[0]: must be a string"));
  EXPECT_THAT(documents(R"(["a", {"title": "b"}])"), HasSubstr("400 documents[1]"));
  EXPECT_THAT(documents(R"([{"text": "b", "image": "c"}])"), HasSubstr("400 documents[0]: only"));
  EXPECT_THAT(documents(Json(std::vector<std::string>(2049, "a")).dump().c_str()),
              HasSubstr("400 documents: has 2049 texts; at most 2048"));
}

TEST_F(ScoringTest, AServerScoresEmbedsOrGenerates) {
  const auto refused_as = [&](const auto& prepare, const char* body) {
    return refusal_of([&] { prepare(Json::parse(body), *model_, Preparation{}); });
  };
  const char* chat = R"({"messages": [{"role": "user", "content": "a"}]})";
  add_head();
  EXPECT_THAT(refused_as(prepare_embedding, R"({"input": "a"})"), HasSubstr("/v1/rerank"));
  EXPECT_THAT(refused_as(prepare_chat, chat), HasSubstr("/v1/rerank"));
  add_head(3);
  EXPECT_THAT(rerank_refusal(R"("top_n": 1)"), HasSubstr("has 3 labels"));
  model_->score_head = nullptr;
  model_->pooling.reset();
  EXPECT_THAT(rerank_refusal(R"("top_n": 1)"), HasSubstr("--runner pooling"));
}

TEST_F(ScoringTest, TheMostRelevantDocumentsComeFirst) {
  add_head();
  RerankJob job = rerank(R"({"query": "q", "documents": ["a", "b", "c"], "request_id": "9"})");
  const Json answer = ranked(job, {{1, 1}, {3, 1}, {1, 1}});
  EXPECT_EQ(answer["id"], "rerank-9");
  EXPECT_EQ(answer["model"], "tiny");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 7);
  EXPECT_EQ(answer["usage"]["total_tokens"], 7);
  EXPECT_EQ(answer["meta"]["tokens"]["input_tokens"], 7);
  EXPECT_EQ(answer["results"].dump(),
            R"([{"index":1,"relevance_score":0.8807971,"document":{"text":"b"}},)"
            R"({"index":0,"relevance_score":0.5,"document":{"text":"a"}},)"
            R"({"index":2,"relevance_score":0.5,"document":{"text":"c"}}])");
  job = rerank(R"({"query": "q", "documents": ["a", "b", "c"], "top_n": 1,
                   "return_documents": false, "use_activation": false})");
  EXPECT_TRUE(job.documents.empty());
  EXPECT_EQ(ranked(job, {{1, 1}, {3, 1}, {1, 1}})["results"].dump(),
            R"([{"index":1,"relevance_score":2.0}])");
  EXPECT_EQ(rerank(R"({"query": "q", "documents": ["a"], "top_n": 9})").top_n, 1u);
  model_->pooling->normalize = false;  // the model's files ask for logits
  EXPECT_FALSE(rerank(R"({"query": "q", "documents": ["a"]})").sigmoid);
  EXPECT_TRUE(rerank(R"({"query": "q", "documents": ["a"], "use_activation": true})").sigmoid);
}

TEST_F(ScoringTest, ScoresAreInTheOrderOfTheRequest) {
  const ScoringJob job = score(R"({"text_1": "q", "text_2": ["a", "b"], "request_id": "9"})");
  const Json answer = Json::parse(
      ScoreFormat(*model_, job).whole(answers({{2, 0}, {0, 3}, {4, 0}}), {.prompt_tokens = 7}));
  EXPECT_EQ(answer["id"], "score-9");
  EXPECT_EQ(answer["object"], "list");
  EXPECT_EQ(
      answer["data"].dump(),
      R"([{"index":0,"object":"score","score":0.0},{"index":1,"object":"score","score":1.0}])");
  EXPECT_THAT(refusal_of([&] { scores_of(answers({{NAN, 0}, {0, 3}, {4, 0}}), job); }),
              HasSubstr("500"));
}

}  // namespace
}  // namespace octavo::api
