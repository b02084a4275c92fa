// gguf_merges.h - the merge list of a GGUF vocabulary: as written, or worked out from scores.
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

// "left right" lines to pairs. Throws SetupError for a line that names a token the vocabulary
// lacks.
std::vector<Merge> written_merges(const GgufVocab& vocab, const TokenIndex& index);

// Every way to make a token from two others, best score first: the list (and the order) that
// Hugging Face's SentencePiece converter makes. Needs one score per token.
std::vector<Merge> merges_from_scores(const GgufVocab& vocab, const TokenIndex& index);

}  // namespace octavo
