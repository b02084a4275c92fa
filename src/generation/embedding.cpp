#include "generation/embedding.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace octavo {

void finish_embedding(std::vector<float>& vector, const EmbeddingForm& form) {
  if (!std::ranges::all_of(vector, [](float value) { return std::isfinite(value); }))
    throw RequestError(500, "", "the model computed a vector with a value that is not finite");
  if (form.dimensions > 0) {
    OCTAVO_CHECK(static_cast<size_t>(form.dimensions) <= vector.size());
    vector.resize(static_cast<size_t>(form.dimensions));
  }
  if (!form.normalize) return;
  double squares = 0;
  for (const float value : vector) squares += static_cast<double>(value) * value;
  const double length = std::max(std::sqrt(squares), 1e-12);  // as torch does; zeros stay zeros
  for (float& value : vector) value = static_cast<float>(value / length);
}

}  // namespace octavo
