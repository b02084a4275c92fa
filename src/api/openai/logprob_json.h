// logprob_json.h - log probabilities in the formats of the APIs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/fields/json_text.h"
#include "scheduler/update.h"
#include "text/tokenizer.h"

namespace octavo::api {

// The text of a single token; incomplete UTF-8 becomes U+FFFD.
std::string token_as_text(const Tokenizer& tokenizer, TokenId token);

// Completions: {"text_offset","token_logprobs","tokens","top_logprobs"}, built token by token.
class CompletionLogprobs {
 public:
  // `text_offset`: characters of the choice's text so far; add() advances it.
  CompletionLogprobs(const Tokenizer& tokenizer, size_t& text_offset);
  // The prompt's first token has no probability.
  void add_first(TokenId token);
  void add(const TokenLogprobs& token);
  Json take() { return std::move(json_); }

 private:
  void add_text(const std::string& text);

  const Tokenizer& tokenizer_;
  size_t& text_offset_;
  Json json_;
};

// Chat: {"content":[{"token","logprob","bytes","top_logprobs"}]}.
Json chat_logprobs(const Tokenizer& tokenizer, std::span<const TokenLogprobs> tokens);

// vLLM's prompt_logprobs: null for the first token, then
// {"<id>":{"logprob","rank","decoded_token"}}.
Json prompt_logprobs_json(const Tokenizer& tokenizer, std::span<const TokenLogprobs> tokens);

}  // namespace octavo::api
