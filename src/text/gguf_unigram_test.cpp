#include "text/gguf_unigram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "text/testing/test_vocab.h"

namespace octavo {
namespace {

using testing::ElementsAre;

TEST(GgufUnigram, TheBestPathOfScoresWins) {
  const auto tokenizer = tokenizer_of(unigram_vocab());
  EXPECT_THAT(tokenizer->encode("ab ba", true), ElementsAre(0, 8, 4, 6, 5, 2));
  EXPECT_THAT(tokenizer->encode("bab", false), ElementsAre(4, 6, 7));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{0, 8, 4, 6, 5, 2}, true), "ab ba");
}

TEST(GgufUnigram, UnknownCharactersInARowAreOneToken) {
  EXPECT_THAT(tokenizer_of(unigram_vocab())->encode("xyz", false), ElementsAre(4, 3));
}

TEST(GgufUnigram, SpacesAreMergedIfTheFileSaysSo) {
  GgufVocab vocab = unigram_vocab();
  EXPECT_THAT(tokenizer_of(vocab)->encode("  ab   ab ", false), ElementsAre(8, 8));
  vocab.remove_extra_whitespaces = false;
  EXPECT_THAT(tokenizer_of(vocab)->encode("ab  ab", false), ElementsAre(8, 4, 8));
  vocab.add_space_prefix = false;
  EXPECT_THAT(tokenizer_of(vocab)->encode("ab", false), ElementsAre(7));
}

TEST(GgufUnigram, APairHasTwoSeparatorsAndOneType) {
  const auto pair = tokenizer_of(unigram_vocab())->encode_pair("ab", "a");
  EXPECT_THAT(pair.tokens, ElementsAre(0, 8, 2, 2, 4, 5, 2));
  EXPECT_EQ(pair.second_text, 0);
}

TEST(GgufUnigram, ADamagedTableOfTheNormalizerIsRefused) {
  GgufVocab vocab = unigram_vocab();
  vocab.precompiled_charsmap = "\xFF\xFF\xFF\xFF";  // no trie follows
  EXPECT_THROW(tokenizer_of(vocab), SetupError);
}

TEST(GgufUnigram, UnusedTokensDoNotMakeUnknownOnesWorse) {
  GgufVocab vocab = unigram_vocab();
  for (const float score : {-30.0F, -10000.0F}) {
    vocab.tokens.push_back(score < -100 ? "[PAD9]" : "ccd");
    vocab.scores.push_back(score);
    vocab.types.push_back(score < -100 ? kGgufUnusedToken : 1);
  }
  const auto json = nlohmann::json::parse(tokenizer_json_from_gguf(vocab));
  EXPECT_EQ(json["model"]["vocab"][9][1], -30.0);
  EXPECT_EQ(json["model"]["vocab"][10][1], -30.0);
}

TEST(GgufUnigram, MissingIdsHaveUsualValues) {
  GgufVocab vocab = unigram_vocab();
  vocab.unk = vocab.bos = -1;
  vocab.add_bos = false;
  EXPECT_THAT(tokenizer_of(vocab)->encode("x", true), ElementsAre(4, 3, 2));
  vocab.add_bos = true;
  EXPECT_THROW(tokenizer_json_from_gguf(vocab), SetupError);
  vocab = unigram_vocab();
  vocab.scores.clear();
  EXPECT_THROW(tokenizer_json_from_gguf(vocab), SetupError);
  vocab.scores.assign(vocab.tokens.size(), NAN);
  EXPECT_THROW(tokenizer_json_from_gguf(vocab), SetupError);
}

}  // namespace
}  // namespace octavo
