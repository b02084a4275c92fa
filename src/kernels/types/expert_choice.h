// expert_choice.h - how a mixture of experts picks experts from a token's logits. No MLX.
#pragma once

#include <cstdint>

namespace octavo {

// What logits are turned into before experts are picked and weighed.
enum class ExpertScore : uint8_t {
  kSoftmax,          // over all experts
  kSigmoid,          // each by itself
  kSoftmaxOfChosen,  // picked by their logits; softmax over the picked ones only
};

// What a group of experts is worth: only experts of the best groups are picked.
enum class GroupScore : uint8_t {
  kTopTwo,  // the sum of its two best scores
  kBest,    // its best score
};

struct ExpertChoice {
  int experts = 0;
  int top_k = 0;  // experts per token
  ExpertScore score = ExpertScore::kSoftmax;
  int groups = 1;  // of equal size, side by side
  int top_groups = 1;
  GroupScore group_score = GroupScore::kTopTwo;
  bool renormalize = false;  // weights add up to 1, before the scale
  float scale = 1;           // of all weights
};

}  // namespace octavo
