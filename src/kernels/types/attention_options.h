// attention_options.h - how attention turns products of q and k into weights. No MLX.
#pragma once

#include <utility>

namespace octavo {

// Sinks: how the caller holds them, an array or raw memory.
template <typename Sinks>
struct AttentionOptionsWith {
  float scale = 1;     // on the scores; > 0
  int window = 0;      // > 0: a row sees its last `window` positions, itself included
  float soft_cap = 0;  // > 0: scores become soft_cap * tanh(score / soft_cap)
  Sinks sinks = {};    // [q_heads] float32, or none: a logit that only the denominator sees

  template <typename Other>
  AttentionOptionsWith<Other> with_sinks(Other other) const {
    return {scale, window, soft_cap, std::move(other)};
  }
};

}  // namespace octavo
