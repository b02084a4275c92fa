#include "text/gguf_tokenizer_json.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/error.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

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

ordered_json text_part(const char* which, int type) {
  return {{"Sequence", {{"id", which}, {"type_id", type}}}};
}

}  // namespace

ordered_json post_processor(const CheckedVocab& tokens, const AddedMarks& marks) {
  ordered_json specials = ordered_json::object();
  const auto add_mark = [&](ordered_json& parts, bool wanted, int id, const char* name, int type) {
    if (!wanted) return;
    if (id < 0)
      throw SetupError(fmt::format("the vocabulary adds a {} token but does not define it", name));
    const std::string& token = tokens.spelling(id);
    parts.push_back({{"SpecialToken", {{"id", token}, {"type_id", type}}}});
    specials[token] = {{"id", token}, {"ids", {id}}, {"tokens", {token}}};
  };
  const GgufVocab& vocab = tokens.vocab;
  ordered_json single = ordered_json::array();
  add_mark(single, marks.bos, vocab.bos, "bos", 0);
  single.push_back(text_part("A", 0));
  add_mark(single, marks.eos, vocab.eos, "eos", 0);
  ordered_json pair = single;
  add_mark(pair, marks.separator, vocab.sep, "separator", 0);
  pair.push_back(text_part("B", marks.second_type));
  add_mark(pair, marks.eos, vocab.eos, "eos", marks.second_type);
  if (specials.empty()) return nullptr;
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", specials}};
}

ordered_json tokenizer_document(const CheckedVocab& tokens, ordered_json parts) {
  ordered_json json = {{"version", "1.0"},
                       {"truncation", nullptr},
                       {"padding", nullptr},
                       {"added_tokens", added_tokens(tokens)}};
  json.update(parts);
  return json;
}

ordered_json json_sequence(const char* member, ordered_json list) {
  return {{"type", "Sequence"}, {member, std::move(list)}};
}

ordered_json json_replace(std::string_view pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", {{"String", pattern}}}, {"content", content}};
}

ordered_json json_decoder(const GgufTokenList& list, std::initializer_list<ordered_json> decoders) {
  ordered_json all = ordered_json::array();
  if (list.has_repeats) all.push_back(json_replace(kRepeatMark, ""));
  for (const ordered_json& one : decoders) all.push_back(one);
  return all.size() == 1 ? all.front() : json_sequence("decoders", std::move(all));
}

void check_scores(const GgufVocab& vocab) {
  if (vocab.scores.empty()) throw SetupError("the vocabulary has no scores");
  for (const float score : vocab.scores) {
    if (std::isnan(score)) throw SetupError("a score of the vocabulary is not a number");
  }
}

}  // namespace octavo
