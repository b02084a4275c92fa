#include "text/gguf_vocab.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/gguf_merges.h"
#include "text/gguf_pre_tokenizer.h"
#include "text/utf8.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

// `tokenizer.ggml.token_type`
constexpr int kUnknown = 2;
constexpr int kControl = 3;
constexpr int kUserDefined = 4;

constexpr size_t kMaxTokens = 4u << 20;
constexpr size_t kMaxTokenBytes = 4096;
// Finding merges takes time proportional to the squares of the tokens' sizes: a few seconds. Real
// vocabularies have less than 100 million.
constexpr size_t kMaxSquaredBytes = 4'000'000'000;

constexpr const char* kWordMark = "\xE2\x96\x81";  // U+2581, SentencePiece's space

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
}

TokenIndex index_tokens(const GgufVocab& vocab) {
  TokenIndex index;
  index.reserve(vocab.tokens.size());
  size_t squares = 0;
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    const std::string& token = vocab.tokens[i];
    if (token.size() > kMaxTokenBytes) {
      throw SetupError(
          fmt::format("token {} has {} bytes; the limit is {}", i, token.size(), kMaxTokenBytes));
    }
    squares += token.size() * token.size();
    if (squares > kMaxSquaredBytes)
      throw SetupError(fmt::format("the tokens up to {} are too long for a vocabulary", i));
    if (!is_valid_utf8(token)) throw SetupError(fmt::format("token {} is not UTF-8", i));
    const auto [place, added] = index.emplace(token, static_cast<int>(i));
    if (!added) throw SetupError(fmt::format("token {} repeats token {}", i, place->second));
  }
  return index;
}

int type_of(const GgufVocab& vocab, size_t i) { return vocab.types.empty() ? 1 : vocab.types[i]; }

ordered_json added_tokens(const GgufVocab& vocab) {
  ordered_json added = ordered_json::array();
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    const int type = type_of(vocab, i);
    if (type != kUnknown && type != kControl && type != kUserDefined) continue;
    if (vocab.tokens[i].empty()) continue;
    added.push_back({{"id", i},
                     {"content", vocab.tokens[i]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", type != kUserDefined}});
  }
  return added;
}

struct BpeOptions {
  ordered_json unk_token = nullptr;  // null: none
  bool sentence_piece = false;
  bool ignore_merges = false;
};

ordered_json bpe_model(const GgufVocab& vocab, const std::vector<Merge>& merges,
                       const BpeOptions& options) {
  ordered_json pairs = ordered_json::array();
  for (const auto& [left, right] : merges) pairs.push_back({left, right});
  // The names are known to be unique, so append them; inserting would compare each with all others.
  ordered_json::object_t ids;
  ids.reserve(vocab.tokens.size());
  for (size_t i = 0; i < vocab.tokens.size(); ++i) ids.emplace_back(vocab.tokens[i], i);
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", options.unk_token},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", options.sentence_piece},
          {"byte_fallback", options.sentence_piece},
          {"ignore_merges", options.ignore_merges},
          {"vocab", std::move(ids)},
          {"merges", std::move(pairs)}};
}

// Returns null if neither BOS nor EOS is added.
ordered_json post_processor(const GgufVocab& vocab, bool add_bos, bool add_eos) {
  ordered_json single = ordered_json::array();
  ordered_json pair = ordered_json::array();
  ordered_json specials = ordered_json::object();
  const auto mark = [&](bool wanted, int id, const char* name) {
    if (!wanted) return;
    if (id < 0)
      throw SetupError(fmt::format("the vocabulary adds a {} token but does not define it", name));
    const std::string& token = vocab.tokens[static_cast<size_t>(id)];
    single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
    pair.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
    specials[token] = {{"id", token}, {"ids", {id}}, {"tokens", {token}}};
  };
  mark(add_bos, vocab.bos, "bos");
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  pair.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
  mark(add_eos, vocab.eos, "eos");
  if (specials.empty()) return nullptr;
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", specials}};
}

ordered_json document(const GgufVocab& vocab, ordered_json parts) {
  ordered_json json = {{"version", "1.0"},
                       {"truncation", nullptr},
                       {"padding", nullptr},
                       {"added_tokens", added_tokens(vocab)}};
  json.update(parts);
  return json;
}

ordered_json sequence(const char* member, ordered_json list) {
  return {{"type", "Sequence"}, {member, std::move(list)}};
}

ordered_json byte_level_bpe(const GgufVocab& vocab, const TokenIndex& index) {
  const GgufPreTokenizer pre = gguf_pre_tokenizer(vocab.pre);
  if (vocab.merges.empty()) throw SetupError("the vocabulary has no merges");
  const bool add_bos = vocab.add_bos.value_or(pre.add_bos);
  const BpeOptions options{.unk_token = nullptr, .ignore_merges = pre.ignore_merges};
  ordered_json byte_level = {{"type", "ByteLevel"},
                             {"add_prefix_space", false},
                             {"trim_offsets", true},
                             {"use_regex", true}};
  return document(
      vocab,
      {{"normalizer", pre.normalize_nfc ? ordered_json{{"type", "NFC"}} : ordered_json(nullptr)},
       {"pre_tokenizer", sequence("pretokenizers", pre.stages)},
       {"post_processor", post_processor(vocab, add_bos, vocab.add_eos.value_or(false))},
       {"decoder", std::move(byte_level)},
       {"model", bpe_model(vocab, written_merges(vocab, index), options)}});
}

ordered_json replace(const char* pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", {{"String", pattern}}}, {"content", content}};
}

ordered_json sentence_piece_bpe(GgufVocab vocab, const TokenIndex& index) {
  if (vocab.scores.empty()) throw SetupError("the vocabulary has no scores");
  for (const float score : vocab.scores) {
    if (std::isnan(score)) throw SetupError("a score of the vocabulary is not a number");
  }
  // SentencePiece's default ids.
  const auto fallback = [&](int& id, int usual) {
    if (id < 0 && static_cast<size_t>(usual) < vocab.tokens.size()) id = usual;
  };
  fallback(vocab.unk, 0);
  fallback(vocab.bos, 1);
  fallback(vocab.eos, 2);

  ordered_json normalizers = ordered_json::array();
  ordered_json decoders = ordered_json::array(
      {replace(kWordMark, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  if (vocab.add_space_prefix.value_or(true)) {
    normalizers.push_back({{"type", "Prepend"}, {"prepend", kWordMark}});
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  normalizers.push_back(replace(" ", kWordMark));

  BpeOptions options{.sentence_piece = true};
  if (vocab.unk >= 0) options.unk_token = vocab.tokens[static_cast<size_t>(vocab.unk)];
  return document(vocab, {{"normalizer", sequence("normalizers", std::move(normalizers))},
                          {"pre_tokenizer", nullptr},
                          {"post_processor", post_processor(vocab, vocab.add_bos.value_or(true),
                                                            vocab.add_eos.value_or(false))},
                          {"decoder", sequence("decoders", std::move(decoders))},
                          {"model", bpe_model(vocab, merges_from_scores(vocab, index), options)}});
}

}  // namespace

std::string tokenizer_json_from_gguf(const GgufVocab& vocab) {
  check_sizes(vocab);
  const TokenIndex index = index_tokens(vocab);
  if (vocab.model == "gpt2") return byte_level_bpe(vocab, index).dump();
  if (vocab.model == "llama") return sentence_piece_bpe(vocab, index).dump();
  throw SetupError(
      fmt::format("tokenizer.ggml.model is \"{}\", which is not supported; supported: gpt2, llama",
                  vocab.model));
}

}  // namespace octavo
