// embedding.h - truncates and normalises a pooled vector. No MLX. Any thread.
#pragma once

#include <vector>

namespace octavo {

struct EmbeddingForm {
  int dimensions = 0;     // keep the first `dimensions`; 0: all
  bool normalize = true;  // to length 1, after truncation
};

// Throws RequestError(500) if a value is not finite.
void finish_embedding(std::vector<float>& vector, const EmbeddingForm& form);

}  // namespace octavo
