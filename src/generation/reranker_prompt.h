// reranker_prompt.h - the prompt of rerankers that are language models: Qwen3-Reranker. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "text/tokenizer.h"

namespace octavo {

// What the model was trained with; for requests without an instruction.
inline constexpr std::string_view kQwen3RerankerInstruction =
    "Given a web search query, retrieve relevant passages that answer the query";

// An empty instruction stands for kQwen3RerankerInstruction.
std::string qwen3_reranker_prompt(std::string_view instruction, std::string_view query,
                                  std::string_view document);

// The tokens of that prompt. Special tokens in the three texts are encoded as text, so that a document
// cannot end its turn. If `max_tokens` is not 0 and the prompt is longer, the end of the document is
// removed. Throws RequestError if the prompt does not fit without the document, and as encode().
std::vector<TokenId> encode_reranker_prompt(const Tokenizer& tokenizer,
                                            std::string_view instruction, std::string_view query,
                                            std::string_view document, size_t max_tokens = 0);

}  // namespace octavo
