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

// What changes the logits before the draw. One per request, shared by all its rows.
struct LogitRules {
  float repetition_penalty = 1;  // over prompt and answer
  float presence_penalty = 0;    // over the answer
  float frequency_penalty = 0;   // over the answer
  std::vector<std::pair<TokenId, float>> logit_bias = {};
  std::vector<std::vector<TokenId>> bad_words = {};  // none of these may be completed
  std::vector<uint32_t> allowed = {};   // bit t % 32 of word t / 32: t may be drawn; empty: all may
  int min_tokens = 0;                   // until the answer has this many...
  std::vector<TokenId> held_back = {};  // ...these (the stop tokens) may not be drawn
};

// The sequence so far, for the rules that look at it.
struct RowHistory {
  std::shared_ptr<const TokenLog> log = nullptr;
  int32_t prompt = 0;  // tokens of the prompt: the first of the log
  int32_t known = 0;   // tokens of the log to read, the prompt's included
  // The token behind them is still in flight: this entry of the previous step's drawn tokens.
  int32_t pending = -1;
  // Or the tokens behind them are a draft's, taken to be right: the first of these.
  std::shared_ptr<const std::vector<TokenId>> assumed = nullptr;
  int32_t assumed_count = 0;
};

// Applied in vLLM's order: mask, allowed, bad words, min_tokens, bias, penalties (repetition, then
// frequency, then presence), temperature, min_p, top_k, top_p, draw. (seed, choice, position) alone
// decide the draw.
struct RowSampling {
  float temperature = 0;  // 0: the likeliest token, lowest id on a tie
  float top_p = 1;
  float min_p = 0;
  int32_t top_k = 0;  // 0: all
  uint64_t seed = 0;
  uint32_t choice = 0;
  uint32_t position = 0;  // of the token being drawn
  int32_t logprobs = -1;  // the drawn token's and this many of the likeliest; -1: none
  bool hash_logits = false;
  std::shared_ptr<const LogitRules> rules = nullptr;  // none: the logits as they are
  RowHistory history = {};                            // read only with rules
  std::shared_ptr<const TokenMask> mask = nullptr;    // none: every token may be drawn
};

}  // namespace octavo
