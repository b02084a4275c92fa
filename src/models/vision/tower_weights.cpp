#include "models/vision/tower_weights.h"

#include "models/layers/layer_norm.h"
#include "models/layers/projection.h"

namespace octavo {

NormSpec load_tower_norm(WeightSource& source, const std::string& module, int size, Norm kind,
                         float eps) {
  if (kind == Norm::kLayer) return load_layer_norm(source, module + ".weight", size, true, eps);
  return {.weight = source.vector(module + ".weight", size), .eps = eps, .kind = kind};
}

ClampedLinear load_plain_linear(WeightSource& source, const std::string& module, int rows, int cols,
                                bool biased) {
  return {.linear = load_projection(source, module, rows, cols, biased)};
}

}  // namespace octavo
