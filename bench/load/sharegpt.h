// sharegpt.h - requests from conversations in the format of ShareGPT. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/load/load_request.h"

namespace octavo::bench {

// The first human turn and the first answer behind it.
struct Conversation {
  std::string prompt;
  std::string answer;
};

// From [{"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", ...}, ...]}, ...].
// Conversations without both turns are left out. Throws SetupError.
std::vector<Conversation> read_sharegpt(const std::filesystem::path& path);

// How many tokens a text has, with those that begin a prompt.
using CountTokens = std::function<int(const std::string& text)>;

// Up to `count` of them, in an order drawn with the seed. Each asks for as many tokens as its
// answer has. As in vLLM, prompts and answers under 4 tokens, prompts over 1024 and pairs over 2048
// are left out.
std::vector<LoadRequest> sharegpt_requests(std::vector<Conversation> conversations, size_t count,
                                           uint64_t seed, const CountTokens& count_tokens);

}  // namespace octavo::bench
