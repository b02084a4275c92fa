#include "models/gguf_tokenizer_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"

namespace octavo {
namespace {

constexpr std::string_view kTokenizerPrefix = "tokenizer.";
constexpr std::string_view kNamedTemplate = "tokenizer.chat_template.";

// Read by load_model_text(), gguf_stop_tokens() and suppressed_token_ids().
constexpr auto kReadTokenizerKeys = std::to_array<std::string_view>({
    "tokenizer.ggml.model",
    "tokenizer.ggml.pre",
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.token_type",
    "tokenizer.ggml.scores",
    "tokenizer.ggml.merges",
    "tokenizer.ggml.bos_token_id",
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.eos_token_ids",
    "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.eom_token_id",
    "tokenizer.ggml.unknown_token_id",
    "tokenizer.ggml.padding_token_id",
    "tokenizer.ggml.seperator_token_id",
    "tokenizer.ggml.cls_token_id",
    "tokenizer.ggml.fim_pad_token_id",
    "tokenizer.ggml.fim_rep_token_id",
    "tokenizer.ggml.fim_sep_token_id",
    "tokenizer.ggml.add_bos_token",
    "tokenizer.ggml.add_eos_token",
    "tokenizer.ggml.add_sep_token",
    "tokenizer.ggml.add_space_prefix",
    "tokenizer.ggml.suppress_tokens",
    "tokenizer.chat_template",
    "tokenizer.chat_templates",
});

struct IrrelevantTokenizerKey {
  std::string_view name;
  std::string_view reason;
};

constexpr auto kIrrelevantTokenizerKeys = std::to_array<IrrelevantTokenizerKey>({
    {"tokenizer.ggml.mask_token_id", "masked language models only"},
    {"tokenizer.ggml.token_type_count", "segments of BERT models"},
    {"tokenizer.ggml.fim_pre_token_id", "infill requests, which octavo does not have"},
    {"tokenizer.ggml.fim_suf_token_id", "infill requests, which octavo does not have"},
    {"tokenizer.ggml.fim_mid_token_id", "infill requests, which octavo does not have"},
    {"tokenizer.ggml.prefix_token_id", "an old name of fim_pre_token_id"},
    {"tokenizer.ggml.suffix_token_id", "an old name of fim_suf_token_id"},
    {"tokenizer.ggml.middle_token_id", "an old name of fim_mid_token_id"},
    {"tokenizer.huggingface.json", "a copy of the vocabulary; llama.cpp does not read it either"},
    {"tokenizer.rwkv.world", "RWKV models only"},
});

// Changes of the text before it is tokenized, which one kind of tokenizer makes. Without them (false,
// or an empty table) the files are as all others.
struct TextChange {
  std::string_view name;
  std::string_view model;  // tokenizer.ggml.model
};

constexpr auto kTextChanges = std::to_array<TextChange>({
    {"tokenizer.ggml.remove_extra_whitespaces", "t5"},
    {"tokenizer.ggml.precompiled_charsmap", "t5"},
    {"tokenizer.ggml.normalizer.lowercase", "bert"},
    {"tokenizer.ggml.normalizer.strip_accents", "bert"},
});

bool leaves_text_alone(const GgufValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return !*flag;
  if (const auto* table = std::get_if<GgufArray>(&value)) return table->count == 0;
  return false;
}

bool is_known_tokenizer_key(std::string_view key) {
  const auto irrelevant =
      std::ranges::find(kIrrelevantTokenizerKeys, key, &IrrelevantTokenizerKey::name);
  return irrelevant != kIrrelevantTokenizerKeys.end() || key.starts_with(kNamedTemplate) ||
         std::ranges::find(kReadTokenizerKeys, key) != kReadTokenizerKeys.end();
}

}  // namespace

std::vector<std::string> unknown_tokenizer_keys(const Gguf& gguf) {
  const auto model = gguf.find_string("tokenizer.ggml.model");
  std::vector<std::string> unknown;
  for (const auto& [key, value] : gguf.values()) {
    if (!key.starts_with(kTokenizerPrefix) || is_known_tokenizer_key(key)) continue;
    const auto change = std::ranges::find(kTextChanges, key, &TextChange::name);
    if (change == kTextChanges.end()) {
      unknown.emplace_back(key);
    } else if (model != change->model && !leaves_text_alone(value)) {
      throw SetupError(
          fmt::format("{}: {} changes texts before they are tokenized, which is not supported. Use "
                      "a safetensors "
                      "checkpoint of this model, whose tokenizer.json octavo reads",
                      gguf.file_name(), key));
    }
  }
  return unknown;
}

}  // namespace octavo
