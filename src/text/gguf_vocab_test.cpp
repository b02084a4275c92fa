#include "text/gguf_vocab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  std::string known;
  try {
    gguf_pre_tokenizer("no-such-family");
  } catch (const SetupError& error) {
    known = error.what();
  }
  EXPECT_THAT(known, HasSubstr("no-such-family"));
  known = known.substr(known.find("supported: ") + 11);
  const std::string text =
      "Hello wOrld's 12345 \xE4\xBD\xA0\xE5\xA5\xBD, x=1;\n\n  \t\xF0\x9F\x98\x80 end  ";
  int count = 0;
  for (size_t begin = 0; begin < known.size();) {
    const size_t end = std::min(known.find(", ", begin), known.size());
    GgufVocab vocab = byte_level_vocab();
    vocab.pre = known.substr(begin, end - begin);
    const auto tokenizer = tokenizer_of(vocab);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, false), false), text) << vocab.pre;
    begin = end + 2;
    ++count;
  }
  EXPECT_GT(count, 50);
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
  TokenIndex index;
  for (size_t i = 0; i < vocab.tokens.size(); ++i) index[vocab.tokens[i]] = static_cast<int>(i);
  EXPECT_THAT(merges_from_scores(vocab, index),
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
  TokenIndex index;
  for (size_t i = 0; i < many.tokens.size(); ++i) index[many.tokens[i]] = static_cast<int>(i);
  EXPECT_THROW(merges_from_scores(many, index), SetupError);
}

TEST(GgufVocab, InvalidVocabulariesAreRefused) {
  const std::vector<std::pair<const char*, std::function<void(GgufVocab&)>>> faults = {
      {"model", [](GgufVocab& v) { v.model = "t5"; }},
      {"pre", [](GgufVocab& v) { v.pre = "unheard-of"; }},
      {"no tokens", [](GgufVocab& v) { v.tokens.clear(); }},
      {"types", [](GgufVocab& v) { v.types.pop_back(); }},
      {"scores", [](GgufVocab& v) { v.scores = {1.0f}; }},
      {"bos", [](GgufVocab& v) { v.bos = 260; }},
      {"eos", [](GgufVocab& v) { v.eos = 1 << 30; }},
      {"unk", [](GgufVocab& v) { v.unk = 260; }},
      {"pad", [](GgufVocab& v) { v.pad = 260; }},
      {"bos missing", [](GgufVocab& v) { v.bos = -1, v.add_bos = true; }},
      {"repeated token", [](GgufVocab& v) { v.tokens[1] = v.tokens[2]; }},
      {"token not UTF-8", [](GgufVocab& v) { v.tokens[1] = "\xFF"; }},
      {"long token", [](GgufVocab& v) { v.tokens[1] = std::string(1 << 20, 'x'); }},
      {"no merges", [](GgufVocab& v) { v.merges.clear(); }},
      {"empty merge", [](GgufVocab& v) { v.merges.push_back(""); }},
      {"merge of one", [](GgufVocab& v) { v.merges.push_back("he"); }},
      {"merge of unknown", [](GgufVocab& v) { v.merges.push_back("h \xE4\xBD\xA0"); }},
      {"merge to unknown", [](GgufVocab& v) { v.merges.push_back("h i"); }},
      {"no scores", [](GgufVocab& v) { v.model = "llama"; }},
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
