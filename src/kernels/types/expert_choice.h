// expert_choice.h - how a mixture of experts selects experts from a token's logits. No MLX.
#pragma once

#include <cstdint>

namespace octavo {

// How logits become scores, which select and weight experts.
enum class ExpertScore : uint8_t {
  kSoftmax,          // over all experts
  kSigmoid,          // each by itself
  kSoftmaxOfChosen,  // selected by their logits; softmax over the selected ones only
};

// The score of a group of experts: only experts of the best groups are selected.
enum class GroupScore : uint8_t {
  kTopTwo,  // the sum of its two best scores
  kBest,    // its best score
};

struct ExpertChoice {
  int experts = 0;
  int top_k = 0;  // experts per token
  ExpertScore score = ExpertScore::kSoftmax;
  int groups = 1;  // of equal size, contiguous
  int top_groups = 1;
  GroupScore group_score = GroupScore::kTopTwo;
  bool renormalize = false;  // weights sum to 1 before the scale
  // Added to the sum that they are divided by. The default is below every score's rounding error, so
  // it only affects a division of zero by zero.
  float renormalize_eps = 1e-20f;
  float scale = 1;  // on all weights
};

}  // namespace octavo
