#include "engine/speculative_config.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace octavo {
namespace {

std::string complaint(const char* json) {
  try {
    parse_speculative_config(json);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

TEST(SpeculativeConfig, ReadsVllmsNames) {
  const auto ngram = parse_speculative_config(
      R"({"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4,
          "prompt_lookup_min": 2})");
  EXPECT_EQ(ngram.method, SpeculativeMethod::kNgram);
  EXPECT_EQ(ngram.num_speculative_tokens, 5);
  EXPECT_EQ(ngram.prompt_lookup_max, 4);
  EXPECT_EQ(ngram.prompt_lookup_min, 2);
  EXPECT_TRUE(ngram.asked);
  const auto model = parse_speculative_config(R"({"model": "draft", "num_speculative_tokens": 4})");
  EXPECT_EQ(model.method, SpeculativeMethod::kDraftModel);
  EXPECT_EQ(model.model, "draft");
  EXPECT_EQ(parse_speculative_config(R"({"method": "none"})").method, SpeculativeMethod::kNone);
  const auto mtp = parse_speculative_config(R"({"method": "mtp"})");
  EXPECT_EQ(mtp.method, SpeculativeMethod::kMtp);
  EXPECT_EQ(mtp.num_speculative_tokens, 1);
}

TEST(SpeculativeConfig, ErrorsNameTheKey) {
  EXPECT_NE(complaint("5").find("JSON object"), std::string::npos);
  EXPECT_NE(complaint(R"({"method": "eagle"})").find("ngram"), std::string::npos);
  EXPECT_NE(complaint(R"({"num_speculative_tokens": 0})").find("from 1"), std::string::npos);
  EXPECT_NE(complaint(R"({"prompt_lookup_max": 2, "prompt_lookup_min": 3})").find("above"),
            std::string::npos);
  EXPECT_NE(complaint(R"({"method": "draft_model"})").find("model"), std::string::npos);
  EXPECT_NE(complaint(R"({"method": "mtp", "num_speculative_tokens": 2})").find("must be 1"),
            std::string::npos);
  EXPECT_NE(complaint(R"({"tokens": 3})").find("supported keys are"), std::string::npos);
}

}  // namespace
}  // namespace octavo
