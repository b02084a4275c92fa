// row_sampling.h - how one row's token is drawn. No MLX.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/token_id.h"
#include "kernels/types/token_log.h"
#include "kernels/types/token_mask.h"

namespace octavo {

// Changes to the logits before the draw. One per request, shared by all its rows.
struct LogitRules {
  float repetition_penalty = 1;                            // over prompt and output
  float presence_penalty = 0;                              // over the output
  float frequency_penalty = 0;                             // over the output
  std::vector<std::pair<TokenId, float>> logit_bias = {};  // each token once
  std::vector<std::vector<TokenId>> bad_words = {};        // sequences that may not be completed
  std::vector<uint32_t> allowed = {};   // bit t % 32 of word t / 32: t may be drawn; empty: all may
  int min_tokens = 0;                   // until the output has this many...
  std::vector<TokenId> held_back = {};  // ...these (the stop tokens) may not be drawn
};

// The sequence so far, for the rules that look at it.
struct RowHistory {
  std::shared_ptr<const TokenLog> log = nullptr;
  int32_t prompt = 0;  // tokens of the prompt: the first of the log
  int32_t known = 0;   // tokens of the log to read, the prompt's included
  // The token after them is still being drawn: its index in the previous step's tokens.
  int32_t pending = -1;
  // Or draft tokens follow them, assumed to be accepted: the first of these.
  std::shared_ptr<const std::vector<TokenId>> assumed = nullptr;
  int32_t assumed_count = 0;
};

// Applied in vLLM's order: mask, allowed, bad words, min_tokens, bias, penalties (repetition, then
// frequency, then presence), temperature, min_p, top_k, top_p, draw. The draw depends on (seed,
// choice, position) alone.
struct RowSampling {
  float temperature = 0;  // 0: the most likely token, lowest id on a tie
  float top_p = 1;
  float min_p = 0;
  int32_t top_k = 0;  // 0: all
  uint64_t seed = 0;
  uint32_t choice = 0;
  uint32_t position = 0;  // of the token being drawn
  int32_t logprobs = -1;  // of the drawn token and this many most likely ones; -1: none
  bool hash_logits = false;
  std::shared_ptr<const LogitRules> rules = nullptr;  // null: unmodified logits
  RowHistory history = {};                            // read only with rules
  std::shared_ptr<const TokenMask> mask = nullptr;    // null: every token may be drawn
};

}  // namespace octavo
