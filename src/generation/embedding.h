// embedding.h - a pooled vector made ready to be compared. No MLX. Any thread.
#pragma once

#include <vector>

namespace octavo {

struct EmbeddingForm {
  int dimensions = 0;     // the first so many are kept; 0: all
  bool normalize = true;  // to length 1, after that
};

// Throws RequestError(500) when a number is not finite: no vector can be compared with it.
void finish_embedding(std::vector<float>& vector, const EmbeddingForm& form);

}  // namespace octavo
