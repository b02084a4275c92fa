// gguf_tokenizer_json.h - the parts of a tokenizer.json that the kinds of GGUF vocabularies share.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/gguf_token_list.h"
#include "text/gguf_vocab.h"

namespace octavo {

inline constexpr const char* kWordMark = "\xE2\x96\x81";  // U+2581, SentencePiece's space

// A vocabulary whose sizes and tokens are valid.
struct CheckedVocab {
  const GgufVocab& vocab;
  const GgufTokenList& list;
  const TokenIndex index = list.index();

  const std::string& spelling(int id) const { return list.spellings[static_cast<size_t>(id)]; }
};

// What is added to texts. An id is that of the vocabulary, which throws SetupError if it has none.
struct AddedMarks {
  bool bos = false;
  bool eos = false;
  bool separator = false;  // before the second text of a pair
  int second_type = 1;     // of the second text's tokens
};

// Returns null if there are no marks.
nlohmann::ordered_json post_processor(const CheckedVocab& tokens, const AddedMarks& marks);

// A whole tokenizer.json. `parts`: normalizer, pre_tokenizer, post_processor, decoder and model.
nlohmann::ordered_json tokenizer_document(const CheckedVocab& tokens, nlohmann::ordered_json parts);

nlohmann::ordered_json json_sequence(const char* member, nlohmann::ordered_json list);
nlohmann::ordered_json json_replace(std::string_view pattern, const char* content);
// `decoders` in order, after the marks of repeated tokens are removed.
nlohmann::ordered_json json_decoder(const GgufTokenList& list,
                                    std::initializer_list<nlohmann::ordered_json> decoders);

// Throws SetupError if there are no scores or one is not a number.
void check_scores(const GgufVocab& vocab);

}  // namespace octavo
