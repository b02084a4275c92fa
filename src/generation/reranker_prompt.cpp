#include "generation/reranker_prompt.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/special_token_marks.h"

namespace octavo {
namespace {

constexpr std::string_view kOpening =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the "
    "Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n";
// Starts with a special token, so its tokens do not depend on the document.
constexpr std::string_view kClosing = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";

// All before kClosing.
std::string question(std::string_view instruction, std::string_view query,
                     std::string_view document) {
  if (instruction.empty()) instruction = kQwen3RerankerInstruction;
  return fmt::format("{}<Instruct>: {}\n<Query>: {}\n<Document>: {}", kOpening, instruction, query,
                     document);
}

std::vector<TokenId> encode_question(const Tokenizer& tokenizer, std::string_view instruction,
                                     std::string_view query, std::string_view document) {
  nlohmann::ordered_json texts = {std::string(instruction), std::string(query),
                                  std::string(document)};
  const char32_t marker = SpecialTokenMarks(tokenizer.special_tokens()).mark({&texts});
  const auto text = [&](size_t i) -> const std::string& {
    return texts[i].get_ref<const std::string&>();
  };
  return tokenizer.encode_marked(question(text(0), text(1), text(2)), marker, false);
}

}  // namespace

std::string qwen3_reranker_prompt(std::string_view instruction, std::string_view query,
                                  std::string_view document) {
  return question(instruction, query, document).append(kClosing);
}

std::vector<TokenId> encode_reranker_prompt(const Tokenizer& tokenizer,
                                            std::string_view instruction, std::string_view query,
                                            std::string_view document, size_t max_tokens) {
  std::vector<TokenId> tokens = encode_question(tokenizer, instruction, query, document);
  const std::vector<TokenId> closing = tokenizer.encode(kClosing, false);
  if (max_tokens != 0 && tokens.size() + closing.size() > max_tokens) {
    const size_t needed =
        encode_question(tokenizer, instruction, query, "").size() + closing.size();
    if (needed > max_tokens) {
      throw RequestError(
          400, "truncate_prompt_tokens",
          fmt::format(
              "must be at least {}, the number of tokens of the prompt without the document",
              needed));
    }
    tokens.resize(max_tokens - closing.size());
  }
  tokens.insert(tokens.end(), closing.begin(), closing.end());
  return tokens;
}

}  // namespace octavo
