#include "text/gguf_vocab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "text/gguf_merges.h"
#include "text/gguf_pre_tokenizer.h"
#include "text/testing/test_vocab.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(GgufVocab, ByteLevelAddsBosAndEosIfTheFileSaysSo) {
  GgufVocab vocab = byte_level_vocab();
  EXPECT_THAT(tokenizer_of(vocab)->encode("h", true), ElementsAre('h'));
  vocab.add_bos = vocab.add_eos = true;
  EXPECT_THAT(tokenizer_of(vocab)->encode("h", true), ElementsAre(258, 'h', 258));
  EXPECT_THAT(tokenizer_of(vocab)->encode("h", false), ElementsAre('h'));
}

TEST(GgufVocab, Llama3KeepsAWordThatIsATokenRegardlessOfMerges) {
  GgufVocab vocab = byte_level_vocab();
  vocab.tokens.push_back("hex");
  vocab.types.push_back(1);
  vocab.pre = "gpt-2";
  EXPECT_THAT(tokenizer_of(vocab)->encode("hex", false), ElementsAre(256, 'x'));
  vocab.pre = "llama-bpe";
  EXPECT_THAT(tokenizer_of(vocab)->encode("hex", false), ElementsAre(260));
  EXPECT_THAT(tokenizer_of(vocab)->encode("hex", true), ElementsAre(258, 260));  // its own default
}

TEST(GgufVocab, EveryPreTokenizerLoadsAndRoundTrips) {
  const std::string text =
      "Hello wOrld's 12345 \xE4\xBD\xA0\xE5\xA5\xBD, x=1;\n\n  \t\xF0\x9F\x98\x80 end  ";
  for (const std::string_view name : gguf_pre_tokenizer_names()) {
    GgufVocab vocab = gguf_pre_tokenizer(name).is_raw ? raw_vocab() : byte_level_vocab();
    vocab.pre = name;
    const auto tokenizer = tokenizer_of(vocab);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, false), false), text) << name;
  }
  EXPECT_GT(gguf_pre_tokenizer_names().size(), 80u);
}

TEST(GgufVocab, AnUnknownPreTokenizerIsRefusedWithWhatToDo) {
  try {
    gguf_pre_tokenizer("no-such-family");
    ADD_FAILURE() << "accepted";
  } catch (const SetupError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"no-such-family\""));
    EXPECT_THAT(error.what(), HasSubstr("Use a safetensors checkpoint"));
    EXPECT_THAT(error.what(), HasSubstr("kimi-k2"));
  }
}

std::vector<std::string> digit_words(std::string_view pre, std::string_view text) {
  GgufVocab vocab = byte_level_vocab();
  vocab.pre = pre;
  // Every adjacent pair of these characters merges, so tokens end only where words do.
  const std::string letters = "123456";
  for (const char a : letters) {
    for (const char b : letters) {
      vocab.tokens.push_back({a, b}), vocab.types.push_back(1);
      vocab.merges.push_back({a, ' ', b});
    }
  }
  for (const char a : letters) {
    for (const char b : letters) {
      for (const char c : letters) {
        vocab.tokens.push_back({a, b, c}), vocab.types.push_back(1);
        vocab.merges.push_back({a, b, ' ', c});
      }
    }
  }
  const auto tokenizer = tokenizer_of(vocab);
  std::vector<std::string> found;
  for (const TokenId id : tokenizer->encode(text, false))
    found.push_back(tokenizer->token_text(id));
  return found;
}

TEST(GgufVocab, AfmoeGroupsDigitsFromTheRight) {
  EXPECT_THAT(digit_words("afmoe", "1234"), ElementsAre("1", "234"));
  EXPECT_THAT(digit_words("afmoe", "12345"), ElementsAre("12", "345"));
  EXPECT_THAT(digit_words("afmoe", "123456"), ElementsAre("123", "456"));
  EXPECT_THAT(digit_words("deepseek-v3", "1234"), ElementsAre("123", "4"));
  // A long number takes time linear in its length.
  EXPECT_EQ(digit_words("afmoe", std::string(1 << 20, '1')).size(), (size_t{1} << 20) / 3 + 1);
}

TEST(GgufVocab, Glm4KeepsAWordThatIsATokenRegardlessOfMerges) {
  GgufVocab vocab = byte_level_vocab();
  vocab.tokens.push_back("hex"), vocab.types.push_back(1);
  for (const char* pre : {"glm4", "chatglm-bpe", "kimi-k2"}) {
    vocab.pre = pre;
    EXPECT_THAT(tokenizer_of(vocab)->encode("hex", false), ElementsAre(260)) << pre;
  }
}

TEST(GgufVocab, Gemma4MergesUtf8AndAlwaysAddsBos) {
  GgufVocab vocab = raw_vocab();
  vocab.add_bos = false;  // as converted files say
  const auto tokenizer = tokenizer_of(vocab);
  const auto ids = tokenizer->encode("ab ab \u00e9\n", true);
  // <bos>, "ab", U+2581 "ab", U+2581, the two bytes of U+00E9, a line break
  EXPECT_THAT(ids, ElementsAre(2, 262, 263, 259, 3 + 0xC3, 3 + 0xA9, 3 + '\n'));
  EXPECT_EQ(tokenizer->decode(ids, true), "ab ab \u00e9\n");

  GgufVocab ollama = vocab;
  ollama.model = "llama";
  ollama.pre = "gemma4";
  ollama.scores.assign(ollama.tokens.size(), 0);
  EXPECT_THAT(tokenizer_of(ollama)->encode("ab ab \u00e9\n", true), ids);
}

TEST(GgufVocab, OfEqualMergesTheFirstCounts) {
  GgufVocab vocab = byte_level_vocab();
  vocab.tokens.push_back("el"), vocab.types.push_back(1);
  vocab.merges = {"h e", "e l", "h e"};
  EXPECT_THAT(tokenizer_of(vocab)->encode("hel", false), ElementsAre(256, 'l'));
}

TEST(GgufVocab, ARepeatedTokenIsDecodedAndTheLastOneIsEncoded) {
  GgufVocab vocab = byte_level_vocab();
  for (const char* token : {"he", "he"}) vocab.tokens.push_back(token), vocab.types.push_back(1);
  const auto tokenizer = tokenizer_of(vocab);
  EXPECT_THAT(tokenizer->encode("hello", false), ElementsAre(261, 257, 'o'));
  for (const TokenId id : {256, 260, 261})
    EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{id, 257}, false), "hell") << id;

  GgufVocab spaced = sentence_piece_vocab();
  spaced.tokens.push_back("ab"), spaced.types.push_back(1), spaced.scores.push_back(-9);
  const auto other = tokenizer_of(spaced);
  EXPECT_THAT(other->encode("aab", false), ElementsAre(259, 260, 264));
  EXPECT_EQ(other->decode(std::vector<TokenId>{262, 264}, false), "abab");
}

TEST(GgufVocab, OfEqualTokensAControlTokenIsTheOneInTexts) {
  GgufVocab vocab = byte_level_vocab();  // 258 is the control token <|end|>
  vocab.tokens.push_back("<|end|>"), vocab.types.push_back(1);
  const auto tokenizer = tokenizer_of(vocab);
  EXPECT_THAT(tokenizer->encode("<|end|>", false), ElementsAre(258));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{260}, false), "<|end|>");
  EXPECT_FALSE(tokenizer->is_special(260));
}

TEST(GgufVocab, EmptyTokensHaveNames) {
  GgufVocab vocab = byte_level_vocab();
  for (int i = 0; i < 2; ++i) vocab.tokens.push_back(""), vocab.types.push_back(1);
  const auto tokenizer = tokenizer_of(vocab);
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{260, 'x', 261}, false),
            "[EMPTY_260]x[EMPTY_261]");
}

TEST(GgufVocab, SpacesAfterSpecialTokensAreDroppedIfTheModelDoes) {
  GgufVocab vocab = byte_level_vocab();
  EXPECT_THAT(tokenizer_of(vocab)->encode("<|end|>\n x", false), ElementsAre(258, '\n', ' ', 'x'));
  vocab.strips_after_added = true;
  EXPECT_THAT(tokenizer_of(vocab)->encode("<|end|>\n x", false), ElementsAre(258, 'x'));
}

TEST(GgufVocab, SentencePieceSpacesAndBytes) {
  const auto tokenizer = tokenizer_of(sentence_piece_vocab());
  const auto ids = tokenizer->encode("ab ab\n", true);
  EXPECT_THAT(ids, ElementsAre(1, 263, 263, 3 + '\n'));
  EXPECT_EQ(tokenizer->decode(ids, true), "ab ab\n");

  GgufVocab plain = sentence_piece_vocab();
  plain.add_space_prefix = false;
  plain.add_bos = false;
  EXPECT_THAT(tokenizer_of(plain)->encode("ab ab", true), ElementsAre(262, 263));
}

TEST(GgufVocab, MergesComeBestScoreFirstThenLongestLeftPart) {
  GgufVocab vocab;
  vocab.tokens = {"a", "b", "ab", "ba", "aba"};
  vocab.scores = {-1, -2, -4, -3, -5};
  const GgufTokenList list = gguf_token_list(vocab);
  EXPECT_THAT(merges_from_scores(list.spellings, vocab.scores, list.index()),
              ElementsAre(Merge("b", "a"), Merge("a", "b"), Merge("ab", "a"), Merge("a", "ba")));
}

// Runs of one letter: every token has as many merges as letters.
GgufVocab vocab_of_runs(std::string_view letters, size_t longest) {
  GgufVocab vocab;
  vocab.model = "llama";
  for (const char letter : letters)
    for (size_t length = 1; length <= longest; ++length) vocab.tokens.emplace_back(length, letter);
  vocab.scores.assign(vocab.tokens.size(), -1);
  return vocab;
}

TEST(GgufVocab, TimeAndMemoryOfFindingMergesAreBounded) {
  EXPECT_THROW(tokenizer_json_from_gguf(vocab_of_runs("a", 4096)), SetupError);
  const GgufVocab many =
      vocab_of_runs("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 375);
  const GgufTokenList list = gguf_token_list(many);
  EXPECT_THROW(merges_from_scores(list.spellings, many.scores, list.index()), SetupError);
}

TEST(GgufVocab, InvalidVocabulariesAreRefused) {
  const std::vector<std::pair<const char*, std::function<void(GgufVocab&)>>> faults = {
      {"model", [](GgufVocab& v) { v.model = "rwkv"; }},
      {"pre", [](GgufVocab& v) { v.pre = "unheard-of"; }},
      {"no tokens", [](GgufVocab& v) { v.tokens.clear(); }},
      {"types", [](GgufVocab& v) { v.types.pop_back(); }},
      {"scores", [](GgufVocab& v) { v.scores = {1.0f}; }},
      {"bos", [](GgufVocab& v) { v.bos = 260; }},
      {"eos", [](GgufVocab& v) { v.eos = 1 << 30; }},
      {"unk", [](GgufVocab& v) { v.unk = 260; }},
      {"pad", [](GgufVocab& v) { v.pad = 260; }},
      {"bos missing", [](GgufVocab& v) { v.bos = -1, v.add_bos = true; }},
      {"token repeated often",
       [](GgufVocab& v) { std::fill_n(v.tokens.begin(), 100, v.tokens[2]); }},
      {"repeat mark", [](GgufVocab& v) { v.tokens[1] = "\U0010FFFF"; }},
      {"token not UTF-8", [](GgufVocab& v) { v.tokens[1] = "\xFF"; }},
      {"long token", [](GgufVocab& v) { v.tokens[1] = std::string(1 << 20, 'x'); }},
      {"no merges", [](GgufVocab& v) { v.merges.clear(); }},
      {"empty merge", [](GgufVocab& v) { v.merges.push_back(""); }},
      {"merge of one", [](GgufVocab& v) { v.merges.push_back("he"); }},
      {"merge of unknown", [](GgufVocab& v) { v.merges.push_back("h \xE4\xBD\xA0"); }},
      {"merge to unknown", [](GgufVocab& v) { v.merges.push_back("h i"); }},
      {"no scores", [](GgufVocab& v) { v.model = "llama"; }},
      {"sep", [](GgufVocab& v) { v.sep = 260; }},
      {"cls", [](GgufVocab& v) { v.cls = 260; }},
      {"NaN score", [](GgufVocab& v) { v.model = "llama", v.scores.assign(260, NAN); }},
  };
  for (const auto& [name, damage] : faults) {
    GgufVocab vocab = byte_level_vocab();
    damage(vocab);
    EXPECT_THROW(tokenizer_json_from_gguf(vocab), SetupError) << name;
  }
}

}  // namespace
}  // namespace octavo
