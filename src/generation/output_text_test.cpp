#include "generation/output_text.h"

#include <gtest/gtest.h>

#include "text/testing/shown_parts.h"
#include "text/testing/test_vocab.h"

namespace octavo {
namespace {

constexpr TokenId kEnd = 258;  // a special token of byte_level_vocab(); ids below 256 are bytes

OutputText output_text(OutputTextOptions options) {
  return OutputText(tokenizer_of(byte_level_vocab()), std::move(options));
}

Update tokens(std::vector<TokenId> ids, std::optional<FinishReason> finish = {}) {
  return {.tokens = std::move(ids), .finish = finish};
}

TEST(OutputText, TextIsReturnedOnceItIsFinal) {
  OutputText text = output_text({});
  EXPECT_EQ(text.take(tokens({'a'})).text, "a");
  EXPECT_EQ(text.take(tokens({0xC3})).text, "");
  EXPECT_EQ(text.take(tokens({0xA9})).text, "\xC3\xA9");
  const auto last = text.take(tokens({'b'}, FinishReason::kLength));
  EXPECT_EQ(last.text, "b");
  EXPECT_EQ(last.finish, FinishReason::kLength);
}

TEST(OutputText, AStopTokenCountsButIsNotText) {
  OutputText text = output_text({});
  const auto last = text.take(tokens({'a', 'x'}, FinishReason::kStop));
  EXPECT_EQ(last.text, "a");
  EXPECT_EQ(last.tokens, 2u);
  OutputText included = output_text({.include_stop_str_in_output = true});
  EXPECT_EQ(included.take(tokens({'a', 'x'}, FinishReason::kStop)).text, "ax");
}

TEST(OutputText, AStopStringAcrossTokensIsHeldBackAndEndsTheAnswer) {
  OutputText text = output_text({.stop = {"xyz"}});
  EXPECT_EQ(text.take(tokens({'a', 'x'})).text, "a");
  EXPECT_EQ(text.take(tokens({'y'})).text, "");
  const auto ended = text.take(tokens({'z', 'b'}));
  EXPECT_EQ(ended.text, "");
  EXPECT_EQ(ended.stop_string, "xyz");
  EXPECT_EQ(ended.finish, FinishReason::kStop);
  EXPECT_EQ(ended.tokens, 1u);  // tokens after it do not count
  EXPECT_FALSE(text.take(tokens({'c'}, FinishReason::kAbort)).finish.has_value());
}

TEST(OutputText, APartialStopStringIsReleased) {
  OutputText text = output_text({.stop = {"xyz"}});
  EXPECT_EQ(text.take(tokens({'x'})).text, "");
  EXPECT_EQ(text.take(tokens({'y'}, FinishReason::kLength)).text, "xy");
}

TEST(OutputText, AnAbortDropsHeldBackText) {
  OutputText text = output_text({.stop = {"xyz"}});
  text.take(tokens({'x'}));
  const auto last = text.take(tokens({}, FinishReason::kAbort));
  EXPECT_EQ(last.text, "");
  EXPECT_EQ(last.finish, FinishReason::kAbort);
}

TEST(OutputText, SpecialTokensAreShownOnlyOnRequest) {
  OutputText hidden = output_text({});
  EXPECT_EQ(hidden.take(tokens({kEnd, 'a'}, FinishReason::kLength)).text, "a");
  OutputText shown = output_text({.skip_special_tokens = false});
  EXPECT_EQ(shown.take(tokens({kEnd, 'a'}, FinishReason::kLength)).text, "<|end|>a");
}

OutputTextOptions chat_options(std::vector<std::string> stop = {}) {
  auto chat = std::make_shared<ChatAnswer>();
  chat->parser.dialect = {.tools = &kHermes, .reasoning = &kQwen3Reasoning};
  chat->parser.tools = {{"f", nlohmann::ordered_json::object()}};
  return {.stop = std::move(stop), .chat = std::move(chat)};
}

Update text_update(std::string_view text, std::optional<FinishReason> finish = {}) {
  return tokens({text.begin(), text.end()}, finish);
}

TEST(ChatOutputText, SeparatesContentReasoningAndCalls) {
  OutputText text = output_text(chat_options());
  const std::string raw = "<think>a</think>b<tool_call>{\"name\":\"f\"}</tool_call>";
  const auto delta = text.take(text_update(raw + "x", FinishReason::kStop));
  EXPECT_EQ(shown_parts(delta.parts), "[a]|b|f({})");
  EXPECT_EQ(delta.text, raw);
  EXPECT_FALSE(delta.ended_early);
}

TEST(ChatOutputText, TokensOfReasoningAreCounted) {
  OutputText text = output_text(chat_options());
  // From the token that completes the opening marker to the one that completes the closing one.
  EXPECT_EQ(text.take(text_update("<think>ab")).reasoning_tokens, 3u);
  EXPECT_EQ(text.take(text_update("c</think>d")).reasoning_tokens, 9u);
  EXPECT_EQ(text.take(text_update("e", FinishReason::kLength)).reasoning_tokens, 0u);
}

TEST(ChatOutputText, StopStringsAreSearchedInTheContent) {
  OutputText text = output_text(chat_options({"END"}));
  const auto thinking = text.take(text_update("<think>END</think>"));
  EXPECT_EQ(shown_parts(thinking.parts), "[END]");
  const auto ended = text.take(text_update("abEND and more"));
  EXPECT_EQ(shown_parts(ended.parts), "ab");
  EXPECT_EQ(ended.stop_string, "END");
  EXPECT_TRUE(ended.ended_early);
  EXPECT_EQ(ended.tokens, 5u);
}

TEST(ChatOutputText, HeldBackTextComesBeforeACall) {
  OutputText text = output_text(chat_options({"END"}));
  std::vector<OutputPart> parts = text.take(text_update("aEN<tool_call>")).parts;
  append_parts(parts, text.take(text_update("{\"name\":\"f\"}b", FinishReason::kLength)).parts);
  EXPECT_EQ(shown_parts(parts), "aEN|f({})|b");
}

TEST(ChatOutputText, TheLastAllowedCallEndsTheOutput) {
  OutputTextOptions options = chat_options();
  auto one = std::make_shared<ChatAnswer>(*options.chat);
  one->parser.max_calls = 1;
  options.chat = one;
  OutputText text = output_text(options);
  const auto delta = text.take(text_update("<tool_call>{\"name\":\"f\"}</tool_call>more"));
  EXPECT_EQ(shown_parts(delta.parts), "f({})");
  EXPECT_EQ(delta.finish, FinishReason::kStop);
  EXPECT_TRUE(delta.ended_early);
}

TEST(ChatOutputText, SpecialTokensThatAreMarkersAreSeen) {
  OutputTextOptions options = chat_options();
  auto marked = std::make_shared<ChatAnswer>(*options.chat);
  marked->markers = {kEnd};
  options.chat = marked;
  OutputText text = output_text(options);
  EXPECT_EQ(text.take(tokens({'a', kEnd}, FinishReason::kLength)).text, "a<|end|>");
}

}  // namespace
}  // namespace octavo
