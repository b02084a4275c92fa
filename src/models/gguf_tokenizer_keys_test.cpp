#include "models/gguf_tokenizer_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/format/test_files.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Gguf with_key(std::string_view key, GgufValue value) {
  Gguf gguf("m.gguf", 3);
  gguf.add(key, value);
  return gguf;
}

TEST(GgufTokenizerKeys, ReadAndIrrelevantOnesAreKnown) {
  for (const char* key :
       {"tokenizer.ggml.pre", "tokenizer.ggml.suppress_tokens", "tokenizer.ggml.add_sep_token",
        "tokenizer.ggml.mask_token_id", "tokenizer.chat_template.tool_use", "general.name"}) {
    EXPECT_THAT(unknown_tokenizer_keys(with_key(key, uint64_t{1})), IsEmpty()) << key;
  }
}

TEST(GgufTokenizerKeys, OthersAreReported) {
  EXPECT_THAT(unknown_tokenizer_keys(with_key("tokenizer.ggml.spell_backwards", true)),
              ElementsAre("tokenizer.ggml.spell_backwards"));
}

TEST(GgufTokenizerKeys, ChangesOfTheTextAreRefusedUnlessTheyChangeNothing) {
  for (const char* key :
       {"tokenizer.ggml.remove_extra_whitespaces", "tokenizer.ggml.normalizer.lowercase",
        "tokenizer.ggml.normalizer.strip_accents"}) {
    EXPECT_THAT(unknown_tokenizer_keys(with_key(key, false)), IsEmpty()) << key;
    test_files::expect_setup_error([&] { unknown_tokenizer_keys(with_key(key, true)); }, key);
  }
  const char* table = "tokenizer.ggml.precompiled_charsmap";
  EXPECT_THAT(unknown_tokenizer_keys(with_key(table, GgufArray{GgufType::U8, 0, {}})), IsEmpty());
  test_files::expect_setup_error(
      [&] { unknown_tokenizer_keys(with_key(table, GgufArray{GgufType::U8, 4, {}})); }, table);
}

TEST(GgufTokenizerKeys, ChangesOfTheTextBelongToOneKindOfTokenizer) {
  Gguf bert = with_key("tokenizer.ggml.normalizer.lowercase", true);
  bert.add("tokenizer.ggml.model", std::string_view("bert"));
  EXPECT_THAT(unknown_tokenizer_keys(bert), IsEmpty());
  Gguf unigram = with_key("tokenizer.ggml.remove_extra_whitespaces", true);
  unigram.add("tokenizer.ggml.model", std::string_view("t5"));
  EXPECT_THAT(unknown_tokenizer_keys(unigram), IsEmpty());
  bert.add("tokenizer.ggml.remove_extra_whitespaces", true);
  test_files::expect_setup_error([&] { unknown_tokenizer_keys(bert); }, "remove_extra_whitespaces");
}

}  // namespace
}  // namespace octavo
