#include "text/gguf_vocab.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/gguf_merges.h"
#include "text/gguf_pre_tokenizer.h"
#include "text/gguf_token_list.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMaxTokens = 4u << 20;
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

// A vocabulary whose sizes and tokens are valid.
struct CheckedVocab {
  const GgufVocab& vocab;
  const GgufTokenList& list;
  const TokenIndex index = list.index();

  const std::string& spelling(int id) const { return list.spellings[static_cast<size_t>(id)]; }
};

bool strips_after(const GgufVocab& vocab, std::string_view token) {
  return vocab.strips_after_added && token != "<s>" && token != "<unk>" && token != "<|endoftext|>";
}

ordered_json added_tokens(const CheckedVocab& tokens) {
  ordered_json added = ordered_json::array();
  for (size_t i = 0; i < tokens.list.spellings.size(); ++i) {
    const int type = gguf_token_type(tokens.vocab, i);
    if (!is_added_token(type)) continue;
    const std::string& content = tokens.list.spellings[i];
    added.push_back({{"id", i},
                     {"content", content},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", strips_after(tokens.vocab, content)},
                     {"normalized", false},
                     {"special", type != kGgufUserDefinedToken}});
  }
  return added;
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

// Returns null if neither BOS nor EOS is added.
ordered_json post_processor(const CheckedVocab& tokens, bool add_bos, bool add_eos) {
  ordered_json single = ordered_json::array();
  ordered_json pair = ordered_json::array();
  ordered_json specials = ordered_json::object();
  const auto mark = [&](bool wanted, int id, const char* name) {
    if (!wanted) return;
    if (id < 0)
      throw SetupError(fmt::format("the vocabulary adds a {} token but does not define it", name));
    const std::string& token = tokens.spelling(id);
    single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
    pair.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
    specials[token] = {{"id", token}, {"ids", {id}}, {"tokens", {token}}};
  };
  mark(add_bos, tokens.vocab.bos, "bos");
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  pair.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
  mark(add_eos, tokens.vocab.eos, "eos");
  if (specials.empty()) return nullptr;
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", specials}};
}

ordered_json document(const CheckedVocab& tokens, ordered_json parts) {
  ordered_json json = {{"version", "1.0"},
                       {"truncation", nullptr},
                       {"padding", nullptr},
                       {"added_tokens", added_tokens(tokens)}};
  json.update(parts);
  return json;
}

ordered_json sequence(const char* member, ordered_json list) {
  return {{"type", "Sequence"}, {member, std::move(list)}};
}

ordered_json replace(std::string_view pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", {{"String", pattern}}}, {"content", content}};
}

// `decoders` in order, after the marks of repeated tokens are removed.
ordered_json decoder(const GgufTokenList& list, std::initializer_list<ordered_json> decoders) {
  ordered_json all = ordered_json::array();
  if (list.has_repeats) all.push_back(replace(kRepeatMark, ""));
  for (const ordered_json& one : decoders) all.push_back(one);
  return all.size() == 1 ? all.front() : sequence("decoders", std::move(all));
}

ordered_json byte_level_bpe(const CheckedVocab& tokens, const GgufPreTokenizer& pre) {
  const GgufVocab& vocab = tokens.vocab;
  const BpeOptions options{.unk_token = nullptr, .ignore_merges = pre.ignore_merges};
  ordered_json byte_level = {{"type", "ByteLevel"},
                             {"add_prefix_space", false},
                             {"trim_offsets", true},
                             {"use_regex", true}};
  return document(
      tokens,
      {{"normalizer", pre.normalize_nfc ? ordered_json{{"type", "NFC"}} : ordered_json(nullptr)},
       {"pre_tokenizer", sequence("pretokenizers", pre.stages)},
       {"post_processor",
        post_processor(tokens, vocab.add_bos.value_or(pre.add_bos), vocab.add_eos.value_or(false))},
       {"decoder", decoder(tokens.list, {std::move(byte_level)})},
       {"model", bpe_model(tokens.list, written_merges(vocab.merges, tokens.index), options)}});
}

BpeOptions with_byte_fallback(const CheckedVocab& tokens) {
  BpeOptions options{.byte_fallback = true};
  if (tokens.vocab.unk >= 0) options.unk_token = tokens.spelling(tokens.vocab.unk);
  return options;
}

ordered_json raw_bpe(const CheckedVocab& tokens, const GgufPreTokenizer& pre) {
  const GgufVocab& vocab = tokens.vocab;
  const bool add_bos = pre.needs_bos || vocab.add_bos.value_or(pre.add_bos);
  const ordered_json byte_fallback = {{"type", "ByteFallback"}};
  const ordered_json fuse = {{"type", "Fuse"}};
  return document(
      tokens, {{"normalizer", replace(" ", kWordMark)},
               {"pre_tokenizer", nullptr},
               {"post_processor", post_processor(tokens, add_bos, vocab.add_eos.value_or(false))},
               {"decoder", decoder(tokens.list, {replace(kWordMark, " "), byte_fallback, fuse})},
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
  if (given.vocab.scores.empty()) throw SetupError("the vocabulary has no scores");
  for (const float score : given.vocab.scores) {
    if (std::isnan(score)) throw SetupError("a score of the vocabulary is not a number");
  }
  const GgufVocab vocab = with_usual_ids(given.vocab);
  const CheckedVocab tokens{.vocab = vocab, .list = given.list};
  const ordered_json byte_fallback = {{"type", "ByteFallback"}};
  const ordered_json fuse = {{"type", "Fuse"}};
  const ordered_json strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};

  const bool prefixed = vocab.add_space_prefix.value_or(true);
  ordered_json normalizers = ordered_json::array();
  if (prefixed) normalizers.push_back({{"type", "Prepend"}, {"prepend", kWordMark}});
  normalizers.push_back(replace(" ", kWordMark));
  const ordered_json spaces = replace(kWordMark, " ");
  return document(
      tokens,
      {{"normalizer", sequence("normalizers", std::move(normalizers))},
       {"pre_tokenizer", nullptr},
       {"post_processor",
        post_processor(tokens, vocab.add_bos.value_or(true), vocab.add_eos.value_or(false))},
       {"decoder", prefixed ? decoder(tokens.list, {spaces, byte_fallback, fuse, strip})
                            : decoder(tokens.list, {spaces, byte_fallback, fuse})},
       {"model", bpe_model(tokens.list,
                           merges_from_scores(tokens.list.spellings, vocab.scores, tokens.index),
                           with_byte_fallback(tokens))}});
}

}  // namespace

std::string tokenizer_json_from_gguf(const GgufVocab& vocab) {
  check_sizes(vocab);
  const GgufTokenList list = gguf_token_list(vocab);
  const CheckedVocab tokens{.vocab = vocab, .list = list};
  // Ollama's converter writes "llama" for Gemma 4, with the merges that make it "gemma4".
  const bool is_gemma4 = vocab.model == "gemma4" ||
                         (vocab.model == "llama" && vocab.pre == "gemma4" && !vocab.merges.empty());
  if (is_gemma4) return merged_bpe(tokens, "gemma4").dump();
  if (vocab.model == "gpt2") return merged_bpe(tokens, vocab.pre).dump();
  if (vocab.model == "llama") return sentence_piece_bpe(tokens).dump();
  throw SetupError(
      fmt::format("tokenizer.ggml.model is \"{}\", which is not supported; supported: gemma4, "
                  "gpt2, llama. Use a "
                  "safetensors checkpoint of this model, whose tokenizer.json octavo reads",
                  vocab.model));
}

}  // namespace octavo
