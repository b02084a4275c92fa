#include "models/layers/layer_norm.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"

namespace octavo {

void share_type(std::initializer_list<mx::array*> arrays) {
  const mx::Dtype first = (*arrays.begin())->dtype();
  if (std::ranges::all_of(arrays, [&](const mx::array* a) { return a->dtype() == first; })) return;
  for (mx::array* array : arrays) {
    *array = mx::astype(*array, mx::float32);
    array->eval();
  }
}

NormSpec load_layer_norm(WeightSource& source, const std::string& name, int size, bool biased,
                         float eps) {
  constexpr std::string_view kWeight = "weight";
  OCTAVO_CHECK(name.ends_with(kWeight));
  NormSpec spec{.weight = source.vector(name, size), .eps = eps, .kind = Norm::kLayer};
  if (!biased) return spec;
  spec.bias = source.vector(name.substr(0, name.size() - kWeight.size()) + "bias", size);
  share_type({&spec.weight, &*spec.bias});
  return spec;
}

}  // namespace octavo
