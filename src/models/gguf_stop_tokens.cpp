#include "models/gguf_stop_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {
namespace {

constexpr size_t kMostEndIds = 1024;
constexpr int64_t kControlTokenType = 3;  // of tokenizer.ggml.token_type

constexpr auto kEndNames = std::to_array<std::string_view>({
    "<|im_end|>", "<|endoftext|>", "<|end_of_text|>",
    "<|eot_id|>", "<|eom_id|>",
    "<|end|>",  // see ends_messages_only()
    "<|return|>", "<|call|>",      "<|calls|>",
    "<|flush|>",  "<end_of_turn>", "<end_of_utterance>",
    "<eos>",      "<turn|>",       "<|tool_response>",
    "<EOT>",      "_<EOT>",        "[EOT]",
    "[EOS]",      "[e~[",          "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",
});

// Tokens of code models between files, which end a completion.
struct FileMark {
  const char* key;
  std::vector<std::string_view> names;  // used if the file has no such key
};

const std::vector<FileMark>& file_marks() {
  static const std::vector<FileMark> marks = {
      {"fim_pad_token_id", {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
      {"fim_rep_token_id", {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
      {"fim_sep_token_id", {"<|file_sep|>"}},
  };
  return marks;
}

using NamedTokens = std::map<std::string_view, uint32_t>;

bool may_be_end_name(std::string_view token) {
  constexpr size_t kLongest = 32;
  return !token.empty() && token.size() <= kLongest &&
         (token.front() == '<' || token.front() == '[' || token.front() == '_');
}

// The last token of each spelling that may be one of the names.
NamedTokens bracketed_tokens(const std::vector<std::string_view>& tokens) {
  NamedTokens found;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (may_be_end_name(tokens[i])) found[tokens[i]] = static_cast<uint32_t>(i);
  }
  return found;
}

bool is_control_token(const Gguf& gguf, uint32_t id) {
  const auto types = gguf.find_integers("tokenizer.ggml.token_type");
  return types && id < types->size() && (*types)[id] == kControlTokenType;
}

// gpt-oss and Solar Open write <|end|> after each message and have other tokens for the end of an
// answer.
bool ends_messages_only(const NamedTokens& tokens) {
  const bool calls = tokens.contains("<|call|>") || tokens.contains("<|calls|>");
  return calls && (tokens.contains("<|return|>") || tokens.contains("<|flush|>"));
}

void add_stop(std::vector<uint32_t>& ids, uint32_t id) {
  if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
}

void add_file_mark(const Gguf& gguf, const FileMark& mark, const NamedTokens& tokens,
                   std::vector<uint32_t>& ids) {
  if (const auto id = gguf.find_u32(std::string("tokenizer.ggml.") + mark.key)) {
    add_stop(ids, *id);
    return;
  }
  for (const std::string_view name : mark.names) {
    if (const auto token = tokens.find(name); token != tokens.end()) add_stop(ids, token->second);
  }
}

std::vector<uint32_t> stops_among(const Gguf& gguf, const NamedTokens& tokens) {
  std::vector<uint32_t> ids;
  for (const std::string_view name : kEndNames) {
    const auto token = tokens.find(name);
    if (token == tokens.end() || (name == "<|end|>" && ends_messages_only(tokens))) continue;
    add_stop(ids, token->second);
  }
  // In Gemma 4, </s> is a tag whatever its type.
  const auto tag = tokens.find("</s>");
  if (tag != tokens.end() && is_control_token(gguf, tag->second) &&
      !tokens.contains("<|tool_response>"))
    add_stop(ids, tag->second);
  for (const FileMark& mark : file_marks()) add_file_mark(gguf, mark, tokens, ids);
  return ids;
}

}  // namespace

std::vector<uint32_t> named_stop_tokens(const Gguf& gguf) {
  const auto tokens = gguf.find_strings("tokenizer.ggml.tokens");
  if (!tokens) return {};
  return stops_among(gguf, bracketed_tokens(*tokens));
}

std::vector<uint32_t> gguf_stop_tokens(const Gguf& gguf) {
  const auto tokens = gguf.find_strings("tokenizer.ggml.tokens");
  const NamedTokens named = tokens ? bracketed_tokens(*tokens) : NamedTokens{};
  std::vector<uint32_t> ids;
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    const auto id = gguf.find_u32(std::string("tokenizer.ggml.") + key);
    if (id) add_stop(ids, *id);
  }
  const auto more =
      gguf.find_integers("tokenizer.ggml.eos_token_ids").value_or(std::vector<int64_t>{});
  if (more.size() > kMostEndIds) {
    throw SetupError(fmt::format("{}: tokenizer.ggml.eos_token_ids has {} ids; the limit is {}",
                                 gguf.file_name(), more.size(), kMostEndIds));
  }
  for (const int64_t id : more) {
    if (id >= 0 && id <= std::numeric_limits<int32_t>::max())
      add_stop(ids, static_cast<uint32_t>(id));
  }
  // llama.cpp: even if a file names <|end|> as its end.
  const auto message_end = named.find("<|end|>");
  if (message_end != named.end() && ends_messages_only(named)) std::erase(ids, message_end->second);
  for (const uint32_t id : stops_among(gguf, named)) add_stop(ids, id);
  return ids;
}

}  // namespace octavo
