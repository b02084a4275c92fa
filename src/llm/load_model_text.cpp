#include "llm/load_model_text.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "models/format/printable.h"
#include "models/gguf_stop_tokens.h"
#include "models/gguf_tokenizer_keys.h"
#include "text/gguf_vocab.h"

namespace octavo {
namespace {

std::vector<std::string> owned(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

int token_or_none(const Gguf& gguf, const char* key) {
  return static_cast<int>(gguf.find_u32(key).value_or(static_cast<uint32_t>(-1)));
}

// llama.cpp also goes by the name, because the files do not say how special tokens treat spaces.
bool is_phi3(const Gguf& gguf) {
  std::string name(gguf.find_string("general.name").value_or(""));
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
}

// Some converters write these as normal tokens, which would never be recognised in a prompt.
void take_stops_as_control(const Gguf& gguf, GgufVocab& vocab) {
  const auto stops = named_stop_tokens(gguf);
  if (vocab.types.empty() && !stops.empty())
    vocab.types.assign(vocab.tokens.size(), kGgufNormalToken);
  for (const uint32_t id : stops)
    if (id < vocab.types.size()) vocab.types[id] = kGgufControlToken;
}

GgufVocab vocab_of(const Gguf& gguf) {
  GgufVocab vocab;
  vocab.model = gguf.get_string("tokenizer.ggml.model");
  vocab.pre = gguf.find_string("tokenizer.ggml.pre").value_or("");
  vocab.tokens = owned(gguf.get_strings("tokenizer.ggml.tokens"));
  vocab.scores = gguf.find_floats("tokenizer.ggml.scores").value_or(std::vector<float>{});
  for (int64_t type :
       gguf.find_integers("tokenizer.ggml.token_type").value_or(std::vector<int64_t>{})) {
    vocab.types.push_back(static_cast<int32_t>(type));
  }
  if (const auto merges = gguf.find_strings("tokenizer.ggml.merges")) vocab.merges = owned(*merges);
  vocab.bos = token_or_none(gguf, "tokenizer.ggml.bos_token_id");
  vocab.eos = token_or_none(gguf, "tokenizer.ggml.eos_token_id");
  vocab.unk = token_or_none(gguf, "tokenizer.ggml.unknown_token_id");
  vocab.pad = token_or_none(gguf, "tokenizer.ggml.padding_token_id");
  vocab.add_bos = gguf.find_bool("tokenizer.ggml.add_bos_token");
  vocab.add_eos = gguf.find_bool("tokenizer.ggml.add_eos_token");
  vocab.add_space_prefix = gguf.find_bool("tokenizer.ggml.add_space_prefix");
  vocab.sep = token_or_none(gguf, "tokenizer.ggml.seperator_token_id");
  vocab.cls = token_or_none(gguf, "tokenizer.ggml.cls_token_id");
  vocab.add_sep = gguf.find_bool("tokenizer.ggml.add_sep_token");
  vocab.lowercase = gguf.find_bool("tokenizer.ggml.normalizer.lowercase");
  vocab.strip_accents = gguf.find_bool("tokenizer.ggml.normalizer.strip_accents");
  vocab.remove_extra_whitespaces = gguf.find_bool("tokenizer.ggml.remove_extra_whitespaces");
  for (int64_t byte :
       gguf.find_integers("tokenizer.ggml.precompiled_charsmap").value_or(std::vector<int64_t>{})) {
    vocab.precompiled_charsmap += static_cast<char>(byte);
  }
  vocab.strips_after_added = is_phi3(gguf);
  take_stops_as_control(gguf, vocab);
  return vocab;
}

std::shared_ptr<const ChatTemplate> template_of(const GgufVocab& vocab,
                                                ChatTemplateSource templates) {
  auto spelling = [&](int id) {
    return id >= 0 && id < static_cast<int>(vocab.tokens.size())
               ? vocab.tokens[static_cast<size_t>(id)]
               : "";
  };
  templates.bos_token = spelling(vocab.bos);
  templates.eos_token = spelling(vocab.eos);
  templates.unk_token = spelling(vocab.unk);
  templates.pad_token = spelling(vocab.pad);
  return ChatTemplate::from_source(templates);
}

// As transformers and llama.cpp: the template "tool_use" renders requests with tools, and all
// requests if it is the only one. Templates of other names are not used.
std::optional<ChatTemplateSource> templates_of(const Gguf& gguf) {
  ChatTemplateSource found;
  const auto usual = gguf.find_string("tokenizer.chat_template");
  const auto tool_use = gguf.find_string("tokenizer.chat_template.tool_use");
  if (tool_use) found.tool_use_source = std::string(*tool_use);
  if (usual) found.source = std::string(*usual);
  if (found.source.empty() && tool_use) found.source = std::string(*tool_use);
  if (found.source.empty()) return std::nullopt;
  return found;
}

void warn_of_doubts(const Gguf& gguf, const GgufVocab& vocab) {
  constexpr size_t kShown = 5;
  const auto unknown = unknown_tokenizer_keys(gguf);
  for (size_t i = 0; i < std::min(kShown, unknown.size()); ++i) {
    spdlog::warn("{}: {} is not a key that octavo knows; it is ignored", gguf.file_name(),
                 printable(unknown[i]));
  }
  if (vocab.model == "gpt2" && (vocab.pre.empty() || vocab.pre == "default")) {
    spdlog::warn(
        "{}: tokenizer.ggml.pre {}, so texts are split into words by a generic rule and may get "
        "other tokens than the model was trained with; convert the model again",
        gguf.file_name(), vocab.pre.empty() ? "is missing" : "is \"default\"");
  }
}

ModelText from_gguf(const Gguf& gguf) {
  const GgufVocab vocab = vocab_of(gguf);
  warn_of_doubts(gguf, vocab);
  ModelText text{.tokenizer = Tokenizer::from_json(tokenizer_json_from_gguf(vocab)),
                 .chat_template = nullptr};
  if (auto templates = templates_of(gguf))
    text.chat_template = template_of(vocab, *std::move(templates));
  return text;
}

}  // namespace

ModelText load_model_text(const Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) {
    ModelText text = from_gguf(*checkpoint.gguf());
    checkpoint.check();
    return text;
  }
  const auto folder = checkpoint.folder();
  const auto file = folder / "tokenizer.json";
  if (!std::filesystem::exists(file)) {
    throw SetupError(
        folder.string() +
        ": no tokenizer.json; only fast tokenizers are supported (convert a slow one with "
        "transformers' save_pretrained)");
  }
  ModelText text{.tokenizer = Tokenizer::from_file(file), .chat_template = nullptr};
  if (const auto source = find_chat_template(folder))
    text.chat_template = ChatTemplate::from_source(*source);
  return text;
}

void use_chat_template(ModelText& text, const std::filesystem::path& file,
                       const Checkpoint& checkpoint) {
  try {
    std::string source = read_text_file(file, kTemplateSourceBytes);
    if (checkpoint.gguf() != nullptr) {
      text.chat_template = template_of(vocab_of(*checkpoint.gguf()), {.source = std::move(source)});
      return;
    }
    ChatTemplateSource all = read_template_tokens(checkpoint.folder());
    all.source = std::move(source);
    text.chat_template = ChatTemplate::from_source(all);
  } catch (const SetupError& error) {
    throw SetupError(std::string("--chat-template: ") + error.what());
  }
}

}  // namespace octavo
