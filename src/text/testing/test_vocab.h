// test_vocab.h - small vocabularies for tests.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>

#include "text/gguf_vocab.h"
#include "text/tokenizer.h"

namespace octavo {

// The character that stands for `byte` in byte-level vocabularies (GPT-2's table), as UTF-8.
inline std::string byte_character(int byte) {
  int code = byte;
  const auto printable = [](int b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
  };
  if (!printable(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

// 256 bytes (ids 0 to 255), then "he", "ll", a control and a user-defined token.
inline GgufVocab byte_level_vocab() {
  GgufVocab vocab;
  vocab.model = "gpt2";
  vocab.pre = "gpt-2";
  for (int byte = 0; byte < 256; ++byte) vocab.tokens.push_back(byte_character(byte));
  vocab.types.assign(256, 1);
  for (const char* token : {"he", "ll"}) vocab.tokens.push_back(token), vocab.types.push_back(1);
  vocab.merges = {"h e", "l l"};
  vocab.tokens.push_back("<|end|>"), vocab.types.push_back(3);
  vocab.tokens.push_back("<tool>"), vocab.types.push_back(4);
  vocab.bos = vocab.eos = 258;
  return vocab;
}

// <unk> <s> </s>, 256 byte tokens (ids 3 to 258), then pieces.
inline GgufVocab sentence_piece_vocab() {
  GgufVocab vocab;
  vocab.model = "llama";
  const auto add = [&](std::string token, int type, float score) {
    vocab.tokens.push_back(std::move(token));
    vocab.types.push_back(type);
    vocab.scores.push_back(score);
  };
  add("<unk>", 2, 0);
  add("<s>", 3, 0);
  add("</s>", 3, 0);
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), 6, 0);
  for (const char* piece : {"\u2581", "a", "b", "ab", "\u2581ab"}) {
    add(piece, 1, -static_cast<float>(vocab.tokens.size()));
  }
  return vocab;
}

// The same tokens with merges instead of scores, as Gemma 4: <unk> <eos> <bos>, bytes, pieces.
inline GgufVocab raw_vocab() {
  GgufVocab vocab = sentence_piece_vocab();
  vocab.model = "gemma4";
  vocab.scores.clear();
  vocab.tokens[1] = "<eos>";
  vocab.tokens[2] = "<bos>";
  vocab.unk = 0, vocab.eos = 1, vocab.bos = 2;
  vocab.merges = {"a b", "\u2581 ab"};
  return vocab;
}

// Uncased pieces of BERT: four marks, then "un" (4), "believ" (5), "able" (6), "a" (7) and "!" (8).
inline GgufVocab word_piece_vocab() {
  GgufVocab vocab;
  vocab.model = "bert";
  vocab.tokens = {"[PAD]",  "[UNK]", "[CLS]",   "[SEP]",  "\u2581un",
                  "believ", "able",  "\u2581a", "\u2581!"};
  vocab.types = {3, 3, 3, 3, 1, 1, 1, 1, 1};
  vocab.pad = 0, vocab.unk = 1, vocab.cls = 2, vocab.sep = 3;
  return vocab;
}

// As XLM-RoBERTa's: <s>, <pad>, </s>, <unk>, then pieces from 4.
inline GgufVocab unigram_vocab() {
  GgufVocab vocab;
  vocab.model = "t5";
  vocab.tokens = {"<s>", "<pad>", "</s>", "<unk>", "\u2581", "a", "b", "ab", "\u2581ab"};
  vocab.scores = {0, 0, 0, 0, -1, -3, -3, -4, -2};
  vocab.types = {3, 3, 3, 2, 1, 1, 1, 1, 1};
  vocab.bos = 0, vocab.pad = 1, vocab.eos = 2, vocab.unk = 3;
  vocab.add_bos = vocab.add_eos = vocab.add_space_prefix = vocab.remove_extra_whitespaces = true;
  return vocab;
}

inline std::shared_ptr<const Tokenizer> tokenizer_of(const GgufVocab& vocab) {
  return Tokenizer::from_json(tokenizer_json_from_gguf(vocab));
}

}  // namespace octavo
