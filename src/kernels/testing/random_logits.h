// random_logits.h - rows of logits for the tests of sampling: flat, peaked, tied, holed; and ways
// to draw from them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/types/row_sampling.h"

namespace octavo {

enum class LogitShape : uint8_t {
  kFlat,    // normally distributed
  kPeaked,  // as from a language model: a few are much larger
  kTied,    // few distinct numbers
  kHoled,   // with NaN and minus infinity
  kEqual,   // one number
};
inline constexpr int kLogitShapes = 5;

inline std::vector<float> random_logits(std::mt19937& random, size_t vocab, LogitShape shape) {
  std::normal_distribution<float> normal;
  std::vector<float> logits(vocab);
  for (auto& logit : logits) {
    logit = normal(random) * 2;
    if (shape == LogitShape::kPeaked && random() % 100 == 0) logit = 10 + 3 * normal(random);
    if (shape == LogitShape::kTied) logit = std::round(logit);
    if (shape == LogitShape::kEqual) logit = 0.5f;
    if (shape == LogitShape::kHoled && random() % 4 == 0)
      logit = random() % 2 == 0 ? NAN : -std::numeric_limits<float>::infinity();
  }
  if (shape == LogitShape::kHoled) logits[random() % vocab] = 1;  // at least one number
  return logits;
}

inline LogitShape random_shape(std::mt19937& random) {
  return static_cast<LogitShape>(random() % kLogitShapes);
}

inline RowSampling random_sampling(std::mt19937& random, size_t vocab) {
  const auto chance = [&] { return random() % 2 == 0; };
  RowSampling s{.temperature = 0.3f + static_cast<float>(random() % 20) / 10,
                .seed = random(),
                .choice = static_cast<uint32_t>(random() % 4),
                .position = static_cast<uint32_t>(random() % 1000)};
  if (chance()) s.top_p = static_cast<float>(random() % 1000) / 1000;
  if (chance()) s.min_p = static_cast<float>(random() % 100) / 300;
  if (chance()) s.top_k = 1 + static_cast<int32_t>(random() % (vocab + 5));
  return s;
}

}  // namespace octavo
