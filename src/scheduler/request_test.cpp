#include "scheduler/request.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/error.h"

namespace octavo {
namespace {

std::string rejected_param(const Request& request) {
  try {
    validate(request, {.max_model_len = 16, .vocab = 100});
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 400);
    return error.param();
  }
  return "";
}

TEST(Request, ValuesInRangePass) {
  EXPECT_EQ(
      rejected_param({.prompt = {1, 2, 99}, .sampling = {.temperature = 0.8f, .top_p = 0.9f}}), "");
}

TEST(Request, EachBadParameterIsNamed) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(rejected_param({.prompt = {}, .sampling = {}}), "prompt");
  EXPECT_EQ(rejected_param({.prompt = {100}, .sampling = {}}), "prompt");
  EXPECT_EQ(rejected_param({.prompt = {-1}, .sampling = {}}), "prompt");
  EXPECT_EQ(rejected_param({.prompt = std::vector<TokenId>(16, 1), .sampling = {}}), "prompt");
  EXPECT_EQ(rejected_param({.prompt = {1}, .sampling = {}, .max_tokens = 0}), "max_tokens");
  EXPECT_EQ(rejected_param({.prompt = {1}, .sampling = {.temperature = nan}}), "temperature");
  EXPECT_EQ(rejected_param({.prompt = {1}, .sampling = {.temperature = -1}}), "temperature");
  EXPECT_EQ(rejected_param({.prompt = {1}, .sampling = {.top_p = 0}}), "top_p");
  EXPECT_EQ(rejected_param({.prompt = {1}, .sampling = {.min_p = 1.5f}}), "min_p");
  EXPECT_EQ(rejected_param({.prompt = {1}, .sampling = {.top_k = -2}}), "top_k");
  EXPECT_EQ(rejected_param({.prompt = {1}, .sampling = {.repetition_penalty = 0}}),
            "repetition_penalty");
  EXPECT_EQ(rejected_param({.prompt = {1}, .sampling = {.presence_penalty = nan}}),
            "presence_penalty");
  EXPECT_EQ(rejected_param({.prompt = {1}, .sampling = {.frequency_penalty = 2.5f}}),
            "frequency_penalty");
  EXPECT_EQ(rejected_param({.prompt = {1}, .sampling = {.logit_bias = {{100, 1}}}}), "logit_bias");
  EXPECT_EQ(rejected_param({.prompt = {1}, .sampling = {.logit_bias = {{7, 1}, {9, 1}, {7, 2}}}}),
            "logit_bias");
  EXPECT_EQ(rejected_param({.prompt = {1}, .sampling = {.bad_words = {{}}}}), "bad_words");
  EXPECT_EQ(rejected_param({.prompt = {1}, .sampling = {.allowed_token_ids = {-1}}}),
            "allowed_token_ids");
  EXPECT_EQ(rejected_param({.prompt = {1}, .sampling = {.logprobs = 21}}), "logprobs");
  EXPECT_EQ(rejected_param({.prompt = {1}, .sampling = {.prompt_logprobs = -2}}),
            "prompt_logprobs");
  EXPECT_EQ(rejected_param({.prompt = {1}, .n = 65}), "n");
  EXPECT_EQ(rejected_param({.prompt = {1}, .max_tokens = 4, .min_tokens = 5}), "min_tokens");
  EXPECT_EQ(rejected_param({.prompt = {1}, .stop_token_ids = {100}}), "stop_token_ids");
}

TEST(Request, LogprobsAreAtMostTheWholeVocabulary) {
  const RequestLimits limits{.max_model_len = 16, .vocab = 5};
  EXPECT_NO_THROW(validate({.prompt = {1}, .sampling = {.logprobs = 5}}, limits));
  EXPECT_THROW(validate({.prompt = {1}, .sampling = {.logprobs = 6}}, limits), RequestError);
  EXPECT_THROW(validate({.prompt = {1}, .sampling = {.prompt_logprobs = 6}}, limits), RequestError);
}

TEST(Request, APoolingPromptMayFillTheContext) {
  const auto pooling = [](std::vector<TokenId> prompt) {
    return Request{.prompt = std::move(prompt), .pooling = Pooling::kLast};
  };
  EXPECT_EQ(rejected_param(pooling(std::vector<TokenId>(16, 1))), "");
  EXPECT_EQ(rejected_param(pooling(std::vector<TokenId>(17, 1))), "prompt");
  EXPECT_EQ(rejected_param(pooling({100})), "prompt");
  EXPECT_EQ(rejected_param(pooling({})), "prompt");
  EXPECT_EQ(rejected_param({.prompt = {1}, .n = 2, .pooling = Pooling::kMean}), "n");
}

TEST(Request, AnEncodersTextFitsAStep) {
  const RequestLimits limits{
      .max_model_len = 16, .vocab = 100, .draws = false, .max_whole_prompt = 8};
  const auto text = [](size_t length, int second_text = 0) {
    return Request{.prompt = std::vector<TokenId>(length, 1),
                   .second_text = second_text,
                   .pooling = Pooling::kFirst};
  };
  EXPECT_NO_THROW(validate(text(8), limits));
  EXPECT_NO_THROW(validate(text(8, 7), limits));
  EXPECT_THROW(validate(text(8, 8), limits), RequestError);
  EXPECT_THROW(validate(text(8, -1), limits), RequestError);
  EXPECT_THROW(validate({.prompt = {1}}, limits), RequestError);
  try {
    validate(text(9), limits);
    ADD_FAILURE() << "was accepted";
  } catch (const RequestError& error) {
    EXPECT_EQ(error.param(), "prompt");
    EXPECT_NE(std::string(error.what()).find("--max-num-batched-tokens"), std::string::npos);
  }
}

TEST(Request, AnEmbeddingModelRejectsGeneration) {
  const RequestLimits limits{.max_model_len = 16, .vocab = 100, .draws = false};
  EXPECT_THROW(validate({.prompt = {1}}, limits), RequestError);
  EXPECT_NO_THROW(validate({.prompt = {1}, .pooling = Pooling::kMean}, limits));
}

}  // namespace
}  // namespace octavo
