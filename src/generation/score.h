// score.h - scores from pooled vectors. No MLX. Any thread.
//
// Sums and products have one order in float64, so that the bits of a score depend on nothing but the
// vectors.
#pragma once

#include <span>

#include "kernels/types/score_head.h"

namespace octavo {

// The score of a head with one label: its logit, or the logit's sigmoid. Throws RequestError(500) if
// it is not finite.
float head_score(const ScoreHead& head, std::span<const float> pooled, bool sigmoid);

// The cosine of the angle between two vectors of the same length; 0 if one of them is 0. Throws
// RequestError(500) if a value is not finite.
float cosine_score(std::span<const float> a, std::span<const float> b);

}  // namespace octavo
