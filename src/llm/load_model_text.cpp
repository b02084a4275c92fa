#include "llm/load_model_text.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "text/gguf_vocab.h"

namespace octavo {
namespace {

std::vector<std::string> owned(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

int token_or_none(const Gguf& gguf, const char* key) {
  return static_cast<int>(gguf.find_u32(key).value_or(static_cast<uint32_t>(-1)));
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
  return vocab;
}

std::shared_ptr<const ChatTemplate> template_of(const GgufVocab& vocab, std::string source) {
  auto spelling = [&](int id) {
    return id >= 0 && id < static_cast<int>(vocab.tokens.size())
               ? vocab.tokens[static_cast<size_t>(id)]
               : "";
  };
  return ChatTemplate::from_source({.source = std::move(source),
                                    .tool_use_source = std::nullopt,
                                    .bos_token = spelling(vocab.bos),
                                    .eos_token = spelling(vocab.eos),
                                    .unk_token = spelling(vocab.unk),
                                    .pad_token = spelling(vocab.pad)});
}

ModelText from_gguf(const Gguf& gguf) {
  const GgufVocab vocab = vocab_of(gguf);
  ModelText text{.tokenizer = Tokenizer::from_json(tokenizer_json_from_gguf(vocab)),
                 .chat_template = nullptr};
  if (const auto source = gguf.find_string("tokenizer.chat_template"))
    text.chat_template = template_of(vocab, std::string(*source));
  return text;
}

}  // namespace

ModelText load_model_text(const Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) return from_gguf(*checkpoint.gguf());
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
      text.chat_template = template_of(vocab_of(*checkpoint.gguf()), std::move(source));
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
