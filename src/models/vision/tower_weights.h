// tower_weights.h - loads norms and linear layers of a vision tower.
#pragma once

#include <string>

#include "kernels/norm.h"
#include "models/vision/clamped_linear.h"
#include "models/weight_source.h"

namespace octavo {

// The module's weight, and its bias for kLayer.
NormSpec load_tower_norm(WeightSource& source, const std::string& module, int size, Norm kind,
                         float eps);

// The module with a bias if `biased`, and without clamps.
ClampedLinear load_plain_linear(WeightSource& source, const std::string& module, int rows, int cols,
                                bool biased);

}  // namespace octavo
