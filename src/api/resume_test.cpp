#include "api/resume.h"

#include <gtest/gtest.h>

#include <memory>

#include "api/anthropic/messages_format.h"
#include "api/anthropic/messages_request.h"
#include "api/openai/chat_format.h"
#include "api/openai/chat_request.h"
#include "api/openai/completion_format.h"
#include "api/openai/responses_format.h"
#include "api/testing/refusals.h"
#include "api/testing/test_model.h"

namespace octavo::api {
namespace {

constexpr TokenId kEnd = 258;

// Reasoning, characters of several bytes, a call, and text that begins like a stop string.
constexpr std::string_view kAnswer =
    "<think>h\xC3\xA9llo</think>It \xF0\x9F\x99\x82 <EN <tool_call>\n{\"name\": \"f\", "
    "\"arguments\": {\"a\": \"\xC3\xA9\"}}\n</tool_call>";

const char* const kTools = R"([{"type": "function", "function": {"name": "f",
  "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}}])";
const char* const kMessageTools = R"([{"name": "f",
  "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}}])";
const char* const kResponseTools = R"([{"type": "function", "name": "f",
  "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}])";

Json with(Json body, const Json& more) {
  body.update(more);
  return body;
}

class ResumeTest : public testing::Test {
 protected:
  // A request that was prepared, and how its output is written.
  struct Asked {
    std::shared_ptr<GenerationJob> job;  // or a job made of one, which has no virtual destructor
    std::unique_ptr<OutputFormat> format;
  };

  ResumeTest() {
    model_->max_model_len = 4000;
    model_->text.chat_template = ChatTemplate::from_source(
        {.source = "{% for m in messages %}{{ m.content }}{% endfor %}<think>"});
    model_->dialect =
        choose_chat_dialect(model_->text, {kEnd}, {.reasoning_parser = "deepseek_r1"});
  }

  Asked completion(Json body) {
    body["prompt"] = "ask";
    auto job = std::make_shared<CompletionJob>(prepare_completion(body, *model_));
    auto format = std::make_unique<CompletionFormat>(*model_, *job);
    return {std::move(job), std::move(format)};
  }
  Asked chat(Json body) {
    body["messages"] = Json::parse(R"([{"role": "user", "content": "ask"}])");
    body["tools"] = Json::parse(kTools);
    auto job = std::make_shared<GenerationJob>(prepare_chat(body, *model_));
    auto format = std::make_unique<ChatFormat>(*model_, *job);
    return {std::move(job), std::move(format)};
  }
  Asked message(Json body) {
    body["messages"] = Json::parse(R"([{"role": "user", "content": "ask"}])");
    body["tools"] = Json::parse(kMessageTools);
    auto job = std::make_shared<GenerationJob>(prepare_messages(body, *model_));
    auto format = std::make_unique<MessagesFormat>(*model_, *job);
    return {std::move(job), std::move(format)};
  }
  Asked response(Json body) {
    body["input"] = "ask";
    body["tools"] = Json::parse(kResponseTools);
    auto job = std::make_shared<ResponsesJob>(prepare_responses(body, *model_, shelf_));
    auto format = std::make_unique<ResponsesFormat>(*model_, *job, nullptr);
    return {std::move(job), std::move(format)};
  }

  // The stream of an answer to `tokens`, from its resumed ones on: each element is what one token
  // adds, and the last one the end.
  std::vector<std::string> stream(const Asked& asked, const std::vector<TokenId>& tokens) {
    OutputEvents events(model_->text.tokenizer, *asked.job);
    std::string sent;
    events.resume([&](const OutputEvent& event) {
      sent.clear();
      asked.format->append_event(sent, event, event.usage);
    });
    const auto& resumed = asked.job->resumed;
    std::vector<std::string> pieces;
    for (size_t i = resumed.empty() ? 0 : resumed[0].output.tokens.size(); i < tokens.size(); ++i) {
      Update update{.tokens = {tokens[i]}};
      if (asked.job->engine.sampling.logprobs >= 0)
        update.logprobs = {{.token = tokens[i], .logprob = -1}};
      if (i == 0) update.cached_tokens = 1;
      if (i == 0 && asked.job->engine.sampling.prompt_logprobs >= 0) {
        const std::vector<TokenId>& prompt = asked.job->prompts[0].tokens;
        for (size_t k = 1; k < prompt.size(); ++k)
          update.prompt_logprobs.push_back({.token = prompt[k], .logprob = -1});
      }
      if (i + 1 == tokens.size()) update.finish = FinishReason::kStop;
      const auto event = events.take(0, update);
      pieces.emplace_back();
      if (event) asked.format->append_event(pieces.back(), *event, event->usage);
    }
    pieces.emplace_back();
    asked.format->append_end(pieces.back(), events.usage());
    return pieces;
  }

  // An answer continued after any number of tokens has the bytes of the answer that was not cut.
  template <typename Ask>
  void check_cuts(Ask ask, Json body) {
    std::vector<TokenId> tokens(kAnswer.size());
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<uint8_t>(kAnswer[i]);
    tokens.push_back(kEnd);
    body["stream"] = body["resumable"] = true;
    const Asked first = ask(body);
    first.job->id = first.job->id.empty() ? "7" : first.job->id;
    const Asked named = ask(with(body, resume_of(*first.job)));
    const std::vector<std::string> whole = stream(named, tokens);
    for (size_t cut = 1; cut + 1 < tokens.size(); ++cut) {
      if (whole[cut - 1].empty()) continue;  // its id comes with a later event
      Json again = with(body, resume_of(*first.job));
      again["resume_token_ids"] = Json::array();
      again["resume_token_ids"].push_back(
          std::vector(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(cut)));
      const std::vector<std::string> rest = stream(ask(again), tokens);
      ASSERT_EQ(rest.size(), whole.size() - cut);
      for (size_t i = 0; i < rest.size(); ++i)
        ASSERT_EQ(rest[i], whole[cut + i]) << "cut after " << cut;
    }
  }
  static Json resume_facts(const GenerationJob& job, const ServedModel& model) {
    return resume_json(job, model, {.prompt_tokens = 3, .cached_tokens = 1});
  }
  Json resume_of(const GenerationJob& job) { return {{"resume", resume_facts(job, *model_)}}; }

  TestModel model_;
  ResponseStore store_{{}};
  ResponseShelf shelf_{.store = store_, .owner = "me"};
};

TEST_F(ResumeTest, ACompletionContinuesWithTheNextByte) {
  const auto ask = [&](const Json& body) { return completion(body); };
  check_cuts(ask, {{"max_tokens", 300}, {"stop", "<END>"}});
  check_cuts(ask, {{"max_tokens", 300}, {"logprobs", 0}});
  check_cuts(ask, {{"max_tokens", 300}, {"logprobs", 1}, {"echo", true}});
  check_cuts(ask,
             {{"max_tokens", 300},
              {"stream_options", {{"include_usage", true}, {"continuous_usage_stats", true}}}});
}

TEST_F(ResumeTest, AChatContinuesWithTheNextByte) {
  const auto ask = [&](const Json& body) { return chat(body); };
  check_cuts(ask, {{"stop", "<END>"}});
  check_cuts(ask, {{"logprobs", true}, {"stream_options", {{"include_usage", true}}}});
}

TEST_F(ResumeTest, AMessageContinuesWithTheNextByte) {
  check_cuts([&](const Json& body) { return message(body); }, {{"stop_sequences", {"<END>"}}});
}

TEST_F(ResumeTest, AResponseContinuesWithTheNextByte) {
  check_cuts([&](const Json& body) { return response(body); }, {{"max_output_tokens", 300}});
}

TEST_F(ResumeTest, AnswersSayNothingAboutItUnlessAsked) {
  const std::vector<TokenId> tokens = {'a', 'b'};
  const Json body = {{"stream", true}};
  std::vector<Asked> all;
  all.push_back(completion(body));
  all.push_back(chat(body));
  all.push_back(message(body));
  all.push_back(response(body));
  for (const Asked& asked : all) {
    for (const std::string& piece : stream(asked, tokens)) {
      EXPECT_EQ(piece.find("resume"), std::string::npos) << piece;
      EXPECT_EQ(piece.find("token_ids"), std::string::npos) << piece;
    }
  }
}

TEST_F(ResumeTest, TheFirstAnswerSaysWhatIsNeeded) {
  const Asked asked = completion({{"resumable", true}, {"seed", -5}, {"request_id", "mine"}});
  const Json facts = resume_facts(*asked.job, *model_);
  EXPECT_EQ(facts["id"], "mine");
  EXPECT_EQ(facts["seed"], -5);
  EXPECT_EQ(facts["system_fingerprint"], "fp_test");
  EXPECT_EQ(facts["prompt_token_ids"].dump(), "[[97,115,107]]");
  const Asked again = completion({{"resume", facts}});
  EXPECT_EQ(resume_facts(*again.job, *model_), facts);
  // A drawn seed survives clients that read numbers as doubles.
  const Asked drawn = completion({});
  EXPECT_LT(drawn.job->engine.sampling.seed, uint64_t{1} << 53);
}

TEST_F(ResumeTest, ThePromptIsTheEarlierOne) {
  const Asked asked = chat(Json::parse(R"({"resume": {"prompt_token_ids": [[1, 2, 3]]}})"));
  EXPECT_EQ(asked.job->prompts.at(0).tokens, (std::vector<TokenId>{1, 2, 3}));
  const Json two = Json::parse(R"({"resume": {"prompt_token_ids": [[1], [2]]}})");
  EXPECT_EQ(refused_field([&] { chat(two); }), "400 resume.prompt_token_ids");
}

TEST_F(ResumeTest, AnotherServerContinuesAResponseWhoseConversationItHasNot) {
  const Json previous = {{"previous_response_id", "resp_unknown"}};
  EXPECT_EQ(refused_field([&] { response(previous); }), "404 previous_response_id");
  const Asked asked =
      response(with(previous, Json::parse(R"({"resume": {"prompt_token_ids": [[1, 2]]}})")));
  EXPECT_EQ(asked.job->prompts.at(0).tokens, (std::vector<TokenId>{1, 2}));
}

TEST_F(ResumeTest, TokensThatCannotBeAnOutputAreRefused) {
  const auto refused = [&](const char* tokens, const char* more = "{}") {
    const Json body = with(Json::parse(more), {{"resume_token_ids", Json::parse(tokens)}});
    return refused_field([&] { stream(completion(body), {'a', 'b', 'c', 'd', 'e'}); });
  };
  const std::string expected = "400 resume_token_ids";
  EXPECT_EQ(refused("[[97]]"), "accepted");
  EXPECT_EQ(refused("[]"), expected);
  EXPECT_EQ(refused("[97]"), expected);
  EXPECT_EQ(refused("[[97], [98]]"), expected);
  EXPECT_EQ(refused("[[-1]]"), expected);
  EXPECT_EQ(refused("[[260]]"), expected);
  EXPECT_EQ(refused("[[258]]"), expected);
  EXPECT_EQ(refused("[[258, 97]]"), expected);
  EXPECT_EQ(refused("[[258, 97]]", R"({"ignore_eos": true})"), "accepted");
  EXPECT_EQ(refused("[[97, 98]]", R"({"stop_token_ids": [97]})"), expected);
  EXPECT_EQ(refused("[[97, 98]]", R"({"max_tokens": 2})"), expected);
  EXPECT_EQ(refused("[[97, 98, 99]]", R"({"max_tokens": 2})"), expected);
  EXPECT_EQ(refused("[[97, 98]]", R"({"stop": "ab"})"), expected);
  EXPECT_EQ(refused("[[97, 98, 99]]", R"({"stop": "ab"})"), expected);
  EXPECT_EQ(refused("[[97]]", R"({"logprobs": 1})"), expected);
  const char* grammar = R"({"structured_outputs": {"choice": ["abc"]}})";
  EXPECT_EQ(refused("[[97, 98]]", grammar), "accepted");
  EXPECT_EQ(refused("[[97, 99]]", grammar), expected);
  EXPECT_EQ(refused("[[97, 98, 99, 100]]", grammar), expected);
}

TEST_F(ResumeTest, AnotherFingerprintIsAConflict) {
  EXPECT_EQ(refused_field([&] { completion({{"resume", {{"system_fingerprint", "fp_other"}}}}); }),
            "409 resume.system_fingerprint");
  EXPECT_EQ(refused_field([&] { completion({{"resume", {{"unknown", 1}}}}); }),
            "400 resume.unknown");
  EXPECT_EQ(refused_field([&] { completion({{"resume", {{"cached_tokens", 4}}}}); }),
            "400 resume.cached_tokens");
}

TEST_F(ResumeTest, AnEndedChoiceCountsAndTheOthersContinue) {
  const Asked asked =
      completion(Json::parse(R"({"n": 2, "resume_token_ids": [[97, 258], [98]], "stream": true})"));
  OutputEvents events(model_->text.tokenizer, *asked.job);
  std::vector<OutputEvent> sent;
  events.resume([&](OutputEvent event) { sent.push_back(std::move(event)); });
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(sent[1].finish, FinishReason::kStop);
  EXPECT_EQ(sent[1].text, "");
  EXPECT_TRUE(events.done(0));
  EXPECT_FALSE(events.done(1));
  EXPECT_EQ(events.usage().completion_tokens, 3);
}

TEST(SingleTokens, PartsAddUpToTheUpdate) {
  Update update{.request = 4, .choice = 2, .tokens = {1, 2, 3}, .hashes = {7, 8, 9}};
  update.logprobs = {{.token = 1}, {.token = 2}, {.token = 3}};
  update.cached_tokens = 5;
  update.prompt_logprobs = {{.token = 6}};
  update.finish = FinishReason::kStop;
  const std::vector<Update> parts = single_tokens(update);
  ASSERT_EQ(parts.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(parts[i].request, 4u);
    EXPECT_EQ(parts[i].choice, 2);
    EXPECT_EQ(parts[i].tokens, (std::vector<TokenId>{update.tokens[i]}));
    EXPECT_EQ(parts[i].hashes, (std::vector<uint64_t>{update.hashes[i]}));
    ASSERT_EQ(parts[i].logprobs.size(), 1u);
    EXPECT_EQ(parts[i].logprobs[0].token, update.tokens[i]);
    EXPECT_EQ(parts[i].cached_tokens.has_value(), i == 0);
    EXPECT_EQ(parts[i].prompt_logprobs.size(), i == 0 ? 1u : 0u);
    EXPECT_EQ(parts[i].finish.has_value(), i == 2);
  }
  EXPECT_EQ(single_tokens({.tokens = {1}, .finish = FinishReason::kStop}).size(), 1u);
  EXPECT_EQ(single_tokens({.finish = FinishReason::kStop}).size(), 1u);
}

}  // namespace
}  // namespace octavo::api
