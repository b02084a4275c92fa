#include "text/gguf_word_piece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "text/testing/test_vocab.h"

namespace octavo {
namespace {

using testing::ElementsAre;

TEST(GgufWordPiece, WordsAreLowercasedAndSplit) {
  const auto tokenizer = tokenizer_of(word_piece_vocab());
  EXPECT_THAT(tokenizer->encode("Unbelievable\u00C1!", true), ElementsAre(2, 1, 8, 3));
  EXPECT_THAT(tokenizer->encode(" UNbelievable! \u00C1\n", true), ElementsAre(2, 4, 5, 6, 8, 7, 3));
  EXPECT_THAT(tokenizer->encode("a", false), ElementsAre(7));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{2, 4, 5, 6, 8, 3}, true), "unbelievable!");
}

TEST(GgufWordPiece, SpecialTokensAreRecognised) {
  const auto tokenizer = tokenizer_of(word_piece_vocab());
  EXPECT_THAT(tokenizer->encode("a[SEP]a", false), ElementsAre(7, 3, 7));
  EXPECT_TRUE(tokenizer->is_special(3));
  EXPECT_EQ(tokenizer->token_text(5), "##believ");
}

TEST(GgufWordPiece, APairHasTwoTypes) {
  const auto tokenizer = tokenizer_of(word_piece_vocab());
  const auto pair = tokenizer->encode_pair("a", "un!");
  EXPECT_THAT(pair.tokens, ElementsAre(2, 7, 3, 4, 8, 3));
  EXPECT_EQ(pair.second_text, 3);
  EXPECT_THAT(tokenizer->encode_pair("a", "un!", 5).tokens, ElementsAre(2, 7, 3, 4, 3));
}

TEST(GgufWordPiece, MarksMayBeNamedByOtherKeysOrByTheirSpelling) {
  GgufVocab named = word_piece_vocab();
  named.cls = named.sep = -1;
  named.bos = 2, named.eos = 3;
  GgufVocab spelled = word_piece_vocab();
  spelled.cls = spelled.sep = spelled.unk = -1;
  for (const GgufVocab& vocab : {named, spelled})
    EXPECT_THAT(tokenizer_of(vocab)->encode("a?", true), ElementsAre(2, 7, 1, 3));
  spelled.tokens[2] = "[START]";
  EXPECT_THROW(tokenizer_json_from_gguf(spelled), SetupError);
}

TEST(GgufWordPiece, AVocabularyWithCapitalsIsCased) {
  GgufVocab vocab = word_piece_vocab();
  vocab.tokens.push_back("\u2581A"), vocab.types.push_back(1);
  EXPECT_THAT(tokenizer_of(vocab)->encode("A a", false), ElementsAre(9, 7));
  vocab.lowercase = true;
  EXPECT_THAT(tokenizer_of(vocab)->encode("A a", false), ElementsAre(7, 7));
  vocab.strip_accents = false;
  EXPECT_THAT(tokenizer_of(vocab)->encode("\u00C1", false), ElementsAre(1));
}

TEST(GgufWordPiece, PiecesThatBecomeEqualKeepTheirIds) {
  GgufVocab vocab = word_piece_vocab();
  vocab.tokens.push_back("\u2581a"), vocab.types.push_back(1);
  const auto tokenizer = tokenizer_of(vocab);
  EXPECT_THAT(tokenizer->encode("a", false), ElementsAre(9));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{7}, false), "a");
}

}  // namespace
}  // namespace octavo
