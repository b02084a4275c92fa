#include "cli/prompt_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;

// The error message of a line that must be rejected; it starts with the field.
std::string refusal(const std::string& text) {
  try {
    parse_prompt_line(text, {});
  } catch (const RequestError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PromptLine, EveryFieldReachesTheRequest) {
  const PromptLine line = parse_prompt_line(
      R"({"id": "a", "prompt": "Hi", "max_tokens": 7, "min_tokens": 2, "n": 3, "temperature": 0.5,
          "top_p": 0.9, "top_k": 40, "min_p": 0.1, "seed": 18446744073709551615,
          "repetition_penalty": 1.5, "presence_penalty": 1, "frequency_penalty": -1,
          "logit_bias": {"42": -1.5}, "allowed_token_ids": [1, 2], "bad_words_token_ids": [[3, 4]],
          "stop": ["x", "y"], "stop_token_ids": [5], "ignore_eos": true, "logprobs": 2,
          "prompt_logprobs": 0, "priority": -3, "cache_salt": "salt"})",
      {});
  const Request& engine = line.request.engine;
  const SamplingParams& sampling = engine.sampling;
  EXPECT_EQ(line.id, "a");
  EXPECT_EQ(line.request.prompt, "Hi");
  EXPECT_EQ(engine.max_tokens, 7);
  EXPECT_EQ(engine.min_tokens, 2);
  EXPECT_EQ(engine.n, 3);
  EXPECT_EQ(sampling.temperature, 0.5f);
  EXPECT_EQ(sampling.top_p, 0.9f);
  EXPECT_EQ(sampling.top_k, 40);
  EXPECT_EQ(sampling.min_p, 0.1f);
  EXPECT_EQ(sampling.seed, UINT64_MAX);
  EXPECT_EQ(sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(sampling.presence_penalty, 1);
  EXPECT_EQ(sampling.frequency_penalty, -1);
  EXPECT_THAT(sampling.logit_bias, ElementsAre(Pair(42, -1.5f)));
  EXPECT_THAT(sampling.allowed_token_ids, ElementsAre(1, 2));
  EXPECT_THAT(sampling.bad_words, ElementsAre(ElementsAre(3, 4)));
  EXPECT_THAT(line.request.text.stop, ElementsAre("x", "y"));
  EXPECT_THAT(engine.stop_token_ids, ElementsAre(5));
  EXPECT_TRUE(engine.ignore_eos);
  EXPECT_EQ(sampling.logprobs, 2);
  EXPECT_EQ(sampling.prompt_logprobs, 0);
  EXPECT_EQ(engine.priority, -3);
  EXPECT_EQ(engine.cache_salt, "salt");
}

TEST(PromptLine, WhatIsNotGivenOrNullComesFromTheDefaults) {
  TextRequest defaults;
  defaults.prompt = "never used";
  defaults.engine.max_tokens = 9;
  defaults.engine.sampling.seed = 4;
  defaults.text.stop = {"end"};
  const PromptLine line = parse_prompt_line(
      R"({"messages": [{"role": "user", "content": "Hi"}], "seed": null})", defaults);
  EXPECT_TRUE(line.id.is_null());
  EXPECT_TRUE(line.request.prompt.empty());
  EXPECT_EQ(line.request.messages.size(), 1u);
  EXPECT_EQ(line.request.engine.max_tokens, 9);
  EXPECT_EQ(line.request.engine.sampling.seed, 4u);
  EXPECT_THAT(line.request.text.stop, ElementsAre("end"));
}

TEST(PromptLine, StopMayBeOneString) {
  EXPECT_THAT(parse_prompt_line(R"({"prompt_token_ids": [1], "stop": "x"})", {}).request.text.stop,
              ElementsAre("x"));
}

TEST(PromptLine, AWrongTypeNamesItsField) {
  EXPECT_EQ(refusal(R"({"prompt": 7})"), "prompt: must be a string, not 7");
  EXPECT_EQ(refusal(R"({"prompt": "x", "top_p": "0.9"})"), "top_p: must be a number, not \"0.9\"");
  EXPECT_THAT(refusal(R"({"prompt": "x", "max_tokens": 1.5})"), StartsWith("max_tokens: "));
  EXPECT_THAT(refusal(R"({"prompt": "x", "max_tokens": 4294967297})"), StartsWith("max_tokens: "));
  EXPECT_THAT(refusal(R"({"prompt": "x", "top_k": -4294967297})"), StartsWith("top_k: "));
  EXPECT_THAT(refusal(R"({"prompt": "x", "seed": -1})"), StartsWith("seed: "));
  EXPECT_THAT(refusal(R"({"prompt": "x", "ignore_eos": 1})"), StartsWith("ignore_eos: "));
  EXPECT_THAT(refusal(R"({"prompt": "x", "stop": [1]})"), StartsWith("stop: "));
  EXPECT_THAT(refusal(R"({"prompt": "x", "logit_bias": {"4x": 1}})"), StartsWith("logit_bias: "));
  EXPECT_THAT(refusal(R"({"prompt": "x", "bad_words_token_ids": [1]})"),
              StartsWith("bad_words_token_ids: "));
  EXPECT_THAT(refusal(R"({"prompt_token_ids": []})"), StartsWith("prompt_token_ids: "));
  EXPECT_THAT(refusal(R"({"prompt": "x", "id": [1]})"), StartsWith("id: "));
}

TEST(PromptLine, AnUnknownFieldIsNamedAndTheKnownOnesListed) {
  const std::string message = refusal(R"({"prompt": "x", "max_token": 5})");
  EXPECT_THAT(message, StartsWith("max_token: "));
  EXPECT_THAT(message, HasSubstr("max_tokens"));
}

TEST(PromptLine, ARepeatedFieldIsRefused) {
  EXPECT_EQ(refusal(R"({"prompt": "x", "n": 1, "n": 2})"), "n: given twice");
}

TEST(PromptLine, ThereIsExactlyOnePrompt) {
  EXPECT_THAT(refusal("{}"), StartsWith("prompt: "));
  EXPECT_THAT(refusal(R"({"prompt": null})"), StartsWith("prompt: "));
  EXPECT_THAT(refusal(R"({"prompt": "x", "prompt_token_ids": [1]})"), StartsWith("prompt: "));
}

TEST(PromptLine, ALineMustBeAJsonObject) {
  EXPECT_THAT(refusal("{\"prompt\": "), HasSubstr("not JSON"));
  EXPECT_THAT(refusal("plain text"), HasSubstr("-f FILE"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("object"));
}

}  // namespace
}  // namespace octavo
