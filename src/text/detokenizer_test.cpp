#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "text/testing/test_vocab.h"
#include "text/utf8.h"

namespace octavo {
namespace {

std::string stream(Detokenizer& detokenizer, const std::vector<TokenId>& ids) {
  std::string text;
  for (const TokenId id : ids) {
    const std::string delta = detokenizer.push(id);
    EXPECT_TRUE(is_valid_utf8(delta));
    text += delta;
  }
  return text + detokenizer.finish();
}

TEST(Detokenizer, HoldsACharacterUntilItsLastByte) {
  Detokenizer detokenizer(tokenizer_of(byte_level_vocab()), false);
  EXPECT_EQ(detokenizer.push('a'), "a");
  EXPECT_EQ(detokenizer.push(0xF0), "");
  EXPECT_EQ(detokenizer.push(0x9F), "");
  EXPECT_EQ(detokenizer.push(0x98), "");
  EXPECT_EQ(detokenizer.push(0x80), "\xF0\x9F\x98\x80");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, InvalidBytesAreNotHeldForever) {
  Detokenizer detokenizer(tokenizer_of(byte_level_vocab()), false);
  std::string text;
  for (int i = 0; i < 100; ++i) text += detokenizer.push(0xFF);
  EXPECT_GE(text.size(), 97 * kReplacementCharacter.size());
  text += detokenizer.push('x');
  EXPECT_EQ(text.size(), 100 * kReplacementCharacter.size() + 1);
}

TEST(Detokenizer, AnUnfinishedCharacterComesOutAtTheEnd) {
  Detokenizer detokenizer(tokenizer_of(byte_level_vocab()), false);
  EXPECT_EQ(detokenizer.push(0xE4), "");
  EXPECT_EQ(detokenizer.finish(), kReplacementCharacter);
}

TEST(Detokenizer, RandomBytesMatchDecodingAtOnce) {
  const auto tokenizer = tokenizer_of(byte_level_vocab());
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<TokenId> ids(std::uniform_int_distribution<size_t>(0, 120)(random));
    // Mostly bytes of multi-byte characters, valid and invalid.
    for (TokenId& id : ids) {
      const int kind = std::uniform_int_distribution<int>(0, 3)(random);
      id = kind == 0   ? std::uniform_int_distribution<int>(0, 259)(random)
           : kind == 1 ? std::uniform_int_distribution<int>(0xE0, 0xF4)(random)
                       : std::uniform_int_distribution<int>(0x80, 0xBF)(random);
    }
    for (const bool skip : {false, true}) {
      Detokenizer detokenizer(tokenizer, skip);
      EXPECT_EQ(stream(detokenizer, ids), tokenizer->decode(ids, skip));
    }
  }
}

TEST(Detokenizer, SpacesOfSentencePieceStayWhereTheyAre) {
  const auto tokenizer = tokenizer_of(sentence_piece_vocab());
  const TokenId mark = 259, word = 263;
  // A special token between words must not make the next word look like the first.
  const std::vector<TokenId> ids = {1, word, 2, word, mark, word, word};
  for (const bool skip : {false, true}) {
    Detokenizer detokenizer(tokenizer, skip);
    EXPECT_EQ(stream(detokenizer, ids), tokenizer->decode(ids, skip));
  }
  EXPECT_EQ(tokenizer->decode(ids, true), "ab ab  ab ab");
}

TEST(Detokenizer, ManySkippedTokensDoNotMakeTheNextWordTheFirst) {
  const TokenId word = 263;
  std::vector<TokenId> ids(100, 2);
  ids.front() = ids.back() = word;
  Detokenizer detokenizer(tokenizer_of(sentence_piece_vocab()), true);
  EXPECT_EQ(stream(detokenizer, ids), "ab ab");
}

TEST(Detokenizer, LongRunsOfByteTokensStream) {
  const auto tokenizer = tokenizer_of(sentence_piece_vocab());
  std::string text;
  for (int i = 0; i < 100; ++i) text += i % 2 == 0 ? "\xF0\x9F\x98\x80" : "\xE4\xBD\xA0";
  const auto ids = tokenizer->encode(text, false);
  EXPECT_GT(ids.size(), 300u);
  Detokenizer detokenizer(tokenizer, true);
  EXPECT_EQ(stream(detokenizer, ids), text);
}

}  // namespace
}  // namespace octavo
