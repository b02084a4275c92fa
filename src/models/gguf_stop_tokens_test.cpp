#include "models/gguf_stop_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/format/gguf.h"
#include "models/format/test_files.h"
#include "models/gguf_tokenizer_keys.h"

namespace octavo {
namespace {

using test_files::gguf_string;
using test_files::gguf_value;
using test_files::le;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint32_t kU32 = 4, kI32 = 5, kStringType = 8, kArrayType = 9;

std::string strings(std::string_view key, const std::vector<std::string>& values) {
  std::string bytes =
      gguf_string(key) + le(kArrayType) + le(kStringType) + le(uint64_t{values.size()});
  for (const std::string& value : values) bytes += gguf_string(value);
  return bytes;
}

std::string integers(std::string_view key, const std::vector<int32_t>& values) {
  std::string bytes = gguf_string(key) + le(kArrayType) + le(kI32) + le(uint64_t{values.size()});
  for (const int32_t value : values) bytes += le(value);
  return bytes;
}

std::vector<uint32_t> stops(std::vector<std::string> values) {
  const test_files::GgufParts parts{.values = std::move(values)};
  const auto file = test_files::exact(parts.file());
  return gguf_stop_tokens(parse_gguf(file, "m.gguf").metadata);
}

std::vector<uint32_t> stops_of(const std::vector<std::string>& tokens) {
  return stops({strings("tokenizer.ggml.tokens", tokens)});
}

TEST(GgufStopTokens, IdsComeFirstAndEachOnce) {
  EXPECT_THAT(stops({gguf_value("tokenizer.ggml.eos_token_id", kU32, uint32_t{7}),
                     gguf_value("tokenizer.ggml.eot_token_id", kU32, uint32_t{3}),
                     gguf_value("tokenizer.ggml.eom_token_id", kU32, uint32_t{7}),
                     integers("tokenizer.ggml.eos_token_ids", {3, 9, -1})}),
              ElementsAre(7, 3, 9));
  EXPECT_THAT(stops({}), IsEmpty());
}

TEST(GgufStopTokens, EndsOfTurnsAreFoundByName) {
  EXPECT_THAT(stops_of({"a", "<|im_end|>", "<|im_start|>", "<|endoftext|>"}), ElementsAre(1, 3));
  EXPECT_THAT(stops_of({"<eos>", "<start_of_turn>", "<end_of_turn>"}), ElementsAre(2, 0));
  EXPECT_THAT(stops_of({"<\uFF5Cend\u2581of\u2581sentence\uFF5C>"}), ElementsAre(0));
  EXPECT_THAT(stops_of({"<|im_end|", "im_end", "<|IM_END|>", ""}), IsEmpty());
}

TEST(GgufStopTokens, MarksBetweenFilesEndACompletion) {
  EXPECT_THAT(stops_of({"<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|fim_prefix|>"}),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(stops({strings("tokenizer.ggml.tokens", {"<|fim_pad|>", "x"}),
                     gguf_value("tokenizer.ggml.fim_pad_token_id", kU32, uint32_t{1})}),
              ElementsAre(1));
}

// In gpt-oss, <|end|> closes the reasoning, and the answer follows.
TEST(GgufStopTokens, EndIsNotTheEndIfAnswersHaveAnother) {
  EXPECT_THAT(stops_of({"<|end|>"}), ElementsAre(0));
  EXPECT_THAT(stops_of({"<|end|>", "<|return|>", "<|call|>"}), ElementsAre(1, 2));
  EXPECT_THAT(stops_of({"<|end|>", "<|flush|>", "<|calls|>"}), ElementsAre(2, 1));
  EXPECT_THAT(stops_of({"<|end|>", "<|return|>"}), ElementsAre(0, 1));
  EXPECT_THAT(stops({strings("tokenizer.ggml.tokens", {"<|end|>", "<|return|>", "<|call|>"}),
                     gguf_value("tokenizer.ggml.eot_token_id", kU32, uint32_t{0})}),
              ElementsAre(1, 2));
}

TEST(GgufStopTokens, TheTagOfHtmlIsAnEndOnlyAsAControlToken) {
  const auto typed = [](int32_t type, std::vector<std::string> tokens) {
    std::vector<int32_t> types(tokens.size(), 1);
    types[0] = type;
    return stops(
        {strings("tokenizer.ggml.tokens", tokens), integers("tokenizer.ggml.token_type", types)});
  };
  EXPECT_THAT(typed(3, {"</s>", "a"}), ElementsAre(0));
  EXPECT_THAT(typed(4, {"</s>", "a"}), IsEmpty());
  EXPECT_THAT(typed(3, {"</s>", "<|tool_response>"}), ElementsAre(1));
}

TEST(GgufStopTokens, DamagedHeadersAreReadOrRefused) {
  const test_files::GgufParts parts{
      .values = {strings("tokenizer.ggml.tokens", {"<|im_end|>", "</s>", "<|fim_pad|>", "a", ""}),
                 integers("tokenizer.ggml.token_type", {3, 3, 3, 1, 1}),
                 integers("tokenizer.ggml.eos_token_ids", {1, 2}),
                 gguf_value("tokenizer.ggml.eos_token_id", kU32, uint32_t{0}),
                 gguf_value("tokenizer.ggml.fim_pad_token_id", kU32, uint32_t{2})}};
  const int refused = test_files::mutate(parts.file(), [](std::vector<std::byte> bytes) {
    const GgufFile file = parse_gguf(bytes, "m.gguf");
    gguf_stop_tokens(file.metadata);
    unknown_tokenizer_keys(file.metadata);
  });
  EXPECT_GT(refused, 1000);
}

TEST(GgufStopTokens, TooManyAreRefused) {
  test_files::expect_setup_error(
      [] { stops({integers("tokenizer.ggml.eos_token_ids", std::vector<int32_t>(2000, 1))}); },
      "eos_token_ids has 2000 ids; the limit is 1024");
}

}  // namespace
}  // namespace octavo
