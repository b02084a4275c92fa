// sampling_params.h - shared by the sampling kernels and their host code. No MLX.
#pragma once

#include "kernels/metal/shared_types.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kPlaceThreads = 256;

METAL_CONSTANT int kLogitBlock = 256;      // logits per block; the maximum of each block is stored
METAL_CONSTANT int kMaximaThreads = 256;   // a simdgroup per block
METAL_CONSTANT int kSampleThreads = 512;   // per row
METAL_CONSTANT int kMostLogits = 1 << 19;  // per row: more could overflow the sum of weights

inline int blocks_of(int vocab) { return (vocab + kLogitBlock - 1) / kLogitBlock; }

METAL_CONSTANT int kRuleTokens = 2048;  // tokens per threadgroup of rule_logits
METAL_CONSTANT int kRuleThreads = 256;

struct SampleParams {
  int32_t vocab;
  int32_t blocks;
};

// The rules of one row. Places are in `words`, except for the mask's; -1: none. Bits of masks are as in
// kernels/types/token_mask.h, for every token of the vocabulary.
struct RowRules {
  int32_t row;      // of the logits
  int32_t mask;     // row of `masks`
  int32_t allowed;  // a mask
  int32_t bans;     // pairs: token, and the pending token it depends on or -1
  int32_t ban_count;
  int32_t biases;  // pairs: token, float
  int32_t bias_count;
  int32_t history;  // tokens: the prompt's, then the answer's
  int32_t prompt_count;
  int32_t history_count;
  int32_t pending;  // entry of `previous`: the answer's next token
  float repetition_penalty;
  float frequency_penalty;
  float presence_penalty;
};

// How one row is drawn. A 64-bit number is a fraction of 2^64 in two words.
struct RowDraw {
  int32_t ruled;      // row of the logits after rules; -1: no rules
  int32_t mask;       // row of `masks`; -1: none
  float temperature;  // 0: greedy
  float scale;        // log2(e) / temperature, applied to the distance from the largest logit
  float floor;        // tokens with a smaller weight are not drawn
  int32_t top_k;      // 0: all
  int32_t has_top_p;
  uint32_t top_p_high;
  uint32_t top_p_low;
  uint32_t uniform_high;
  uint32_t uniform_low;
};

}  // namespace metal
}  // namespace octavo
