#include "text/gguf_word_piece.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/gguf_token_list.h"
#include "text/gguf_tokenizer_json.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

constexpr int kLongestWord = 100;  // in characters; BERT's, which GGUF files do not have

// Files name the marks by cls and sep, by bos and eos, or not at all.
int mark_id(const GgufVocab& vocab, int id, int other, std::string_view name) {
  if (id >= 0) return id;
  if (other >= 0) return other;
  const auto found = std::ranges::find(vocab.tokens, name);
  if (found != vocab.tokens.end()) return static_cast<int>(found - vocab.tokens.begin());
  throw SetupError(fmt::format("the vocabulary has no {} token", name));
}

std::string word_piece(std::string_view token, bool is_special) {
  if (token.starts_with(kWordMark))
    return std::string(token.substr(std::string_view(kWordMark).size()));
  return is_special ? std::string(token) : "##" + std::string(token);
}

// With the ids that the template needs, and tokens as WordPiece spells them.
GgufVocab as_word_pieces(GgufVocab vocab) {
  vocab.bos = mark_id(vocab, vocab.cls, vocab.bos, "[CLS]");
  vocab.eos = mark_id(vocab, vocab.sep, vocab.eos, "[SEP]");
  vocab.unk = mark_id(vocab, vocab.unk, -1, "[UNK]");
  if (vocab.types.empty()) vocab.types.assign(vocab.tokens.size(), kGgufNormalToken);
  for (const int id : {vocab.bos, vocab.eos, vocab.unk, vocab.pad})
    if (id >= 0) vocab.types[static_cast<size_t>(id)] = kGgufControlToken;
  for (size_t i = 0; i < vocab.tokens.size(); ++i)
    vocab.tokens[i] = word_piece(vocab.tokens[i], is_added_token(vocab.types[i]));
  return vocab;
}

// Vocabularies of lowercased text have no capital letters. llama.cpp lowercases if the file does not
// say, which gives a model of cased text unknown tokens.
bool has_capitals(const CheckedVocab& tokens) {
  return tokens.index.contains("A") || tokens.index.contains("##A");
}

}  // namespace

ordered_json word_piece_tokenizer(const GgufVocab& given) {
  const GgufVocab vocab = as_word_pieces(given);
  const GgufTokenList list = gguf_token_list(vocab);
  const CheckedVocab tokens{.vocab = vocab, .list = list};
  const bool lowercase = vocab.lowercase.value_or(!has_capitals(tokens));
  ordered_json::object_t ids;
  ids.reserve(list.spellings.size());
  for (size_t i = 0; i < list.spellings.size(); ++i) ids.emplace_back(list.spellings[i], i);
  const ordered_json joined = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  return tokenizer_document(tokens,
                            {{"normalizer",
                              {{"type", "BertNormalizer"},
                               {"clean_text", true},
                               {"handle_chinese_chars", true},
                               {"strip_accents", vocab.strip_accents.value_or(lowercase)},
                               {"lowercase", lowercase}}},
                             {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                             {"post_processor", post_processor(tokens, {.bos = true, .eos = true})},
                             {"decoder", json_decoder(list, {joined})},
                             {"model",
                              {{"type", "WordPiece"},
                               {"unk_token", tokens.spelling(vocab.unk)},
                               {"continuing_subword_prefix", "##"},
                               {"max_input_chars_per_word", kLongestWord},
                               {"vocab", std::move(ids)}}}});
}

}  // namespace octavo
