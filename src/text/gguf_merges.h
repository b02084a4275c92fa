// gguf_merges.h - the BPE merges of a GGUF vocabulary: as stored, or derived from scores.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/gguf_vocab.h"

namespace octavo {

using Merge = std::pair<std::string_view, std::string_view>;  // views into the vocabulary
using TokenIndex = std::unordered_map<std::string_view, int>;

// Parses "left right" entries into pairs. Throws SetupError if an entry names an unknown token.
std::vector<Merge> written_merges(const GgufVocab& vocab, const TokenIndex& index);

// Every way to form a token from two others, best score first: the same list, in the same order, as
// Hugging Face's SentencePiece converter. Requires one score per token.
std::vector<Merge> merges_from_scores(const GgufVocab& vocab, const TokenIndex& index);

}  // namespace octavo
