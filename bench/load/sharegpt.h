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

// The first two turns.
struct Conversation {
  std::string prompt;
  std::string answer;
};

// Both read [{"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", ...}, ...]},
// ...] and throw SetupError.

// As vLLM does: skips entries with fewer than two turns, and does not look at their speakers.
std::vector<Conversation> read_sharegpt(const std::filesystem::path& path);

// As vllm-metal's tools/avg_gen_length.py does: the first human turn of each conversation without
// surrounding white space, in an order that the seed selects; at most `count`.
std::vector<std::string> sharegpt_prompts(const std::filesystem::path& path, size_t count,
                                          uint64_t seed);

// Counts the tokens of a text, including those added at the start of a prompt.
using CountTokens = std::function<int(const std::string& text)>;

struct ShareGptOptions {
  size_t count = 100;
  uint64_t seed = 0;
  int output_tokens = 0;  // 0: as many as the conversation's answer has
};

// Returns up to options.count requests: those that vLLM picks for the same seed, in its order. As
// in vLLM, prompts and answers under 4 tokens, prompts over 1024 and pairs over 2048 are skipped; a
// given number of output tokens may be smaller.
std::vector<LoadRequest> sharegpt_requests(std::vector<Conversation> conversations,
                                           const ShareGptOptions& options,
                                           const CountTokens& count_tokens);

}  // namespace octavo::bench
