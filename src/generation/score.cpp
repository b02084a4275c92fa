#include "generation/score.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"

namespace octavo {
namespace {

double finite_score(double score) {
  if (!std::isfinite(score))
    throw RequestError(500, "", "the model computed a score that is not finite");
  return score;
}

}  // namespace

float head_score(const ScoreHead& head, std::span<const float> pooled, bool sigmoid) {
  OCTAVO_CHECK(head.labels() == 1);
  const double logit = finite_score(head.logits(pooled).front());
  return static_cast<float>(sigmoid ? portable_sigmoid(logit) : logit);
}

float cosine_score(std::span<const float> a, std::span<const float> b) {
  OCTAVO_CHECK(a.size() == b.size());
  double dot = 0;
  double squares_a = 0;
  double squares_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(a[i]);
    const auto y = static_cast<double>(b[i]);
    dot += x * y;
    squares_a += x * x;
    squares_b += y * y;
  }
  const double lengths = std::sqrt(squares_a) * std::sqrt(squares_b);
  const double cosine = finite_score(dot) / std::max(finite_score(lengths), 1e-300);
  return static_cast<float>(std::clamp(cosine, -1.0, 1.0));
}

}  // namespace octavo
