// sharegpt.h - requests from conversations in ShareGPT format. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/load/load_request.h"

namespace octavo::bench {

// The first human turn and the first answer after it.
struct Conversation {
  std::string prompt;
  std::string answer;
};

// From [{"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", ...}, ...]}, ...].
// Skips conversations without both turns. Throws SetupError.
std::vector<Conversation> read_sharegpt(const std::filesystem::path& path);

// Counts the tokens of a text, including those added at the start of a prompt.
using CountTokens = std::function<int(const std::string& text)>;

// Returns up to `count` requests in random order. Each requests as many tokens as its answer has.
// As in vLLM, prompts and answers under 4 tokens, prompts over 1024 and pairs over 2048 are
// skipped.
std::vector<LoadRequest> sharegpt_requests(std::vector<Conversation> conversations, size_t count,
                                           uint64_t seed, const CountTokens& count_tokens);

}  // namespace octavo::bench
