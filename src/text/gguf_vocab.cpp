#include "text/gguf_vocab.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/gguf_merges.h"
#include "text/gguf_pre_tokenizer.h"
#include "text/gguf_token_list.h"
#include "text/gguf_tokenizer_json.h"
#include "text/gguf_unigram.h"
#include "text/gguf_word_piece.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMaxTokens = 4u << 20;

void check_id(const char* name, int id, size_t count) {
  if (id >= 0 && static_cast<size_t>(id) >= count) {
    throw SetupError(
        fmt::format("the vocabulary's {} id {} is not below its size {}", name, id, count));
  }
}

void check_sizes(const GgufVocab& vocab) {
  const size_t count = vocab.tokens.size();
  if (count == 0) throw SetupError("the vocabulary has no tokens");
  if (count > kMaxTokens || vocab.merges.size() > 4 * kMaxTokens) {
    throw SetupError(fmt::format("the vocabulary is too large: {} tokens", count));
  }
  const auto check_count = [&](const char* name, size_t size) {
    if (size != 0 && size != count) {
      throw SetupError(fmt::format("the vocabulary has {} tokens but {} {}", count, size, name));
    }
  };
  check_count("scores", vocab.scores.size());
  check_count("types", vocab.types.size());
  check_id("bos", vocab.bos, count);
  check_id("eos", vocab.eos, count);
  check_id("unknown", vocab.unk, count);
  check_id("padding", vocab.pad, count);
  check_id("separator", vocab.sep, count);
  check_id("cls", vocab.cls, count);
}

struct BpeOptions {
  ordered_json unk_token = nullptr;  // null: none
  bool byte_fallback = false;        // <0xXX> tokens for the bytes of unknown characters
  bool ignore_merges = false;
};

ordered_json bpe_model(const GgufTokenList& list, const std::vector<Merge>& merges,
                       const BpeOptions& options) {
  ordered_json pairs = ordered_json::array();
  for (const auto& [left, right] : merges) pairs.push_back({left, right});
  // The spellings are unique, so append them; inserting would compare each with all others.
  ordered_json::object_t ids;
  ids.reserve(list.spellings.size());
  for (size_t i = 0; i < list.spellings.size(); ++i) ids.emplace_back(list.spellings[i], i);
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", options.unk_token},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", options.byte_fallback},
          {"byte_fallback", options.byte_fallback},
          {"ignore_merges", options.ignore_merges},
          {"vocab", std::move(ids)},
          {"merges", std::move(pairs)}};
}

AddedMarks marks_of(const GgufVocab& vocab, bool usual_bos) {
  const bool separates = vocab.add_sep.value_or(false) && vocab.sep >= 0;
  return {.bos = vocab.add_bos.value_or(usual_bos),
          .eos = vocab.add_eos.value_or(false),
          .separator = separates,
          .second_type = separates ? 0 : 1};
}

ordered_json byte_level_bpe(const CheckedVocab& tokens, const GgufPreTokenizer& pre) {
  const GgufVocab& vocab = tokens.vocab;
  const BpeOptions options{.unk_token = nullptr, .ignore_merges = pre.ignore_merges};
  ordered_json byte_level = {{"type", "ByteLevel"},
                             {"add_prefix_space", false},
                             {"trim_offsets", true},
                             {"use_regex", true}};
  return tokenizer_document(
      tokens,
      {{"normalizer", pre.normalize_nfc ? ordered_json{{"type", "NFC"}} : ordered_json(nullptr)},
       {"pre_tokenizer", json_sequence("pretokenizers", pre.stages)},
       {"post_processor", post_processor(tokens, marks_of(vocab, pre.add_bos))},
       {"decoder", json_decoder(tokens.list, {std::move(byte_level)})},
       {"model", bpe_model(tokens.list, written_merges(vocab.merges, tokens.index), options)}});
}

BpeOptions with_byte_fallback(const CheckedVocab& tokens) {
  BpeOptions options{.byte_fallback = true};
  if (tokens.vocab.unk >= 0) options.unk_token = tokens.spelling(tokens.vocab.unk);
  return options;
}

ordered_json raw_bpe(const CheckedVocab& tokens, const GgufPreTokenizer& pre) {
  const GgufVocab& vocab = tokens.vocab;
  AddedMarks marks = marks_of(vocab, pre.add_bos);
  if (pre.needs_bos) marks.bos = true;
  const ordered_json byte_fallback = {{"type", "ByteFallback"}};
  const ordered_json fuse = {{"type", "Fuse"}};
  return tokenizer_document(
      tokens,
      {{"normalizer", json_replace(" ", kWordMark)},
       {"pre_tokenizer", nullptr},
       {"post_processor", post_processor(tokens, marks)},
       {"decoder", json_decoder(tokens.list, {json_replace(kWordMark, " "), byte_fallback, fuse})},
       {"model", bpe_model(tokens.list, written_merges(vocab.merges, tokens.index),
                           with_byte_fallback(tokens))}});
}

ordered_json merged_bpe(const CheckedVocab& tokens, std::string_view pre_name) {
  const GgufPreTokenizer pre = gguf_pre_tokenizer(pre_name);
  if (tokens.vocab.merges.empty()) throw SetupError("the vocabulary has no merges");
  return pre.is_raw ? raw_bpe(tokens, pre) : byte_level_bpe(tokens, pre);
}

// SentencePiece's default ids.
GgufVocab with_usual_ids(GgufVocab vocab) {
  const auto fallback = [&](int& id, int usual) {
    if (id < 0 && static_cast<size_t>(usual) < vocab.tokens.size()) id = usual;
  };
  fallback(vocab.unk, 0);
  fallback(vocab.bos, 1);
  fallback(vocab.eos, 2);
  return vocab;
}

ordered_json sentence_piece_bpe(const CheckedVocab& given) {
  check_scores(given.vocab);
  const GgufVocab vocab = with_usual_ids(given.vocab);
  const CheckedVocab tokens{.vocab = vocab, .list = given.list};
  const ordered_json byte_fallback = {{"type", "ByteFallback"}};
  const ordered_json fuse = {{"type", "Fuse"}};
  const ordered_json strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};

  const bool prefixed = vocab.add_space_prefix.value_or(true);
  ordered_json normalizers = ordered_json::array();
  if (prefixed) normalizers.push_back({{"type", "Prepend"}, {"prepend", kWordMark}});
  normalizers.push_back(json_replace(" ", kWordMark));
  const ordered_json spaces = json_replace(kWordMark, " ");
  return tokenizer_document(
      tokens,
      {{"normalizer", json_sequence("normalizers", std::move(normalizers))},
       {"pre_tokenizer", nullptr},
       {"post_processor", post_processor(tokens, marks_of(vocab, true))},
       {"decoder", prefixed ? json_decoder(tokens.list, {spaces, byte_fallback, fuse, strip})
                            : json_decoder(tokens.list, {spaces, byte_fallback, fuse})},
       {"model", bpe_model(tokens.list,
                           merges_from_scores(tokens.list.spellings, vocab.scores, tokens.index),
                           with_byte_fallback(tokens))}});
}

}  // namespace

std::string tokenizer_json_from_gguf(const GgufVocab& vocab) {
  check_sizes(vocab);
  if (vocab.model == "bert") return word_piece_tokenizer(vocab).dump();
  const GgufTokenList list = gguf_token_list(vocab);
  const CheckedVocab tokens{.vocab = vocab, .list = list};
  // Ollama's converter writes "llama" for Gemma 4, with the merges that make it "gemma4".
  const bool is_gemma4 = vocab.model == "gemma4" ||
                         (vocab.model == "llama" && vocab.pre == "gemma4" && !vocab.merges.empty());
  if (is_gemma4) return merged_bpe(tokens, "gemma4").dump();
  if (vocab.model == "gpt2") return merged_bpe(tokens, vocab.pre).dump();
  if (vocab.model == "llama") return sentence_piece_bpe(tokens).dump();
  if (vocab.model == "t5") return unigram_tokenizer(tokens).dump();
  throw SetupError(
      fmt::format("tokenizer.ggml.model is \"{}\", which is not supported; supported: bert, "
                  "gemma4, gpt2, llama, t5. Use a safetensors checkpoint of this model, whose "
                  "tokenizer.json octavo reads",
                  vocab.model));
}

}  // namespace octavo
