// cut.h (cpu) - finds the threshold of a row's most likely tokens, for top_k, top_p and logprobs,
// without sorting the row. No MLX.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace octavo::cpu {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The next larger float; denormals count as zero, as they do in comparisons on computing threads.
float next_above(float value);

// Logits in id order with the largest of each block of kLogitBlock.
struct LogitRow {
  std::span<const float> logits;
  std::span<const float> maxima;
};

// Writes the largest logit of each block to `maxima`. Returns the largest of all, or minus infinity
// if every logit is NaN.
float find_maxima(std::span<const float> logits, std::vector<float>& maxima);

// A threshold that at least `count` logits reach: the count-th largest maximum, or minus infinity
// if there are fewer blocks.
float reached_by(std::span<const float> maxima, int64_t count);

// Indices of the logits >= `from`, in ascending order.
void indices_from(const LogitRow& row, float from, std::vector<int32_t>& out);

// Keeps the logits above `logit` and, of those equal to it, the ones up to `index`.
struct Cut {
  float logit = 0;
  int32_t index = 0;

  bool keeps(float other, int32_t at) const {
    return other > logit || (other == logit && at <= index);
  }
};

struct CutSearch {
  LogitRow row;
  const float* weights = nullptr;  // one per logit; null: each weighs 1
  double total = 0;                // of the weights
  double target = 0;
  float lowest = 0;   // finite; the logits >= it reach the target, or are all that count
  float largest = 0;  // below the largest float
};

// Keeps the fewest of the largest logits whose weights reach the target, at least one; ties keep
// the lower index. If the target is not reached, keeps all logits >= lowest.
Cut find_cut(const CutSearch& search);

}  // namespace octavo::cpu
