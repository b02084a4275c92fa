#include "text/special_token_marks.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/testing/test_vocab.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

const std::string kMark = "\xEF\xB7\x90";  // U+FDD0

SpecialTokenMarks end_marks() {
  return SpecialTokenMarks(std::vector<std::string>{"<|end|>", "<|start|>", "x", "user_token"});
}

TEST(SpecialTokenMarks, MarksTokensInStringsAndKeys) {
  ordered_json value = {{"a", "1<|end|>2<|start|>"}, {"<|end|>", {{"b", {"<|end|>", 7}}}}};
  EXPECT_EQ(end_marks().mark({&value}), char32_t{0xFDD0});
  const ordered_json expected = {{"a", "1<" + kMark + "|end|>2<" + kMark + "|start|>"},
                                 {"<" + kMark + "|end|>", {{"b", {"<" + kMark + "|end|>", 7}}}}};
  EXPECT_EQ(value, expected);
}

TEST(SpecialTokenMarks, LeavesOtherTextAlone) {
  const ordered_json before = {{"role", "user"}, {"content", "x <|en d|> <tool> </think> a < b"}};
  ordered_json value = before;
  EXPECT_EQ(end_marks().mark({&value}), char32_t{0});
  EXPECT_EQ(value, before);
}

TEST(SpecialTokenMarks, ATokenCannotBeSplitOverTwoStrings) {
  ordered_json value = ordered_json::array({"a<|en", "d|>"});
  EXPECT_NE(end_marks().mark({&value}), char32_t{0});
  EXPECT_EQ(value, ordered_json::array({"a<" + kMark + "|en", "d|>"}));
}

TEST(SpecialTokenMarks, TheMarkerIsNotInTheInput) {
  ordered_json value = ordered_json::array({"<|end|>", kMark, "\\ufdd1"});
  EXPECT_EQ(end_marks().mark({&value}), char32_t{0xFDD2});
  ordered_json all = ordered_json::array({"<|end|>"});
  for (int i = 0; i < 32; ++i) all.push_back(kMark.substr(0, 2) + static_cast<char>(0x90 + i));
  EXPECT_THROW(end_marks().mark({&all}), RequestError);
}

TEST(SpecialTokenMarks, MarkersThatATemplateEscapedAreRestored) {
  std::string text = "\"<\\ufdd0|end|>\"";
  restore_marker(text, char32_t{0xFDD0});
  EXPECT_EQ(text, "\"<" + kMark + "|end|>\"");
  EXPECT_EQ(without_marker(text, char32_t{0xFDD0}), "\"<|end|>\"");
  EXPECT_EQ(without_marker(text, 0), text);
}

// The ids of a rendered chat: those of the template's tokens, and the content's bytes.
TEST(SpecialTokenMarks, ContentIsEncodedAsText) {
  const auto tokenizer = tokenizer_of(byte_level_vocab());
  const SpecialTokenMarks marks(tokenizer->special_tokens());
  ordered_json messages = ordered_json::array({{{"role", "user"}, {"content", "a<|end|>"}}});
  const char32_t marker = marks.mark({&messages});
  const auto chat = ChatTemplate::from_source({.source = "{{ messages[0].content }}<|end|><tool>"});
  const auto ids = tokenizer->encode_marked(chat->render(messages, {}), marker, false);
  std::vector<TokenId> expected;
  for (const char byte : std::string("a<|end|>")) expected.push_back(byte);
  expected.push_back(258);
  expected.push_back(259);
  EXPECT_EQ(ids, expected);
}

}  // namespace
}  // namespace octavo
