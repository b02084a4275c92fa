#include "text/gguf_unigram.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "base/base64.h"
#include "base/error.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

// llama.cpp's, which are T5's. Files of other models have these keys.
constexpr int kUsualEnd = 1;
constexpr int kUsualUnknown = 2;

GgufVocab with_unigram_ids(GgufVocab vocab) {
  const auto count = static_cast<int>(vocab.tokens.size());
  if (vocab.unk < 0) {
    const auto unknown = std::ranges::find(vocab.types, kGgufUnknownToken);
    vocab.unk = unknown != vocab.types.end() ? static_cast<int>(unknown - vocab.types.begin())
                                             : kUsualUnknown;
  }
  if (vocab.unk >= count) throw SetupError("the vocabulary has no unknown token");
  if (vocab.bos < 0) vocab.bos = vocab.cls;
  if (vocab.eos < 0) vocab.eos = vocab.sep >= 0 ? vocab.sep : std::min(kUsualEnd, count - 1);
  if (vocab.sep < 0) vocab.sep = vocab.eos;
  return vocab;
}

// Unused tokens fill gaps and have scores below all others. An unknown character costs a fixed amount
// more than the worst token, so it must not be one of these.
ordered_json pieces(const CheckedVocab& tokens) {
  const GgufVocab& vocab = tokens.vocab;
  const auto is_unused = [&](size_t i) { return gguf_token_type(vocab, i) == kGgufUnusedToken; };
  float worst = 0;
  for (size_t i = 0; i < vocab.scores.size(); ++i)
    if (!is_unused(i)) worst = std::min(worst, vocab.scores[i]);
  ordered_json list = ordered_json::array();
  list.get_ref<ordered_json::array_t&>().reserve(vocab.scores.size());
  for (size_t i = 0; i < vocab.scores.size(); ++i) {
    const float score = is_unused(i) ? std::max(worst, vocab.scores[i]) : vocab.scores[i];
    list.push_back({tokens.list.spellings[i], static_cast<double>(score)});
  }
  return list;
}

ordered_json unigram_normalizer(const GgufVocab& vocab) {
  if (vocab.precompiled_charsmap.empty()) return nullptr;
  std::string charsmap;
  append_base64(charsmap, std::as_bytes(std::span(vocab.precompiled_charsmap)));
  return {{"type", "Precompiled"}, {"precompiled_charsmap", std::move(charsmap)}};
}

ordered_json word_marks(bool prefixed, bool split) {
  return {{"type", "Metaspace"},
          {"replacement", kWordMark},
          {"prepend_scheme", prefixed ? "always" : "never"},
          {"split", split}};
}

}  // namespace

ordered_json unigram_tokenizer(const CheckedVocab& given) {
  check_scores(given.vocab);
  const GgufVocab vocab = with_unigram_ids(given.vocab);
  const CheckedVocab tokens{.vocab = vocab, .list = given.list};
  // As llama.cpp: if spaces are merged, every word has one before it.
  const bool merges_spaces = vocab.remove_extra_whitespaces.value_or(false);
  const bool prefixed = merges_spaces || vocab.add_space_prefix.value_or(false);
  const ordered_json marks = word_marks(prefixed, merges_spaces);
  const ordered_json words = {{"type", "WhitespaceSplit"}};
  const bool adds_bos = vocab.add_bos.value_or(false);
  return tokenizer_document(
      tokens,
      {{"normalizer", unigram_normalizer(vocab)},
       {"pre_tokenizer", merges_spaces
                             ? json_sequence("pretokenizers", ordered_json::array({words, marks}))
                             : marks},
       {"post_processor", post_processor(tokens, {.bos = adds_bos,
                                                  .eos = vocab.add_eos.value_or(true),
                                                  .separator = vocab.add_sep.value_or(adds_bos),
                                                  .second_type = 0})},
       {"decoder", json_decoder(tokens.list, {word_marks(prefixed, merges_spaces)})},
       {"model",
        {{"type", "Unigram"},
         {"unk_id", vocab.unk},
         {"vocab", pieces(tokens)},
         {"byte_fallback", std::ranges::find(vocab.types, kGgufByteToken) != vocab.types.end()}}}});
}

}  // namespace octavo
