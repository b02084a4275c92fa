// per_layer_input_plan.h - a second, narrow embedding of each token for every layer (Gemma 4), as
// data. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo {

// Layer i gets (norm(projection(x0)) + embedding(token)) / sqrt(2), `width` numbers, where x0 is
// the model's input row; it adds norm(W_out (gelu(W_gate x) * them)) to its result.
struct PerLayerInputPlan {
  int width = 0;
  int vocab = 0;  // rows of the table

  uint64_t parameters(int hidden, size_t layers) const;
  // Per layer, and for the rows shared by all layers.
  uint64_t row_elements(int hidden) const;
  uint64_t shared_row_elements(size_t layers) const;
};

}  // namespace octavo
