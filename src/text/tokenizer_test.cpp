#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "text/testing/test_vocab.h"

namespace octavo {
namespace {

using testing::ElementsAre;

TEST(Tokenizer, EncodesAndDecodes) {
  const auto tokenizer = tokenizer_of(byte_level_vocab());
  EXPECT_THAT(tokenizer->encode("hello", false), ElementsAre(256, 257, 'o'));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{256, 257, 'o'}, false), "hello");
  EXPECT_EQ(tokenizer->vocab_size(), 260);
  EXPECT_EQ(tokenizer->token_id("<|end|>"), 258);
  EXPECT_EQ(tokenizer->token_id("nothing"), std::nullopt);
  EXPECT_EQ(tokenizer->token_id("\xFF"), std::nullopt);
  EXPECT_EQ(tokenizer->token_text(256), "he");
}

TEST(Tokenizer, BytesThatAreNotUtf8AreReplacedAndNulIsKept) {
  const auto tokenizer = tokenizer_of(byte_level_vocab());
  EXPECT_EQ(tokenizer->encode("a\xFF", false), tokenizer->encode("a\xEF\xBF\xBD", false));
  EXPECT_THAT(tokenizer->encode(std::string_view("a\0b", 3), false), ElementsAre('a', 0, 'b'));
}

TEST(Tokenizer, IdsOutsideTheVocabularyAreHarmless) {
  const auto tokenizer = tokenizer_of(byte_level_vocab());
  const std::vector<TokenId> ids = {-1, 'h', 1 << 30, 'i', 260};
  EXPECT_EQ(tokenizer->decode(ids, false), "hi");
  EXPECT_EQ(tokenizer->token_text(-1), "");
  EXPECT_FALSE(tokenizer->is_special(-1));
}

TEST(Tokenizer, SpecialTokensAreDistinguishedFromAddedOnes) {
  const auto tokenizer = tokenizer_of(byte_level_vocab());
  EXPECT_TRUE(tokenizer->is_special(258));
  EXPECT_FALSE(tokenizer->is_special(259));
  const auto ids = tokenizer->encode("a<|end|><tool>b", false);
  EXPECT_THAT(ids, ElementsAre('a', 258, 259, 'b'));
  EXPECT_EQ(tokenizer->decode(ids, true), "a<tool>b");
  EXPECT_EQ(tokenizer->decode(ids, false), "a<|end|><tool>b");
}

TEST(Tokenizer, ATextOverTheLimitIsARequestError) {
  const auto tokenizer =
      Tokenizer::from_json(tokenizer_json_from_gguf(byte_level_vocab()), {.max_text_bytes = 10});
  EXPECT_EQ(tokenizer->encode("0123456789", false).size(), 10u);
  EXPECT_THROW(tokenizer->encode("0123456789a", false), RequestError);
}

TEST(Tokenizer, AnEightMebibyteWordIsEncoded) {
  const auto tokenizer = tokenizer_of(byte_level_vocab());
  EXPECT_EQ(tokenizer->encode(std::string(8u << 20, 'l'), false).size(), 4u << 20);
}

TEST(Tokenizer, APairIsOneTextAfterTheOtherWithoutATemplate) {
  const auto pair = tokenizer_of(byte_level_vocab())->encode_pair("he", "ll<|end|>");
  EXPECT_THAT(pair.tokens, ElementsAre(256, 257, 258));
  EXPECT_EQ(pair.second_text, 0);
}

TEST(Tokenizer, BothTextsOfAPairAreChecked) {
  const auto tokenizer =
      Tokenizer::from_json(tokenizer_json_from_gguf(byte_level_vocab()), {.max_text_bytes = 4});
  EXPECT_THAT(tokenizer->encode_pair("a\xFF", "b").tokens, ElementsAre('a', 0xEF, 0xBF, 0xBD, 'b'));
  EXPECT_THROW(tokenizer->encode_pair("a", "12345"), RequestError);
  EXPECT_THROW(tokenizer->encode_pair("12345", "b"), RequestError);
}

TEST(Tokenizer, LongTextsAreCountedBeforeTheyAreEncoded) {
  const auto tokenizer = tokenizer_of(byte_level_vocab());
  const std::string digits(8u << 20, '7');
  EXPECT_TRUE(tokenizer->exceeds(digits, 8192));
  EXPECT_TRUE(tokenizer->exceeds(digits, 1u << 20));
  EXPECT_FALSE(tokenizer->exceeds(digits, 8u << 20));
  EXPECT_FALSE(tokenizer->exceeds(digits.substr(0, 1000), 10));  // encode() counts short texts
  std::string accents;
  while (accents.size() < 200'000) accents += "\xC3\xA9";
  EXPECT_TRUE(tokenizer->exceeds("x" + accents, 10'000));
}

TEST(Tokenizer, NormalizersThatDoubleTheTextAreRefused) {
  auto json = nlohmann::json::parse(tokenizer_json_from_gguf(byte_level_vocab()));
  const nlohmann::json twice = {
      {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}};
  json["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::vector(32, twice)}};
  try {
    Tokenizer::from_json(json.dump());
    FAIL();
  } catch (const SetupError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("more than 256 times as long"));
  }
}

TEST(Tokenizer, AFileThatIsNotATokenizerIsRefused) {
  for (const char* json : {"", "{", "[]", "{}", "{\"model\": 1}", "\xFF"}) {
    EXPECT_THROW(Tokenizer::from_json(json), SetupError) << json;
  }
  EXPECT_THROW(Tokenizer::from_file("/no/such/tokenizer.json"), SetupError);
}

TEST(Tokenizer, EveryPrefixOfAFileIsRefused) {
  GgufVocab vocab = byte_level_vocab();
  const std::string json = tokenizer_json_from_gguf(vocab);
  for (size_t size = 0; size < json.size(); size += 97) {
    EXPECT_THROW(Tokenizer::from_json(std::string_view(json).substr(0, size)), SetupError);
  }
}

TEST(Tokenizer, ServesManyThreads) {
  const auto tokenizer = tokenizer_of(byte_level_vocab());
  const auto expected = tokenizer->encode("hello hello", false);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) EXPECT_EQ(tokenizer->encode("hello hello", false), expected);
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace octavo
