// gguf_merges.h - the BPE merges of a GGUF vocabulary: as stored, or derived from scores.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/gguf_token_list.h"

namespace octavo {

using Merge = std::pair<std::string_view, std::string_view>;  // views into the index

// Parses "left right" entries into pairs. Of equal entries the first counts, as in llama.cpp. Throws
// SetupError if an entry names an unknown token.
std::vector<Merge> written_merges(std::span<const std::string> lines, const TokenIndex& index);

// Every way to form a token from two others, best score first: the same list, in the same order, as
// Hugging Face's SentencePiece converter. Requires one score per token.
std::vector<Merge> merges_from_scores(std::span<const std::string> tokens,
                                      std::span<const float> scores, const TokenIndex& index);

}  // namespace octavo
