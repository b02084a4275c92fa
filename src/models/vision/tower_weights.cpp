#include "models/vision/tower_weights.h"

#include <algorithm>

#include "models/layers/projection.h"

namespace octavo {

void share_type(std::initializer_list<mx::array*> arrays) {
  const mx::Dtype first = (*arrays.begin())->dtype();
  if (std::ranges::all_of(arrays, [&](const mx::array* a) { return a->dtype() == first; })) return;
  for (mx::array* array : arrays) {
    *array = mx::astype(*array, mx::float32);
    array->eval();
  }
}

NormSpec load_tower_norm(WeightSource& source, const std::string& module, int size, Norm kind,
                         float eps) {
  NormSpec spec{.weight = source.vector(module + ".weight", size), .eps = eps, .kind = kind};
  if (kind != Norm::kLayer) return spec;
  spec.bias = source.vector(module + ".bias", size);
  share_type({&spec.weight, &*spec.bias});
  return spec;
}

ClampedLinear load_plain_linear(WeightSource& source, const std::string& module, int rows, int cols,
                                bool biased) {
  return {.linear = load_projection(source, module, rows, cols, biased)};
}

}  // namespace octavo
