#include "api/openai/logprob_json.h"

#include <algorithm>
#include <array>

#include "text/utf8.h"

namespace octavo::api {
namespace {

// JSON has no infinity; the floor is vLLM's.
float finite(float logprob) { return std::max(logprob, -9999.0F); }

Json token_json(const Tokenizer& tokenizer, TokenId token, float logprob) {
  const std::string text = token_as_text(tokenizer, token);
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", text}, {"logprob", finite(logprob)}, {"bytes", std::move(bytes)}};
}

}  // namespace

std::string token_as_text(const Tokenizer& tokenizer, TokenId token) {
  const std::array<TokenId, 1> one = {token};
  return tokenizer.decode(one, false);
}

CompletionLogprobs::CompletionLogprobs(const Tokenizer& tokenizer, size_t& text_offset)
    : tokenizer_(tokenizer),
      text_offset_(text_offset),
      json_{{"text_offset", Json::array()},
            {"token_logprobs", Json::array()},
            {"tokens", Json::array()},
            {"top_logprobs", Json::array()}} {}

void CompletionLogprobs::add_text(const std::string& text) {
  json_["text_offset"].push_back(text_offset_);
  json_["tokens"].push_back(text);
  text_offset_ += count_code_points(text);
}

void CompletionLogprobs::add_first(TokenId token) {
  add_text(token_as_text(tokenizer_, token));
  json_["token_logprobs"].push_back(nullptr);
  json_["top_logprobs"].push_back(nullptr);
}

void CompletionLogprobs::add(const TokenLogprobs& token) {
  const std::string text = token_as_text(tokenizer_, token.token);
  add_text(text);
  json_["token_logprobs"].push_back(finite(token.logprob));
  Json top = Json::object();
  for (const auto& [id, logprob] : token.top) {
    const std::string name = token_as_text(tokenizer_, id);
    // Tokens with the same text share a key; the most likely one comes first and keeps it.
    if (!top.contains(name)) top[name] = finite(logprob);
  }
  if (!top.contains(text)) top[text] = finite(token.logprob);
  json_["top_logprobs"].push_back(std::move(top));
}

Json chat_logprobs(const Tokenizer& tokenizer, std::span<const TokenLogprobs> tokens) {
  Json content = Json::array();
  for (const TokenLogprobs& token : tokens) {
    Json entry = token_json(tokenizer, token.token, token.logprob);
    entry["top_logprobs"] = Json::array();
    for (const auto& [id, logprob] : token.top)
      entry["top_logprobs"].push_back(token_json(tokenizer, id, logprob));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}};
}

Json prompt_logprobs_json(const Tokenizer& tokenizer, std::span<const TokenLogprobs> tokens) {
  Json all = Json::array({nullptr});
  for (const TokenLogprobs& token : tokens) {
    Json entry = Json::object();
    const auto add = [&](TokenId id, float logprob, int rank) {
      entry[std::to_string(id)] = {{"logprob", finite(logprob)},
                                   {"rank", rank},
                                   {"decoded_token", token_as_text(tokenizer, id)}};
    };
    int rank = 0;
    for (const auto& [id, logprob] : token.top) add(id, logprob, ++rank);
    if (!entry.contains(std::to_string(token.token))) add(token.token, token.logprob, token.rank);
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace octavo::api
