#include "text/gguf_token_list.h"

#include <fmt/format.h>

#include "base/error.h"
#include "text/utf8.h"

namespace octavo {
namespace {

constexpr size_t kMaxTokenBytes = 4096;
// Finding merges takes time proportional to the squares of the tokens' sizes: a few seconds. Real
// vocabularies have less than 100 million.
constexpr size_t kMaxSquaredBytes = 4'000'000'000;
// Each repetition lengthens the spelling. The official files of Gemma 4 repeat three tokens once.
constexpr size_t kMaxRepetitions = 64;

void check_token(std::string_view token, size_t i) {
  if (token.size() > kMaxTokenBytes) {
    throw SetupError(
        fmt::format("token {} has {} bytes; the limit is {}", i, token.size(), kMaxTokenBytes));
  }
  if (!is_valid_utf8(token)) throw SetupError(fmt::format("token {} is not UTF-8", i));
  if (token.find(kRepeatMark) != std::string_view::npos)
    throw SetupError(fmt::format("token {} contains U+10FFFF, which is not a character", i));
}

}  // namespace

bool is_added_token(int type) {
  return type == kGgufUnknownToken || type == kGgufControlToken || type == kGgufUserDefinedToken;
}

int gguf_token_type(const GgufVocab& vocab, size_t i) {
  return vocab.types.empty() ? kGgufNormalToken : vocab.types[i];
}

TokenIndex GgufTokenList::index() const {
  TokenIndex index;
  index.reserve(spellings.size());
  for (size_t i = 0; i < spellings.size(); ++i) index.emplace(spellings[i], static_cast<int>(i));
  return index;
}

GgufTokenList gguf_token_list(const GgufVocab& vocab) {
  GgufTokenList list{.spellings = vocab.tokens};
  size_t squares = 0;
  for (size_t i = 0; i < list.spellings.size(); ++i) {
    std::string& token = list.spellings[i];
    if (token.empty()) token = fmt::format("[EMPTY_{}]", i);
    check_token(token, i);
    squares += token.size() * token.size();
    if (squares > kMaxSquaredBytes)
      throw SetupError(fmt::format("the tokens up to {} are too long for a vocabulary", i));
  }

  struct Owner {
    size_t token;
    size_t repetitions;
  };
  std::unordered_map<std::string, Owner> owners;
  owners.reserve(list.spellings.size());
  for (size_t i = 0; i < list.spellings.size(); ++i) {
    const auto [found, is_new] = owners.try_emplace(list.spellings[i], Owner{i, 0});
    if (is_new) continue;
    Owner& owner = found->second;
    if (++owner.repetitions > kMaxRepetitions) {
      throw SetupError(
          fmt::format("token {} repeats token {} and more than {} others; convert the model again",
                      i, owner.token, kMaxRepetitions));
    }
    list.has_repeats = true;
    const bool keeps = is_added_token(gguf_token_type(vocab, owner.token)) &&
                       !is_added_token(gguf_token_type(vocab, i));
    const size_t loser = keeps ? i : owner.token;
    if (!keeps) owner.token = i;
    for (size_t marks = 0; marks < owner.repetitions; ++marks) list.spellings[loser] += kRepeatMark;
  }
  return list;
}

}  // namespace octavo
